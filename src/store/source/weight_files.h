// Which files of a model directory hold its weights, and every tensor in them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/matrix_format.h"
#include "store/checkpoint.h"
#include "store/source/safetensors.h"
#include "store/source/source_directory.h"

namespace sluice::store {

enum class OtherWeights {
  kIgnore,  // to run: one set of safetensors files is chosen, other weights are ignored
  kRefuse,  // to pack: a second copy of the weights is refused; the user can leave it out
};

// One set of safetensors files: those that an index names, or model.safetensors, or the only one.
struct WeightSet {
  std::vector<std::string> files;                            // relative, ascending
  std::string index;                                         // relative; empty without one
  std::vector<std::pair<std::string, std::string>> mapping;  // from the index: tensor → file, ascending
};

// Error(kNotFound) if there are no weights or a shard is missing; (kInvalid) for a bad index or for two
// sets of weights side by side; (kUnsupported) if all weights have another format.
WeightSet select_weights(const SourceDirectory& directory, OtherWeights other_weights);

struct WeightFile {
  std::string relative;
  Bytes size = 0;
};

struct TensorPlace {
  std::uint32_t file = 0;
  Bytes offset = 0;  // from the start of that file
};

struct Weights {
  std::vector<WeightFile> files;
  std::vector<TensorInfo> tensors;  // ascending by name
  std::vector<TensorPlace> places;  // parallel to tensors
};

// Tensors as readers have them, ascending by name, and which tensors of the files hold their planes.
struct ReadTensors {
  std::vector<TensorInfo> tensors;
  // Parallel to tensors: for each plane of the format an index into Weights::tensors. Words have one plane.
  std::vector<std::array<std::uint32_t, codec::kMostPlanes>> planes;
};

// Reads the header of every file of the set and checks it against the index. Error(kInvalid) for a tensor
// that is in two files, is missing from the index, is in another file than the index says, or is in no file.
Weights read_weights(const std::string& directory, const WeightSet& set);

// "weight_map" of model.safetensors.index.json, ascending by tensor. Error(kInvalid).
std::vector<std::pair<std::string, std::string>> parse_weight_index(std::string_view text,
                                                                    const std::string& path);

}  // namespace sluice::store
