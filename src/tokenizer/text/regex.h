// Regular expressions of tokenizer.json, matched by PCRE2 with its just-in-time compiler.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/text/pattern.h"

namespace sluice::tokenizer {

// `pattern` in Oniguruma's syntax (regex_syntax.h), at most 64 KiB. `where` names it in errors
// ("tokenizer.json: pre_tokenizer"): Error(kInvalid) if it is malformed, Error(kUnsupported) if this program
// cannot match it; find() throws Error(kInvalid) if matching takes more steps or memory than any sane pattern
// needs. An empty match directly after the last match is skipped, as in tokenizers.
std::unique_ptr<Pattern> regex_pattern(std::string_view pattern, std::string where);

}  // namespace sluice::tokenizer
