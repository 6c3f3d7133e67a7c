// Which model routing was recorded from.
#pragma once

#include <cstdint>

#include "engine/engine.h"

namespace sluice::engine {

// docs/trace-format.md, section 2: the same for a published directory and for stores packed from it.
std::uint64_t model_identity(const Engine& engine);
// Of a model that is not loaded: its routers are read, one at a time. Errors as fetch::load_piece;
// Error(kCorrupt) names the tensor, too.
std::uint64_t model_identity(const store::Checkpoint& checkpoint, const model::Model& model,
                             const fetch::FetchOptions& options);

}  // namespace sluice::engine
