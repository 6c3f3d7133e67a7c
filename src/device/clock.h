// The clock that a device is paced by: the machine's, or a test's own.
#pragma once

#include <chrono>

namespace sluice::device {

// Thread-safe.
class Clock {
 public:
  using Time = std::chrono::nanoseconds;  // since some moment that stays the same
  virtual ~Clock() = default;
  virtual Time now() = 0;
  // Returns at this time or later, without busy waiting; at once if it has passed.
  virtual void sleep_until(Time time) = 0;
};

// The machine's monotonic clock. Stateless.
Clock& machine_clock();

}  // namespace sluice::device
