#include "experts/prefetch/prefetch_guard.h"

namespace sluice::experts {
namespace {

constexpr double kMemory = 64;          // events
constexpr std::uint32_t kTrial = 32;    // events before it is judged
constexpr std::uint32_t kPause = 1024;  // events

}  // namespace

bool PrefetchGuard::allows(Bytes saved, Bytes cost) {
  if (pause_ > 0) {
    ++paused_;
    if (--pause_ > 0) return false;
    saved_ = cost_ = 0;
    seen_ = 0;
    return true;
  }
  saved_ += static_cast<double>(saved) - saved_ / kMemory;
  cost_ += static_cast<double>(cost) - cost_ / kMemory;
  if (++seen_ < kTrial || cost_ <= saved_) return true;
  pause_ = kPause;
  return false;
}

}  // namespace sluice::experts
