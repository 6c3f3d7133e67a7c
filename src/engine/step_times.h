// What a decode step of a run with a device takes: by the modelled clock that decides, and as it was. The two
// are near each other where the device keeps its times, and the costs were measured with it.
#pragma once

namespace sluice::engine {

struct RunReport;

// Mean seconds of a decode step so far; zeros where there has been none.
struct StepTimes {
  double step = 0;
  double moe = 0;  // of it, from the routers' scores to the sums of the experts, over all layers
};

// REQUIRES (both): the run has a device. The output head is predicted as for one token.
StepTimes predicted_step(const RunReport& run);
StepTimes measured_step(const RunReport& run);

}  // namespace sluice::engine
