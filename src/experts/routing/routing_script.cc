#include "experts/routing/routing_script.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::experts {

RoutingScript::RoutingScript(std::uint32_t layers, std::uint32_t top_k, std::string source)
    : layers_(layers), top_k_(top_k), source_(std::move(source)) {
  SLUICE_CHECK(layers > 0 && top_k > 0);
}

void RoutingScript::add_token(std::size_t sequence) {
  rows_[sequence].resize(rows_[sequence].size() + row(), kNone);
}

void RoutingScript::set(std::size_t sequence, std::uint32_t layer, std::span<const std::uint16_t> experts) {
  SLUICE_CHECK(tokens(sequence) > 0 && layer < layers_ && experts.size() <= top_k_);
  SLUICE_CHECK(std::ranges::is_sorted(experts, std::ranges::less_equal()) || experts.size() < 2);
  std::ranges::copy(
      experts, rows_[sequence].end() - static_cast<std::ptrdiff_t>(row()) + std::ptrdiff_t{layer} * top_k_);
}

std::span<const std::uint16_t> RoutingScript::experts(std::size_t sequence, std::size_t token,
                                                      std::uint32_t layer) const {
  const std::span<const std::uint16_t> places =
      std::span(rows_[sequence]).subspan(token * row() + std::size_t{layer} * top_k_, top_k_);
  return places.first(static_cast<std::size_t>(std::ranges::find(places, kNone) - places.begin()));
}

Bytes RoutingScript::bytes() const {
  Bytes sum = rows_.capacity() * sizeof rows_[0];
  for (const std::vector<std::uint16_t>& rows : rows_) sum += rows.capacity() * sizeof rows[0];
  return sum;
}

}  // namespace sluice::experts
