// `workload_cache`: which experts of a layer stay on the device, step by step. SPEC §3.5.
#include <functional>
#include <vector>

#include "experts/cache/workload/workload_ema.h"
#include "experts/cache/workload/workload_window.h"
#include "lab/ask/functions.h"
#include "lab/ask/score_fields.h"

namespace sluice::lab {
namespace {
namespace workload_cache_function {

using experts::Swap;

constexpr Field kIn[] = {
    {"N", "experts of the layer, an integer >= 1"},
    {"start", "an array of ids on the device at the start (a set), integers in 0..N-1"},
    {"mode", "beneficial, unconditional or ema"},
    {"steps", "an array with a row for each step: the tokens of each expert, integers >= 0"},
    {"u_size", "at most this many experts change places at once, an integer >= 0"},
};
constexpr Field kInByMode[] = {
    {"w_size", "modes beneficial and unconditional: steps of a window, an integer >= 1"},
    {"gamma", "mode ema: the weight of the past, a number in 0..1, and below 1"},
    {"ratio", "mode ema: how many times the score of the expert that leaves a newcomer needs, a number >= 1"},
};
constexpr Field kOut[] = {
    {"sets", "after each step the ids on the device, ascending"},
};

// The policy that the line asks for: counts the tokens of a step, and returns its swaps.
using Policy = std::function<std::span<const Swap>(std::span<const std::uint32_t> tokens,
                                                   std::span<const std::uint8_t> resident)>;

Policy parse_policy(const JsonObject& line, std::uint32_t experts) {
  const std::string mode = line.string("mode");
  const auto swaps = static_cast<std::uint32_t>(line.integer("u_size", 0, kMostInteger));
  if (mode == "ema") {
    const double gamma = line.real("gamma", 0, 1);
    if (gamma == 1) line.fail("gamma", kInByMode[1].text);
    return [ema = experts::WorkloadEma(
                experts, {.gamma = gamma, .ratio = line.real("ratio", 1, kMostNumber), .swaps = swaps})](
               std::span<const std::uint32_t> tokens, std::span<const std::uint8_t> resident) mutable {
      ema.add(tokens);
      return ema.end_step(resident);
    };
  }
  if (mode != "beneficial" && mode != "unconditional") line.fail("mode", kIn[2].text);
  const auto steps = static_cast<std::uint32_t>(line.integer("w_size", 1, kMostInteger));
  return [window = experts::WorkloadWindow(
              experts, {.steps = steps, .swaps = swaps, .unconditional = mode == "unconditional"})](
             std::span<const std::uint32_t> tokens, std::span<const std::uint8_t> resident) mutable {
    window.add(tokens);
    return window.end_step(resident);
  };
}

Json answer(const JsonObject& line) {
  const auto experts = static_cast<std::uint32_t>(line.integer("N", 1, kMostExperts));
  std::vector<std::uint8_t> resident = parse_members(line, "start", experts);
  const Policy policy = parse_policy(line, experts);
  const Rows<std::int64_t> steps = integer_rows(line, "steps", 0, kMostInteger, experts);
  Json sets = Json::array();
  std::vector<std::uint32_t> tokens;
  for (std::size_t i = 0; i < steps.count; ++i) {
    tokens.clear();
    for (std::int64_t w : steps.row(i)) tokens.push_back(static_cast<std::uint32_t>(w));
    for (const Swap& swap : policy(tokens, resident)) {
      resident[swap.in] = 1;
      resident[swap.out] = 0;
    }
    Json set = Json::array();
    for (std::uint32_t id = 0; id < experts; ++id)
      if (resident[id] != 0) set.push_back(id);
    sets.push_back(std::move(set));
  }
  return {{"sets", std::move(sets)}};
}

}  // namespace workload_cache_function
}  // namespace

const Function kWorkloadCache = {.name = "workload_cache",
                                 .section = "3.5",
                                 .in = workload_cache_function::kIn,
                                 .in_by_mode = workload_cache_function::kInByMode,
                                 .out = workload_cache_function::kOut,
                                 .answer = workload_cache_function::answer};

}  // namespace sluice::lab
