// Presets on one model, under one budget and with one prompt, in alternating runs: what comparisons and
// reproduced tables are made of.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "engine/generate.h"

namespace sluice::lab {

// What one run measured. Seconds, bytes.
struct RunFigures {
  double load_s = 0;           // until the first step could begin, a profile measured at the start included
  double ttft_s = 0;           // from there to the first token (of the last sequence)
  double tpot_s = 0;           // a decode step
  double tok_s = 0;            // decoded, over all sequences
  double e2e_s = 0;            // from the first step to the last token
  double bytes_per_token = 0;  // of experts, read while decoding: on demand and ahead
  double cpu_s_per_token = 0;  // of all threads, user and system, while decoding
  double wait_share = 0;       // of e2e_s: nothing to compute or decode, waiting for the disk
  double hit_rate = 0;         // while decoding
  double peak = 0;             // bytes that the accountant saw at most
};

// Median, least and most of the runs.
struct Spread {
  double median = 0, low = 0, high = 0;
};
Spread spread_of(std::vector<double> values);  // of at least one

// What is compared: a preset, and the checkpoint that it reads.
struct Contender {
  std::string preset;  // experts::presets(); of one with options of its own: what it is called
  const store::Checkpoint* checkpoint = nullptr;  // must outlive the Comparer
  const model::Model* model = nullptr;
  std::optional<engine::EngineOptions> options = {};  // none: the settings', with this preset
};

using Texts = std::vector<std::vector<model::TokenId>>;  // of one run, by request

// Tokens before the first one that differs, of all requests together. REQUIRES: as many requests.
std::size_t equal_tokens(const Texts& texts, const Texts& exact);

// What a run computed otherwise than the exact model does, and how often.
struct Changes {
  Json json;                                              // null: nothing
  std::vector<std::pair<std::string, std::string>> rows;  // name and text, for a table
};

enum class First {
  kContender,
  kReference,  // the exact model that the others are held against
};

struct CompareSettings {
  std::vector<engine::GenerateRequest> requests;  // decoded together; greedy, so that runs can be told to
                                                  // agree. At least one, of at least 2 tokens
  engine::EngineOptions options;                  // the preset aside; `sequences` is the number of requests
  unsigned runs = 3;                              // of each contender, in turns: a b c a b c; at least one
  const model::Tokenizer* tokenizer = nullptr;    // may be null: then there are no texts
  First first = First::kContender;                // of the contenders
  std::function<Changes(const engine::Engine&)> changes;          // asked behind each run; may be empty
  std::function<bool()> interrupted;                              // may be empty
  std::function<void(std::size_t done, std::size_t all)> on_run;  // may be empty
};

struct Compared {
  std::string preset, path;
  // What every token is computed with, whatever is in memory: who shares it must give the same texts. None:
  // precision or routing go by what is in memory, and so does the text; or its runs chose differently.
  std::optional<std::string> arithmetic = {};
  bool lossy = false;  // weights are rounded, or routing goes by what is in memory, in one of the runs
  std::vector<RunFigures> runs = {};
  std::array<std::uint64_t, 5> found{};            // of the last run, decoding: accesses by state, F C S E M
  std::optional<engine::PoolChoice> planned = {};  // of presets with pools
  std::vector<Texts> texts = {};                   // of each run
  Changes changes = {};                            // of the last run

  void add_run(const RunFigures& figures, const std::optional<std::string>& computed_with, bool loses);
  Spread of(double RunFigures::*figure) const;  // REQUIRES: at least one run
  bool same() const;                            // every run gave the same tokens
};

// Tokens that a contender's runs have in common with the reference.
struct Agreement {
  Spread equal;  // equal_tokens()
  std::size_t of = 0;
};

struct Comparison {
  std::vector<Compared> contenders;
  First first = First::kContender;
  std::optional<std::string> text = {};  // of the first request
  Bytes budget = 0;
  unsigned threads = 0;
  const Compared& find(std::string_view preset) const;  // REQUIRES: it was compared
  bool same_texts() const;                              // of all runs of all contenders
  // Of contenders of one arithmetic, the first run (from 1) of the second one whose text is not that of the
  // first one's first run. There must never be one.
  struct Different {
    const Compared &from, &contender;
    std::size_t run;
  };
  std::optional<Different> different_though_computed_alike() const;
  // None: there is no reference, or this is it. REQUIRES: one of the contenders.
  std::optional<Agreement> agreement(const Compared& contender) const;
};

// Costs are measured once for each checkpoint and used for all its runs. Errors as Engine and generate();
// Error(kInterrupted); Error(kInvalid), before anything runs, for contenders that are not of one model.
class Comparer {
 public:
  // REQUIRES: at least one contender (beside a reference), request and run.
  Comparison run(const std::vector<Contender>& contenders, const CompareSettings& settings);
  // Of a checkpoint that was compared by a preset that needs costs; else none.
  std::optional<engine::Profile> profile(const store::Checkpoint& checkpoint) const;

 private:
  // By address: a checkpoint that was closed and another opened in its place would pass for the same.
  std::map<const store::Checkpoint*, engine::Profile> profiles_;
};

// Of what Comparer::run returned.
Json to_json(const Comparison& comparison);
// For a terminal of so many columns.
std::string table_text(const Comparison& comparison, std::size_t columns);

}  // namespace sluice::lab
