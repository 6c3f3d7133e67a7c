// `score_window`: mean scores over the last iterations, and the expert that leaves. SPEC §2.4.
#include <limits>
#include <optional>
#include <vector>

#include "experts/cache/score_window.h"
#include "lab/ask/functions.h"
#include "lab/ask/score_fields.h"

namespace sluice::lab {
namespace {
namespace score_window_function {

constexpr Field kIn[] = {
    {"n", "iterations of the window, an integer >= 1"},
    {"iterations", "an array with a row for each iteration: a number for each expert"},
    {"resident", "an array of ids on the device (a set), integers in 0..N-1"},
    {"shield", "an array of ids that must stay (a set), integers in 0..N-1"},
    {"last_use", "an integer for each expert, larger if it was used more recently: N is their number"},
};
constexpr Field kOut[] = {
    {"avg", "by expert, the mean of its scores in the window; 0 without iterations"},
    {"victim", "the id that leaves first, or null"},
};

Json answer(const JsonObject& line) {
  using Limits = std::numeric_limits<std::int64_t>;
  const std::int64_t n = line.integer("n", 1, kMostInteger);
  const std::vector<std::int64_t> last_use = integers(line, "last_use", Limits::min(), Limits::max());
  if (last_use.size() > static_cast<std::size_t>(kMostExperts))
    line.fail("last_use", "at most " + std::to_string(kMostExperts) + " integers");
  const Rows<double> iterations = number_rows(line, "iterations", -kMostNumber, kMostNumber);
  if (iterations.count > 0 && iterations.columns != last_use.size())
    line.fail("last_use",
              std::to_string(iterations.columns) + " integers, one for each number of iterations[0]");
  const std::vector<std::uint8_t> resident = parse_members(line, "resident", last_use.size());
  const std::vector<std::uint8_t> shield = parse_members(line, "shield", last_use.size());

  // A window longer than the run is as long as the run.
  const std::int64_t needed =
      std::min(n, std::max<std::int64_t>(1, static_cast<std::int64_t>(iterations.count)));
  experts::ScoreWindow window(static_cast<std::uint32_t>(last_use.size()),
                              static_cast<std::uint32_t>(needed));
  for (std::size_t i = 0; i < iterations.count; ++i) window.on_iteration(iterations.row(i));
  const std::optional<std::uint32_t> victim = window.victim(resident, shield, last_use);
  return {{"avg", window.means()}, {"victim", victim ? Json(*victim) : Json()}};
}

}  // namespace score_window_function
}  // namespace

const Function kScoreWindow = {.name = "score_window",
                               .section = "2.4",
                               .in = score_window_function::kIn,
                               .out = score_window_function::kOut,
                               .answer = score_window_function::answer};

}  // namespace sluice::lab
