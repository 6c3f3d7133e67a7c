// Weighted sums of rows by the token that they go to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops/ops.h"

namespace sluice::kernels::gpu {

struct WeightedSource {
  std::uint32_t row;
  float weight;
};
// A token that something is added to: sources from `begin` to where those of the next one begin.
struct CombinedToken {
  std::uint32_t token, begin;
};

class CombinedSums {
 public:
  explicit CombinedSums(std::span<const op::WeightedRow> sums);
  std::span<const WeightedSource> sources() const { return sources_; }  // each token's in their order
  std::span<const CombinedToken> tokens() const { return tokens_; }     // and one behind the last
  std::size_t count() const { return tokens_.size() - 1; }

 private:
  std::vector<WeightedSource> sources_;
  std::vector<CombinedToken> tokens_;
};

}  // namespace sluice::kernels::gpu
