// Whether a byte-level BPE joins numbers.
#pragma once

#include "tokenizer/export/tokenizer_contents.h"

namespace sluice::tokenizer {

// Whether some rule makes a token that lies across two characters of \p{N}, or across parts of them. Without
// such a rule it makes no difference whether numbers are cut one by one or stay together.
bool joins_numbers(const TokenizerContents& contents);

}  // namespace sluice::tokenizer
