// Long work that somebody may give up while it is under way.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice {

// Asked between two steps of the work, by the thread that does it; true: stop. Empty: nobody will.
using StopRequest = std::function<bool()>;

// The error of all work that its user has stopped. `what_is_left`: what becomes of the work that was done.
inline Error interrupted_error(std::string_view what_is_left = {}) {
  const std::string rest = what_is_left.empty() ? "" : "; " + std::string(what_is_left);
  return {ErrorKind::kInterrupted, "interrupted" + rest};
}

// Throws interrupted_error() if the request says so.
inline void stop_if(const StopRequest& request) {
  if (request && request()) throw interrupted_error();
}

// The same in front of the steps 0, `between`, 2 `between`, …: of short steps not each has to ask.
inline void stop_if(const StopRequest& request, std::size_t step, std::size_t between = 4096) {
  if (step % between == 0) stop_if(request);
}

}  // namespace sluice
