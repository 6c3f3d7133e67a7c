#include "device/accountant.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/setting.h"

namespace sluice::device {
namespace {

constexpr std::array<std::string_view, kAccountCount> kNames = {"process",     "dense",   "experts", "kv",
                                                                "activations", "staging", "tables",  "serve"};

std::size_t index_of(Account account) {
  const auto index = static_cast<std::size_t>(account);
  SLUICE_CHECK(index < kAccountCount, std::to_string(index));
  return index;
}

std::string ledger_text(const std::array<Bytes, kAccountCount>& used) {
  std::string text;
  for (std::size_t i = 0; i < kAccountCount; ++i) {
    if (i == index_of(Account::kServe) && used[i] == 0) continue;  // only servers have it
    if (!text.empty()) text += ", ";
    text.append(kNames[i]).append(" ").append(format_bytes(used[i]));
  }
  return text;
}

}  // namespace

std::string_view account_name(Account account) { return kNames[index_of(account)]; }

Accountant::Accountant(Bytes budget) : budget_(budget) {}

bool Accountant::try_charge(Account account, Bytes bytes) {
  const std::size_t i = index_of(account);
  const std::lock_guard lock(mutex_);
  if (bytes > budget_ - total_) return false;
  used_[i] += bytes;
  total_ += bytes;
  peak_[i] = std::max(peak_[i], used_[i]);
  peak_total_ = std::max(peak_total_, total_);
  return true;
}

void Accountant::charge(Account account, Bytes bytes) {
  if (try_charge(account, bytes)) return;
  std::array<Bytes, kAccountCount> used{};
  Bytes total = 0;
  {
    const std::lock_guard lock(mutex_);
    used = used_;
    total = total_;
  }
  throw Error(ErrorKind::kBudget,
              fmt::format("the memory budget of {} is too small for {} ({})", format_bytes(budget_),
                          account_name(account), ledger_text(used)))
      .in(Setting::kMemory)
      .expected(fmt::format("{} ({} bytes)", format_bytes(bytes), bytes))
      .found(fmt::format("{} ({} bytes) left", format_bytes(budget_ - total), budget_ - total))
      .fix("give a larger budget or a shorter context");
}

void Accountant::move(Account from, Account to, Bytes bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t source = index_of(from), target = index_of(to);
  SLUICE_CHECK(used_[source] >= bytes, std::string(account_name(from)) + " holds less than is moved");
  used_[source] -= bytes;
  used_[target] += bytes;
  peak_[target] = std::max(peak_[target], used_[target]);
}

void Accountant::release(Account account, Bytes bytes) {
  const std::size_t i = index_of(account);
  const std::lock_guard lock(mutex_);
  SLUICE_CHECK(bytes <= used_[i], fmt::format("{}: {} of {}", kNames[i], bytes, used_[i]));
  used_[i] -= bytes;
  total_ -= bytes;
}

Bytes Accountant::used() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

Bytes Accountant::used(Account account) const {
  const std::size_t i = index_of(account);
  const std::lock_guard lock(mutex_);
  return used_[i];
}

Bytes Accountant::available() const {
  const std::lock_guard lock(mutex_);
  return budget_ - total_;
}

Bytes Accountant::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_total_;
}

Bytes Accountant::peak(Account account) const {
  const std::size_t i = index_of(account);
  const std::lock_guard lock(mutex_);
  return peak_[i];
}

std::string Accountant::ledger() const {
  const std::lock_guard lock(mutex_);
  return ledger_text(used_);
}

}  // namespace sluice::device
