#include "flags/sampling_flags.h"

#include "base/setting.h"
#include "flags/command_line.h"
#include "flags/number_range.h"

namespace sluice::app {

void add_sampling_flags(Command& command, SamplingFlags& flags, SamplingChoice choice) {
  command.add_option(Setting::kTemperature, &flags.temperature, "Temperature; 0 is greedy")
      ->group(kSamplingGroup);
  if (choice == SamplingChoice::kAll) {
    command.add_option(Setting::kTopK, &flags.top_k, "Keep the k most likely tokens; 0: all")
        ->check(whole_number(Setting::kTopK, 0, std::uint64_t{1} << 31))
        ->group(kSamplingGroup);
    command.add_option(Setting::kTopP, &flags.top_p, "Keep the smallest set of this probability; 1: all")
        ->group(kSamplingGroup);
    command.add_option(Setting::kMinP, &flags.min_p, "Drop tokens less likely than this times the likeliest")
        ->group(kSamplingGroup);
  }
  if (choice != SamplingChoice::kTemperature)
    command
        .add_option(Setting::kRepeatPenalty, &flags.repetition_penalty,
                    "Penalty on tokens seen before; 1: none")
        ->group(kSamplingGroup);
}

engine::SamplerConfig sampler_config(const SamplingFlags& flags, const model::GenerationConfig& generation,
                                     std::uint64_t seed) {
  engine::SamplerConfig config = engine::sampler_defaults(generation);
  if (flags.temperature) config.temperature = *flags.temperature;
  if (flags.top_k) config.top_k = *flags.top_k;
  if (flags.top_p) config.top_p = *flags.top_p;
  if (flags.min_p) config.min_p = *flags.min_p;
  // A temperature of 0 by flag is plain greedy; a penalty must then be asked for as well.
  if (flags.temperature == 0.0) config.repetition_penalty = 1.0;
  if (flags.repetition_penalty) config.repetition_penalty = *flags.repetition_penalty;
  config.seed = seed;
  config.validate();
  return config;
}

}  // namespace sluice::app
