// Rotary position embedding: the angle of every position. SPEC §9 (YaRN included).
#pragma once

#include <cstddef>
#include <vector>

#include "model/config.h"

namespace sluice::engine {

// 0.1 · mscale · ln(factor) + 1; 1 where factor ≤ 1 or mscale is 0.
double yarn_mscale(double factor, double mscale);

// Immutable; thread-safe.
class RopeTable {
 public:
  explicit RopeTable(const model::RopeConfig& config);
  std::size_t half() const { return inverse_frequencies_.size(); }
  // cos and sin of one position, `half()` numbers each. Angles are fp32 products, as in the published code.
  void angles(std::size_t position, float* cos, float* sin) const;
  const std::vector<float>& inverse_frequencies() const { return inverse_frequencies_; }

 private:
  std::vector<float> inverse_frequencies_;
  double attention_factor_ = 1.0;  // multiplies cos and sin
};

}  // namespace sluice::engine
