// The values of a synthetic checkpoint's tensors (synth.h says which distribution).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/splitmix64.h"
#include "model/architecture.h"

namespace sluice::model {

// How a tensor of a synthetic checkpoint is stored.
enum class SynthForm : std::uint8_t {
  kWords,        // BF16
  kMxfp4Codes,   // U8 (…, rows, groups, 16): two codes a byte
  kMxfp4Scales,  // U8 (…, rows, groups): exponents
};
struct SynthSpec : TensorSpec {
  SynthForm form = SynthForm::kWords;
  DType dtype() const { return form == SynthForm::kWords ? DType::kBF16 : DType::kU8; }
  std::uint64_t elements() const;
  Bytes bytes() const { return elements() * dtype_bytes(dtype()); }
  // Elements that are made together: a row of the matrix.
  std::uint64_t columns() const;
};

// A sample of the weights' distribution at unit deviation: one lookup turns 16 random bits into a weight.
// Every 500th quantile is an outlier. (65536)
std::vector<float> make_weight_quantiles();

// One tensor's values, row by row; each row has a random stream of its own, so that threads can make rows in
// any order. Thread-safe. The values depend only on the tensor's name, role, form and columns, on the seed
// and on the options. Codes of MXFP4 are those of Gaussian numbers, whose deviation is in the scales.
class SynthValues {
 public:
  struct Options {
    double scale = 1;
    // Share of the variance that all rows have in common: a vector that every row begins with.
    double common = 0;
  };
  // `quantiles` must outlive this.
  SynthValues(const SynthSpec& spec, std::uint64_t seed, std::span<const float> quantiles,
              const Options& options);

  Bytes row_bytes() const {
    return columns_ * dtype_bytes(form_ == SynthForm::kWords ? DType::kBF16 : DType::kU8);
  }
  // Writes row_bytes(). REQUIRES: words are aligned.
  void fill_row(std::uint64_t row, std::byte* out) const;

 private:
  void fill_words(SplitMix64& random, float scale, std::uint16_t* out) const;
  void fill_codes(SplitMix64& random, std::byte* out) const;
  void fill_scales(SplitMix64& random, float scale, std::byte* out) const;

  std::span<const float> quantiles_;
  SynthForm form_;
  std::uint64_t columns_;
  std::uint64_t key_;
  double deviation_ = 0.02;  // a row's, before the lognormal factor
  double spread_ = 0.25;     // sigma of the lognormal factor
  float mean_ = 0.0f;
  std::vector<float> common_;  // (columns) at unit deviation of a row; empty: no common part
  float own_ = 1.0f;           // deviation of a row's own part, at unit deviation of the row
};

}  // namespace sluice::model
