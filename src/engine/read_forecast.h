// What decoding is expected to read of experts: what it needs, and what read-ahead reads in vain.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace sluice::engine {

class Engine;

// A layer's experts by rank, the hottest first. `f`: the probability that a step uses it; `missing`: bytes
// that must be read then. Parallel.
struct RankedReads {
  std::span<const double> f, missing;
};

// Bytes that a step needs from the disk for one layer.
double needed_bytes(const RankedReads& layer);

// What `lookahead` names for one layer, all of it in bytes. It names as many experts as a step uses. Assumed:
// seven in ten of them are used then (of the bundled model 0.65 to 0.69), and a wrong one is an expert that
// might have been used and was not, one in a rank with probability f (1 - f).
struct NamedAhead {
  double right = 0, wrong = 0;
};
NamedAhead named_by_lookahead(const RankedReads& layer);

struct ReadForecast {
  double needed = 0;              // bytes a token
  std::optional<double> in_vain;  // bytes a token; none: nothing is known of how well this policy guesses
  // How often experts are used, by rank: "recorded" of this model; "assumed" as of models of its kind; all
  // alike ("uniform").
  std::string_view routing;
  std::optional<double> tok_s;  // where there are pools: others have no costs to predict it from
  double expected() const { return needed + in_vain.value_or(0); }
};

// REQUIRES: a model with experts, none of them in slices. Caches are taken as full, and as holding the
// experts that are used most.
ReadForecast forecast_reads(const Engine& engine);

}  // namespace sluice::engine
