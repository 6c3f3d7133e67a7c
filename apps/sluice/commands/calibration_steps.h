// What calibrations of losses have in common: the text and its windows, progress, and what an interruption
// leaves.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/stepped_windows.h"
#include "setup/engine_options.h"
#include "setup/open_model.h"
#include "streams/standard_output.h"

namespace sluice::app {

struct EngineFlags;

struct CalibrationRequest {
  std::string file, state;  // as typed; no state: nothing is kept on the way
  std::int64_t tokens = 0, window = 0, prompt = 0;
  std::optional<double> hours = {};  // empty: as long as it takes
};

// At most as many tokens of the text as are asked for.
std::vector<tokenizer::TokenId> calibration_tokens(const CalibrationRequest& request, const OpenModel& open,
                                                   const EngineFlags& flags);
// Error(kUsage) for windows that score nothing, or that the model's context has no room for.
eval::SteppedWindows calibration_windows(const CalibrationRequest& request, const OpenModel& open);

// What is measured is told alike: windows, engine and state. Error(kUsage).
template <class Settings>
Settings calibration_settings(const CalibrationRequest& request, const OpenModel& open,
                              const EngineFlags& flags) {
  Settings settings;
  settings.windows = calibration_windows(request, open);
  check_output();
  settings.engine = engine_options(flags);
  settings.engine.positions = settings.windows.window;
  settings.state = request.state;
  settings.hours = request.hours;
  return settings;
}

// Shows the progress of `measure`, which an interruption of the program ends: Error(kInterrupted) that says
// where the work goes on.
using OnCalibrated = std::function<bool(std::size_t done, std::size_t all)>;
void calibrate_with_progress(const CalibrationRequest& request, const EngineFlags& flags,
                             const std::function<void(const OnCalibrated&)>& measure);

// Prints which of these losses are known well enough, and what would tell more; and that contracts on
// held-out text came out a fifth above their limits with few tokens (docs/quality-contract.md).
void print_what_is_known(std::span<const eval::LossDifference> losses, std::uint64_t scored);
inline constexpr std::int64_t kCalibrationTokens = 16384;

}  // namespace sluice::app
