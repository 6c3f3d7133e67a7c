#include "experts/cache/activation_matrix.h"

#include <cmath>

namespace sluice::experts {

void ActivationHistory::on_event(std::span<const ExpertId> used) {
  if (used.empty()) return;
  const int layer = used.front().layer;
  if (layer <= last_layer_ && ++steps_ == kSteps) close();
  last_layer_ = layer;
  for (const ExpertId id : used) {
    std::uint32_t& count = now_.counts.at(id);
    now_.norm += 2.0 * count + 1;  // (count + 1)² - count²
    ++count;
    if (now_.layer_total.size() <= id.layer) now_.layer_total.resize(id.layer + std::size_t{1});
    ++now_.layer_total[id.layer];
    for (Matrix& past : past_)
      if (const std::uint32_t* const there = past.counts.find(id)) past.dot += *there;
  }
  find_nearest();
}

void ActivationHistory::close() {
  past_.push_back(std::move(now_));
  if (past_.size() > kMatrices) past_.pop_front();
  nearest_ = nullptr;  // the erased matrix may have been the nearest; find_nearest() sets it anew
  for (Matrix& past : past_) past.dot = 0;
  now_ = {};
  steps_ = 0;
}

void ActivationHistory::find_nearest() {
  const Matrix* const before = nearest_;
  nearest_ = &now_;
  double best_cosine = -1;
  for (const Matrix& past : past_) {
    const double length = std::sqrt(past.norm * now_.norm);
    const double cosine = length > 0 ? past.dot / length : 0;
    if (cosine >= best_cosine) {
      best_cosine = cosine;
      nearest_ = &past;
    }
  }
  if (nearest_ != before || nearest_ == &now_) ++generation_;  // past matrices do not change
}

double ActivationHistory::predicted(ExpertId id) const {
  const std::uint32_t* const count = nearest_->counts.find(id);
  if (count == nullptr || *count == 0) return 0;
  return static_cast<double>(*count) / static_cast<double>(nearest_->layer_total[id.layer]);
}

std::uint32_t ActivationHistory::count(ExpertId id) const {
  const std::uint32_t* const count = now_.counts.find(id);
  return count == nullptr ? 0 : *count;
}

}  // namespace sluice::experts
