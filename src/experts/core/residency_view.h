// What policies may ask about memory: logical residency, in decision order, never by arrival time.
#pragma once

#include "experts/core/ids.h"

namespace sluice::experts {

class ResidencyView {
 public:
  virtual ~ResidencyView() = default;
  virtual Parts parts(ExpertId id) const = 0;
};

}  // namespace sluice::experts
