// Opens a model, packed or as published.
#pragma once

#include <memory>
#include <string>

#include "store/checkpoint.h"

namespace sluice::store {

// `path` is a Hugging Face directory, a GGUF file (of several parts the first) or a NAME.sluice store.
// Error(kNotFound), (kInvalid), (kUnsupported), (kCorrupt).
std::unique_ptr<Checkpoint> open_checkpoint(const std::string& path);

}  // namespace sluice::store
