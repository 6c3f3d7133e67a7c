// Whether token ids are a model's.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tokenizer/text/token_id.h"

namespace sluice::model {

// Error(kInvalid) naming `where` unless all ids are below `vocab`, the size of the model's vocabulary.
void check_token_ids(std::span<const tokenizer::TokenId> tokens, std::size_t vocab, const std::string& where);

}  // namespace sluice::model
