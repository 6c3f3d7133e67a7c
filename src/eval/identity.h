// Everything that the results of an evaluation depend on.
#pragma once

#include <string>

#include "base/json/json.h"

namespace sluice::engine {
class Engine;
}

namespace sluice::eval {

// The weights and the arithmetic. A packed store is identified by its manifest, a directory by the names,
// sizes and times of its weight files and the content of config.json.
Json identity_of(const engine::Engine& engine);

}  // namespace sluice::eval
