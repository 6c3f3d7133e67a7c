// What a GGUF file of a model holds: its keys, and its tensors with their types. The opposite of
// gguf_config.h and describe_gguf.h, for synthetic models and tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/architecture.h"
#include "model/gguf_config.h"
#include "store/source/gguf_writer.h"

namespace sluice::model {

// Null: no GGUF file has models of this kind.
const GgufArchitecture* gguf_architecture_of(const ModelConfig& config);

// A value of config.json that no file can say, because the architecture's name stands for another one.
struct Unsayable {
  std::string field, expected, found;
};
std::optional<Unsayable> what_no_file_says(const ModelConfig& config);

// The keys of a config, those of a tokenizer left out: "no_vocab".
std::vector<std::pair<std::string, store::GgufWritten>> gguf_keys(const GgufArchitecture& architecture,
                                                                  const ModelConfig& config);

// tensor_table() with the halves of MLA's up projection in place of the whole, as files hold them. `config`
// is that of a file: with_gate_apart().
std::vector<TensorSpec> gguf_table(const ModelConfig& config);

// A tensor of the file, and the lines of the architecture's table that it holds, one after the other.
struct GgufTensorPlan {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::vector<const TensorSpec*> specs;  // for experts: all of a layer
};
// In the order of the table, which is gguf_table() and must outlive the result.
std::vector<GgufTensorPlan> gguf_tensors(const GgufArchitecture& architecture, const ModelConfig& config,
                                         const std::vector<TensorSpec>& table);

}  // namespace sluice::model
