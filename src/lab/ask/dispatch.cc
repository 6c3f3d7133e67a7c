// `dispatch`: the pool for an expert of a given rank. SPEC §1.7.
#include "lab/ask/functions.h"
#include "lab/ask/pool_fields.h"

namespace sluice::lab {
namespace {
namespace dispatch_function {

constexpr Field kIn[] = {
    {"slots", "{F, C, S, E}: experts each pool holds, integers >= 0"},
    {"delta", "tolerance margin in experts, an integer >= 0"},
    {"ranks", "an array of integers >= 0; 0 is the hottest"},
};
constexpr Field kOut[] = {{"targets", "an array: F, C, S, E or null (dropped after use)"}};

Json answer(const JsonObject& line) {
  const experts::PoolSlots slots = parse_slots(line, "slots");
  const auto delta = static_cast<std::uint32_t>(line.integer("delta", 0, kMostInteger));
  Json targets = Json::array();
  for (std::int64_t rank : integers(line, "ranks", 0, INT64_MAX)) {
    const experts::State target = experts::dispatch(slots, delta, static_cast<std::uint64_t>(rank));
    targets.push_back(target == experts::State::kM ? Json() : Json(letter(target)));
  }
  return {{"targets", std::move(targets)}};
}

}  // namespace dispatch_function
}  // namespace

const Function kDispatch = {.name = "dispatch",
                            .section = "1.7",
                            .in = dispatch_function::kIn,
                            .out = dispatch_function::kOut,
                            .answer = dispatch_function::answer};

}  // namespace sluice::lab
