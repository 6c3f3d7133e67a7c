// Which model routing was recorded from.
#pragma once

#include <cstdint>

#include "engine/engine.h"

namespace sluice::engine {

// docs/trace-format.md, section 2: the same for a published directory and for stores packed from it.
std::uint64_t model_identity(const Engine& engine);

}  // namespace sluice::engine
