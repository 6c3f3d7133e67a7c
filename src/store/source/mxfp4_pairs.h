// Matrices in MXFP4 as safetensors files have them: NAME_blocks holds the codes, NAME_scales the scales. To
// readers they are one tensor NAME in the format mxfp4_pair. docs/formats.md.
#pragma once

#include <string>

#include "store/source/weight_files.h"

namespace sluice::store {

// Whether a tensor has the name, type and shape of codes: NAME_blocks, U8, (…, rows, groups of a row, 16).
bool are_mxfp4_codes(const TensorInfo& tensor);
// The pair that these are the codes of: NAME, (…, rows, columns).
TensorInfo mxfp4_pair_of(const TensorInfo& codes);

// The tensors of `weights`, each pair as one. `path`: of the checkpoint, for errors. Error(kInvalid) for
// codes without scales, or with scales of another shape or type.
ReadTensors with_mxfp4_pairs(const Weights& weights, const std::string& path);

}  // namespace sluice::store
