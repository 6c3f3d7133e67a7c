// What the post-processor puts round a sequence of ids: bos before it, eos after it.
#pragma once

#include <vector>

#include "model/tokenizer.h"

namespace sluice::model {

struct TokenTemplate {
  std::vector<TokenId> before, after;
};

}  // namespace sluice::model
