// SMoE's eviction: the expert whose mean score over the last iterations is lowest leaves, except those that
// the running layer needs. SMoE (arXiv 2508.18983 §5.3); SPEC §2.4.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sluice::experts {

// The window of one layer. Its memory is allocated at once. Thread-compatible.
class ScoreWindow {
 public:
  static constexpr std::uint32_t kIterations = 16;  // the default of SPEC §2.4; the paper names none
  // REQUIRES: iterations > 0.
  explicit ScoreWindow(std::uint32_t experts, std::uint32_t iterations = kIterations);

  // One step has gone through the layer (a whole prompt is one step). scores: (N), of all experts, selected
  // or not: the mean over the step's tokens of the router's scores.
  void on_iteration(std::span<const double> scores);
  // More has become known of the newest iteration, as of a prompt that comes in chunks. REQUIRES: there is
  // one.
  void replace_last(std::span<const double> scores);

  // (N): the means over the last min(iterations, seen) iterations, summed from the oldest on; zeros before
  // the first. Valid until the next call of any kind.
  std::span<const double> means();
  // The resident expert that leaves first: by mean, then the least recent, then the lowest id. Empty if all
  // residents are shielded. (N) each; shielded: 1 for those that the running layer uses or that are on their
  // way; last_use: larger is more recent.
  std::optional<std::uint32_t> victim(std::span<const std::uint8_t> resident,
                                      std::span<const std::uint8_t> shielded,
                                      std::span<const std::int64_t> last_use);

 private:
  std::uint32_t experts_, iterations_;
  std::uint64_t seen_ = 0;
  std::vector<double> scores_;  // (iterations, N): a ring; the oldest is overwritten
  std::vector<double> means_;   // (N)
  bool is_current_ = true;      // means_ are those of scores_
};

}  // namespace sluice::experts
