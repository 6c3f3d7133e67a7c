// The remedy for a tokenizer that is sound but of an unsupported kind.
#pragma once

#include <string_view>

namespace sluice::tokenizer {

inline constexpr std::string_view kTokensInsteadOfText =
    "use the model without its tokenizer: `sluice run` and `sluice forward` take token ids as --tokens 1,2,3";

}  // namespace sluice::tokenizer
