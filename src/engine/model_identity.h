// Identifies the model from which routing was recorded.
#pragma once

#include <cstdint>

namespace sluice::fetch {
struct FetchOptions;
}
namespace sluice::model {
struct Model;
struct ModelConfig;
}  // namespace sluice::model
namespace sluice::store {
class Checkpoint;
}

namespace sluice::engine {

class DenseWeights;  // forward/dense/dense_weights.h
class Engine;        // engine.h

// docs/trace-format.md, section 2: equal for a published directory and for stores packed from it.
std::uint64_t model_identity(const Engine& engine);
// For a model whose dense weights are loaded.
std::uint64_t model_identity(const store::Checkpoint& checkpoint, const model::ModelConfig& config,
                             const DenseWeights& weights);
// For a model that is not loaded: reads its routers, one at a time. Errors as fetch::load_piece;
// Error(kCorrupt) also names the tensor.
std::uint64_t model_identity(const store::Checkpoint& checkpoint, const model::Model& model,
                             const fetch::FetchOptions& options);

}  // namespace sluice::engine
