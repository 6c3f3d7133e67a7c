#include "codec/slices/quantiser_variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/setting.h"
#include "base/unknown_name.h"
#include "codec/slices/affine_group.h"
#include "codec/slices/scale_word.h"

namespace sluice::codec {
namespace {

using In = std::span<const double>;
using Out = std::span<double>;

// Replaces every weight by view(group, code).
template <class View>
void affine(In weights, unsigned bits, Out out, const View& view) {
  const AffineGroup group = quantise_affine(weights, bits, ScaleType::kFp16);
  std::ranges::transform(group.codes, out.begin(), [&](unsigned code) { return view(group, code); });
}

// Signed codes in [−(2^(bits−1)−1), 2^(bits−1)−1]; a weight is scale · view(code).
template <class View>
void symmetric(In weights, unsigned bits, Out out, const View& view) {
  const double most = std::ldexp(1.0, static_cast<int>(bits) - 1) - 1;
  double largest = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!std::isfinite(weights[i])) throw not_finite(weights[i]).in(fmt::format("weight {}", i));
    largest = std::max(largest, std::fabs(weights[i]));
  }
  const double scale = largest == 0 ? 1 : fp16_scale(largest / most);
  std::ranges::transform(weights, out.begin(), [&](double weight) {
    return scale * view(static_cast<std::int64_t>(std::clamp(round_half_up(weight / scale), -most, most)));
  });
}

// The higher bits of a signed code, rounded down.
double shifted(std::int64_t code, unsigned shift) { return static_cast<double>(code >> shift); }

constexpr QuantiserVariant kVariants[] = {
    {"asym_high", "asymmetric codes of the high width",
     [](In w, SliceBits bits, Out out) { affine(w, bits.high, out, high_view); }},
    {"asym_base", "asymmetric codes of the low width, with scales of their own",
     [](In w, SliceBits bits, Out out) { affine(w, bits.low, out, high_view); }},
    {"amat", "the higher slice: code and zero point truncated, scale adapted",
     [](In w, SliceBits bits, Out out) {
       affine(w, bits.high, out,
              [&](const AffineGroup& g, unsigned code) { return low_view(g, code, bits.shift()); });
     }},
    {"amat_center", "the higher slice, with the middle of what the other may hold",
     [](In w, SliceBits bits, Out out) {
       affine(w, bits.high, out,
              [&](const AffineGroup& g, unsigned code) { return center_view(g, code, bits.shift()); });
     }},
    {"asym_keep_zero", "only the code truncated, scale adapted",
     [](In w, SliceBits bits, Out out) {
       affine(w, bits.high, out, [&](const AffineGroup& g, unsigned code) {
         return std::ldexp(g.scale, static_cast<int>(bits.shift())) *
                (static_cast<double>(code >> bits.shift()) - g.zero);
       });
     }},
    {"asym_keep_scale", "code and zero point truncated, scale not adapted",
     [](In w, SliceBits bits, Out out) {
       affine(w, bits.high, out, [&](const AffineGroup& g, unsigned code) {
         return g.scale * (static_cast<double>(code >> bits.shift()) - (g.zero >> bits.shift()));
       });
     }},
    {"sym_high", "symmetric codes of the high width",
     [](In w, SliceBits bits, Out out) {
       symmetric(w, bits.high, out, [](std::int64_t code) { return static_cast<double>(code); });
     }},
    {"sym_base", "symmetric codes of the low width, with scales of their own",
     [](In w, SliceBits bits, Out out) {
       symmetric(w, bits.low, out, [](std::int64_t code) { return static_cast<double>(code); });
     }},
    {"sym_shift_rescale", "symmetric codes shifted, scale adapted",
     [](In w, SliceBits bits, Out out) {
       symmetric(w, bits.high, out, [&](std::int64_t code) {
         return std::ldexp(shifted(code, bits.shift()), static_cast<int>(bits.shift()));
       });
     }},
    {"sym_shift_keep_scale", "symmetric codes shifted, scale not adapted",
     [](In w, SliceBits bits, Out out) {
       symmetric(w, bits.high, out, [&](std::int64_t code) { return shifted(code, bits.shift()); });
     }},
    {"sym_clip", "symmetric codes cut to what the low width holds",
     [](In w, SliceBits bits, Out out) {
       const std::int64_t half = std::int64_t{1} << (bits.low - 1);
       symmetric(w, bits.high, out,
                 [&](std::int64_t code) { return static_cast<double>(std::clamp(code, -half, half - 1)); });
     }},
};

}  // namespace

std::span<const QuantiserVariant> quantiser_variants() { return kVariants; }

const QuantiserVariant& find_quantiser_variant(std::string_view name) {
  for (const QuantiserVariant& variant : kVariants)
    if (variant.name == name) return variant;
  throw unknown_name(Setting::kQuantiser, name, names_in(kVariants), "unknown quantiser");
}

}  // namespace sluice::codec
