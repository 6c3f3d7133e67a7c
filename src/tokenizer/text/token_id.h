// The number of a token in a model's vocabulary.
#pragma once

#include <cstdint>

namespace sluice::tokenizer {

using TokenId = std::int32_t;

}  // namespace sluice::tokenizer
