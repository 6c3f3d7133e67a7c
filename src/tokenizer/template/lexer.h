// Cuts a template's source into tokens. White space around tags is dropped here, as jinja2 does with
// trim_blocks and lstrip_blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/template/place.h"

namespace sluice::tokenizer::jinja {

enum class TokenKind {
  kText,         // between tags
  kOutputBegin,  // {{
  kOutputEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,  // its text is the content
  kInteger,
  kReal,
  kOperator,
  kEnd  // behind the last token
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  Place place;
  std::int64_t integer = 0;
  double real = 0;
};

// `name` stands for the template in errors. Error(kInvalid) naming the place.
std::vector<Token> cut_template(std::string_view source, std::string_view name);

}  // namespace sluice::tokenizer::jinja
