// By how much the gate input of each next sparse layer differs from this one's, on the average of a text.
// DALI (eq. 10, 11); SPEC §3.4. residual.h measures it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sluice::experts {

struct ResidualVectors {
  std::size_t layers = 0;     // sparse layers of the model
  std::size_t width = 0;      // d of a gate input
  std::vector<float> values;  // (layers - 1, d); none for fewer than two layers

  // REQUIRES: layer + 1 < layers.
  std::span<const float> of(std::size_t layer) const {
    return std::span(values).subspan(layer * width, width);
  }
};

}  // namespace sluice::experts
