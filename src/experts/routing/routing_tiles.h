// Fits recorded routing of one shape to a model of another (docs/replay.md, "Played routing").
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::experts {

struct RoutingShape {
  std::uint32_t layers = 0;   // sparse layers L
  std::uint32_t experts = 0;  // experts N of a layer
  std::uint32_t top_k = 0;    // experts k of a token
  bool operator==(const RoutingShape&) const = default;
};

// "26 layers of 64 experts, top 6"
std::string shape_text(const RoutingShape& shape);

// Thread-compatible.
class RoutingTiles {
 public:
  // `layers`: for each layer of the model the recorded layer that it plays; empty: layer l plays l mod L.
  // Error(kUsage) for a list of another length, or with a layer that was not recorded.
  RoutingTiles(const RoutingShape& recorded, const RoutingShape& model,
               std::span<const std::uint32_t> layers = {});

  // The experts of one token in one layer of the model, ascending; valid until the next call. `choices`: the
  // token's recorded experts of every recorded layer, best first. `sequence`: number of the recorded
  // sequence.
  std::span<const std::uint16_t> experts(std::uint32_t layer, std::uint32_t sequence,
                                         std::span<const std::vector<std::uint16_t>> choices);
  // How the routing is fitted, as outputs say it; empty where it fits as it is.
  std::string text() const;

 private:
  void take(std::uint32_t expert, std::size_t most);

  RoutingShape recorded_, model_;
  std::vector<std::uint32_t> layers_;  // by layer of the model
  bool in_order_ = true;               // layer l plays l mod L
  std::vector<std::uint16_t> taken_;
  std::vector<std::uint8_t> is_taken_;  // by expert of the model
};

}  // namespace sluice::experts
