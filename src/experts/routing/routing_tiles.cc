#include "experts/routing/routing_tiles.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/setting.h"

namespace sluice::experts {

std::string shape_text(const RoutingShape& shape) {
  return fmt::format("{} layers of {} experts, top {}", shape.layers, shape.experts, shape.top_k);
}

RoutingTiles::RoutingTiles(const RoutingShape& recorded, const RoutingShape& model,
                           std::span<const std::uint32_t> layers)
    : recorded_(recorded), model_(model), layers_(layers.begin(), layers.end()), is_taken_(model.experts) {
  SLUICE_CHECK(recorded.layers > 0 && recorded.experts > 0 && model.top_k <= model.experts);
  if (!layers_.empty() && layers_.size() != model.layers)
    throw Error(ErrorKind::kUsage, "the list of layers does not name one for each sparse layer of the model")
        .in(Setting::kRoutingLayers)
        .expected(fmt::format("{} numbers", model.layers))
        .found(fmt::format("{}", layers_.size()));
  for (std::uint32_t l = 0; l < layers_.size(); ++l) {
    if (layers_[l] >= recorded.layers)
      throw Error(ErrorKind::kUsage, "this layer was not recorded")
          .in(Setting::kRoutingLayers)
          .expected(fmt::format("0 to {}", recorded.layers - 1))
          .found(std::to_string(layers_[l]));
    in_order_ = in_order_ && layers_[l] == l % recorded.layers;
  }
  for (std::uint32_t l = 0; layers_.size() < model.layers; ++l) layers_.push_back(l % recorded.layers);
}

void RoutingTiles::take(std::uint32_t expert, std::size_t most) {
  if (taken_.size() == most || is_taken_[expert] != 0) return;
  is_taken_[expert] = 1;
  taken_.push_back(static_cast<std::uint16_t>(expert));
}

std::span<const std::uint16_t> RoutingTiles::experts(std::uint32_t layer, std::uint32_t sequence,
                                                     std::span<const std::vector<std::uint16_t>> choices) {
  const std::uint32_t blocks = std::max(model_.experts / recorded_.experts, 1u),
                      first = sequence % blocks * recorded_.experts;
  taken_.clear();
  std::ranges::fill(is_taken_, std::uint8_t{0});
  const std::vector<std::uint16_t>& own = choices[layers_[layer]];
  // A token with fewer experts than the recorded model's rule gave (capacity) keeps as few.
  const std::size_t most =
      own.size() < recorded_.top_k ? std::min<std::size_t>(own.size(), model_.top_k) : model_.top_k;
  for (std::uint32_t i = 0; i < recorded_.layers && taken_.size() < most; ++i)
    for (const std::uint16_t expert : choices[(layers_[layer] + i) % recorded_.layers])
      take((first + expert) % model_.experts, most);
  for (std::uint32_t expert = 0; taken_.size() < most; ++expert) take(expert, most);
  std::ranges::sort(taken_);
  return taken_;
}

std::string RoutingTiles::text() const {
  std::string text;
  const auto add = [&](const std::string& rule) { text += (text.empty() ? "" : "; ") + rule; };
  if (!in_order_)
    add(fmt::format("layers {}", fmt::join(layers_, ",")));
  else if (recorded_.layers != model_.layers)
    add(fmt::format("layer l plays l mod {}", recorded_.layers));
  if (recorded_.experts > model_.experts) add(fmt::format("expert x is x mod {}", model_.experts));
  if (const std::uint32_t blocks = model_.experts / recorded_.experts; blocks > 1)
    add(fmt::format("expert x of sequence s is x + {} (s mod {})", recorded_.experts, blocks));
  if (recorded_.top_k > model_.top_k) add(fmt::format("the best {} of {}", model_.top_k, recorded_.top_k));
  if (recorded_.top_k < model_.top_k)
    add(fmt::format("{} of {} experts from the layers behind", model_.top_k - recorded_.top_k, model_.top_k));
  return text;
}

}  // namespace sluice::experts
