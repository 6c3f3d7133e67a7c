// A residency for tests of prefetches. Header only; production code does not include it.
#pragma once

#include <map>

#include "experts/core/residency_view.h"

namespace sluice::experts {

// What it was told, in memory.
class HeldParts final : public ResidencyView {
 public:
  void set(ExpertId id, Parts parts) { parts_[id] = parts; }
  Parts parts(ExpertId id) const override {
    const auto it = parts_.find(id);
    return it == parts_.end() ? Parts() : it->second;
  }

 private:
  std::map<ExpertId, Parts> parts_;
};

}  // namespace sluice::experts
