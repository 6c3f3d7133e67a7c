// What policies may ask about the memory of one tier: logical residency, in decision order, never by arrival
// time.
#pragma once

#include "experts/core/ids.h"
#include "experts/core/tier.h"

namespace sluice::experts {

class ResidencyView {
 public:
  virtual ~ResidencyView() = default;
  virtual Parts parts(ExpertId id) const = 0;
  virtual Tier tier() const { return Tier::kHost; }
};

}  // namespace sluice::experts
