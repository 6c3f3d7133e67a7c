// The two kinds of steps of a run.
#pragma once

#include <cstdint>

namespace sluice::experts {

enum class StepKind : std::uint8_t { kPrompt, kDecode };

}  // namespace sluice::experts
