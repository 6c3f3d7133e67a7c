// Tokenizers of slow (Python) models: vocab.json and merges.txt, with the class that tokenizer_config.json
// names.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/stop_request.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_config.h"

namespace sluice::tokenizer {

struct VocabMergesText {
  std::string_view vocab, merges;       // contents of the files
  std::string vocab_name, merges_name;  // for errors
};

// Converts them as transformers does: Qwen2Tokenizer uses NFC and its own pattern; GPT2Tokenizer and
// GPTNeoXTokenizer use the GPT-2 pattern. Error(kUnsupported) for any other class, or none.
std::unique_ptr<Tokenizer> load_vocab_merges(const VocabMergesText& text, const TokenizerConfig& config,
                                             const StopRequest& stop = {});

}  // namespace sluice::tokenizer
