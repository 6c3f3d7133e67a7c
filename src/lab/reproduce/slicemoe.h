// The results of SliceMoE, tried again: every row of SPEC §6.4.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/reproduce/report.h"
#include "lab/reproduce/slicemoe_trained.h"

namespace sluice::lab {

struct SlicemoeSettings {
  // Of the rows that are measured on a trained model; none: there is no model at hand. Its `interrupted` and
  // `on_stage` are those below.
  std::optional<TrainedSettings> trained;
  std::string trace;                               // routing of DeepSeek-V2-Lite; empty: none is at hand
  bool quick = false;                              // one prompt instead of three, shorter, and no Qwen1.5-MoE
  std::uint64_t seed = 1;                          // of synthetic routing
  std::string command;                             // that makes this report
  std::string version;                             // of this program
  std::function<bool()> interrupted;               // may be empty
  std::function<void(std::string_view)> on_stage;  // may be empty
};

// Error(kInvalid) for a trace of another model, or one without a prompt and steps behind it; as open_trace
// and measure_trained; Error(kInterrupted).
Report reproduce_slicemoe(const SlicemoeSettings& settings);

// The rows that a report has, in order.
const std::vector<std::string>& slicemoe_row_ids();

}  // namespace sluice::lab
