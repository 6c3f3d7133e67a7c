#include "experts/cache/next_use.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace sluice::experts {

NextUse::NextUse(const RequestList& future) : future_(future), next_(future.accesses()) {
  ExpertTable<std::uint64_t> later;  // 1 + event of the next use; 0: never
  for (std::size_t event = future.events(); event-- > 0;) {
    const std::span<const ExpertId> ids = future.event(event);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::uint64_t& seen = later.at(ids[i]);
      next_[future.begin(event) + i] = seen == 0 ? kNever : seen - 1;
      seen = event + 1;
    }
  }
}

void NextUse::on_step(const StepReport& report) {
  if (report.event >= future_.events() || !std::ranges::equal(report.used, future_.event(report.event))) {
    throw Error(ErrorKind::kInvalid, "event " + std::to_string(report.event) +
                                         " is not the one in the list of requests that the oracle was given");
  }
  const std::size_t begin = future_.begin(report.event);
  for (std::size_t i = 0; i < report.used.size(); ++i) now_.at(report.used[i]) = next_[begin + i];
}

std::uint64_t NextUse::after(ExpertId id) const {
  const std::uint64_t* next = now_.find(id);
  return next == nullptr ? kNever : *next;
}

}  // namespace sluice::experts
