// What the keys of a GGUF file say of a model, in the spelling of config.json, so that each architecture
// reads one spelling. docs/formats.md has the table.
#pragma once

#include <span>
#include <string_view>

#include "base/json/json.h"
#include "model/config.h"
#include "store/checkpoint.h"
#include "store/source/gguf_keys.h"

namespace sluice::model {

// One architecture under its name in GGUF files.
struct GgufArchitecture {
  std::string_view name;        // general.architecture
  std::string_view model_type;  // its name in our table
  // Adds the fields that only this architecture has, and refuses what it cannot have.
  void (*add)(const store::GgufKeys& keys, std::string_view prefix, const store::Checkpoint& checkpoint,
              Json& config);
  bool interleaved = false;  // the rows of Q and K are in pairs for RoPE: rotate (2i, 2i + 1)
  // The norm before the experts, without "blk.N." and ".weight".
  std::string_view expert_norm = "ffn_norm";
};
std::span<const GgufArchitecture> gguf_architectures();
// By general.architecture. Error(kUnsupported) names what is known; also for a file that holds no model.
const GgufArchitecture& find_gguf_architecture(const store::GgufKeys& keys);

// The fields of config.json. Sizes that only tensors tell are taken from `checkpoint`. Error(kInvalid) names
// the key that is missing or wrong, (kUnsupported) one that says what nobody here computes.
Json gguf_config(const GgufArchitecture& architecture, const store::GgufKeys& keys,
                 const store::Checkpoint& checkpoint);

// A directory's config as that of a file with the same model: gate and up of an expert are two matrices
// there, also where they are published as one with the rows of both by turns.
ModelConfig with_gate_apart(ModelConfig config);

// What the name gpt-oss says of the activation; no key does.
struct GptOssConstants {
  double limit = 7.0, alpha = 1.702;
};

}  // namespace sluice::model
