// The cost of one kind of change to a model: the loss of a text against the amount of change, as `sluice
// calibrate` measures it. Ours; docs/quality-contract.md.
#pragma once

#include <span>
#include <vector>

namespace sluice::experts {

struct LossPoint {
  double amount = 0;  // amount of change: a share, [0, 1]
  double loss = 0;    // nats a token: the logarithm of a ratio of perplexities
};

// Piecewise linear through (0, 0) and the measured points, and never falling: where measured points fall, the
// least squares fit under that order (pooled neighbours) replaces them. Beyond the last point nothing is
// known. Immutable: thread-safe.
class LossCurve {
 public:
  LossCurve();  // only (0, 0) is known
  // Points in any order; several points of one amount count as their mean. Losses below 0 are noise and count
  // as 0. Error(kInvalid) for an amount outside [0, 1] and for a loss that is not finite.
  explicit LossCurve(std::vector<LossPoint> points);

  double at(double amount) const;  // infinite beyond the last point; REQUIRES: amount >= 0
  double most(double loss) const;  // the largest known amount of at most this loss; loss < 0: 0
  std::span<const LossPoint> knots() const;

 private:
  std::vector<LossPoint> knots_;  // ascending in amount; never falling in loss
};

}  // namespace sluice::experts
