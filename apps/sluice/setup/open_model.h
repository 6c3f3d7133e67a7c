// Opening the model that a command computes with.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "flags/common_flags.h"
#include "flags/engine_flags.h"
#include "model/architecture.h"
#include "store/checkpoint.h"
#include "tokenizer/tokenizer.h"

namespace sluice::app {

// A checkpoint, its description, and its tokenizer (null if it has none and `with_tokenizer` is kIfThere).
// Warns of a sidecar that cannot be used, unless the user wants quiet.
struct OpenModel {
  std::unique_ptr<store::Checkpoint> checkpoint;
  model::Model model;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
  double open_s = 0, tokenizer_s = 0;  // seconds that both took
};
enum class WithTokenizer { kNo, kIfThere, kRequired };
OpenModel open_model(const std::string& path, WithTokenizer with_tokenizer, const CommonFlags& flags);

// Tokens that the key/value cache may hold: the context that the user chose, else the model's
// maximum. Error(kUsage) for a context beyond that.
std::size_t context_tokens(const EngineFlags& flags, const model::Model& model);

}  // namespace sluice::app
