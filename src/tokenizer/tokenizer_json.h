// tokenizer.json of Hugging Face tokenizers, model type BPE.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/stop_request.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_config.h"

namespace sluice::tokenizer {

// `json` is the content of a tokenizer.json; `name` names it in errors. `config` adds what the file leaves
// open: added tokens that it lacks, and bos and eos for classes that always add them (LlamaTokenizer).
// truncation and padding are ignored, as in transformers unless the caller asks for them.
std::unique_ptr<Tokenizer> load_tokenizer_json(std::string_view json, const std::string& name,
                                               const TokenizerConfig& config = {},
                                               const StopRequest& stop = {});

}  // namespace sluice::tokenizer
