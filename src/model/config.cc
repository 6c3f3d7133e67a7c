#include "model/config.h"

#include <algorithm>

#include "base/error.h"
#include "model/architecture.h"

namespace sluice::model {

std::uint32_t ModelConfig::sparse_layers() const {
  return static_cast<std::uint32_t>(std::count(sparse.begin(), sparse.end(), true));
}

std::uint32_t ModelConfig::sparse_index(std::uint32_t layer) const {
  SLUICE_CHECK(layer < sparse.size() && sparse[layer], std::to_string(layer));
  return static_cast<std::uint32_t>(std::count(sparse.begin(), sparse.begin() + layer, true));
}

std::uint64_t ModelConfig::expert_elements() const {
  const std::uint32_t rows = activation.up_rows() + (activation.gate() ? 1 : 0);  // and one of `down`
  return (std::uint64_t{rows} + 1) * moe.width * hidden;
}

std::uint32_t ModelConfig::window(std::uint32_t layer) const {
  SLUICE_CHECK(layer < layers, std::to_string(layer));
  return attention.layer_windows.empty() ? attention.sliding_window : attention.layer_windows[layer];
}

ModelConfig parse_config(const Json& json, const std::string& name) {
  const JsonObject object(json, name);
  const Architecture& architecture = find_architecture(object.string("model_type"), name);
  return architecture.parse(object);
}

}  // namespace sluice::model
