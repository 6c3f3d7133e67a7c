// How many tokens will choose each expert of the next layer, as predicted scores say, and which of the
// experts to fetch for that. DALI (§4.2); SPEC §3.4.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::experts {

// What a predictor says of the next layer. Non-owning.
struct PredictedRouting {
  std::uint32_t tokens = 0, experts = 0;  // T, N
  std::uint32_t top_k = 0;                // at most N
  std::span<const double> logits = {};    // (T, N): the top-k are chosen by these
  std::span<const double> scores = {};    // (T, N): softmax over all N
};

// Keeps the `size` experts of `experts` that have the most tokens, in that order: by tokens descending, then
// by score descending, then by id. The tie of tokens matters with one sequence, where each count is 1.
// tokens, scores: (N).
void top_by_workload(std::span<const std::uint32_t> tokens, std::span<const double> scores, std::size_t size,
                     std::vector<std::uint32_t>& experts);

// Allocates nothing once it has seen the largest step. Thread-compatible.
class WorkloadForecast {
 public:
  void predict(const PredictedRouting& predicted);  // replaces the last forecast

  // All valid until the next predict(). A token's predicted experts, ascending.
  std::span<const std::uint32_t> predicted(std::uint32_t token) const;
  // (N): how many tokens are predicted to choose an expert.
  std::span<const std::uint32_t> counts() const { return counts_; }
  // At most `size` experts to fetch, of those that some token is predicted to choose and that are not
  // resident: the top ones by workload, where the score of an expert is the sum of what all tokens give it.
  // resident: (N). Valid until the next call of either.
  std::span<const std::uint32_t> order(std::span<const std::uint8_t> resident, std::size_t size);
  // The same, whatever is resident.
  std::span<const std::uint32_t> top(std::size_t size) { return order({}, size); }

 private:
  std::uint32_t top_k_ = 0;
  std::vector<std::uint32_t> predicted_;  // (T, k)
  std::vector<std::uint32_t> counts_;     // (N)
  std::vector<double> mass_;              // (N)
  std::vector<std::uint32_t> ranking_, order_;
};

}  // namespace sluice::experts
