// Token ids in a request's body. The server takes those that the command line takes: all rows of the model's
// vocabulary.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serve/wire/fields.h"
#include "tokenizer/text/token_id.h"

namespace sluice::serve {

struct Served;  // serve/backend.h

// The elements of an array. ApiError naming the first that is no id.
std::vector<tokenizer::TokenId> read_token_ids(const BodyValue& array, const std::string& path,
                                               const Served& served);
// An id as a key of the object `name`. ApiError naming that for a key that is no id.
tokenizer::TokenId read_token_key(const std::string& key, std::string_view name, const Served& served);

}  // namespace sluice::serve
