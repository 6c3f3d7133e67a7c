// Chat templates of published models for tests: the texts of some are among our files; SLUICE_CHAT_TEMPLATES
// names a directory of all, models/templates of llama.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "tokenizer/chat/chat_template.h"

namespace sluice::tokenizer::test {

const Json& chat_goldens();  // from tools/oracle/make_chat_goldens.py
std::vector<std::string> published_template_names();
// Empty if the template is not at hand.
std::optional<std::string> published_template(const std::string& name);
// With the tokens "<BOS>" and "<EOS>".
ChatTemplate chat_of(const std::string& text);

}  // namespace sluice::tokenizer::test
