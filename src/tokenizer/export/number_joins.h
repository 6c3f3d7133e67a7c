// Whether a byte-level BPE joins numbers.
#pragma once

#include "tokenizer/export/tokenizer_contents.h"

namespace sluice::tokenizer {

// Whether two characters of \p{N} have other ids together than one by one. If no two have, no longer number
// has: until some rule joins parts of two characters, each character is joined as if it stood alone, so the
// first such rule is also applied to those two by themselves.
bool joins_numbers(const TokenizerContents& contents);

}  // namespace sluice::tokenizer
