// Opens the chat template of a model, or the one that a user names instead.
#pragma once

#include <string>

#include "store/checkpoint.h"
#include "tokenizer/chat/chat_template.h"

namespace sluice::app {

// `model` is a model directory (its weights may be missing), a packed store or a GGUF file; `given` is a
// file, "chatml", or empty for the model's own template. Error(kNotFound) if there is none.
tokenizer::ChatTemplate open_chat_template(const std::string& model, const std::string& given);
// The same of a model that is open.
tokenizer::ChatTemplate chat_template_of(const store::Checkpoint& model, const std::string& given);

}  // namespace sluice::app
