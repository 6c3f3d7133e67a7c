#include "experts/routing/loss_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"

namespace sluice::experts {
namespace {

// Replaces falling neighbours by their mean until none fall.
void make_monotone(std::vector<LossPoint>& points) {
  struct Pool {
    double sum;
    std::size_t count;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Pool> pools;
  for (const LossPoint& point : points) {
    pools.push_back({point.loss, 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() >= pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().count += last.count;
    }
  }
  auto point = points.begin();
  for (const Pool& pool : pools)
    for (std::size_t i = 0; i < pool.count; ++i) (point++)->loss = std::max(0.0, pool.mean());
}

}  // namespace

LossCurve::LossCurve() : knots_(1) {}

std::span<const LossPoint> LossCurve::knots() const { return knots_; }

LossCurve::LossCurve(std::vector<LossPoint> points) : knots_(1) {
  for (const LossPoint& point : points)
    if (!(point.amount >= 0 && point.amount <= 1) || !std::isfinite(point.loss))
      throw Error(ErrorKind::kInvalid, "a measured loss is not a valid point of its curve")
          .expected("an amount from 0 to 1, and a finite loss")
          .found(std::to_string(point.amount) + " and " + std::to_string(point.loss));
  std::ranges::sort(points, {}, &LossPoint::amount);
  std::vector<LossPoint> merged;
  for (auto first = points.begin(); first != points.end();) {
    auto last = first;
    double sum = 0;
    for (; last != points.end() && last->amount == first->amount; ++last) sum += last->loss;
    if (first->amount > 0) merged.push_back({first->amount, sum / static_cast<double>(last - first)});
    first = last;
  }
  make_monotone(merged);
  knots_.insert(knots_.end(), merged.begin(), merged.end());
}

double LossCurve::at(double amount) const {
  const auto above = std::ranges::lower_bound(knots_, amount, {}, &LossPoint::amount);
  if (above == knots_.end()) return std::numeric_limits<double>::infinity();
  if (above == knots_.begin()) return above->loss;
  const LossPoint& below = above[-1];
  return below.loss + (above->loss - below.loss) * (amount - below.amount) / (above->amount - below.amount);
}

double LossCurve::most(double loss) const {
  if (!(loss >= 0)) return 0;
  const auto above = std::ranges::upper_bound(knots_, loss, {}, &LossPoint::loss);
  if (above == knots_.end()) return knots_.back().amount;
  const LossPoint& below = above[-1];  // the first knot is (0, 0), so there is always one below
  return below.amount + (above->amount - below.amount) * (loss - below.loss) / (above->loss - below.loss);
}

}  // namespace sluice::experts
