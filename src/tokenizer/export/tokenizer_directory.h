// A directory with a tokenizer, as Hugging Face publishes it, on its way into a synthetic model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tokenizer/text/token_id.h"
#include "tokenizer/tokenizer.h"

namespace sluice::tokenizer {

// load_tokenizer() of a directory, for a model whose vocabulary has this many rows. Error(kNotFound) where
// there is no tokenizer; errors as load_tokenizer() and check_rows().
std::unique_ptr<Tokenizer> load_tokenizer_for(const std::string& directory, TokenId rows);

// Error(kUsage) for a tokenizer of `directory` that has more tokens than the model has rows.
void check_rows(const Tokenizer& tokenizer, const std::string& directory, TokenId rows);

struct TokenizerFile {
  std::string name;  // below the directory: "tokenizer.json", "additional_chat_templates/tool_use.jinja"
  std::string content;
};

// The files that a tokenizer and its chat templates are read from, in the order of their names.
std::vector<TokenizerFile> read_tokenizer_files(const std::string& directory);

}  // namespace sluice::tokenizer
