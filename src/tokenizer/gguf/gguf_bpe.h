// The BPE model of a GGUF file: its vocabulary, and its rules from tokenizer.ggml.merges.
#pragma once

#include <memory>

#include "base/stop_request.h"
#include "tokenizer/bpe/bpe.h"
#include "tokenizer/gguf/gguf_keys.h"
#include "tokenizer/gguf/gguf_tokens.h"

namespace sluice::tokenizer {

// Unused tokens are rows without a token. Error(kInvalid) for contents that stand twice and for rules that
// are no pairs of tokens, or join to no token. `ids_are_ranks`: a file without rules joins the neighbours
// that give the token of the lowest id.
std::unique_ptr<Bpe> read_gguf_bpe(const GgufKeys& keys, const GgufTokens& tokens, BpeOptions options,
                                   bool ids_are_ranks, const StopRequest& stop);

}  // namespace sluice::tokenizer
