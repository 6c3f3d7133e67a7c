#include "engine/model_identity.h"

#include <span>
#include <string>

#include "base/hash.h"

namespace sluice::engine {

std::uint64_t model_identity(const Engine& engine) {
  Xxh3Stream hash;
  for (const store::TensorInfo& tensor : engine.checkpoint().tensors()) {
    std::string line = tensor.name;
    line += ' ';
    line += dtype_name(tensor.dtype);
    line += ' ';
    line += tensor.shape_text();
    line += '\n';
    hash.update(std::as_bytes(std::span(line.data(), line.size())));
  }
  const model::ModelConfig& config = engine.model().config;
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    if (!config.sparse[layer]) continue;
    const kernels::Weight& router =
        engine.weights().words(model::Role::kRouter, static_cast<std::int32_t>(layer));
    hash.update({router.data, router.rows * router.cols * dtype_bytes(router.dtype)});
  }
  return hash.digest();
}

}  // namespace sluice::engine
