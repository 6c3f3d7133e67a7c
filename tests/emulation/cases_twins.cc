// The results of AVX2 for each half of the operands, or for parts of them.
#include <immintrin.h>

#include "emulation/cases.h"

namespace sluice::emulation {
namespace {

struct Half {
  __m256i a, b, c;
  __m256 x, y, z;
};

inline Half half(const Operands& o, int h) {
  const auto load = [h](const unsigned char* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32 * h));
  };
  const __m256i a = load(o.a), b = load(o.b), c = load(o.c);
  return {a, b, c, _mm256_castsi256_ps(a), _mm256_castsi256_ps(b), _mm256_castsi256_ps(c)};
}

// Combines 64 bytes from two halves.
template <class F>
inline void by_halves(const Operands& o, Result& r, const F& f) {
  for (int h = 0; h < 2; ++h) {
    const auto v = f(half(o, h));
    __builtin_memcpy(r.bytes + 32 * h, &v, sizeof(v));
  }
}
// Combines 64 bytes from two parts of `bytes` each, for conversions to longer lanes.
template <class F>
inline void widened(const unsigned char* from, std::size_t bytes, Result& r, const F& f) {
  for (int h = 0; h < 2; ++h) {
    __m128i part{};
    __builtin_memcpy(&part, from + bytes * static_cast<std::size_t>(h), bytes);
    const auto v = f(part);
    __builtin_memcpy(r.bytes + 32 * h, &v, sizeof(v));
  }
}
// The sign bits of lanes: movemask of each half, `lanes` each.
template <class F>
inline void by_masks(const Operands& o, Result& r, int lanes, const F& f) {
  std::uint64_t mask = 0;
  for (int h = 0; h < 2; ++h) mask |= std::uint64_t{static_cast<std::uint32_t>(f(half(o, h)))} << (h * lanes);
  __builtin_memset(r.bytes, 0, sizeof(r.bytes));
  __builtin_memcpy(r.bytes, &mask, sizeof(mask));
}

inline __m256i inverted(__m256i a) { return _mm256_xor_si256(a, _mm256_set1_epi8(-1)); }
inline __m256i less_unsigned(__m256i a, __m256i b) {
  const __m256i top = _mm256_set1_epi8(-128);
  return _mm256_cmpgt_epi8(_mm256_xor_si256(b, top), _mm256_xor_si256(a, top));
}
// Four products, first widened to words: no sum is out of range.
inline __m256i byte_products(__m256i a, __m256i b) {
  const auto quarter = [](__m128i x, __m128i y) {
    return _mm256_madd_epi16(_mm256_cvtepu8_epi16(x), _mm256_cvtepi8_epi16(y));
  };
  const __m256i low = quarter(_mm256_castsi256_si128(a), _mm256_castsi256_si128(b)),
                high = quarter(_mm256_extracti128_si256(a, 1), _mm256_extracti128_si256(b, 1));
  return _mm256_permute4x64_epi64(_mm256_hadd_epi32(low, high), 0xd8);
}

#define SLUICE_TWIN(name, equal, value)                                                            \
  Case {                                                                                           \
    name, Equal::equal,                                                                            \
        [](const Operands& o, Result& r) { by_halves(o, r, [](const Half& i) { return value; }); } \
  }
#define SLUICE_OF_2(name) SLUICE_TWIN(#name, kBits, _mm256_##name(i.a, i.b))
#define SLUICE_SHIFT(name, n) SLUICE_TWIN(#name "(" #n ")", kBits, _mm256_##name(i.a, n))
#define SLUICE_FLOATS(name) SLUICE_TWIN(#name, kNumbers, _mm256_##name(i.x, i.y))
#define SLUICE_WIDENED(name, bytes)                                                                 \
  Case {                                                                                            \
#name, Equal::kBits,                                                                            \
        [](const Operands& o,                                                                       \
           Result& r) { widened(o.a, bytes, r, [](__m128i part) { return _mm256_##name(part); }); } \
  }
#define SLUICE_MASK(name, lanes, value)                                                                  \
  Case {                                                                                                 \
    name, Equal::kBits,                                                                                  \
        [](const Operands& o, Result& r) { by_masks(o, r, lanes, [](const Half& i) { return value; }); } \
  }
#define SLUICE_BYTE_MASK(name, value) SLUICE_MASK(#name, 32, _mm256_movemask_epi8(value))
#define SLUICE_DWORD_MASK(name, value) SLUICE_MASK(#name, 8, _mm256_movemask_ps(_mm256_castsi256_ps(value)))
#define SLUICE_COMPARISON(name, predicate) \
  SLUICE_MASK(name, 8, _mm256_movemask_ps(_mm256_cmp_ps(i.x, i.y, predicate)))

const Case kCases[] = {
    SLUICE_OF_2(add_epi8),
    SLUICE_OF_2(add_epi16),
    SLUICE_OF_2(add_epi32),
    SLUICE_OF_2(add_epi64),
    SLUICE_OF_2(sub_epi8),
    SLUICE_OF_2(sub_epi16),
    SLUICE_OF_2(sub_epi32),
    SLUICE_OF_2(sub_epi64),
    SLUICE_OF_2(adds_epi8),
    SLUICE_OF_2(adds_epu8),
    SLUICE_OF_2(adds_epi16),
    SLUICE_OF_2(subs_epi8),
    SLUICE_OF_2(subs_epu8),
    SLUICE_OF_2(subs_epi16),
    SLUICE_OF_2(min_epi8),
    SLUICE_OF_2(min_epu8),
    SLUICE_OF_2(min_epi16),
    SLUICE_OF_2(min_epi32),
    SLUICE_OF_2(max_epi8),
    SLUICE_OF_2(max_epu8),
    SLUICE_OF_2(max_epi16),
    SLUICE_OF_2(max_epi32),
    SLUICE_OF_2(mullo_epi16),
    SLUICE_OF_2(mulhi_epi16),
    SLUICE_OF_2(mulhi_epu16),
    SLUICE_OF_2(mullo_epi32),
    SLUICE_OF_2(sllv_epi32),
    SLUICE_OF_2(srlv_epi32),
    SLUICE_OF_2(srlv_epi64),
    SLUICE_TWIN("and_epi32", kBits, _mm256_and_si256(i.a, i.b)),
    SLUICE_TWIN("andnot_epi32", kBits, _mm256_andnot_si256(i.a, i.b)),
    SLUICE_TWIN("or_epi32", kBits, _mm256_or_si256(i.a, i.b)),
    SLUICE_TWIN("xor_epi32", kBits, _mm256_xor_si256(i.a, i.b)),
    SLUICE_TWIN("and_si512", kBits, _mm256_and_si256(i.a, i.b)),
    SLUICE_TWIN("andnot_si512", kBits, _mm256_andnot_si256(i.a, i.b)),
    SLUICE_TWIN("or_si512", kBits, _mm256_or_si256(i.a, i.b)),
    SLUICE_TWIN("xor_si512", kBits, _mm256_xor_si256(i.a, i.b)),
    SLUICE_TWIN("ternarylogic(0xe4)", kBits,
                _mm256_or_si256(_mm256_and_si256(i.c, i.a), _mm256_andnot_si256(i.c, i.b))),
    SLUICE_TWIN("ternarylogic(0x96)", kBits, _mm256_xor_si256(i.a, _mm256_xor_si256(i.b, i.c))),
    SLUICE_SHIFT(slli_epi16, 7),
    SLUICE_SHIFT(slli_epi16, 16),
    SLUICE_SHIFT(srli_epi16, 3),
    SLUICE_SHIFT(srli_epi16, 16),
    SLUICE_SHIFT(srai_epi16, 5),
    SLUICE_SHIFT(srai_epi16, 16),
    SLUICE_SHIFT(slli_epi32, 16),
    SLUICE_SHIFT(slli_epi32, 32),
    SLUICE_SHIFT(srli_epi32, 9),
    SLUICE_SHIFT(srli_epi32, 32),
    SLUICE_SHIFT(srai_epi32, 1),
    SLUICE_SHIFT(srai_epi32, 32),
    SLUICE_SHIFT(slli_epi64, 8),
    SLUICE_SHIFT(slli_epi64, 64),
    SLUICE_SHIFT(srli_epi64, 24),
    SLUICE_TWIN("abs_epi8", kBits, _mm256_abs_epi8(i.a)),
    SLUICE_TWIN("abs_epi16", kBits, _mm256_abs_epi16(i.a)),
    SLUICE_TWIN("abs_epi32", kBits, _mm256_abs_epi32(i.a)),
    SLUICE_BYTE_MASK(cmpeq_epi8_mask, _mm256_cmpeq_epi8(i.a, i.b)),
    SLUICE_BYTE_MASK(cmpneq_epi8_mask, inverted(_mm256_cmpeq_epi8(i.a, i.b))),
    SLUICE_BYTE_MASK(cmplt_epu8_mask, less_unsigned(i.a, i.b)),
    SLUICE_BYTE_MASK(cmple_epu8_mask, inverted(less_unsigned(i.b, i.a))),
    SLUICE_BYTE_MASK(cmpgt_epu8_mask, less_unsigned(i.b, i.a)),
    SLUICE_BYTE_MASK(cmpgt_epi8_mask, _mm256_cmpgt_epi8(i.a, i.b)),
    SLUICE_BYTE_MASK(testn_epi8_mask, _mm256_cmpeq_epi8(_mm256_and_si256(i.a, i.b), _mm256_setzero_si256())),
    SLUICE_BYTE_MASK(test_epi8_mask, inverted(_mm256_cmpeq_epi8(_mm256_and_si256(i.a, i.b),
                                                                _mm256_setzero_si256()))),
    SLUICE_BYTE_MASK(movepi8_mask, i.a),
    SLUICE_MASK("cmpeq_epi16_mask", 16,
                _mm_movemask_epi8(_mm_packs_epi16(
                    _mm256_castsi256_si128(_mm256_cmpeq_epi16(i.a, i.b)),
                    _mm256_extracti128_si256(_mm256_cmpeq_epi16(i.a, i.b), 1)))),
    SLUICE_DWORD_MASK(test_epi32_mask, inverted(_mm256_cmpeq_epi32(_mm256_and_si256(i.a, i.b),
                                                                   _mm256_setzero_si256()))),
    SLUICE_DWORD_MASK(movepi32_mask, i.a),
    SLUICE_DWORD_MASK(cmpeq_epi32_mask, _mm256_cmpeq_epi32(i.a, i.b)),
    SLUICE_DWORD_MASK(cmpgt_epi32_mask, _mm256_cmpgt_epi32(i.a, i.b)),
    SLUICE_DWORD_MASK(cmplt_epi32_mask, _mm256_cmpgt_epi32(i.b, i.a)),
    SLUICE_OF_2(maddubs_epi16),
    SLUICE_OF_2(madd_epi16),
    SLUICE_OF_2(sad_epu8),
    SLUICE_TWIN("dpbusd_epi32", kBits, _mm256_add_epi32(i.a, byte_products(i.b, i.c))),
    SLUICE_TWIN("dpwssd_epi32", kBits, _mm256_add_epi32(i.a, _mm256_madd_epi16(i.b, i.c))),
    SLUICE_OF_2(shuffle_epi8),
    SLUICE_OF_2(unpacklo_epi8),
    SLUICE_OF_2(unpackhi_epi8),
    SLUICE_OF_2(unpacklo_epi16),
    SLUICE_OF_2(unpackhi_epi16),
    SLUICE_OF_2(unpacklo_epi32),
    SLUICE_OF_2(unpackhi_epi32),
    SLUICE_OF_2(unpacklo_epi64),
    SLUICE_OF_2(unpackhi_epi64),
    SLUICE_OF_2(packus_epi16),
    SLUICE_OF_2(packs_epi16),
    SLUICE_OF_2(packus_epi32),
    SLUICE_OF_2(packs_epi32),
    SLUICE_TWIN("permute_ps(0xee)", kBits, _mm256_permute_ps(i.x, 0xee)),
    SLUICE_TWIN("permute_ps(0x1b)", kBits, _mm256_permute_ps(i.x, 0x1b)),
    SLUICE_TWIN("shuffle_epi32(0x1b)", kBits, _mm256_shuffle_epi32(i.a, 0x1b)),
    SLUICE_TWIN("shuffle_ps(0x1b)", kBits, _mm256_shuffle_ps(i.x, i.y, 0x1b)),
    SLUICE_TWIN("alignr_epi8(5)", kBits, _mm256_alignr_epi8(i.a, i.b, 5)),
    SLUICE_TWIN("alignr_epi8(21)", kBits, _mm256_alignr_epi8(i.a, i.b, 21)),
    SLUICE_FLOATS(add_ps),
    SLUICE_FLOATS(sub_ps),
    SLUICE_FLOATS(mul_ps),
    SLUICE_FLOATS(div_ps),
    SLUICE_TWIN("abs_ps", kBits, _mm256_andnot_ps(_mm256_set1_ps(-0.0f), i.x)),
    SLUICE_TWIN("max_ps", kBits, _mm256_max_ps(i.x, i.y)),
    SLUICE_TWIN("min_ps", kBits, _mm256_min_ps(i.x, i.y)),
    SLUICE_TWIN("fmadd_ps", kNumbers, _mm256_fmadd_ps(i.x, i.y, i.z)),
    SLUICE_TWIN("fnmadd_ps", kNumbers, _mm256_fnmadd_ps(i.x, i.y, i.z)),
    SLUICE_TWIN("fmsub_ps", kNumbers, _mm256_fmsub_ps(i.x, i.y, i.z)),
    SLUICE_TWIN("sqrt_ps", kNumbers, _mm256_sqrt_ps(i.x)),
    SLUICE_TWIN("roundscale_ps", kNumbers, _mm256_round_ps(i.x, 0)),
    SLUICE_COMPARISON("cmp_eq_ps", _CMP_EQ_OQ),
    SLUICE_COMPARISON("cmp_neq_ps", _CMP_NEQ_UQ),
    SLUICE_COMPARISON("cmp_lt_ps", _CMP_LT_OQ),
    SLUICE_COMPARISON("cmp_le_ps", _CMP_LE_OQ),
    SLUICE_COMPARISON("cmp_gt_ps", _CMP_GT_OQ),
    SLUICE_COMPARISON("cmp_ge_ps", _CMP_GE_OQ),
    SLUICE_COMPARISON("cmp_unord_ps", _CMP_UNORD_Q),
    SLUICE_COMPARISON("cmp_ord_ps", _CMP_ORD_Q),
    SLUICE_WIDENED(cvtepu8_epi16, 16),
    SLUICE_WIDENED(cvtepi8_epi16, 16),
    SLUICE_WIDENED(cvtepu8_epi32, 8),
    SLUICE_WIDENED(cvtepi8_epi32, 8),
    SLUICE_WIDENED(cvtepu16_epi32, 16),
    SLUICE_WIDENED(cvtepi16_epi32, 16),
    SLUICE_WIDENED(cvtph_ps, 16),
    SLUICE_TWIN("cvtepi32_ps", kBits, _mm256_cvtepi32_ps(i.a)),
    SLUICE_TWIN("cvtps_epi32", kBits, _mm256_cvtps_epi32(i.x)),
    SLUICE_TWIN("cvttps_epi32", kBits, _mm256_cvttps_epi32(i.x)),
    // The CPU's own FMA while it treats subnormal numbers as zeros and returns zeros for them.
    {"dpbf16_ps", Equal::kNumbers,
     [](const Operands& o, Result& r) {
       constexpr unsigned kMasked = 0x1f80, kDaz = 0x40, kFtz = 0x8000;
       const unsigned before = _mm_getcsr();
       _mm_setcsr(kMasked | kDaz | kFtz);
       const __m256i high = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
       by_halves(o, r, [high](const Half& i) {
         const auto odd = [high](__m256i v) { return _mm256_castsi256_ps(_mm256_and_si256(v, high)); };
         const auto even = [](__m256i v) { return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16)); };
         __m256 sum = i.z;
         // Keeps the products between the two settings.
         __asm__ volatile("" : "+x"(sum));
         sum = _mm256_fmadd_ps(odd(i.a), odd(i.b), sum);
         sum = _mm256_fmadd_ps(even(i.a), even(i.b), sum);
         __asm__ volatile("" : "+x"(sum));
         return sum;
       });
       _mm_setcsr(before);
     }},
};

}  // namespace

const Cases kTwins = {kCases, sizeof(kCases) / sizeof(Case)};

}  // namespace sluice::emulation
