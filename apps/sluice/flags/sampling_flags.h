// How tokens are drawn: flags of run, of trace, and of plan, which has those that decide how much memory that
// takes.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/session/sampler.h"

namespace sluice::app {

class Command;

// The values that the user typed; empty: the model's.
struct SamplingFlags {
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<std::int64_t> top_k;
};

inline constexpr const char* kSamplingGroup =
    "Sampling (defaults: the model's generation_config.json, else greedy)";

enum class SamplingChoice {
  kAll,
  kThatTakesMemory,  // temperature and repetition penalty: only the likeliest token as it is takes none
  kTemperature,
};
void add_sampling_flags(Command& command, SamplingFlags& flags, SamplingChoice choice);

// Error(kUsage) naming the flag for values that make no sense.
engine::SamplerConfig sampler_config(const SamplingFlags& flags, const model::GenerationConfig& generation,
                                     std::uint64_t seed);

}  // namespace sluice::app
