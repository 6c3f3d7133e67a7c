// The results of ZipMoE (arXiv 2601.21198), tried again on this machine: every row of SPEC §6.1.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/compare.h"
#include "lab/reproduce/report.h"

namespace sluice::lab {

struct ZipmoeSettings {
  Contender packed, whole;  // one model, stored split and stored whole (may be the same); presets are ignored
  const model::Tokenizer* tokenizer = nullptr;  // null: prompts are made of arbitrary ids
  engine::EngineOptions options;                // threads, io and the like; budgets and presets are ours
  std::vector<Bytes> budgets;                   // ascending; empty: those that hold 25 to 75 % of the experts
  bool quick = false;
  std::size_t tokens = 0;               // to generate in each run, at least 4; 0: 16 if quick, else 48
  unsigned runs = 0;                    // of each; 0: 2 if quick, else 5
  std::string command;                  // that makes this report
  std::string flags;                    // of it that commands of single rows need, too: " --threads 2"
  std::string trace;                    // routing of DeepSeek-V2-Lite; empty: none is at hand
  std::string version;                  // of this program
  std::string packed_name, whole_name;  // of the model, as commands in the report say them
  std::string prepare;                  // a command that makes `packed_name`; may be empty
  std::function<bool()> interrupted;    // may be empty
  std::function<void(std::string_view)> on_stage;  // "budgets 2 of 3: z-C"; may be empty
};

// Takes turns between systems; medians of all runs. `data` of the report has "texts_equal": false is a bug,
// and all its figures are void. Error(kUsage) for outputs that the model has no positions for; as Engine and
// replay_zipmoe; Error(kInterrupted).
Report reproduce_zipmoe(const ZipmoeSettings& settings);

// The rows that a complete report has, in order.
const std::vector<std::string>& zipmoe_row_ids();

}  // namespace sluice::lab
