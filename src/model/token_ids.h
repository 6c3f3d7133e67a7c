// Whether token ids are a model's.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/error.h"
#include "tokenizer/text/token_id.h"

namespace sluice::model {

// Error naming `where`, a setting or a field as Error::in takes them, unless all ids are below `vocab`, the
// size of the model's vocabulary. `kind`: kUsage where a user has typed the ids.
void check_token_ids(std::span<const tokenizer::TokenId> tokens, std::size_t vocab, std::string_view where,
                     ErrorKind kind = ErrorKind::kInvalid);

}  // namespace sluice::model
