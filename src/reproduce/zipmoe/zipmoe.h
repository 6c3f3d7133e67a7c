// Reproduces the results of ZipMoE (arXiv 2601.21198) on this machine: every row of SPEC §6.1.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/compare.h"
#include "reproduce/report.h"

namespace sluice::reproduce {

struct ZipmoeSettings {
  // One model, stored split and stored whole (may be the same); presets are ignored.
  lab::Contender packed, whole;
  const tokenizer::Tokenizer* tokenizer = nullptr;  // null: prompts consist of arbitrary ids
  engine::EngineOptions options;  // threads, io and the like; the reproduction sets budgets and presets
  std::vector<Bytes> budgets;     // ascending; empty: budgets that hold 25 to 75 % of the experts
  bool quick = false;
  std::size_t tokens = 0;  // to generate in each run, at least 4; 0: 16 if quick, else 48
  unsigned runs = 0;       // runs of each system; 0: 2 if quick, else 5
  std::string command;     // the command that makes this report
  std::string flags;       // its flags that commands of single rows also need, with a space before each
  std::string trace;       // routing of DeepSeek-V2-Lite; empty: none is available
  std::string version;     // version of this program
  std::string packed_name, whole_name;             // the model's names in the report's commands
  std::string prepare;                             // a command that makes `packed_name`; may be empty
  std::function<bool()> interrupted;               // may be empty
  std::function<void(std::string_view)> on_stage;  // "budgets 2 of 3: z-C"; may be empty
};

// Alternates between systems; reports medians of all runs. `data` of the report has "texts_equal": false is a
// bug and invalidates all figures. Error(kUsage) for outputs longer than the model's positions; otherwise
// errors as Engine and replay_zipmoe; Error(kInterrupted).
Report reproduce_zipmoe(const ZipmoeSettings& settings);

// The rows of a complete report, in order.
const std::vector<std::string>& zipmoe_row_ids();

}  // namespace sluice::reproduce
