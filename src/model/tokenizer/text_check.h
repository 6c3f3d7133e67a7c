// What every tokenizer refuses: text that is not UTF-8 or does not end, and ids that are no token.
#pragma once

#include <cstddef>
#include <string_view>

#include "model/tokenizer.h"

namespace sluice::model {

// Error(kInvalid) naming the offset in bytes of the first byte that is not UTF-8, or text of more than 256
// MiB.
void check_text(std::string_view text);
// Error(kInvalid) if a step of the tokenizer has made more than 512 MiB out of a text (an escape of every
// byte is twice the text; replacing in a loop has no bound).
void check_grown(std::size_t bytes);
// Error(kInvalid) for an id outside of a vocabulary of this many rows.
void check_id(TokenId id, std::size_t rows);

}  // namespace sluice::model
