// How fast the host computes beside an emulated device, where the device's specification says so.
#pragma once

#include <span>

#include "base/function_ref.h"
#include "device/clock.h"
#include "device/pacer.h"
#include "device/stream.h"

namespace sluice::device {

// The host's lane: work is really done, and then waits until its modelled end. A product takes its tokens ·
// its bytes of weights / `bytes_per_s`, since a host reads weights once for each token.
//
// run() is thread-compatible, counters() thread-safe. `clock` must outlive it.
class HostPace {
 public:
  HostPace(double bytes_per_s, Clock& clock) : bytes_per_s_(bytes_per_s), pacer_(clock) {}

  // Does `work`, in which the host computes with these weights. Work that comes less than Pacer::kLeastWait
  // behind the end of the one before follows it in the model: a late wake-up between two experts costs
  // nothing. Work without weights takes its real time, and is not counted. Rethrows what `work` throws,
  // without sleeping.
  void run(std::span<const WeightUse> weights, FunctionRef<void()> work);
  LaneCounters counters() const { return pacer_.counters(); }

 private:
  const double bytes_per_s_;
  Pacer pacer_;
};

}  // namespace sluice::device
