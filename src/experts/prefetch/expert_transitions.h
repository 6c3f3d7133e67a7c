// How often which expert of the next layer followed which of this one, in a text: what EdgeMoE-like
// prefetching predicts by. SPEC §3.4, variant `stat`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::experts {

// Thread-compatible.
class ExpertTransitions {
 public:
  // layers: sparse layers of the model; experts: of a layer. Allocates layers × N × N counts at once.
  // REQUIRES: at least one of each.
  ExpertTransitions(std::uint32_t layers, std::uint32_t experts);

  std::uint32_t layers() const { return layers_; }
  std::uint32_t experts() const { return experts_; }
  // A token chose these experts in `layer`, and those in the next one. REQUIRES: layer + 1 < layers.
  void add(std::uint32_t layer, std::span<const std::uint16_t> here, std::span<const std::uint16_t> next);
  // The share of tokens with `from` in `layer` that chose `to` in the next layer; where no token did, of all
  // tokens; 0 before the first. REQUIRES: layer + 1 < layers.
  double share(std::uint32_t layer, std::uint16_t from, std::uint16_t to) const;

 private:
  std::size_t at(std::uint32_t layer, std::size_t expert) const {
    return std::size_t{layer} * experts_ + expert;
  }
  std::uint32_t layers_, experts_;
  std::vector<std::uint32_t> pairs_;   // (L - 1, N, N)
  std::vector<std::uint32_t> chosen_;  // (L - 1, N): tokens that chose the expert in the layer …
  std::vector<std::uint32_t> next_;    // … and in the next one
  std::vector<std::uint32_t> tokens_;  // (L - 1)
};

}  // namespace sluice::experts
