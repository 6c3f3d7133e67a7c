// Flags of models in slices, and of routers that prefer what is in memory (SPEC §4).
#pragma once

#include <optional>
#include <string>

#include "engine/options.h"

namespace sluice::app {

class Command;

// What the user typed; empty: the preset's, or the default.
struct SliceFlags {
  std::string precision, critical, theta, low_view, activations;
  std::string constraint, miss_rate, lambda, eta, p;
  std::string lsb_miss, lsb_reserve, warmup, kappa, rho;
  std::string max_loss;
  std::optional<std::int64_t> top_j, critical_count;
};

// `flags` must outlive `command`, of all.
void add_activations_flag(Command& command, SliceFlags& flags);
// That and others of commands that compute, which replays do not.
void add_computing_flags(Command& command, SliceFlags& flags);
void add_slice_flags(Command& command, SliceFlags& flags);
// Error(kUsage) that names the flag.
void set_slice_options(const SliceFlags& flags, engine::EngineOptions& options);

// --max-loss, behind set_slice_options: what it chooses for the store at `path`, from its calibration.
// Nothing without the flag. Error(kUsage) that names the flag, also where one says what --max-loss is to
// choose; Error(kNotFound) for a store without a calibration; Error(kInvalid), (kCorrupt) for a bad one, and
// for less than the store can keep to.
void set_max_loss(const SliceFlags& flags, const std::string& path, engine::EngineOptions& options);

// With the options of an engine, whose presets are filled in: tokens that are decoded one by one are computed
// otherwise than in a prompt, by another precision or other experts.
bool decodes_otherwise(const engine::EngineOptions& options);
// Of a text that is not generated but given, in that case: how much of it is taken for the prompt.
inline constexpr std::int64_t kPromptTokens = 64;

}  // namespace sluice::app
