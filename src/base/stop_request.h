// Long work that somebody may give up while it is under way.
#pragma once

#include <functional>

#include "base/error.h"

namespace sluice {

// Asked between two steps of the work, by the thread that does it; true: stop. Empty: nobody will.
using StopRequest = std::function<bool()>;

// Error(kInterrupted) if it says so.
inline void stop_if(const StopRequest& request) {
  if (request && request()) throw Error(ErrorKind::kInterrupted, "stopped before the end");
}

}  // namespace sluice
