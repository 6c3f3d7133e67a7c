// A histogram that one thread or several count in, while others read it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace sluice::serve {

// What a histogram held at a time.
struct HistogramState {
  std::span<const double> bounds;      // upper ones, ascending; they live as long as the program
  std::vector<std::uint64_t> buckets;  // one more: the last is beyond all bounds; not cumulated
  double sum = 0;
};

// Thread-safe, without locks; a reader may see a value in `sum` before it is in a bucket.
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds);  // must outlive this
  void add(double value);
  HistogramState state() const;

 private:
  const std::span<const double> bounds_;
  const std::unique_ptr<std::atomic<std::uint64_t>[]> buckets_;
  std::atomic<double> sum_ = 0;
};

}  // namespace sluice::serve
