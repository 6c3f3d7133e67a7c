#include "experts/prefetch/prefetch_trial.h"

#include <algorithm>

namespace sluice::experts {
namespace {

constexpr double kMemory = 64;        // steps of a kind
constexpr std::uint64_t kTurn = 4;    // steps of one kind after each other
constexpr std::uint64_t kTrial = 8;   // steps of each kind before one is chosen
constexpr std::uint64_t kAgain = 16;  // every so many turns the other kind
constexpr double kPrice = 0.25;       // what is wasted, as a share of what is needed, must save this in time
constexpr double kMost = 3;           // usual steps, that a step counts as at most

}  // namespace

void PrefetchTrial::Kind::add(double need, double seconds, double in_vain) {
  for (double* const sum : {&n, &x, &y, &xx, &xy, &wasted}) *sum -= *sum / kMemory;
  ++seen;
  n += 1;
  x += need;
  y += seconds;
  xx += need * need;
  xy += need * seconds;
  wasted += in_vain;
}

bool PrefetchTrial::begin_step() {
  settles_ = false;
  if (left_ == 0) {
    const bool before = ahead_;
    const bool another = ++turns_ % kAgain == 0;
    ahead_ = decided() ? pays() != another : with_.seen <= without_.seen;
    settles_ = turns_ == 1 || ahead_ != before;
    left_ = kTurn;
  }
  --left_;
  return ahead_;
}

void PrefetchTrial::end_step(double seconds, Bytes needed, Bytes wasted) {
  if (settles_) return;
  const double n = with_.n + without_.n;
  if (n > 0) seconds = std::min(seconds, kMost * (with_.y + without_.y) / n);
  (ahead_ ? with_ : without_).add(static_cast<double>(needed), seconds, static_cast<double>(wasted));
}

bool PrefetchTrial::decided() const { return std::min(with_.seen, without_.seen) >= kTrial; }

bool PrefetchTrial::pays() const {
  const double in_vain = with_.x > 0 ? with_.wasted / with_.x : with_.wasted > 0 ? 1 : 0;
  return seconds_with() <= seconds_without() * (1 - kPrice * std::min(1.0, in_vain));
}

double PrefetchTrial::slope() const {
  double of_x = 0, of_xy = 0;  // within each kind
  for (const Kind* const kind : {&with_, &without_}) {
    of_x += kind->xx - kind->x * kind->mean_x();
    of_xy += kind->xy - kind->x * kind->mean_y();
  }
  return of_x > 0 ? std::max(0.0, of_xy / of_x) : 0;
}

double PrefetchTrial::mean_at_same_need(const Kind& kind) const {
  if (kind.n == 0) return 0;
  const double all = (with_.x + without_.x) / (with_.n + without_.n);
  return std::max(0.0, kind.mean_y() - slope() * (kind.mean_x() - all));
}

}  // namespace sluice::experts
