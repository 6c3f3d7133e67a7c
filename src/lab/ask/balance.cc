// `balance`: which experts are loaded and which are computed on the host. SPEC §2.5.
#include <algorithm>
#include <vector>

#include "experts/placement/balancer.h"
#include "lab/ask/fields.h"
#include "lab/ask/functions.h"

namespace sluice::lab {
namespace {
namespace balance_function {

constexpr Field kIn[] = {
    {"B", "tokens of each expert that is not on the device, integers >= 0"},
    {"t_cpu", "time of a token on the host, a number >= 0"},
    {"t_load", "time to load an expert, a number >= 0"},
    {"mode", "literal or look_ahead"},
};
constexpr Field kOut[] = {
    {"load", "places in B that are loaded, ascending"},
    {"cpu", "places in B that are computed on the host, ascending"},
    {"t_load", "when the link ends"},
    {"t_cpu", "when the host ends"},
    {"makespan", "the later of the two"},
};

Json ascending(std::span<const std::uint32_t> places) {
  std::vector<std::uint32_t> sorted(places.begin(), places.end());
  std::ranges::sort(sorted);
  return sorted;
}

Json answer(const JsonObject& line) {
  std::vector<std::uint32_t> tokens;
  std::vector<double> host;
  const double host_time = line.real("t_cpu", 0, kMostNumber);
  for (std::int64_t count : integers(line, "B", 0, kMostInteger)) {
    tokens.push_back(static_cast<std::uint32_t>(count));
    host.push_back(static_cast<double>(count) * host_time);
  }
  const double load_time = line.real("t_load", 0, kMostNumber);
  const std::string mode = line.string("mode");
  if (mode != "literal" && mode != "look_ahead") line.fail("mode", kIn[3].text);

  experts::Balancer balancer;
  const experts::Balance balance =
      balancer.balance(mode == "literal" ? experts::BalanceRule::kLiteral : experts::BalanceRule::kLookAhead,
                       tokens, host, load_time);
  return {{"load", ascending(balance.loads)},
          {"cpu", ascending(balance.host)},
          {"t_load", balance.load_time},
          {"t_cpu", balance.host_time},
          {"makespan", balance.makespan()}};
}

}  // namespace balance_function
}  // namespace

const Function kBalance = {.name = "balance",
                           .section = "2.5",
                           .in = balance_function::kIn,
                           .out = balance_function::kOut,
                           .answer = balance_function::answer};

}  // namespace sluice::lab
