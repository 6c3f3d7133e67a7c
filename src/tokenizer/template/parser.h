// Reads the tokens of a template. The grammar is that of jinja2 3.1, without what loads other files.
#pragma once

#include <string_view>

#include "tokenizer/template/limits.h"
#include "tokenizer/template/syntax.h"

namespace sluice::tokenizer::jinja {

// Error(kInvalid) naming the place; `name` stands for the template.
Syntax parse_template(std::string_view source, std::string_view name, const TemplateLimits& limits);

}  // namespace sluice::tokenizer::jinja
