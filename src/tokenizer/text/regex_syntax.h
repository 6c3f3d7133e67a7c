// Translates the regular expressions of tokenizer.json (Oniguruma, Ruby syntax) to PCRE2 with UTF and UCP.
#pragma once

#include <string>
#include <string_view>

namespace sluice::tokenizer {

// Returns a PCRE2 pattern with the same matches (compile it with PCRE2_MULTILINE: `^` and `$` are line
// anchors in Ruby syntax). Character classes become the sets that tokenizers has, see unicode.h; `\h`, `\v`,
// `(?m)` and `{,n}` mean other things in PCRE2 and are rewritten. Throws Error(kUnsupported), without a
// place, for syntax whose meaning could differ: set operations and POSIX brackets in classes, `{n}+`, `{n}?`,
// absent operators, verbs, `\G`.
std::string pcre2_from_oniguruma(std::string_view pattern);

}  // namespace sluice::tokenizer
