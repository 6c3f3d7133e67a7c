#include "device/clock.h"

#include <thread>

namespace sluice::device {
namespace {

class MachineClock final : public Clock {
 public:
  using Steady = std::chrono::steady_clock;
  Time now() override { return Steady::now().time_since_epoch(); }
  void sleep_until(Time time) override { std::this_thread::sleep_until(Steady::time_point(time)); }
};

}  // namespace

Clock& machine_clock() {
  static MachineClock clock;
  return clock;
}

}  // namespace sluice::device
