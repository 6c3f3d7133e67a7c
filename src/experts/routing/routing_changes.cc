#include "experts/routing/routing_changes.h"

#include <algorithm>

namespace sluice::experts {

void RoutingChanges::add(const ScoresView& scores, const Routing& routing) {
  tokens += scores.tokens;
  own += routing.exact_begin.empty() ? routing.choices.size() : routing.exact.size();
  if (routing.exact_begin.empty()) return;
  for (std::uint32_t t = 0; t < scores.tokens; ++t) {
    const std::span<const Choice> chosen = routing.token(t);
    std::uint64_t lost = 0;
    for (std::uint32_t i = routing.exact_begin[t]; i < routing.exact_begin[t + 1]; ++i) {
      if (std::ranges::find(chosen, routing.exact[i], &Choice::expert) != chosen.end()) continue;
      ++lost;
      mass_lost += scores.scores[std::size_t{t} * scores.experts + routing.exact[i]];
    }
    substituted += lost;
    changed_tokens += lost > 0 ? 1 : 0;
  }
}

}  // namespace sluice::experts
