// `pools`: the pools of one layer over a trace of steps. SPEC §1.7.
#include <algorithm>

#include "experts/cache/zip_pools.h"
#include "lab/ask/functions.h"
#include "lab/ask/pool_fields.h"

namespace sluice::lab {
namespace {
namespace pools_function {

using experts::State, experts::ZipPools;

constexpr Field kIn[] = {
    {"slots", "{F, C, S, E}: experts each pool holds, integers >= 0"},
    {"delta", "tolerance margin in experts, an integer >= 0"},
    {"demote", "true: victims of C stay as S or E where there is room"},
    {"N", "experts of the layer, an integer >= 1"},
    {"steps", "an array of steps, each an array of active expert ids (a set), integers in 0..N-1"},
};
constexpr Field kOut[] = {
    {"steps", "per step {place: {active expert: its state afterwards}, evicted: [ids discarded, in order]}"},
    {"resident", "{expert: state} at the end"},
    {"hits", "{F, C, S, E, M}: uses, by the state before the step"},
};

std::vector<std::vector<std::uint16_t>> parse_steps(const JsonObject& line, std::int64_t experts) {
  std::vector<std::vector<std::uint16_t>> steps;
  for (const Json& step : array_of(line, "steps", kIn[4].text)) {
    const std::string place = "steps[" + std::to_string(steps.size()) + "]";
    if (!step.is_array()) fail_at(line, place, "an array of ids", step);
    std::vector<std::uint16_t> ids;
    for (const Json& id : step) {
      const std::string at = place + "[" + std::to_string(ids.size()) + "]";
      ids.push_back(static_cast<std::uint16_t>(integer_at(line, at, id, 0, experts - 1)));
    }
    std::ranges::sort(ids);
    ids.erase(std::ranges::unique(ids).begin(), ids.end());
    steps.push_back(std::move(ids));
  }
  return steps;
}

Json answer(const JsonObject& line) {
  const experts::PoolSlots slots = parse_slots(line, "slots");
  const auto delta = static_cast<std::uint32_t>(line.integer("delta", 0, kMostInteger));
  using experts::Demotion;
  ZipPools pools(slots,
                 {.delta = delta, .demotion = boolean(line, "demote") ? Demotion::kRoom : Demotion::kNone});
  const std::int64_t experts = line.integer("N", 1, kMostExperts);

  Json steps = Json::array(), resident = Json::object();
  Json hits = {{"F", 0}, {"C", 0}, {"S", 0}, {"E", 0}, {"M", 0}};
  for (const std::vector<std::uint16_t>& active : parse_steps(line, experts)) {
    pools.on_step(active);
    Json place = Json::object(), evicted = Json::array();
    for (std::uint16_t expert : active) {
      place[std::to_string(expert)] = letter(pools.state(expert));
      Json& found = hits[letter(pools.found(expert))];
      found = found.get<std::uint64_t>() + 1;
    }
    for (const ZipPools::Move& move : pools.moves()) {
      if (move.to == State::kM) evicted.push_back(move.expert);
    }
    steps.push_back({{"place", std::move(place)}, {"evicted", std::move(evicted)}});
  }
  for (std::size_t expert = 0; expert < pools.experts(); ++expert) {
    const State state = pools.state(static_cast<std::uint16_t>(expert));
    if (state != State::kM) resident[std::to_string(expert)] = letter(state);
  }
  return {{"steps", std::move(steps)}, {"resident", std::move(resident)}, {"hits", std::move(hits)}};
}

}  // namespace pools_function
}  // namespace

const Function kPools = {.name = "pools",
                         .section = "1.7",
                         .in = pools_function::kIn,
                         .out = pools_function::kOut,
                         .answer = pools_function::answer};

}  // namespace sluice::lab
