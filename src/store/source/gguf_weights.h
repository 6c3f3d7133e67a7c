// The tensors of a GGUF model, as its files store them and as readers have them.
#pragma once

#include <vector>

#include "store/source/gguf_parts.h"
#include "store/source/weight_files.h"

namespace sluice::store {

// A tensor as its file stores it: where the type is not words, bytes (U8), the last dimension those of a row.
TensorInfo stored_tensor(const GgufTensor& tensor);

struct GgufWeights {
  Weights weights;      // files by their names alone
  ReadTensors tensors;  // tensors of one plane each, in the order of `weights`
};
// Error(kUnsupported) for a tensor of a type that is not computed with.
GgufWeights gguf_weights(const std::vector<GgufPart>& parts);

}  // namespace sluice::store
