// What every tokenizer refuses: text that is not UTF-8, and ids that are no token.
#pragma once

#include <string_view>

#include "model/tokenizer.h"

namespace sluice::model {

// Error(kInvalid) naming the offset in bytes of the first byte that is not UTF-8, or text of 1 GiB or more.
void check_text(std::string_view text);
[[noreturn]] void throw_unknown_id(TokenId id, std::size_t vocab_size);

}  // namespace sluice::model
