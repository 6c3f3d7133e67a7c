#include "engine/session/stop_reason.h"

namespace sluice::engine {

std::string_view stop_reason_name(StopReason reason) {
  constexpr std::string_view kNames[] = {"length", "context", "eos", "stop", "interrupted"};
  return kNames[static_cast<int>(reason)];
}

}  // namespace sluice::engine
