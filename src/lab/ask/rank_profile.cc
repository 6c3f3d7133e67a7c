// `rank_profile`: frequencies by rank from the activation counts of windows. SPEC §1.8.
#include "experts/plan/rank_model.h"
#include "lab/ask/fields.h"
#include "lab/ask/functions.h"

namespace sluice::lab {
namespace {
namespace rank_profile_function {

constexpr std::int64_t kMostCount = std::int64_t{1} << 53;

constexpr Field kIn[] = {
    {"windows", "an array of windows, each an array of N activation counts by expert, integers >= 0"},
    {"steps", "an array: steps of each window, integers >= 0; windows of fewer than 64 are skipped"},
    {"k", "the sum of frequencies wanted, an integer in 1..N"},
};
constexpr Field kOut[] = {
    {"f", "by rank, descending: how often the expert is used; [] without a used window"},
    {"used", "windows that were not skipped"},
};

Json answer(const JsonObject& line) {
  std::vector<experts::RankWindow> windows;
  bool any = false;
  for (const Json& row : array_of(line, "windows", kIn[0].text)) {
    const std::string place = "windows[" + std::to_string(windows.size()) + "]";
    if (!row.is_array() || row.empty()) fail_at(line, place, "an array of counts", row);
    if (!windows.empty() && row.size() != windows[0].counts.size()) {
      fail_at(line, place, std::to_string(windows[0].counts.size()) + " counts, as in windows[0]",
              row.size());
    }
    experts::RankWindow window;
    for (const Json& count : row) {
      const std::string at = place + "[" + std::to_string(window.counts.size()) + "]";
      window.counts.push_back(static_cast<std::uint64_t>(integer_at(line, at, count, 0, kMostCount)));
    }
    windows.push_back(std::move(window));
  }
  const std::vector<std::int64_t> steps = integers(line, "steps", 0, kMostCount);
  if (steps.size() != windows.size())
    line.fail("steps", "one number a window: " + std::to_string(windows.size()));
  const std::int64_t k = line.integer(
      "k", 1, windows.empty() ? kMostInteger : static_cast<std::int64_t>(windows[0].counts.size()));
  bool used = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    windows[i].steps = static_cast<std::uint64_t>(steps[i]);
    if (windows[i].steps < 64) continue;
    used = true;
    for (std::uint64_t count : windows[i].counts) any = any || count > 0;
  }
  if (used && !any) line.fail("windows", "counts above 0 in one of the windows of 64 steps or more");
  const experts::RankProfile profile = make_rank_profile(windows, static_cast<double>(k));
  return {{"f", profile.f}, {"used", profile.used}};
}

}  // namespace rank_profile_function
}  // namespace

const Function kRankProfile = {.name = "rank_profile",
                               .section = "1.8",
                               .in = rank_profile_function::kIn,
                               .out = rank_profile_function::kOut,
                               .answer = rank_profile_function::answer};

}  // namespace sluice::lab
