#include "serve/histogram.h"

#include <algorithm>

namespace sluice::serve {

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds), buckets_(std::make_unique<std::atomic<std::uint64_t>[]>(bounds.size() + 1)) {}

void Histogram::add(double value) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  buckets_[static_cast<std::size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

HistogramState Histogram::state() const {
  HistogramState state{bounds_, std::vector<std::uint64_t>(bounds_.size() + 1),
                       sum_.load(std::memory_order_relaxed)};
  for (std::size_t i = 0; i < state.buckets.size(); ++i)
    state.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
  return state;
}

}  // namespace sluice::serve
