#include "model/synth/synth_values.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/float16.h"
#include "base/hash.h"

namespace sluice::model {
namespace {

// The standard normal quantile of p in (0, 1). Acklam's rational approximation (2003), relative error
// below 1.2e-9.
double normal_quantile(double p) {
  constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                          6.680131188771972e+01, -1.328068155288572e+01};
  constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                          3.754408661907416e+00};
  if (p > 0.5) return -normal_quantile(1 - p);
  if (p < 0.02425) {
    const double q = std::sqrt(-2 * std::log(p));
    return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
           ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
  }
  const double q = p - 0.5, r = q * q;
  return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
         (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

enum class Kind { kWeight, kRouter, kNorm };

Kind kind_of(Role role) {
  switch (role) {
    case Role::kFinalNorm:
    case Role::kInputNorm:
    case Role::kPostAttentionNorm:
    case Role::kQNorm:
    case Role::kKNorm:
    case Role::kQDownNorm:
    case Role::kKvDownNorm:
    case Role::kCrossNorm:
    case Role::kEncoderFinalNorm:
      return Kind::kNorm;
    case Role::kRouter:
      return Kind::kRouter;
    default:
      return Kind::kWeight;
  }
}

// Numbers of one group of MXFP4 in units of its scale have about this deviation: the greatest of 32 lies
// between 4 and 8 of them.
constexpr float kCodeDeviation = 2.6F;

// The code of the nearest of 0, ½, 1, 1½, 2, 3, 4, 6, with the sign in bit 3.
unsigned fp4_code(float value) {
  const float size = std::fabs(value);
  unsigned code = 0;
  for (const float border : {.25F, .75F, 1.25F, 1.75F, 2.5F, 3.5F, 5.F}) code += size > border ? 1 : 0;
  return code | (value < 0 ? 8u : 0u);
}

}  // namespace

std::uint64_t SynthSpec::elements() const {  // tensor_table has checked for overflow
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

std::uint64_t SynthSpec::columns() const {
  return shape.back() * (form == SynthForm::kMxfp4Codes ? shape[shape.size() - 2] : 1);
}

std::vector<float> make_weight_quantiles() {
  std::vector<float> quantiles(1 << 16);
  for (std::size_t i = 0; i < quantiles.size(); ++i) {
    const double normal =
        normal_quantile((static_cast<double>(i) + 0.5) / static_cast<double>(quantiles.size()));
    quantiles[i] = static_cast<float>(i % 500 == 250 ? 6 * normal : normal);
  }
  return quantiles;
}

SynthValues::SynthValues(const SynthSpec& spec, std::uint64_t seed, std::span<const float> quantiles,
                         const Options& options)
    : quantiles_(quantiles),
      form_(spec.form),
      columns_(spec.columns()),
      key_(splitmix64_mixed(xxh3(std::as_bytes(std::span(spec.name))) ^ splitmix64_mixed(seed))) {
  switch (kind_of(spec.role)) {
    case Kind::kNorm:
      mean_ = 1.0f;
      spread_ = 0.0;
      break;
    case Kind::kRouter:
      deviation_ = 2.5 / std::sqrt(static_cast<double>(columns_));
      break;
    case Kind::kWeight:
      break;
  }
  deviation_ *= options.scale;
  if (options.common == 0) return;
  own_ = static_cast<float>(std::sqrt(1 - options.common));
  const float share = static_cast<float>(std::sqrt(options.common));
  SplitMix64 random(splitmix64_mixed(~key_));
  for (std::uint64_t i = 0; i < columns_; ++i) common_.push_back(share * quantiles_[random.next() & 0xffff]);
}

void SynthValues::fill_row(std::uint64_t row, std::byte* out) const {
  SplitMix64 random(splitmix64_mixed(key_ + row));
  const double of_row = normal_quantile((static_cast<double>(random.next() >> 11) + 0.5) * 0x1p-53);
  const float scale = static_cast<float>(deviation_ * std::exp(spread_ * of_row));
  switch (form_) {
    case SynthForm::kWords:
      return fill_words(random, scale, reinterpret_cast<std::uint16_t*>(out));
    case SynthForm::kMxfp4Codes:
      return fill_codes(random, out);
    case SynthForm::kMxfp4Scales:
      return fill_scales(random, scale, out);
  }
}

void SynthValues::fill_codes(SplitMix64& random, std::byte* out) const {
  std::uint64_t bits = 0;
  for (std::uint64_t i = 0; i < columns_; ++i, bits >>= 32) {
    if (i % 2 == 0) bits = random.next();
    const unsigned low = fp4_code(kCodeDeviation * quantiles_[bits & 0xffff]),
                   high = fp4_code(kCodeDeviation * quantiles_[bits >> 16 & 0xffff]);
    out[i] = static_cast<std::byte>(low | high << 4);
  }
}

void SynthValues::fill_scales(SplitMix64& random, float scale, std::byte* out) const {
  const float exponent = 127.F + std::log2(scale / kCodeDeviation);
  for (std::uint64_t i = 0; i < columns_; ++i) {
    const float around = exponent + .4F * quantiles_[random.next() & 0xffff];
    out[i] = static_cast<std::byte>(std::clamp(std::lround(around), 1l, 254l));
  }
}

void SynthValues::fill_words(SplitMix64& random, float scale, std::uint16_t* out) const {
  const float* quantiles = quantiles_.data();
  if (!common_.empty()) {
    for (std::uint64_t i = 0; i < columns_; ++i)
      out[i] = float_to_bf16(scale * (common_[i] + own_ * quantiles[random.next() & 0xffff]));
    return;
  }
  const float mean = mean_;
  std::uint64_t i = 0;
  for (; i + 4 <= columns_; i += 4) {
    const std::uint64_t bits = random.next();
    out[i] = float_to_bf16(mean + scale * quantiles[bits & 0xffff]);
    out[i + 1] = float_to_bf16(mean + scale * quantiles[bits >> 16 & 0xffff]);
    out[i + 2] = float_to_bf16(mean + scale * quantiles[bits >> 32 & 0xffff]);
    out[i + 3] = float_to_bf16(mean + scale * quantiles[bits >> 48]);
  }
  for (std::uint64_t bits = random.next(); i < columns_; ++i, bits >>= 16) {
    out[i] = float_to_bf16(mean + scale * quantiles[bits & 0xffff]);
  }
}

}  // namespace sluice::model
