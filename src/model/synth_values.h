// The values of a synthetic checkpoint's tensors (synth.h says which distribution).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "model/architecture.h"

namespace sluice::model {

// Synthetic weights are BF16.
inline Bytes bytes_of_words(std::uint64_t words) { return words * dtype_bytes(DType::kBF16); }

// A sample of the weights' distribution at unit deviation: one lookup turns 16 random bits into a weight.
// Every 500th quantile is an outlier. (65536)
std::vector<float> make_weight_quantiles();

// One tensor's values, row by row; each row has a random stream of its own, so that threads can make rows in
// any order. Thread-safe. The values depend only on the tensor's name, role and columns, on the seed and on
// the options.
class SynthValues {
 public:
  struct Options {
    double scale = 1;
    // Share of the variance that all rows have in common: a vector that every row begins with.
    double common = 0;
  };
  // `quantiles` must outlive this.
  SynthValues(const TensorSpec& spec, std::uint64_t seed, std::span<const float> quantiles,
              const Options& options);

  std::uint64_t columns() const { return columns_; }
  void fill_row(std::uint64_t row, std::uint16_t* out) const;  // (columns) BF16

 private:
  std::span<const float> quantiles_;
  std::uint64_t columns_;
  std::uint64_t key_;
  double deviation_ = 0.02;  // of a row, before the lognormal factor
  double spread_ = 0.25;     // sigma of the lognormal factor
  float mean_ = 0.0f;
  std::vector<float> common_;  // (columns) at unit deviation of a row; empty: no common part
  float own_ = 1.0f;           // deviation of a row's own part, at unit deviation of the row
};

}  // namespace sluice::model
