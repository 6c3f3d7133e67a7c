// Compares presets on one model, under one budget and with one prompt, in alternating runs: the basis of
// comparisons and reproduced tables.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "engine/generate/generate.h"
#include "engine/plan/options.h"
#include "engine/plan/pool_plan.h"
#include "engine/read_forecast.h"
#include "tokenizer/text/token_id.h"

namespace sluice::engine {
class Engine;
}
namespace sluice::model {
struct Model;
}
namespace sluice::store {
class Checkpoint;
}
namespace sluice::tokenizer {
class Tokenizer;
}

namespace sluice::lab {

// The measurements of one run. Seconds, bytes.
struct RunFigures {
  double load_s = 0;            // until the first step could begin, including a profile measured at the start
  double ttft_s = 0;            // from then to the first token (of the last sequence)
  double tpot_s = 0;            // time of a decode step
  double tok_s = 0;             // decoded tokens a second, over all sequences
  double e2e_s = 0;             // from the first step to the last token
  double bytes_per_token = 0;   // expert bytes read while decoding: the sum of the two that follow
  double useful_per_token = 0;  // on demand, or ahead and then needed
  double wasted_per_token = 0;  // ahead, and then not needed
  double read_s_per_token = 0;  // during which a demanded read was under way
  double cpu_s_per_token = 0;   // all threads, user and system, while decoding
  double wait_share = 0;        // share of e2e_s with nothing to compute or decode, waiting for the disk
  double hit_rate = 0;          // while decoding
  double peak = 0;              // largest total of the accountant, in bytes
  // With a device, else 0:
  double moe_s = 0;             // in a decode step: experts of all layers, from scores to sums
  double predicted_tpot_s = 0;  // what the modelled clock says of tpot_s …
  double predicted_moe_s = 0;   // … and of moe_s
  double predicted_ratio = 0;   // predicted_tpot_s / tpot_s
  double overrun_share = 0;     // EngineDevice::overrun_share()
};

// Median, smallest and largest value of the runs.
struct Spread {
  double median = 0, low = 0, high = 0;
};
Spread spread_of(std::vector<double> values);  // at least one value

// A preset to compare, and the checkpoint that it reads.
struct Contender {
  std::string preset;  // from experts::presets(); with `options` of its own: the name it is called by
  const store::Checkpoint* checkpoint = nullptr;  // must outlive the Comparer
  const model::Model* model = nullptr;
  std::optional<engine::EngineOptions> options = {};  // empty: the settings' options, with this preset
};

using Texts = std::vector<std::vector<tokenizer::TokenId>>;  // one run's, by request

// Equal tokens before the first difference, summed over all requests. REQUIRES: as many requests.
std::size_t equal_tokens(const Texts& texts, const Texts& exact);

// How a run computed otherwise than the exact model, and how often.
struct Changes {
  Json json;                                              // null: no change
  std::vector<std::pair<std::string, std::string>> rows;  // name and text, for a table
};

enum class First {
  kContender,
  kReference,  // the exact model that the others are compared with
};

struct CompareSettings {
  // Decoded together; greedy, so that the texts of two runs can be compared. At least one, of at least 2
  // tokens.
  std::vector<engine::GenerateRequest> requests;
  engine::EngineOptions options;  // without the preset; `sequences` is the number of requests
  unsigned runs = 3;              // for each contender, in turns: a b c a b c; at least one
  const tokenizer::Tokenizer* tokenizer = nullptr;                // may be null: then there are no texts
  First first = First::kContender;                                // which kind runs first
  std::function<Changes(const engine::Engine&)> changes;          // called after each run; may be empty
  std::function<bool()> interrupted;                              // may be empty
  std::function<void(std::size_t done, std::size_t all)> on_run;  // may be empty
};

struct Compared {
  std::string preset, path;
  // The arithmetic of every token, whatever is in memory: contenders that share it must give the same texts.
  // Empty if precision or routing depend on what is in memory, and so does the text; or if its runs chose
  // differently.
  std::optional<std::string> arithmetic = {};
  // In one of the runs weights are rounded, or routing depends on what is in memory.
  bool lossy = false;
  std::vector<RunFigures> runs = {};
  std::array<std::uint64_t, 5> found{};            // decode accesses of the last run by state, F C S E M
  std::optional<engine::PoolChoice> planned = {};  // for presets with pools
  // What the last run was expected to read; empty for experts in slices.
  std::optional<engine::ReadForecast> forecast = {};
  Bytes cache = 0;                // that experts could fill in it
  std::vector<Texts> texts = {};  // each run's
  Changes changes = {};           // in the last run

  void add_run(const RunFigures& figures, const std::optional<std::string>& computed_with, bool loses);
  Spread of(double RunFigures::*figure) const;  // REQUIRES: at least one run
  bool same() const;                            // every run gave the same tokens
};

// Tokens that a contender's runs share with the reference.
struct Agreement {
  Spread equal;  // equal_tokens()
  std::size_t of = 0;
};

struct Comparison {
  std::vector<Compared> contenders;
  First first = First::kContender;
  std::optional<std::string> text = {};          // text of the first request
  std::vector<engine::StopReason> reasons = {};  // why the answers of the first run ended, by request
  Bytes budget = 0;
  unsigned threads = 0;
  std::string routing = {};                             // engine::PolicyPlan::played
  std::string device = {};                              // its specification; empty: the host is alone
  std::string device_kind = {};                         // "emulated" "cuda"
  bool device_is_played = false;                        // its seconds are no speed of this program
  double dilation = 1;                                  // that device's
  const Compared& find(std::string_view preset) const;  // REQUIRES: it was compared
  bool same_texts() const;                              // over all runs of all contenders
  // For two contenders of one arithmetic: the first run (from 1) of the second contender whose text differs
  // from the first contender's first run. There must never be such a run.
  struct Different {
    const Compared &from, &contender;
    std::size_t run;
  };
  std::optional<Different> different_though_computed_alike() const;
  // Empty without a reference, and for the reference itself. REQUIRES: `contender` is one of the contenders.
  std::optional<Agreement> agreement(const Compared& contender) const;
};

// Measures costs once for each checkpoint and uses them for all its runs. Errors as Engine and generate();
// Error(kInterrupted); Error(kInvalid), before anything runs, for contenders of different models.
class Comparer {
 public:
  // REQUIRES: at least one contender (besides a reference), one request and one run.
  Comparison run(const std::vector<Contender>& contenders, const CompareSettings& settings);
  // The profile of a checkpoint that was compared under a preset that needs costs; else empty.
  std::optional<engine::Profile> profile(const store::Checkpoint& checkpoint) const;

 private:
  // By address: a checkpoint that is closed and replaced by another at its address would pass for the same.
  std::map<const store::Checkpoint*, engine::Profile> profiles_;
};

Json to_json(const Spread& spread);  // {median, low, high}
// Convert the result of Comparer::run.
Json to_json(const Comparison& comparison);
// For a terminal of this many columns.
std::string table_text(const Comparison& comparison, std::size_t columns);

}  // namespace sluice::lab
