// A token's own experts by rank, and which of them its scores make important: those that score well above the
// best expert that was not selected. SMoE (arXiv 2508.18983, Alg. 1); SPEC §2.2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::experts {

// Allocates nothing once it has seen the largest layer. Thread-compatible.
class ScoreClasses {
 public:
  // scores: (N), at least 0: softmax probabilities, or any positive multiple of them. selectable: (N), 1 for
  // the experts that the model's rule may select for this token; empty: all. alpha: at least 0. REQUIRES: k
  // selectable experts. Replaces the last token.
  void classify(std::span<const double> scores, std::span<const std::uint8_t> selectable, std::uint32_t k,
                double alpha);

  // All valid until the next classify(). The top-k: by score descending, then id; the top-score experts are
  // its beginning, the low-score ones its rest.
  std::span<const std::uint32_t> chosen() const { return std::span(ranking_).first(k_); }
  std::span<const std::uint32_t> top() const { return chosen().first(top_); }
  std::span<const std::uint32_t> low() const { return chosen().subspan(top_); }
  double beta() const { return beta_; }  // the best score that was not selected; 0 if all are selected

 private:
  std::vector<std::uint32_t> ranking_;  // the first k + 1 are sorted
  std::size_t k_ = 0, top_ = 0;
  double beta_ = 0;
};

}  // namespace sluice::experts
