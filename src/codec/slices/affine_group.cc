#include "codec/slices/affine_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/float16.h"
#include "codec/slices/scale_word.h"

namespace sluice::codec {

double round_half_up(double x) { return std::floor(x + 0.5); }

double fp16_scale(double scale) { return fp16_to_float(scale_word(scale)); }

AffineGroup quantise_affine(std::span<const double> weights, unsigned bits, ScaleType type) {
  SLUICE_CHECK(bits >= 1 && bits <= 16, std::to_string(bits));
  double lo = 0, hi = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!std::isfinite(weights[i])) throw not_finite(weights[i]).in(fmt::format("weight {}", i));
    lo = std::min(lo, weights[i]);
    hi = std::max(hi, weights[i]);
  }
  const double most = static_cast<double>((1u << bits) - 1);
  AffineGroup group;
  group.codes.assign(weights.size(), 0);
  double scale = (hi - lo) / most;
  if (std::isinf(scale)) scale = hi / most - lo / most;
  if (type == ScaleType::kFp16) scale = fp16_scale(scale);
  if (hi == lo || scale == 0) return group;  // scale is 0 only where it lies below all doubles
  group.scale = scale;
  group.zero = static_cast<unsigned>(std::clamp(round_half_up(-lo / scale), 0.0, most));
  std::ranges::transform(weights, group.codes.begin(), [&](double weight) {
    return static_cast<unsigned>(std::clamp(round_half_up(weight / scale) + group.zero, 0.0, most));
  });
  return group;
}

double high_view(const AffineGroup& group, unsigned code) {
  return group.scale * (static_cast<double>(code) - group.zero);
}

double low_view(const AffineGroup& group, unsigned code, unsigned shift) {
  return std::ldexp(group.scale, static_cast<int>(shift)) *
         (static_cast<double>(code >> shift) - (group.zero >> shift));
}

double center_view(const AffineGroup& group, unsigned code, unsigned shift) {
  const double middle = (static_cast<double>(1u << shift) - 1) / 2;
  return group.scale * (static_cast<double>(code >> shift << shift) + middle - group.zero);
}

}  // namespace sluice::codec
