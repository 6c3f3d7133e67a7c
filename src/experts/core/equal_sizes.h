// Sizes of experts that are all alike.
#pragma once

#include "experts/core/ids.h"

namespace sluice::experts {

class EqualSizes final : public ExpertSizes {
 public:
  explicit EqualSizes(const ExpertBytes& bytes) : bytes_(bytes) {}
  ExpertBytes bytes(ExpertId) const override { return bytes_; }

 private:
  ExpertBytes bytes_;
};

}  // namespace sluice::experts
