// A GGUF model as a Checkpoint: the tensors that the file has, under its own names. Experts are ranges of
// stacked tensors. What the names and keys mean is known to model/gguf.
#pragma once

#include <memory>
#include <string>

#include "store/checkpoint.h"

namespace sluice::store {

// Reads headers only. Error(kUnsupported) for a tensor of a type that is not computed with; those of
// read_gguf_parts().
std::unique_ptr<Checkpoint> open_gguf(const std::string& path);

}  // namespace sluice::store
