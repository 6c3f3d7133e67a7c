#include "device/pacer.h"

#include <algorithm>
#include <cmath>

namespace sluice::device {
namespace {

double seconds(Clock::Time time) { return std::chrono::duration<double>(time).count(); }

Clock::Time time_of(double seconds) { return Clock::Time(std::llround(seconds * 1e9)); }

}  // namespace

void Pacer::run(Clock::Time ready, std::optional<double> modelled, FunctionRef<void()> work) {
  const Clock::Time begin = clock_.now();
  work();
  account(ready, modelled, seconds(clock_.now() - begin));
}

void Pacer::account(Clock::Time ready, std::optional<double> modelled, double real) {
  const Clock::Time now = clock_.now();
  {
    const std::lock_guard lock(mutex_);
    counters_.pieces += 1;
    counters_.busy_s += modelled.value_or(real);
    if (modelled && real > *modelled) {
      counters_.overruns += 1;
      counters_.overrun_s += real - *modelled;
    }
  }
  if (!modelled) {
    end_ = std::max(end_, now);
    return;
  }
  end_ = std::max(end_, ready) + time_of(*modelled);
  if (end_ - now >= kLeastWait) clock_.sleep_until(end_);
}

LaneCounters Pacer::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace sluice::device
