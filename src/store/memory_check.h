// Work that says how little memory would do before it begins.
#pragma once

#include <functional>

#include "base/bytes.h"

namespace sluice::store {

// Told the least that the `memory` of the work's options may be: one piece of the work in progress, and what
// is beside it. Throws if there is less. Empty: such a piece is worked on whatever the memory.
using MemoryCheck = std::function<void(Bytes least)>;

}  // namespace sluice::store
