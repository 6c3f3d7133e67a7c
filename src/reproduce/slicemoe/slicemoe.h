// Reproduces the results of SliceMoE: every row of SPEC §6.4.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reproduce/report.h"
#include "reproduce/slicemoe/slicemoe_trained.h"

namespace sluice::reproduce {

struct SlicemoeSettings {
  // For the rows that are measured on a trained model; empty: no model is available. Its `interrupted` and
  // `on_stage` are those below.
  std::optional<TrainedSettings> trained;
  std::string trace;                  // routing of DeepSeek-V2-Lite; empty: none is available
  bool quick = false;                 // one prompt instead of three, shorter, and without Qwen1.5-MoE
  std::uint64_t seed = 1;             // for synthetic routing
  std::string command;                // the command that makes this report
  std::string version;                // version of this program
  std::function<bool()> interrupted;  // may be empty
  std::function<void(std::string_view)> on_stage;  // may be empty
};

// Error(kInvalid) for a trace of another model, or one without a prompt followed by steps; otherwise errors
// as open_trace and measure_trained; Error(kInterrupted).
Report reproduce_slicemoe(const SlicemoeSettings& settings);

// The rows of a report, in order.
const std::vector<std::string>& slicemoe_row_ids();

}  // namespace sluice::reproduce
