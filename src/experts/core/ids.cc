#include "experts/core/ids.h"

#include <string>

#include "base/error.h"

namespace sluice::experts {

State state_of(Parts parts) {
  if (parts.empty()) return State::kM;
  if (parts == Part::kFull) return State::kF;
  if (parts == (Part::kSm | Part::kExp)) return State::kC;
  if (parts == Part::kSm) return State::kS;
  SLUICE_CHECK(parts == Part::kExp, "parts bits " + std::to_string(parts.bits()));
  return State::kE;
}

Bytes ExpertBytes::of(Parts parts) const {
  return (parts.has(Part::kFull) ? full : 0) + (parts.has(Part::kSm) ? sm : 0) +
         (parts.has(Part::kExp) ? exp : 0) + (parts.has(Part::kMsb) ? msb : 0) +
         (parts.has(Part::kLsb) ? lsb : 0);
}

}  // namespace sluice::experts
