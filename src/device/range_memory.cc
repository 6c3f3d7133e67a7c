#include "device/range_memory.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"

namespace sluice::device {

RangeMemory::RangeMemory(std::string_view unit, Bytes bytes)
    : Memory(own_accountant_), unit_(unit), own_accountant_(whole(bytes)), ranges_(whole(bytes)) {}

Address RangeMemory::take(Account account, Bytes bytes) {
  const std::lock_guard lock(mutex_);
  const std::optional<Bytes> offset = ranges_.take(bytes);
  if (!offset) {
    const bool is_divided = bytes <= ranges_.free_bytes();
    throw Error(ErrorKind::kBudget, fmt::format("the memory of the device, {}, is too {} for {} ({})",
                                                format_bytes(budget()), is_divided ? "divided" : "small",
                                                account_name(account), own_accountant_.ledger()))
        .in(unit_)
        .expected(fmt::format("{} ({} bytes)", format_bytes(bytes), bytes))
        .found(is_divided ? fmt::format("{} free, at most {} together", format_bytes(ranges_.free_bytes()),
                                        format_bytes(ranges_.largest_free()))
                          : fmt::format("{} ({} bytes) left", format_bytes(ranges_.free_bytes()),
                                        ranges_.free_bytes()))
        .fix("give the device more memory");
  }
  own_accountant_.charge(account, cost(bytes));
  return at(*offset);
}

void RangeMemory::give(Account account, Address address, Bytes bytes) {
  const std::lock_guard lock(mutex_);
  ranges_.give(offset_of(address), bytes);
  own_accountant_.release(account, cost(bytes));
}

}  // namespace sluice::device
