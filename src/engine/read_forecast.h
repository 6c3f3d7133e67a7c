// What decoding is expected to read of experts: what it needs, and what is read in vain.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::engine {

struct RunReport;

struct ReadForecast {
  double needed = 0;  // bytes a token
  // Bytes a token, read ahead or as part of a whole layer; none: nothing is known of how well this policy
  // guesses.
  std::optional<double> in_vain;
  // How often experts are used, by rank: "recorded" of this model, or "assumed" as of models of its kind.
  std::string_view routing;
  // What was played into the model that the profile's recorded routing is of (Profile::played); else empty.
  std::string played;
  std::optional<double> tok_s;  // where there are pools: others have no costs to predict it from
  // The router, if it may choose other experts than the model's own, whose choice is predicted; else empty.
  std::string_view router;
  double expected() const { return needed + in_vain.value_or(0); }
};

// `played` as above; empty where the run's plan has recorded routing of its own, or none is recorded.
std::string played_in_profile(const RunReport& run);

// REQUIRES: a model with experts, none of them in slices. Caches are taken as full, and as holding the
// experts that are used most; those of a device hold others than the host where the tiers are exclusive.
ReadForecast forecast_reads(const RunReport& run);

}  // namespace sluice::engine
