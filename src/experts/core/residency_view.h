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
  // Whether a nearer tier has it, where there is one: the device, for the host.
  virtual bool is_nearer(ExpertId /*id*/) const { return false; }
};

}  // namespace sluice::experts
