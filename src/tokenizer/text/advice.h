// The remedy for a tokenizer that is sound but of an unsupported kind.
#pragma once

#include <string>

#include "base/setting.h"

namespace sluice::tokenizer {

inline std::string tokens_instead_of_text() {
  return "use the model without its tokenizer: `sluice run` and `sluice forward` take token ids as " +
         flag(Setting::kTokens) + " 1,2,3";
}

}  // namespace sluice::tokenizer
