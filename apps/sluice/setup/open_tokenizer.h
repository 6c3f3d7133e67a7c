// Opens the tokenizer of a store, a model directory or a file.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "flags/common_flags.h"
#include "store/checkpoint.h"
#include "tokenizer/tokenizer.h"

namespace sluice::app {

// `path` is a packed store, a model directory, or a tokenizer file. Error(kNotFound) if it has no tokenizer.
std::unique_ptr<tokenizer::Tokenizer> open_tokenizer(const std::string& path, const CommonFlags& flags);
// tokenizer::load_tokenizer_of(); shows its warning unless the user wants quiet.
std::unique_ptr<tokenizer::Tokenizer> tokenizer_of(const store::Checkpoint& checkpoint,
                                                   const CommonFlags& flags);
Error no_tokenizer(const std::string& path);  // the error for a model without a tokenizer

// Reads the text of a file that the user names; "-" is standard input.
std::string read_input_text(const std::string& path);
// The name of that file in a message.
std::string input_name(const std::string& path);

}  // namespace sluice::app
