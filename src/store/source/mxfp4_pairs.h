// Matrices in MXFP4 as safetensors files have them: NAME_blocks holds the codes, NAME_scales the scales. To
// readers they are one tensor NAME in the format mxfp4_pair. docs/formats.md.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "codec/matrix_format.h"
#include "store/source/weight_files.h"

namespace sluice::store {

// Tensors as readers see them, ascending by name, and where each of their planes begins.
struct PlacedTensors {
  std::vector<TensorInfo> tensors;
  std::vector<std::array<TensorPlace, codec::kMostPlanes>> planes;  // parallel to tensors
};

// The tensors of `weights`, each pair as one. `path`: of the checkpoint, for errors. Error(kInvalid) for
// codes without scales, or with scales of another shape or type.
PlacedTensors with_mxfp4_pairs(const Weights& weights, const std::string& path);

}  // namespace sluice::store
