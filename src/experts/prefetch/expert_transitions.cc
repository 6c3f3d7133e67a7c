#include "experts/prefetch/expert_transitions.h"

#include "base/error.h"

namespace sluice::experts {

ExpertTransitions::ExpertTransitions(std::uint32_t layers, std::uint32_t experts)
    : layers_(layers), experts_(experts) {
  SLUICE_CHECK(layers > 0 && experts > 0);
  const std::size_t pairs = layers - 1;
  pairs_.resize(pairs * experts * experts);
  chosen_.resize(pairs * experts);
  next_.resize(pairs * experts);
  tokens_.resize(pairs);
}

void ExpertTransitions::add(std::uint32_t layer, std::span<const std::uint16_t> here,
                            std::span<const std::uint16_t> next) {
  SLUICE_CHECK(layer + 1 < layers_);
  ++tokens_[layer];
  for (const std::uint16_t to : next) ++next_[at(layer, to)];
  for (const std::uint16_t from : here) {
    ++chosen_[at(layer, from)];
    for (const std::uint16_t to : next) ++pairs_[at(layer, from) * experts_ + to];
  }
}

double ExpertTransitions::share(std::uint32_t layer, std::uint16_t from, std::uint16_t to) const {
  SLUICE_CHECK(layer + 1 < layers_ && from < experts_ && to < experts_);
  if (const std::uint32_t seen = chosen_[at(layer, from)]; seen > 0)
    return static_cast<double>(pairs_[at(layer, from) * experts_ + to]) / seen;
  return tokens_[layer] == 0 ? 0 : static_cast<double>(next_[at(layer, to)]) / tokens_[layer];
}

}  // namespace sluice::experts
