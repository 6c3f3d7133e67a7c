// When each expert is used next, read from the whole list of requests: the future that only oracles may see.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "experts/cache/cache.h"
#include "experts/core/expert_table.h"
#include "experts/core/requests.h"

namespace sluice::experts {

class NextUse {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  explicit NextUse(const RequestList& future);  // `future` must outlive this
  // Moves on to the report's event. Error(kInvalid) if the report differs from the list's event.
  void on_step(const StepReport& report);
  // The event after the current one that uses `id`; exact for every expert used so far.
  std::uint64_t after(ExpertId id) const;

 private:
  const RequestList& future_;
  std::vector<std::uint64_t> next_;  // parallel to all accesses
  ExpertTable<std::uint64_t> now_;
};

}  // namespace sluice::experts
