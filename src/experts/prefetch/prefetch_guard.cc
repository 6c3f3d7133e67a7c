#include "experts/prefetch/prefetch_guard.h"

namespace sluice::experts {

bool PrefetchGuard::allows(double saved, double cost) {
  if (pause_ > 0) {
    ++paused_;
    if (--pause_ > 0) return false;
    saved_ = cost_ = 0;
    seen_ = 0;
    return true;
  }
  saved_ += saved - saved_ / pace_.memory;
  cost_ += cost - cost_ / pace_.memory;
  if (++seen_ < pace_.trial || cost_ <= saved_) return true;
  pause_ = pace_.pause;
  return false;
}

}  // namespace sluice::experts
