// Reproduces the results of SMoE: every row of SPEC §6.2, on the machines that its paper lets us model (SPEC
// §10, G1), over synthetic routing fitted to recorded one (G18), and on a trained model.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reproduce/report.h"
#include "reproduce/smoe/smoe_trained.h"

namespace sluice::reproduce {

struct SmoeReproduction {
  // For the rows that are measured on a trained model; empty: no model is available.
  std::optional<SmoeTrainedSettings> trained;
  bool quick = false;                              // fewer sequences and tokens
  std::uint64_t seed = 1;                          // for synthetic routing, first residents and predictions
  std::string command;                             // the command that makes this report
  std::string version;                             // version of this program
  std::function<bool()> interrupted;               // may be empty
  std::function<void(std::string_view)> on_stage;  // may be empty
};

// Errors as measure_smoe_trained; Error(kInterrupted).
Report reproduce_smoe(const SmoeReproduction& settings);

// The rows of a report, in order.
const std::vector<std::string>& smoe_row_ids();

}  // namespace sluice::reproduce
