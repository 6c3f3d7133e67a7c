// Expert activation matrices: how often each expert of each layer was used in a stretch of a run, and which
// past stretch resembles the running one most. MoE-Infinity (arXiv 2401.14361), as ZipMoE compares with it;
// SPEC §1.10.
//
// The paper keeps one matrix per request. Policies here see steps, not requests, so a matrix is closed after
// kSteps steps.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "experts/core/expert_table.h"
#include "experts/core/ids.h"

namespace sluice::experts {

// Pure and deterministic. O(matrices) for each used expert. Thread-compatible.
class ActivationHistory {
 public:
  ActivationHistory() = default;
  ActivationHistory(const ActivationHistory&) = delete;
  ActivationHistory& operator=(const ActivationHistory&) = delete;

  static constexpr std::uint32_t kSteps = 128;  // steps of one matrix
  static constexpr std::size_t kMatrices = 32;  // matrices kept; the oldest goes first

  // One event: the experts of one layer that a step used. A step begins with an event of a layer not above
  // the last one's.
  void on_event(std::span<const ExpertId> used);

  // How much the expert is expected to be used: its share of its layer in the past matrix nearest to the
  // running one (largest cosine; ties: the newest), or in the running matrix while there is no past one.
  double predicted(ExpertId id) const;
  // While this number stays the same, all predictions stay the same.
  std::uint64_t generation() const { return generation_; }
  // Counts of the running matrix.
  std::uint32_t count(ExpertId id) const;
  std::size_t matrices() const { return past_.size(); }

 private:
  struct Matrix {
    ExpertTable<std::uint32_t> counts;
    std::vector<std::uint64_t> layer_total;
    double norm = 0;  // Σ counts²
    double dot = 0;   // Σ of products with the running matrix
  };
  void close();
  void find_nearest();

  Matrix now_;
  std::deque<Matrix> past_;
  const Matrix* nearest_ = &now_;  // a past matrix, or now_ while there is none
  std::uint64_t generation_ = 0;
  std::uint32_t steps_ = 0;
  int last_layer_ = -1;
};

}  // namespace sluice::experts
