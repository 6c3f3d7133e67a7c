// weights.json of a tiny golden model: which tensors its checkpoint holds, and how each is drawn.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace sluice::golden {

struct ListedTensor {
  std::string name;
  DType dtype = DType::kBF16;  // or kF16, kF32 or kU8
  std::vector<std::uint64_t> shape;
  double mean = 0, scale = 0;
  std::string key;             // names the random numbers: its own name, or that of the tensor it repeats
  std::vector<double> values;  // all of the elements, where they are not drawn

  std::uint64_t elements() const;
};

struct WeightsList {
  std::uint64_t seed = 0;
  std::vector<ListedTensor> tensors;
};

// "layers.{0,2-3}.x" gives layers.0.x, layers.2.x and layers.3.x; several braces give all combinations.
// Error(kInvalid) that names `where` if a brace holds anything else.
std::vector<std::string> expanded_names(std::string_view pattern, const std::string& where);

// Error(kInvalid) naming file and field.
WeightsList read_weights_list(const std::string& path);

// The tensor's bytes as they are stored: mean + scale * noise in double, rounded to float32 and then to the
// storage type, each to nearest even; bytes are whole numbers modulo 256.
std::string stored_bytes(const ListedTensor& tensor, std::uint64_t seed);

}  // namespace sluice::golden
