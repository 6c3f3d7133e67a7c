// Reproduces the results of DALI: every row of SPEC §6.3, on machines that the paper leaves open (SPEC §10,
// G7), with what is ours beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reproduce/dali/dali_trained.h"
#include "reproduce/report.h"

namespace sluice::reproduce {

struct DaliSettings {
  // For the rows that are measured on a trained model; empty: no model is available.
  std::optional<DaliTrainedSettings> trained;
  std::string trace;                               // routing of DeepSeek-V2-Lite; empty: none is available
  bool quick = false;                              // two batch sizes, shorter outputs, without Qwen3
  std::uint64_t seed = 1;                          // for synthetic routing, first residents and guesses
  std::string command;                             // the command that makes this report
  std::string version;                             // version of this program
  std::function<bool()> interrupted;               // may be empty
  std::function<void(std::string_view)> on_stage;  // may be empty
};

// Error(kInvalid) for a trace of another model; otherwise errors as open_trace and measure_dali;
// Error(kInterrupted).
Report reproduce_dali(const DaliSettings& settings);

// The rows of a report, in order.
const std::vector<std::string>& dali_row_ids();

}  // namespace sluice::reproduce
