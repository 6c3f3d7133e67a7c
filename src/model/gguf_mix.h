// Which types the tensors of a GGUF file have: one type for all matrices, or a mix that gives more bits to
// those that need them, as publishers have it. docs/formats.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/architecture.h"
#include "store/source/gguf_types.h"

namespace sluice::model {

class GgufMix {
 public:
  // "q4_k_m", or the name of a type in lower case: "q8_0". Error(kUsage) lists what there is.
  explicit GgufMix(std::string_view name);
  // The type of a tensor: F32 for vectors and routers; a type whose blocks fit into rows of this many
  // columns.
  const store::GgufType& of(const TensorSpec& spec, const ModelConfig& config, std::uint64_t columns) const;
  static std::vector<std::string> names();

 private:
  using Rule = std::string_view (*)(const TensorSpec& spec, const ModelConfig& config);
  std::string type_;  // for matrices that no rule names
  Rule rule_ = nullptr;
};

}  // namespace sluice::model
