#include "report/memory_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/engine_device.h"
#include "engine/plan/memory_plan.h"
#include "engine/run_report.h"

namespace sluice::app {
namespace {

constexpr device::Account kAccounts[] = {
    device::Account::kProcess,     device::Account::kDense,   device::Account::kExperts, device::Account::kKv,
    device::Account::kActivations, device::Account::kStaging, device::Account::kTables};

std::vector<device::Account> accounts_of(const engine::RunReport& run) {
  std::vector<device::Account> accounts(std::begin(kAccounts), std::end(kAccounts));
  if (run.memory.serve != 0) accounts.push_back(device::Account::kServe);
  return accounts;
}

}  // namespace

Bytes memory_peak(const engine::RunReport& run, Engines engines) {
  const Bytes accounted = run.accountant.peak();
  // The memory of an emulated device is of this process, too, and has a budget of its own.
  const bool plays = run.device != nullptr && run.device->spec().is_played();
  const Bytes devices = plays ? run.device->peak() : 0;
  const Bytes measured = engine::measured_peak();
  return engines == Engines::kOne ? std::max(accounted, measured - std::min(measured, devices)) : accounted;
}

Json memory_json(const engine::RunReport& run, Engines engines) {
  Json by_name;
  for (const device::Account account : accounts_of(run))
    by_name[std::string(device::account_name(account))] = run.accountant.peak(account);
  return {{"budget", run.memory.budget},
          {"peak", memory_peak(run, engines)},
          {"accounted", run.accountant.peak()},
          {"by_name", by_name}};
}

std::string memory_line(const engine::RunReport& run) {
  std::string line;
  for (const device::Account account : accounts_of(run))
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", device::account_name(account),
                        format_bytes(run.accountant.peak(account)));
  return line;
}

std::string memory_line_short(const engine::RunReport& run, std::size_t columns) {
  struct Part {
    Bytes used;
    std::string text;
  };
  std::vector<Part> parts;
  std::size_t length = std::string_view("MiB:").size();
  for (const device::Account account : accounts_of(run)) {
    const Bytes used = run.accountant.used(account);
    parts.push_back({used, fmt::format(" {} {:.1f}", device::account_name(account),
                                       static_cast<double>(used) / static_cast<double>(kMiB))});
    length += parts.back().text.size();
  }
  if (run.device != nullptr) {
    const Bytes used = run.device->used();
    parts.push_back(
        {used, fmt::format(" | device {:.1f}", static_cast<double>(used) / static_cast<double>(kMiB))});
    length += parts.back().text.size();
  }
  constexpr std::size_t kMore = 2;  // columns of " …"
  bool left_out = false;
  while (!parts.empty() && length + (left_out ? kMore : 0) > columns) {
    const auto smallest = std::min_element(parts.begin(), parts.end(),
                                           [](const Part& a, const Part& b) { return a.used < b.used; });
    length -= smallest->text.size();
    parts.erase(smallest);
    left_out = true;
  }
  std::string line = "MiB:";
  for (const Part& part : parts) line += part.text;
  return left_out ? line + " …" : line;
}

}  // namespace sluice::app
