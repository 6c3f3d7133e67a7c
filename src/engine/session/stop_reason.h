// Why an answer has ended.
#pragma once

#include <string_view>

namespace sluice::engine {

// kLength: as many tokens as were asked for are there. kContext: fewer are, and the sequence has no room for
// another.
enum class StopReason { kLength, kContext, kEos, kStopString, kInterrupted };
std::string_view stop_reason_name(StopReason reason);  // "length" "context" "eos" "stop" "interrupted"

}  // namespace sluice::engine
