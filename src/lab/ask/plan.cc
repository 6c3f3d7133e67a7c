// `plan`: the share of a layer's memory for each pool. SPEC §1.9.
#include "experts/plan/planner.h"

#include <cmath>

#include "lab/ask/functions.h"
#include "lab/ask/pool_fields.h"
#include "lab/ask/ranks.h"

namespace sluice::lab {
namespace {
namespace plan_function {

constexpr Field kIn[] = {
    {"f", "by rank, descending: how often the expert is used, numbers in [0, 1] whose sum is k"},
    {"k", "experts used in a step, an integer in 1..N"},
    {"n", "tensors of an expert, an integer >= 1"},
    {"K", "exponent chunks of a tensor, an integer >= 1"},
    {"L", "decode workers, an integer >= 1"},
    {"u", "time to read one tensor's sm, >= 0"},
    {"v", "time to read one exponent chunk, >= 0"},
    {"c", "time to decode one exponent chunk, >= 0"},
    {"sizes", "{F, C, S, E}: size of an expert in each state, > 0"},
    {"memory", "of the layer, in the unit of sizes, >= 0"},
    {"grid", "step of the shares, a number in (0, 1] of which 1 is a multiple"},
    {"pools", "pools that may have a share: a subset of [F, C, S, E], not empty"},
};
constexpr Field kOut[] = {
    {"gamma", "{F, C, S, E}: shares of the memory"},
    {"slots", "{F, C, S, E}: experts each pool holds"},
    {"cost", "expected time of a layer of one step"},
    {"configurations", "shares tried"},
    {"costs_of", "{pool: the cost with that pool alone}, of `pools`"},
};

experts::PerPool<bool> parse_pools(const JsonObject& line) {
  experts::PerPool<bool> pools;
  for (const Json& pool : array_of(line, "pools", kIn[11].text)) {
    const std::string name = pool.is_string() ? pool.get<std::string>() : "";
    if (name.size() != 1 || std::string_view("FCSE").find(name[0]) == std::string_view::npos) {
      line.fail("pools", kIn[11].text);
    }
    pools[static_cast<experts::State>(name[0])] = true;
  }
  if (pools == experts::PerPool<bool>()) line.fail("pools", kIn[11].text);
  return pools;
}

double parse_grid(const JsonObject& line) {
  const double grid = line.real("grid", 0, 1);
  const double points = grid > 0 ? std::round(1 / grid) : 0;
  if (points < 1 || std::abs(1 / grid - points) > 1e-9 * points) line.fail("grid", kIn[10].text);
  return grid;
}

Json answer(const JsonObject& line) {
  const Ranks ranks = parse_ranks(line);
  experts::LayerCosts costs;
  costs.tensors = static_cast<unsigned>(line.integer("n", 1, kMostInteger));
  costs.schedule = {.chunks = static_cast<unsigned>(line.integer("K", 1, kMostInteger)),
                    .workers = static_cast<unsigned>(line.integer("L", 1, kMostInteger)),
                    .u = line.real("u", 0, kMostNumber),
                    .v = line.real("v", 0, kMostNumber),
                    .c = line.real("c", 0, kMostNumber)};
  experts::PlanRequest request;
  request.sizes = parse_sizes(line, "sizes");
  request.memory = line.real("memory", 0, kMostNumber);
  request.grid = parse_grid(line);
  request.pools = parse_pools(line);
  const experts::ZipPlan plan = make_zip_plan(experts::make_rank_model(ranks.f, ranks.k), costs, request);
  Json costs_of = Json::object();
  for (experts::State pool : experts::kPools) {
    if (request.pools[pool]) costs_of[letter(pool)] = *plan.costs_of[pool];
  }
  return {{"gamma", by_pool(plan.gamma)},
          {"slots", by_pool(plan.slots)},
          {"cost", plan.expected.cost},
          {"configurations", plan.configurations},
          {"costs_of", std::move(costs_of)}};
}

}  // namespace plan_function
}  // namespace

const Function kPlan = {.name = "plan",
                        .section = "1.9",
                        .in = plan_function::kIn,
                        .out = plan_function::kOut,
                        .answer = plan_function::answer};

}  // namespace sluice::lab
