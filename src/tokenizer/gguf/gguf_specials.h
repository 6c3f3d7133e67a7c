// What a model needs of its tokenizer beside the tokens: which ids begin and end a text, and the templates of
// chats.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/source/gguf.h"
#include "tokenizer/text/token_id.h"

namespace sluice::tokenizer {

struct GgufSpecials {
  std::optional<TokenId> bos, eos;
  std::vector<TokenId> ends;  // every id that ends an answer, ascending; eos is one of them
  bool add_bos = false;       // whether Tokenizer::encode puts bos before a text, and eos after it
  bool add_eos = false;
  std::optional<std::string> chat_template;                          // tokenizer.chat_template, Jinja
  std::vector<std::pair<std::string, std::string>> named_templates;  // tokenizer.chat_template.NAME, by NAME
};

// `name` names the file in errors. Without a tokenizer, and with one of a kind that is not known, there are
// no ids, but there may be templates; patterns that are not known (tokenizer.ggml.pre) are no error here.
// Error(kInvalid) names key, expected and found.
GgufSpecials read_gguf_specials(const store::GgufHeader& header, const std::string& name);

}  // namespace sluice::tokenizer
