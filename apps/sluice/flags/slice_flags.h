// Flags of models in slices, and of routers that prefer resident experts (SPEC §4).
#pragma once

#include <optional>
#include <string>

#include "base/setting.h"
#include "engine/plan/options.h"

namespace sluice::app {

class Command;

// The values that the user typed; empty: the preset's, or the default.
struct SliceFlags {
  std::string precision, critical, theta, low_view, activations;
  std::string constraint, miss_rate, lambda, eta, p;
  std::string alpha, merge, renorm, resident;
  std::string lsb_miss, lsb_reserve, warmup, kappa, rho;
  std::string max_loss;
  std::optional<std::int64_t> top_j, critical_count;
};

// For all four functions `flags` must outlive `command`.
void add_activations_flag(Command& command, SliceFlags& flags);
// Adds that flag and others of commands that compute; replays do not have them.
void add_computing_flags(Command& command, SliceFlags& flags);
void add_slice_flags(Command& command, SliceFlags& flags);
// Setting::kPrecision alone, which add_slice_flags() has, too.
void add_precision_flag(Command& command, SliceFlags& flags, const std::string& help);
// Error(kUsage) that names the flag.
void set_slice_options(const SliceFlags& flags, engine::EngineOptions& options);

// Applies Setting::kMaxLoss; call after set_slice_options(). It chooses options for the store at `path` from
// the store's calibration; without the flag it does nothing. Error(kUsage) that names the flag, also if
// another flag sets an option that Setting::kMaxLoss chooses; Error(kNotFound) for a store without a
// calibration; Error(kInvalid), (kCorrupt) for a bad one, and for a loss smaller than the store can keep to.
void set_max_loss(const SliceFlags& flags, const std::string& path, engine::EngineOptions& options);

// How many tokens of a given (not generated) text count as its prompt where tokens that are decoded one by
// one are computed otherwise (PolicyPlan::decodes_otherwise).
inline constexpr std::int64_t kPromptTokens = 64;

}  // namespace sluice::app
