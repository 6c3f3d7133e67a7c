// Sixteen fp32 lanes on NEON: four registers of four. See vec-inl.h for what every instruction set must
// offer.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace sluice::kernels {
namespace {

struct Vec {
  float32x4_t v[4];  // lanes 0…3, 4…7, 8…11, 12…15
};

// Accumulators: 20 of the 32 registers, for 1 row × 5 tokens: GCC 12 keeps all in registers (94 instructions
// for 40 FMA; 1 × 6 127 for 48, 2 × 3 148 for 48). One token: 3 rows × 1 (4 rows would need 6 % more of a
// core for as many bytes). Counted in the loops for BF16, not measured: no ARM machine was available.
inline constexpr int kFewTokens = 1, kRowsForFew = 3;
inline constexpr int kTokens = 5, kRows = 1;
inline constexpr int kSumVecs = 1, kSumVecsAlone = 4;

// Calls f(register, register …) for all four.
template <class F, class... Vecs>
[[gnu::always_inline]] inline Vec each(const F& f, const Vecs&... vecs) {
  return {{f(vecs.v[0]...), f(vecs.v[1]...), f(vecs.v[2]...), f(vecs.v[3]...)}};
}

inline Vec set1(float x) {
  const float32x4_t all = vdupq_n_f32(x);
  return {{all, all, all, all}};
}
inline Vec zero() { return set1(0.0f); }
inline Vec load(const float* p) {
  return {{vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}};
}
inline void store(float* p, Vec a) {
  vst1q_f32(p, a.v[0]);
  vst1q_f32(p + 4, a.v[1]);
  vst1q_f32(p + 8, a.v[2]);
  vst1q_f32(p + 12, a.v[3]);
}

// FMAX and FMIN return NaN when either operand is NaN, so a comparison chooses the number.
inline float32x4_t larger(float32x4_t a, float32x4_t b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
inline float32x4_t smaller(float32x4_t a, float32x4_t b) { return vbslq_f32(vcltq_f32(a, b), a, b); }

inline Vec add(Vec a, Vec b) {
  return each([](float32x4_t x, float32x4_t y) { return vaddq_f32(x, y); }, a, b);
}
inline Vec sub(Vec a, Vec b) {
  return each([](float32x4_t x, float32x4_t y) { return vsubq_f32(x, y); }, a, b);
}
inline Vec mul(Vec a, Vec b) {
  return each([](float32x4_t x, float32x4_t y) { return vmulq_f32(x, y); }, a, b);
}
inline Vec div(Vec a, Vec b) {
  return each([](float32x4_t x, float32x4_t y) { return vdivq_f32(x, y); }, a, b);
}
inline Vec max(Vec a, Vec b) { return each(larger, a, b); }
inline Vec min(Vec a, Vec b) { return each(smaller, a, b); }
inline Vec fma(Vec a, Vec b, Vec c) {
  return each([](float32x4_t x, float32x4_t y, float32x4_t z) { return vfmaq_f32(z, x, y); }, a, b, c);
}

inline float32x4_t two_to_the(int32x4_t n) {
  return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}
inline Vec mul_pow2(Vec p, Vec t, float magic) {
  const int32x4_t none = vreinterpretq_s32_f32(vdupq_n_f32(magic));
  return each(
      [&](float32x4_t x, float32x4_t exponent) {
        const int32x4_t n = vsubq_s32(vreinterpretq_s32_f32(exponent), none), half = vshrq_n_s32(n, 1);
        return vmulq_f32(vmulq_f32(x, two_to_the(half)), two_to_the(vsubq_s32(n, half)));
      },
      p, t);
}

// The tree without its last sum.
inline float32x2_t sum_to_two(Vec a) {
  const float32x4_t by4 = vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
  return vadd_f32(vget_low_f32(by4), vget_high_f32(by4));
}
inline float sum_tree(Vec a) { return vpadds_f32(sum_to_two(a)); }

inline float max_tree(Vec a) {
  const float32x4_t by4 = larger(larger(a.v[0], a.v[2]), larger(a.v[1], a.v[3]));
  const float32x4_t by2 = larger(by4, vextq_f32(by4, by4, 2));
  return vgetq_lane_f32(larger(by2, vextq_f32(by2, by2, 1)), 0);
}

inline void sum_tree4(Vec a, Vec b, Vec c, Vec d, float* out) {
  vst1q_f32(out, vpaddq_f32(vcombine_f32(sum_to_two(a), sum_to_two(b)),
                            vcombine_f32(sum_to_two(c), sum_to_two(d))));
}

inline Vec even_lanes(Vec a, Vec b) {
  return {{vuzp1q_f32(a.v[0], a.v[1]), vuzp1q_f32(a.v[2], a.v[3]), vuzp1q_f32(b.v[0], b.v[1]),
           vuzp1q_f32(b.v[2], b.v[3])}};
}
inline Vec odd_lanes(Vec a, Vec b) {
  return {{vuzp2q_f32(a.v[0], a.v[1]), vuzp2q_f32(a.v[2], a.v[3]), vuzp2q_f32(b.v[0], b.v[1]),
           vuzp2q_f32(b.v[2], b.v[3])}};
}

struct Bf16 {
  static constexpr std::size_t kBytes = 2;
  static uint16x8_t words(const std::byte* p) { return vld1q_u16(reinterpret_cast<const std::uint16_t*>(p)); }
  static float32x4_t even_words(const std::byte* p) {
    return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_u16(words(p)), 16));
  }
  static float32x4_t odd_words(const std::byte* p) {
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_u16(words(p)), vdupq_n_u32(0xffff0000u)));
  }
  static float32x4_t wide(uint16x4_t words) { return vreinterpretq_f32_u32(vshll_n_u16(words, 16)); }

  static Vec even(const std::byte* p) {
    return {{even_words(p), even_words(p + 16), even_words(p + 32), even_words(p + 48)}};
  }
  static Vec odd(const std::byte* p) {
    return {{odd_words(p), odd_words(p + 16), odd_words(p + 32), odd_words(p + 48)}};
  }
  static Vec in_order(const std::byte* p) {
    const uint16x8_t first = words(p), second = words(p + 16);
    return {{wide(vget_low_u16(first)), wide(vget_high_u16(first)), wide(vget_low_u16(second)),
             wide(vget_high_u16(second))}};
  }
};

struct F32 {
  static constexpr std::size_t kBytes = 4;
  static Vec in_order(const std::byte* p) { return load(reinterpret_cast<const float*>(p)); }
  static Vec even(const std::byte* p) { return even_lanes(in_order(p), in_order(p + 64)); }
  static Vec odd(const std::byte* p) { return odd_lanes(in_order(p), in_order(p + 64)); }
};

struct F16 {
  static constexpr std::size_t kBytes = 2;
  static float32x4_t four(const std::byte* p) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const std::uint16_t*>(p))));
  }
  static Vec in_order(const std::byte* p) { return {{four(p), four(p + 8), four(p + 16), four(p + 24)}}; }
  static Vec even(const std::byte* p) { return even_lanes(in_order(p), in_order(p + 32)); }
  static Vec odd(const std::byte* p) { return odd_lanes(in_order(p), in_order(p + 32)); }
};

struct I8 {
  static constexpr std::size_t kBytes = 1;
  static float32x4_t wide(int16x4_t codes) { return vcvtq_f32_s32(vmovl_s16(codes)); }
  static Vec in_order(const std::byte* p) {
    const int8x16_t codes = vld1q_s8(reinterpret_cast<const std::int8_t*>(p));
    const int16x8_t first = vmovl_s8(vget_low_s8(codes)), second = vmovl_s8(vget_high_s8(codes));
    return {{wide(vget_low_s16(first)), wide(vget_high_s16(first)), wide(vget_low_s16(second)),
             wide(vget_high_s16(second))}};
  }
  static Vec even(const std::byte* p) { return even_lanes(in_order(p), in_order(p + 16)); }
  static Vec odd(const std::byte* p) { return odd_lanes(in_order(p), in_order(p + 16)); }
};

}  // namespace
}  // namespace sluice::kernels
