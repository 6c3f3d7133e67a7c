// tokenizer.json of Hugging Face tokenizers, model type BPE.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "model/tokenizer.h"
#include "model/tokenizer/tokenizer_config.h"

namespace sluice::model {

// `json` is the content of a tokenizer.json; `name` names it in errors. `config` adds what the file itself
// leaves open: added tokens it does not have, and bos and eos for classes that add them whatever the file
// says (LlamaTokenizer). truncation and padding are left out, as transformers does where the caller does not
// ask for them.
std::unique_ptr<Tokenizer> load_tokenizer_json(std::string_view json, const std::string& name,
                                               const TokenizerConfig& config = {});

}  // namespace sluice::model
