// What the flags of a model say, as the options of an engine.
#pragma once

#include <string>

#include "engine/plan/options.h"
#include "flags/engine_flags.h"

namespace sluice::app {

// Flags of an exact reference at `path` beside the model of `flags`: default policies and the router exact;
// the machine as for the model.
EngineFlags reference_flags(const EngineFlags& flags, const std::string& path);
// Whether recorded ranks that the device's cache does not go by are an error, or are left out: then
// EngineOptions::popularity_name is empty.
enum class UnusedRanks { kRefused, kLeftOut };
// What the flags say; called once, before the model is opened, so that wrong flags are reported first.
// Callers add the positions of sequences. Error(kUsage), and errors of the files that flags name.
engine::EngineOptions engine_options(const EngineFlags& flags,
                                     UnusedRanks unused_ranks = UnusedRanks::kRefused);

}  // namespace sluice::app
