// Sums of products of codes on NEON. See code_sums-inl.h. Both factors have a sign, and codes without one are
// at most 63. Files that are compiled for dot products, x_neondotprod.cc, use SDOT, which adds four products
// to 32 bits. Others take 16 products at a time by SMULL and SMULL2 and add pairs of them in 16 bits:
// 2·128·127 = 32512, below 2^15.
#pragma once

#include "kernels/lanes/code_bytes_neon-inl.h"
#include "kernels/lanes/code_sums-inl.h"

namespace sluice::kernels {
namespace {

struct Whole8 {
  int32x4_t v[2];
};
struct Float8 {
  float32x4_t v[2];
};
struct Scales16 {
  int8x16_t v;
};

template <unsigned kMost>
inline constexpr unsigned kPairsIn16 = 8;  // all of a group: sums have 32 bits

inline constexpr int kSignedZero = 0;
inline constexpr bool kSizesApart = false;

[[gnu::always_inline]] inline int8x16_t signed_bytes(const void* p) {
  return vld1q_s8(static_cast<const std::int8_t*>(p));
}
[[gnu::always_inline]] inline Whole8 no_whole() { return {{vdupq_n_s32(0), vdupq_n_s32(0)}}; }
[[gnu::always_inline]] inline Float8 all_equal(float x) { return {{vdupq_n_f32(x), vdupq_n_f32(x)}}; }
[[gnu::always_inline]] inline Float8 no_floats() { return all_equal(0); }
[[gnu::always_inline]] inline Float8 load_floats(const float* p) {
  return {{vld1q_f32(p), vld1q_f32(p + 4)}};
}
[[gnu::always_inline]] inline void store_floats(float* p, Float8 a) {
  vst1q_f32(p, a.v[0]);
  vst1q_f32(p + 4, a.v[1]);
}
[[gnu::always_inline]] inline Float8 floats_of(Whole8 a) {
  return {{vcvtq_f32_s32(a.v[0]), vcvtq_f32_s32(a.v[1])}};
}
[[gnu::always_inline]] inline Float8 times(Float8 a, Float8 b) {
  return {{vmulq_f32(a.v[0], b.v[0]), vmulq_f32(a.v[1], b.v[1])}};
}
[[gnu::always_inline]] inline Float8 times_plus(Float8 a, Float8 b, Float8 c) {
  return {{vfmaq_f32(c.v[0], a.v[0], b.v[0]), vfmaq_f32(c.v[1], a.v[1], b.v[1])}};
}
[[gnu::always_inline]] inline Float8 times_plus(Float8 a, float n, Float8 c) {
  return times_plus(a, all_equal(n), c);
}
[[gnu::always_inline]] inline Whole8 plus(Whole8 a, Whole8 b) {
  return {{vaddq_s32(a.v[0], b.v[0]), vaddq_s32(a.v[1], b.v[1])}};
}
[[gnu::always_inline]] inline Whole8 times(Whole8 a, Whole8 b) {
  return {{vmulq_s32(a.v[0], b.v[0]), vmulq_s32(a.v[1], b.v[1])}};
}
[[gnu::always_inline]] inline Whole8 times(Whole8 a, int n) {
  return {{vmulq_n_s32(a.v[0], n), vmulq_n_s32(a.v[1], n)}};
}

// Lane l takes l+4, then l+2, l+1.
[[gnu::always_inline]] inline float sum_of_lanes(Float8 a) {
  const float32x4_t by4 = vaddq_f32(a.v[0], a.v[1]);
  return vpadds_f32(vadd_f32(vget_low_f32(by4), vget_high_f32(by4)));
}

[[gnu::always_inline]] inline CodeBytes bytes_of(CodeBytes codes, const ByteTable& table) {
  const uint8x16_t all = vreinterpretq_u8_s8(vld1q_s8(table.values));
  return {{vqtbl1q_u8(all, codes.v[0]), vqtbl1q_u8(all, codes.v[1])}};
}

[[gnu::always_inline]] inline int32x4_t add_fours(int32x4_t sums, int8x16_t a, int8x16_t b) {
#if defined(__ARM_FEATURE_DOTPROD)
  return vdotq_s32(sums, a, b);
#else
  return vpadalq_s16(sums, vpaddq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)), vmull_high_s8(a, b)));
#endif
}
[[gnu::always_inline]] inline Whole8 signed_products(CodeBytes w, const std::byte* x) {
  const int32x4_t none = vdupq_n_s32(0);
  return {{add_fours(none, vreinterpretq_s8_u8(w.v[0]), signed_bytes(x)),
           add_fours(none, vreinterpretq_s8_u8(w.v[1]), signed_bytes(x + 16))}};
}
template <unsigned kMost>
[[gnu::always_inline]] inline Whole8 products(CodeBytes w, const std::byte* x) {
  return signed_products(w, x);
}

[[gnu::always_inline]] inline int32x4_t sums_of_four(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d) {
  return vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
}
[[gnu::always_inline]] inline Whole8 sums_of_eight(const Whole8 (&v)[8]) {
  const auto whole = [&](int g) { return vaddq_s32(v[g].v[0], v[g].v[1]); };
  return {{sums_of_four(whole(0), whole(1), whole(2), whole(3)),
           sums_of_four(whole(4), whole(5), whole(6), whole(7))}};
}

// In each lane two scales, as whole numbers of 16 bits.
[[gnu::always_inline]] inline Whole8 pairs_of(Scales16 s) {
  return {{vreinterpretq_s32_s16(vmovl_s8(vget_low_s8(s.v))), vreinterpretq_s32_s16(vmovl_high_s8(s.v))}};
}
[[gnu::always_inline]] inline Whole8 first_of_pairs(Whole8 a) {
  return {{vshrq_n_s32(vshlq_n_s32(a.v[0], 16), 16), vshrq_n_s32(vshlq_n_s32(a.v[1], 16), 16)}};
}
[[gnu::always_inline]] inline Whole8 second_of_pairs(Whole8 a) {
  return {{vshrq_n_s32(a.v[0], 16), vshrq_n_s32(a.v[1], 16)}};
}
// Products of pairs, added.
[[gnu::always_inline]] inline int32x4_t pairs_by(int32x4_t a, int16x8_t b) {
  const int16x8_t pairs = vreinterpretq_s16_s32(a);
  return vpaddq_s32(vmull_s16(vget_low_s16(pairs), vget_low_s16(b)), vmull_high_s16(pairs, b));
}

[[gnu::always_inline]] inline Whole8 weighed_sums(const Whole8 (&v)[8], Scales16 s) {
  const Whole8 pairs = pairs_of(s);
  const auto half = [&](int i) {
    return Whole8{{sums_of_four(v[0].v[i], v[1].v[i], v[2].v[i], v[3].v[i]),
                   sums_of_four(v[4].v[i], v[5].v[i], v[6].v[i], v[7].v[i])}};
  };
  return plus(times(half(0), first_of_pairs(pairs)), times(half(1), second_of_pairs(pairs)));
}
[[gnu::always_inline]] inline Scales16 sixteen_scales(std::uint64_t low, std::uint64_t high, int minus) {
  return {
      vsubq_s8(vcombine_s8(vcreate_s8(low), vcreate_s8(high)), vdupq_n_s8(static_cast<std::int8_t>(minus)))};
}
[[gnu::always_inline]] inline Whole8 halves_by(Scales16 s, const std::byte* p) {
  const Whole8 pairs = pairs_of(s);
  return {{pairs_by(pairs.v[0], vreinterpretq_s16_s8(signed_bytes(p))),
           pairs_by(pairs.v[1], vreinterpretq_s16_s8(signed_bytes(p + 16)))}};
}

// Numbers for eight groups.
[[gnu::always_inline]] inline Float8 of_halves(const std::uint16_t (&halves)[8]) {
  const float16x8_t all = vreinterpretq_f16_u16(vld1q_u16(halves));
  return {{vcvt_f32_f16(vget_low_f16(all)), vcvt_high_f32_f16(all)}};
}
[[gnu::always_inline]] inline Float8 of_signed(std::uint64_t bytes) {
  const int16x8_t wide = vmovl_s8(vcreate_s8(bytes));
  return floats_of({{vmovl_s16(vget_low_s16(wide)), vmovl_high_s16(wide)}});
}
// 2^(e − 128), subnormal for 0 and 1.
[[gnu::always_inline]] inline float32x4_t half_powers(int32x4_t e) {
  const int32x4_t one = vdupq_n_s32(1), normal = vshlq_n_s32(vsubq_s32(e, one), 23),
                  small = vshlq_s32(vdupq_n_s32(0x00200000), e);
  return vreinterpretq_f32_s32(vbslq_s32(vcgtq_s32(e, one), normal, small));
}
[[gnu::always_inline]] inline Float8 half_powers(std::uint64_t bytes) {
  const uint16x8_t wide = vmovl_u8(vcreate_u8(bytes));
  return {{half_powers(vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(wide)))),
           half_powers(vreinterpretq_s32_u32(vmovl_high_u16(wide)))}};
}

// Rows of a tile.

[[gnu::always_inline]] inline void store_whole(std::int32_t* p, Whole8 a) {
  vst1q_s32(p, a.v[0]);
  vst1q_s32(p + 4, a.v[1]);
}
[[gnu::always_inline]] inline void store_codes(std::int32_t* p, CodeBytes a) {
  store_whole(p, {{vreinterpretq_s32_u8(a.v[0]), vreinterpretq_s32_u8(a.v[1])}});
}
[[gnu::always_inline]] inline CodeBytes signed_factors(CodeBytes w) { return w; }
inline void store_sizes(const std::int32_t*, std::int32_t*) {}  // none are apart

// Four rows of four words become four columns.
[[gnu::always_inline]] inline void transpose_four(const std::byte* from, std::size_t from_bytes,
                                                  std::byte* to, std::size_t to_bytes) {
  const auto load = [&](std::size_t row) {
    return vreinterpretq_s32_u8(sixteen_bytes(from + row * from_bytes));
  };
  const auto store = [&](std::size_t row, int64x2_t a) {
    vst1q_u8(reinterpret_cast<std::uint8_t*>(to + row * to_bytes), vreinterpretq_u8_s64(a));
  };
  const int64x2_t a = vreinterpretq_s64_s32(vtrn1q_s32(load(0), load(1))),
                  b = vreinterpretq_s64_s32(vtrn2q_s32(load(0), load(1))),
                  c = vreinterpretq_s64_s32(vtrn1q_s32(load(2), load(3))),
                  d = vreinterpretq_s64_s32(vtrn2q_s32(load(2), load(3)));
  store(0, vtrn1q_s64(a, c));
  store(1, vtrn1q_s64(b, d));
  store(2, vtrn2q_s64(a, c));
  store(3, vtrn2q_s64(b, d));
}
[[gnu::always_inline]] inline void transpose_words(const void* from, std::size_t from_bytes, void* to,
                                                   std::size_t to_bytes) {
  const auto* const in = static_cast<const std::byte*>(from);
  auto* const out = static_cast<std::byte*>(to);
#pragma GCC unroll 2
  for (std::size_t i = 0; i < 2; ++i) {
#pragma GCC unroll 2
    for (std::size_t j = 0; j < 2; ++j)
      transpose_four(in + 4 * i * from_bytes + 16 * j, from_bytes, out + 4 * j * to_bytes + 16 * i, to_bytes);
  }
}

// Tiles of eight rows.

inline constexpr unsigned kLanes = 8;
inline constexpr int kTileCodedTokens = 4;  // in 16 registers, with two sums each. Not measured.
inline constexpr std::size_t kCodedTokens = 48;

using TileFloats = Float8;
using TileWhole = Whole8;
struct TileCodes {
  int8x16_t v[2];
};

[[gnu::always_inline]] inline TileFloats tile_equal(float x) { return all_equal(x); }
[[gnu::always_inline]] inline TileFloats tile_floats(const float* p) { return load_floats(p); }
[[gnu::always_inline]] inline TileWhole tile_whole(const std::int32_t* p) {
  return {{vld1q_s32(p), vld1q_s32(p + 4)}};
}
[[gnu::always_inline]] inline TileCodes tile_codes(const std::int32_t* p) {
  return {{signed_bytes(p), signed_bytes(p + 4)}};
}

struct Repeated {
  int8x16_t v;
};
[[gnu::always_inline]] inline Repeated four_bytes(const std::byte* p) {
  std::int32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return {vreinterpretq_s8_s32(vdupq_n_s32(word))};
}

using QuadSums = TileWhole;
template <bool kSigned>
[[gnu::always_inline]] inline QuadSums add_quad(QuadSums sums, TileCodes w, TileCodes, Repeated x) {
  return {{add_fours(sums.v[0], w.v[0], x.v), add_fours(sums.v[1], w.v[1], x.v)}};
}
template <bool kSigned>
[[gnu::always_inline]] inline QuadSums quad_products(TileCodes w, TileCodes size, Repeated x) {
  return add_quad<kSigned>(no_whole(), w, size, x);
}
[[gnu::always_inline]] inline TileWhole whole_of(QuadSums sums) { return sums; }

[[gnu::always_inline]] inline TileWhole pairs_by(TileWhole a, Repeated b) {
  const int16x8_t pairs = vreinterpretq_s16_s8(b.v);
  return {{pairs_by(a.v[0], pairs), pairs_by(a.v[1], pairs)}};
}

}  // namespace
}  // namespace sluice::kernels
