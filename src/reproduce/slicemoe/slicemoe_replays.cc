#include "reproduce/slicemoe/slicemoe_replays.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "experts/routing/slice_names.h"

namespace sluice::reproduce {

std::string mat_name(codec::SliceBits bits) { return fmt::format("MAT{}{}", bits.high, bits.low); }

lab::SyntheticRouting synthetic_like(const lab::SlicedModel& model, std::size_t prompts, std::size_t tokens,
                                     std::uint64_t seed) {
  return {.layers = model.layers(),
          .experts = model.experts(),
          .top_k = model.top_k(),
          .prompts = prompts,
          .tokens = tokens,
          .a = .32,
          .d = .1,
          .phi = .4,
          .sigma = .85,
          .seed = seed};
}

SystemFigures figures_of(const lab::RoutedSteps& steps, const lab::MachineReplayResult& result,
                         const lab::RoutingFacts& facts) {
  const lab::MachinePhase& decode = result.decode;
  const experts::MissAccount& account = decode.account;
  SystemFigures figures;
  figures.joules = decode.per_token(decode.energy.total());
  figures.seconds = decode.per_token(decode.seconds);
  figures.hbn = result.accounted.rate();
  const double own = facts.mass * static_cast<double>(result.changes.tokens);
  figures.mass_lost = own > 0 ? result.changes.mass_lost / own : 0;
  figures.high = account.msb_requests == 0 ? 0
                                           : static_cast<double>(account.lsb_requests - account.downgrades) /
                                                 static_cast<double>(account.msb_requests);
  figures.msb_missed = account.msb_rate();
  figures.lsb_missed = account.lsb_rate();
  double limited = 0;
  for_each_decoded(steps, result, [&](std::size_t in_answer, const lab::MachineStepFigures& one) {
    if (in_answer < experts::ConstraintConfig().exempt_steps) return;
    figures.limited_joules += one.joules;
    figures.limited_seconds += one.seconds;
    limited += 1;
  });
  figures.limited_joules /= std::max(1.0, limited);
  figures.limited_seconds /= std::max(1.0, limited);
  figures.energy = {.flash = decode.per_token(decode.energy.flash),
                    .dram_read = decode.per_token(decode.energy.dram_read),
                    .dram_write = decode.per_token(decode.energy.dram_write),
                    .compute = decode.per_token(decode.energy.compute)};
  return figures;
}

lab::MachineReplaySettings high_bit_system(const lab::SlicedModel& model, codec::SliceBits bits, Bytes memory,
                                           double miss_rate) {
  lab::MachineReplaySettings settings;
  settings.bytes = lab::slice_bytes(model.expert_weights(), bits);
  settings.memory = memory;
  settings.cache = "lru";
  settings.router = "cache-prior";
  settings.precision.mode = experts::PrecisionMode::kHigh;
  settings.constraint = {.mode = experts::ConstraintMode::kHard, .limit = miss_rate};
  return settings;
}

lab::MachineReplaySettings slicemoe_system(const lab::SlicedModel& model, codec::SliceBits bits, Bytes memory,
                                           double miss_rate) {
  lab::MachineReplaySettings settings = high_bit_system(model, bits, memory, miss_rate);
  settings.cache = "slice-lru";
  settings.precision.mode = experts::PrecisionMode::kDbsc;
  return settings;
}

lab::MachineReplaySettings exact_slices(const lab::SlicedModel& model, codec::SliceBits bits, Bytes memory,
                                        experts::InitialSlices initial) {
  lab::MachineReplaySettings settings;
  settings.bytes = lab::slice_bytes(model.expert_weights(), bits);
  settings.memory = memory;
  settings.slices.initial = initial;
  return settings;
}

EqualLoss at_equal_loss(std::vector<SystemFigures> sweep, double mass_lost) {
  SLUICE_CHECK(!sweep.empty());
  std::ranges::sort(sweep, {}, &SystemFigures::mass_lost);
  const auto above = std::ranges::lower_bound(sweep, mass_lost, {}, &SystemFigures::mass_lost);
  if (above == sweep.begin() || above == sweep.end()) {
    const SystemFigures& nearest = above == sweep.end() ? sweep.back() : sweep.front();
    return {nearest.joules, nearest.seconds, nearest.mass_lost == mass_lost};
  }
  const SystemFigures &low = above[-1], &high = *above;
  const double share = (mass_lost - low.mass_lost) / (high.mass_lost - low.mass_lost);
  return {low.joules + share * (high.joules - low.joules), low.seconds + share * (high.seconds - low.seconds),
          true};
}

}  // namespace sluice::reproduce
