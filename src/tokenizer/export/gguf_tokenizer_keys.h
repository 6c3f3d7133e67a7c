// The tokenizer of a directory as the keys of a GGUF file, as llama.cpp's converter writes them
// (docs/formats.md, "Tokenizers of GGUF files").
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "store/source/gguf_writer.h"
#include "tokenizer/text/token_id.h"

namespace sluice::tokenizer {

// The keys tokenizer.ggml.* and tokenizer.chat_template*, for a model whose vocabulary has this many rows.
// Byte-level BPE becomes `gpt2`, a tokenizer.model `llama`; that file is also taken where it lies beside a
// tokenizer.json whose pieces it has. Errors as load_tokenizer_for(); Error(kUnsupported), naming the field,
// for what a file cannot say. What is returned was read back, and gave the source's ids for some texts.
std::vector<std::pair<std::string, store::GgufWritten>> gguf_tokenizer_keys(const std::string& directory,
                                                                            TokenId rows);

}  // namespace sluice::tokenizer
