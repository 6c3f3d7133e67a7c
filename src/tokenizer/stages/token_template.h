// The ids that the post-processor adds to a sequence: bos before it, eos after it.
#pragma once

#include <vector>

#include "tokenizer/text/token_id.h"

namespace sluice::tokenizer {

struct TokenTemplate {
  std::vector<TokenId> before, after;
};

}  // namespace sluice::tokenizer
