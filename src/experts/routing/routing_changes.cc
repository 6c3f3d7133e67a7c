#include "experts/routing/routing_changes.h"

#include <algorithm>

namespace sluice::experts {

void RoutingChanges::add(const ScoresView& scores, const Routing& routing, const SequenceSpan& span) {
  const std::uint32_t end = span.first_token + span.tokens;
  tokens += span.tokens;
  const std::vector<std::uint32_t>& own_begin =
      routing.exact_begin.empty() ? routing.begin : routing.exact_begin;
  own += own_begin[end] - own_begin[span.first_token];
  if (routing.exact_begin.empty()) return;
  for (std::uint32_t t = span.first_token; t < end; ++t) {
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
