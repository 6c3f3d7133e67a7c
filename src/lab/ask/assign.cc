// `assign`: which experts of a layer the device computes, and which the host. SPEC §3.3.
#include <algorithm>
#include <optional>
#include <vector>

#include "experts/placement/beam_split.h"
#include "experts/placement/greedy_split.h"
#include "experts/placement/optimal_split.h"
#include "experts/placement/ratio_prefix_split.h"
#include "lab/ask/functions.h"
#include "lab/ask/score_fields.h"

namespace sluice::lab {
namespace {
namespace assign_function {

constexpr Field kIn[] = {
    {"w", "tokens of each expert, integers >= 0; experts of 0 are on neither side"},
    {"t_cpu", "time of each expert on the host, numbers >= 0"},
    {"t_gpu", "time of each expert on the device, transfer included, numbers >= 0"},
    {"resident", "an array of ids on the device already (a set), integers in 0..N-1: they need no slot"},
    {"slots", "how many other experts the device has room for, an integer >= 0, or null: any number"},
    {"mode", "greedy, beam, ratio-prefix or optimal"},
    {"beam", "partial answers that beam keeps, an integer >= 1"},
};
constexpr Field kOut[] = {
    {"gpu", "ids on the device, ascending"}, {"cpu", "ids on the host, ascending"},
    {"t_gpu", "when the device ends"},       {"t_cpu", "when the host ends"},
    {"makespan", "the later of the two"},
};

// Memory that a line may take: words of the device sets of a beam, and partial splits of the optimum.
constexpr std::uint64_t kMostBeamWords = 1 << 23;
constexpr std::size_t kMostStates = 1 << 22;

struct Layer {
  std::vector<std::uint32_t> tokens;
  std::vector<double> host, device;
  std::vector<std::uint8_t> resident;
  std::uint32_t slots = experts::kAnySlots;
};

std::vector<double> parse_times(const JsonObject& line, std::string_view key, std::size_t experts) {
  std::vector<double> times = numbers(line, key, 0, kMostNumber);
  if (times.size() != experts) line.fail(key, std::to_string(experts) + " numbers, one an expert");
  return times;
}

Layer parse_layer(const JsonObject& line) {
  Layer layer;
  for (std::int64_t tokens : integers(line, "w", 0, kMostInteger))
    layer.tokens.push_back(static_cast<std::uint32_t>(tokens));
  const std::size_t n = layer.tokens.size();
  if (n > static_cast<std::size_t>(kMostExperts))
    line.fail("w", "at most " + std::to_string(kMostExperts) + " integers");
  layer.host = parse_times(line, "t_cpu", n);
  layer.device = parse_times(line, "t_gpu", n);
  layer.resident = parse_members(line, "resident", n);
  if (const Json* slots = line.find("slots"); slots != nullptr && !slots->is_null())
    layer.slots = static_cast<std::uint32_t>(integer_at(line, "slots", *slots, 0, kMostInteger));
  return layer;
}

experts::SplitTimes split(const JsonObject& line, const experts::SplitCosts& costs,
                          std::vector<std::uint8_t>& on_device) {
  const std::string mode = line.string("mode");
  const std::int64_t width = line.integer("beam", 1, kMostInteger);
  if (mode == "greedy") return experts::GreedySplit().split(costs, on_device);
  if (mode == "ratio-prefix") return experts::RatioPrefixSplit().split(costs, on_device);
  if (mode == "beam") {
    // There are no more partial splits than ways to place the active experts.
    const auto active = std::ranges::count_if(costs.tokens, [](std::uint32_t w) { return w > 0; });
    const std::int64_t kept = std::min(width, std::int64_t{1} << std::min<std::int64_t>(active, 30));
    if (static_cast<std::uint64_t>(kept) * (costs.size() / 64 + 1) > kMostBeamWords)
      line.fail("beam", "fewer partial answers: these do not fit into 64 MiB");
    return experts::BeamSplit(static_cast<std::uint32_t>(kept)).split(costs, on_device);
  }
  if (mode != "optimal") line.fail("mode", kIn[5].text);
  experts::OptimalSplit optimal(kMostStates);
  const experts::SplitTimes times = optimal.split(costs, on_device);
  if (optimal.fallbacks() > 0)
    line.fail("mode", "another mode: the optimum needs more than " + std::to_string(kMostStates) +
                          " partial splits here");
  return times;
}

Json answer(const JsonObject& line) {
  const Layer layer = parse_layer(line);
  std::vector<std::uint8_t> on_device(layer.tokens.size());
  const experts::SplitTimes times =
      split(line, {layer.tokens, layer.host, layer.device, layer.resident, layer.slots}, on_device);
  Json gpu = Json::array(), cpu = Json::array();
  for (std::size_t id = 0; id < layer.tokens.size(); ++id)
    if (layer.tokens[id] > 0) (on_device[id] != 0 ? gpu : cpu).push_back(id);
  return {{"gpu", std::move(gpu)},
          {"cpu", std::move(cpu)},
          {"t_gpu", times.device},
          {"t_cpu", times.host},
          {"makespan", times.makespan()}};
}

}  // namespace assign_function
}  // namespace

const Function kAssign = {.name = "assign",
                          .section = "3.3",
                          .in = assign_function::kIn,
                          .out = assign_function::kOut,
                          .answer = assign_function::answer};

}  // namespace sluice::lab
