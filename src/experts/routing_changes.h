// What a router that changes the model's routing has changed, over a run. SPEC I7.
#pragma once

#include <cstdint>

#include "experts/router.h"

namespace sluice::experts {

struct RoutingChanges {
  std::uint64_t tokens = 0;          // of layers: a token counts once in each
  std::uint64_t changed_tokens = 0;  // whose set is not the model's own
  std::uint64_t substituted = 0;     // experts of the model's own sets that were not used
  double mass_lost = 0;              // sum of their scores

  void add(const ScoresView& scores, const Routing& routing);  // of an exact router: tokens only
};

}  // namespace sluice::experts
