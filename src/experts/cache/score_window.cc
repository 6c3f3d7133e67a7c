#include "experts/cache/score_window.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"

namespace sluice::experts {

ScoreWindow::ScoreWindow(std::uint32_t experts, std::uint32_t iterations)
    : experts_(experts),
      iterations_(iterations),
      scores_(std::size_t{experts} * iterations),
      means_(experts) {
  SLUICE_CHECK(iterations > 0);
}

void ScoreWindow::on_iteration(std::span<const double> scores) {
  SLUICE_CHECK(scores.size() == experts_);
  const auto row = static_cast<std::ptrdiff_t>(seen_ % iterations_ * experts_);
  std::ranges::copy(scores, scores_.begin() + row);
  ++seen_;
  is_current_ = false;
}

void ScoreWindow::replace_last(std::span<const double> scores) {
  SLUICE_CHECK(seen_ > 0);
  --seen_;
  on_iteration(scores);
}

std::span<const double> ScoreWindow::means() {
  if (is_current_) return means_;
  // A running sum that subtracts what leaves the window would round, and rounding would decide ties.
  std::ranges::fill(means_, 0.0);
  const std::uint64_t count = std::min<std::uint64_t>(seen_, iterations_);
  for (std::uint64_t i = seen_ - count; i < seen_; ++i) {
    const double* const row = scores_.data() + i % iterations_ * experts_;
    for (std::uint32_t e = 0; e < experts_; ++e) means_[e] += row[e];
  }
  for (double& mean : means_) mean /= static_cast<double>(count);
  is_current_ = true;
  return means_;
}

std::optional<std::uint32_t> ScoreWindow::victim(std::span<const std::uint8_t> resident,
                                                 std::span<const std::uint8_t> shielded,
                                                 std::span<const std::int64_t> last_use) {
  SLUICE_CHECK(resident.size() == experts_ && shielded.size() == experts_ && last_use.size() == experts_);
  const std::span<const double> mean = means();
  std::optional<std::uint32_t> victim;
  for (std::uint32_t e = 0; e < experts_; ++e) {
    if (resident[e] == 0 || shielded[e] != 0) continue;
    if (!victim || std::tie(mean[e], last_use[e]) < std::tie(mean[*victim], last_use[*victim])) victim = e;
  }
  return victim;
}

}  // namespace sluice::experts
