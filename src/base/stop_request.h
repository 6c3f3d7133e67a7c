// Long work that somebody may give up while it is under way.
#pragma once

#include <cstddef>
#include <functional>

#include "base/error.h"

namespace sluice {

// Asked between two steps of the work, by the thread that does it; true: stop. Empty: nobody will.
using StopRequest = std::function<bool()>;

// Error(kInterrupted) if it says so.
inline void stop_if(const StopRequest& request) {
  if (request && request()) throw Error(ErrorKind::kInterrupted, "stopped before the end");
}

// The same in front of the steps 0, `between`, 2 `between`, …: of short steps not each has to ask.
inline void stop_if(const StopRequest& request, std::size_t step, std::size_t between = 4096) {
  if (step % between == 0) stop_if(request);
}

}  // namespace sluice
