// Input that every tokenizer refuses: text that is not UTF-8 or too long, and ids without a token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"
#include "tokenizer/text/token_id.h"

namespace sluice::tokenizer {

// Error(kInvalid) naming the offset in bytes of the first byte that is not UTF-8, or text of more than 256
// MiB.
void check_text(std::string_view text);
// Error(kInvalid) if a step of the tokenizer has grown a text beyond 512 MiB (escaping every byte doubles the
// text; replacing in a loop has no bound).
void check_grown(std::size_t bytes);
// Whether a number is the id of a row of a vocabulary that has so many. Rows behind the tokenizer's last
// token are rows like others: a model may have been padded with them.
bool is_token_id(std::int64_t number, std::size_t rows);
// Error naming `where`, a setting or a field as Error::in takes them, unless all ids are below `rows`, the
// size of the vocabulary. `kind`: kUsage where a user has typed the ids.
void check_ids(std::span<const TokenId> ids, std::size_t rows, std::string_view where,
               ErrorKind kind = ErrorKind::kInvalid);

}  // namespace sluice::tokenizer
