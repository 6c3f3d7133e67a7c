// What to do where a tokenizer is sound but of a kind that cannot be used.
#pragma once

#include <string_view>

namespace sluice::model {

inline constexpr std::string_view kTokensInsteadOfText =
    "use the model without its tokenizer: `sluice run` and `sluice forward` take token ids as --tokens 1,2,3";

}  // namespace sluice::model
