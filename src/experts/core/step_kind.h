// What a token of a step is: a part of its sequence's prompt, or decoded, the sequence's next token.
#pragma once

#include <cstdint>

namespace sluice::experts {

enum class StepKind : std::uint8_t { kPrompt, kDecode };

}  // namespace sluice::experts
