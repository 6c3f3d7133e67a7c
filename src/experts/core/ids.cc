#include "experts/core/ids.h"

#include <algorithm>

#include "base/error.h"
#include "experts/core/part_rules.h"

namespace sluice::experts {

State state_of(Parts parts) {
  if (parts.empty()) return State::kM;
  if (parts == Part::kFull) return State::kF;
  if (parts == (Part::kSm | Part::kExp)) return State::kC;
  if (parts == Part::kSm) return State::kS;
  SLUICE_CHECK(parts == Part::kExp, "parts bits " + std::to_string(parts.bits()));
  return State::kE;
}

bool is_legal(Parts parts) {
  return parts.empty() || std::ranges::any_of(all_part_rules(), [&](const PartRules& rules) {
           return std::ranges::find(rules.states, parts) != rules.states.end();
         });
}

bool is_computable(Parts parts) {
  return std::ranges::any_of(all_part_rules(),
                             [&](const PartRules& rules) { return parts.has_all(rules.least); });
}

Bytes ExpertBytes::of(Parts parts) const {
  return (parts.has(Part::kFull) ? full : 0) + (parts.has(Part::kSm) ? sm : 0) +
         (parts.has(Part::kExp) ? exp : 0) + (parts.has(Part::kMsb) ? msb : 0) +
         (parts.has(Part::kLsb) ? lsb : 0);
}

}  // namespace sluice::experts
