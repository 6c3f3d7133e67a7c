// Input that every tokenizer refuses: text that is not UTF-8 or too long, and ids without a token.
#pragma once

#include <cstddef>
#include <string_view>

#include "tokenizer/text/token_id.h"

namespace sluice::tokenizer {

// Error(kInvalid) naming the offset in bytes of the first byte that is not UTF-8, or text of more than 256
// MiB.
void check_text(std::string_view text);
// Error(kInvalid) if a step of the tokenizer has grown a text beyond 512 MiB (escaping every byte doubles the
// text; replacing in a loop has no bound).
void check_grown(std::size_t bytes);
// Error(kInvalid) for an id outside a vocabulary of this many rows.
void check_id(TokenId id, std::size_t rows);

}  // namespace sluice::tokenizer
