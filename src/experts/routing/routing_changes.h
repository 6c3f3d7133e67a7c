// How much a router has changed the model's routing over a run. SPEC I7.
#pragma once

#include <cstdint>

#include "experts/routing/router.h"

namespace sluice::experts {

struct RoutingChanges {
  std::uint64_t tokens = 0;          // tokens of layers: a token counts once in each layer
  std::uint64_t changed_tokens = 0;  // tokens whose set is not the model's own
  std::uint64_t own = 0;             // experts of the model's own sets
  std::uint64_t substituted = 0;     // experts of those sets that were not used
  double mass_lost = 0;              // sum of the scores of those experts

  void add(const ScoresView& scores, const Routing& routing, const SequenceSpan& span);  // one span's tokens
  // Share of the model's own choices that were used.
  double agreement() const {
    return own == 0 ? 1 : 1 - static_cast<double>(substituted) / static_cast<double>(own);
  }
};

}  // namespace sluice::experts
