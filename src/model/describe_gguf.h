// A GGUF file matched with its architecture: which tensors the roles of the table are, under names that
// docs/formats.md lists, and experts as ranges of tensors that hold those of a layer.
#pragma once

#include "model/architecture.h"
#include "store/source/gguf.h"

namespace sluice::model {

// As describe_model(). `header` is that of the checkpoint.
Model describe_gguf(const store::Checkpoint& checkpoint, const store::GgufHeader& header);

}  // namespace sluice::model
