// How long a layer takes for its routed experts when one Flash channel brings slices and one unit computes.
// SliceMoE; SPEC §4.1.
#pragma once

#include <span>
#include <vector>

#include "base/bytes.h"
#include "lab/machine/machine.h"

namespace sluice::lab {

// One expert that a layer computes with.
struct ExpertWork {
  Bytes msb_read = 0, lsb_read = 0;  // from Flash; both zero: a hit
  Bytes view = 0;                    // bytes of the slices that it is computed with
  double ops = 0;
};

struct ExpertPhase {
  double seconds = 0;  // until both Flash and the unit are done
  double flash_s = 0;  // time in which the channel is busy
  double xpu_s = 0;    // time in which the unit is busy
  double wait_s() const { return seconds - xpu_s; }
};

// `work` in the order of requests: the channel first reads all MSBs in it, then all LSBs. The unit takes the
// hits first, in that order, then each other expert as soon as all its slices are there.
class ExpertClock {
 public:
  explicit ExpertClock(const Machine& machine) : machine_(machine) {}  // must outlive this
  ExpertPhase time(std::span<const ExpertWork> work);

 private:
  struct Arrival {
    double at = 0, run = 0;
  };
  const Machine& machine_;
  std::vector<Arrival> arrivals_;  // scratch
};

}  // namespace sluice::lab
