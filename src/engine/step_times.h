// What a decode step of a run with a device takes, predicted by the modelled clock that decides, and
// measured. The two are near each other if the device keeps to its times and the clock's costs were
// measured on it.
#pragma once

namespace sluice::engine {

struct RunReport;

// Mean seconds of a decode step so far; zeros where there has been none.
struct StepTimes {
  double step = 0;
  double moe = 0;  // part of it, from the routers' scores to the sums of the experts, over all layers
};

// REQUIRES (both): the run has a device. The output head is predicted as for one token.
StepTimes predicted_step(const RunReport& run);
StepTimes measured_step(const RunReport& run);

}  // namespace sluice::engine
