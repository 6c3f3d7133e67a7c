// kEmulated or kReal: the including file decides which intrinsics these are.
#pragma once

#include "base/machine/avx512_intrinsics.h"
#include "emulation/cases.h"

namespace sluice::emulation {
namespace {

struct In {
  explicit In(const Operands& o)
      : a(_mm512_loadu_si512(o.a)),
        b(_mm512_loadu_si512(o.b)),
        c(_mm512_loadu_si512(o.c)),
        x(_mm512_loadu_ps(o.a)),
        y(_mm512_loadu_ps(o.b)),
        z(_mm512_loadu_ps(o.c)),
        a256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(o.a))),
        b256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(o.b))),
        c256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(o.c))),
        a128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(o.a))),
        k(o.k),
        k8(static_cast<__mmask8>(o.k)),
        k16(static_cast<__mmask16>(o.k)),
        k32(static_cast<__mmask32>(o.k)) {}
  __m512i a, b, c;
  __m512 x, y, z;
  __m256i a256, b256, c256;
  __m128i a128;
  __mmask64 k;
  __mmask8 k8;
  __mmask16 k16;
  __mmask32 k32;
};

template <class V>
inline void put(Result& r, const V& v) {
  __builtin_memset(r.bytes, 0, sizeof(r.bytes));
  __builtin_memcpy(r.bytes, &v, sizeof(v));
}

#define SLUICE_CASE(name, equal, value)                                \
  Case {                                                               \
    name, Equal::equal, [](const Operands& operands, Result& result) { \
      const In i(operands);                                            \
      put(result, value);                                              \
    }                                                                  \
  }
#define SLUICE_BITS(name, value) SLUICE_CASE(name, kBits, value)
#define SLUICE_NUMBERS(name, value) SLUICE_CASE(name, kNumbers, value)
#define SLUICE_OF_2(name) SLUICE_BITS(#name, _mm512_##name(i.a, i.b))
#define SLUICE_OF_3(name) SLUICE_BITS(#name, _mm512_##name(i.a, i.b, i.c))
// The same with its masked forms.
#define SLUICE_MASKED(name, mask)                                                           \
  SLUICE_OF_2(name), SLUICE_BITS("mask_" #name, _mm512_mask_##name(i.c, i.mask, i.a, i.b)), \
      SLUICE_BITS("maskz_" #name, _mm512_maskz_##name(i.mask, i.a, i.b))
#define SLUICE_SHIFT(name, n, mask)                                                   \
  SLUICE_BITS(#name "(" #n ")", _mm512_##name(i.a, n)),                               \
      SLUICE_BITS("mask_" #name "(" #n ")", _mm512_mask_##name(i.c, i.mask, i.a, n)), \
      SLUICE_BITS("maskz_" #name "(" #n ")", _mm512_maskz_##name(i.mask, i.a, n))
#define SLUICE_CONTROL(name, n) SLUICE_BITS(#name "(" #n ")", _mm512_##name(i.a, i.b, n))
#define SLUICE_FLOATS(name) SLUICE_NUMBERS(#name, _mm512_##name(i.x, i.y))

// Stores to bytes that start as those of c.
template <class F>
inline Result stored_by(const In& i, const F& store) {
  Result r;
  _mm512_storeu_si512(r.bytes, i.c);
  store(r.bytes);
  return r;
}

const Case kCases[] = {
    SLUICE_MASKED(add_epi8, k),
    SLUICE_MASKED(add_epi16, k32),
    SLUICE_MASKED(add_epi32, k16),
    SLUICE_MASKED(add_epi64, k8),
    SLUICE_MASKED(sub_epi8, k),
    SLUICE_MASKED(sub_epi16, k32),
    SLUICE_MASKED(sub_epi32, k16),
    SLUICE_MASKED(sub_epi64, k8),
    SLUICE_MASKED(adds_epi8, k),
    SLUICE_MASKED(adds_epu8, k),
    SLUICE_MASKED(adds_epi16, k32),
    SLUICE_MASKED(subs_epi8, k),
    SLUICE_MASKED(subs_epu8, k),
    SLUICE_MASKED(subs_epi16, k32),
    SLUICE_MASKED(min_epi8, k),
    SLUICE_MASKED(min_epu8, k),
    SLUICE_MASKED(min_epi16, k32),
    SLUICE_MASKED(min_epi32, k16),
    SLUICE_MASKED(max_epi8, k),
    SLUICE_MASKED(max_epu8, k),
    SLUICE_MASKED(max_epi16, k32),
    SLUICE_MASKED(max_epi32, k16),
    SLUICE_MASKED(mullo_epi16, k32),
    SLUICE_MASKED(mulhi_epi16, k32),
    SLUICE_MASKED(mulhi_epu16, k32),
    SLUICE_MASKED(mullo_epi32, k16),
    SLUICE_MASKED(and_epi32, k16),
    SLUICE_MASKED(andnot_epi32, k16),
    SLUICE_MASKED(or_epi32, k16),
    SLUICE_MASKED(xor_epi32, k16),
    SLUICE_MASKED(sllv_epi32, k16),
    SLUICE_MASKED(srlv_epi32, k16),
    SLUICE_MASKED(srlv_epi64, k8),
    SLUICE_OF_2(sllv_epi16),
    SLUICE_OF_2(srlv_epi16),
    SLUICE_OF_2(and_si512),
    SLUICE_OF_2(or_si512),
    SLUICE_OF_2(xor_si512),
    SLUICE_OF_2(andnot_si512),
    SLUICE_BITS("ternarylogic(0xe4)", _mm512_ternarylogic_epi64(i.a, i.b, i.c, 0xe4)),
    SLUICE_BITS("ternarylogic(0x96)", _mm512_ternarylogic_epi32(i.a, i.b, i.c, 0x96)),
    SLUICE_SHIFT(slli_epi16, 7, k32),
    SLUICE_SHIFT(slli_epi16, 16, k32),
    SLUICE_SHIFT(srli_epi16, 3, k32),
    SLUICE_SHIFT(srli_epi16, 16, k32),
    SLUICE_SHIFT(srai_epi16, 5, k32),
    SLUICE_SHIFT(srai_epi16, 16, k32),
    SLUICE_SHIFT(slli_epi32, 16, k16),
    SLUICE_SHIFT(slli_epi32, 32, k16),
    SLUICE_SHIFT(srli_epi32, 9, k16),
    SLUICE_SHIFT(srli_epi32, 32, k16),
    SLUICE_SHIFT(srai_epi32, 1, k16),
    SLUICE_SHIFT(srai_epi32, 32, k16),
    SLUICE_SHIFT(slli_epi64, 8, k8),
    SLUICE_SHIFT(slli_epi64, 64, k8),
    SLUICE_SHIFT(srli_epi64, 24, k8),
    SLUICE_BITS("abs_epi8", _mm512_abs_epi8(i.a)),
    SLUICE_BITS("abs_epi16", _mm512_abs_epi16(i.a)),
    SLUICE_BITS("abs_epi32", _mm512_abs_epi32(i.a)),
    SLUICE_OF_2(cmpeq_epi8_mask),
    SLUICE_OF_2(cmpneq_epi8_mask),
    SLUICE_OF_2(cmplt_epu8_mask),
    SLUICE_OF_2(cmple_epu8_mask),
    SLUICE_OF_2(cmpgt_epu8_mask),
    SLUICE_OF_2(cmpgt_epi8_mask),
    SLUICE_OF_2(cmpeq_epi16_mask),
    SLUICE_OF_2(cmpeq_epi32_mask),
    SLUICE_OF_2(cmpgt_epi32_mask),
    SLUICE_OF_2(cmplt_epi32_mask),
    SLUICE_OF_2(test_epi8_mask),
    SLUICE_OF_2(testn_epi8_mask),
    SLUICE_OF_2(test_epi32_mask),
    SLUICE_BITS("mask_cmpeq_epi8_mask", _mm512_mask_cmpeq_epi8_mask(i.k, i.a, i.b)),
    SLUICE_BITS("movepi8_mask", _mm512_movepi8_mask(i.a)),
    SLUICE_BITS("movepi32_mask", _mm512_movepi32_mask(i.a)),
    SLUICE_BITS("movm_epi8", _mm512_movm_epi8(i.k)),
    SLUICE_OF_2(maddubs_epi16),
    SLUICE_OF_2(madd_epi16),
    SLUICE_OF_2(sad_epu8),
    SLUICE_OF_3(dpbusd_epi32),
    SLUICE_OF_3(dpbusds_epi32),
    SLUICE_OF_3(dpwssd_epi32),
    SLUICE_BITS("256:dpbusd_epi32", _mm256_dpbusd_epi32(i.a256, i.b256, i.c256)),
    SLUICE_BITS("256:dpbusds_epi32", _mm256_dpbusds_epi32(i.a256, i.b256, i.c256)),
    SLUICE_BITS("256:dpwssd_epi32", _mm256_dpwssd_epi32(i.a256, i.b256, i.c256)),
    SLUICE_BITS("reduce_add_epi32", _mm512_reduce_add_epi32(i.a)),

    SLUICE_OF_2(shuffle_epi8),
    SLUICE_BITS("mask_shuffle_epi8", _mm512_mask_shuffle_epi8(i.c, i.k, i.a, i.b)),
    SLUICE_BITS("maskz_shuffle_epi8", _mm512_maskz_shuffle_epi8(i.k, i.a, i.b)),
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
    SLUICE_BITS("permute_ps(0xee)", _mm512_permute_ps(i.x, 0xee)),
    SLUICE_BITS("permute_ps(0x1b)", _mm512_permute_ps(i.x, 0x1b)),
    SLUICE_BITS("shuffle_epi32(0x1b)", _mm512_shuffle_epi32(i.a, static_cast<_MM_PERM_ENUM>(0x1b))),
    SLUICE_BITS("shuffle_ps(0x1b)", _mm512_shuffle_ps(i.x, i.y, 0x1b)),
    SLUICE_BITS("shuffle_f32x4(0x44)", _mm512_shuffle_f32x4(i.x, i.y, 0x44)),
    SLUICE_BITS("shuffle_f32x4(0x1b)", _mm512_shuffle_f32x4(i.x, i.y, 0x1b)),
    SLUICE_CONTROL(shuffle_i32x4, 0x88),
    SLUICE_CONTROL(shuffle_i32x4, 0xdd),
    SLUICE_CONTROL(shuffle_i64x2, 0x1b),
    SLUICE_CONTROL(alignr_epi8, 5),
    SLUICE_CONTROL(alignr_epi8, 21),
    SLUICE_OF_2(permutexvar_epi8),
    SLUICE_OF_2(permutexvar_epi16),
    SLUICE_OF_2(permutexvar_epi32),
    SLUICE_OF_2(permutexvar_epi64),
    SLUICE_BITS("permutexvar_ps", _mm512_permutexvar_ps(i.a, i.y)),
    SLUICE_BITS("mask_permutexvar_epi8", _mm512_mask_permutexvar_epi8(i.c, i.k, i.a, i.b)),
    SLUICE_BITS("maskz_permutexvar_epi8", _mm512_maskz_permutexvar_epi8(i.k, i.a, i.b)),
    SLUICE_OF_3(permutex2var_epi8),
    SLUICE_OF_3(permutex2var_epi16),
    SLUICE_OF_3(permutex2var_epi32),
    SLUICE_BITS("permutex2var_ps", _mm512_permutex2var_ps(i.x, i.b, i.z)),
    SLUICE_OF_2(multishift_epi64_epi8),
    SLUICE_BITS("mask_expand_epi8", _mm512_mask_expand_epi8(i.c, i.k, i.a)),
    SLUICE_BITS("maskz_expand_epi8", _mm512_maskz_expand_epi8(i.k, i.a)),
    SLUICE_BITS("mask_compress_epi8", _mm512_mask_compress_epi8(i.c, i.k, i.a)),
    SLUICE_BITS("maskz_compress_epi8", _mm512_maskz_compress_epi8(i.k, i.a)),
    SLUICE_BITS("mask_mov_epi8", _mm512_mask_mov_epi8(i.c, i.k, i.a)),
    SLUICE_BITS("maskz_mov_epi8", _mm512_maskz_mov_epi8(i.k, i.a)),
    SLUICE_BITS("mask_mov_epi32", _mm512_mask_mov_epi32(i.c, i.k16, i.a)),
    SLUICE_BITS("mask_blend_epi8", _mm512_mask_blend_epi8(i.k, i.a, i.b)),
    SLUICE_BITS("mask_blend_epi32", _mm512_mask_blend_epi32(i.k16, i.a, i.b)),
    SLUICE_BITS("mask_mov_ps", _mm512_mask_mov_ps(i.z, i.k16, i.x)),
    SLUICE_BITS("mask_blend_ps", _mm512_mask_blend_ps(i.k16, i.x, i.y)),
    SLUICE_BITS("extracti32x4(2)", _mm512_extracti32x4_epi32(i.a, 2)),
    SLUICE_BITS("extracti64x4(1)", _mm512_extracti64x4_epi64(i.a, 1)),
    SLUICE_BITS("extracti32x8(0)", _mm512_extracti32x8_epi32(i.a, 0)),
    SLUICE_BITS("extractf32x4(3)", _mm512_extractf32x4_ps(i.x, 3)),
    SLUICE_BITS("extractf32x8(1)", _mm512_extractf32x8_ps(i.x, 1)),
    SLUICE_BITS("inserti32x4(3)", _mm512_inserti32x4(i.b, i.a128, 3)),
    SLUICE_BITS("inserti64x4(1)", _mm512_inserti64x4(i.b, i.a256, 1)),
    SLUICE_BITS("inserti32x8(0)", _mm512_inserti32x8(i.b, i.a256, 0)),
    SLUICE_BITS("broadcast_i32x4", _mm512_broadcast_i32x4(i.a128)),
    SLUICE_BITS("broadcast_i64x4", _mm512_broadcast_i64x4(i.a256)),
    SLUICE_BITS("broadcastb_epi8", _mm512_broadcastb_epi8(i.a128)),
    SLUICE_BITS("broadcastw_epi16", _mm512_broadcastw_epi16(i.a128)),
    SLUICE_BITS("broadcastd_epi32", _mm512_broadcastd_epi32(i.a128)),
    SLUICE_BITS("broadcastq_epi64", _mm512_broadcastq_epi64(i.a128)),

    SLUICE_FLOATS(add_ps),
    SLUICE_FLOATS(sub_ps),
    SLUICE_FLOATS(mul_ps),
    SLUICE_FLOATS(div_ps),
    SLUICE_BITS("max_ps", _mm512_max_ps(i.x, i.y)),
    SLUICE_BITS("min_ps", _mm512_min_ps(i.x, i.y)),
    SLUICE_NUMBERS("mask_add_ps", _mm512_mask_add_ps(i.z, i.k16, i.x, i.y)),
    SLUICE_NUMBERS("maskz_mul_ps", _mm512_maskz_mul_ps(i.k16, i.x, i.y)),
    SLUICE_NUMBERS("fmadd_ps", _mm512_fmadd_ps(i.x, i.y, i.z)),
    SLUICE_NUMBERS("fnmadd_ps", _mm512_fnmadd_ps(i.x, i.y, i.z)),
    SLUICE_NUMBERS("fmsub_ps", _mm512_fmsub_ps(i.x, i.y, i.z)),
    SLUICE_BITS("abs_ps", _mm512_abs_ps(i.x)),
    SLUICE_NUMBERS("sqrt_ps", _mm512_sqrt_ps(i.x)),
    SLUICE_NUMBERS("roundscale_ps", _mm512_roundscale_ps(i.x, 0)),
    SLUICE_BITS("cmp_eq_ps", _mm512_cmp_ps_mask(i.x, i.y, _CMP_EQ_OQ)),
    SLUICE_BITS("cmp_neq_ps", _mm512_cmp_ps_mask(i.x, i.y, _CMP_NEQ_UQ)),
    SLUICE_BITS("cmp_lt_ps", _mm512_cmp_ps_mask(i.x, i.y, _CMP_LT_OQ)),
    SLUICE_BITS("cmp_le_ps", _mm512_cmp_ps_mask(i.x, i.y, _CMP_LE_OQ)),
    SLUICE_BITS("cmp_gt_ps", _mm512_cmp_ps_mask(i.x, i.y, _CMP_GT_OQ)),
    SLUICE_BITS("cmp_ge_ps", _mm512_cmp_ps_mask(i.x, i.y, _CMP_GE_OQ)),
    SLUICE_BITS("cmp_unord_ps", _mm512_cmp_ps_mask(i.x, i.y, _CMP_UNORD_Q)),
    SLUICE_BITS("cmp_ord_ps", _mm512_cmp_ps_mask(i.x, i.y, _CMP_ORD_Q)),
    SLUICE_NUMBERS("reduce_add_ps", _mm512_reduce_add_ps(i.x)),
    SLUICE_BITS("cvtepu8_epi16", _mm512_cvtepu8_epi16(i.a256)),
    SLUICE_BITS("cvtepi8_epi16", _mm512_cvtepi8_epi16(i.a256)),
    SLUICE_BITS("cvtepu8_epi32", _mm512_cvtepu8_epi32(i.a128)),
    SLUICE_BITS("cvtepi8_epi32", _mm512_cvtepi8_epi32(i.a128)),
    SLUICE_BITS("cvtepu16_epi32", _mm512_cvtepu16_epi32(i.a256)),
    SLUICE_BITS("cvtepi16_epi32", _mm512_cvtepi16_epi32(i.a256)),
    SLUICE_BITS("maskz_cvtepi16_epi8", _mm512_maskz_cvtepi16_epi8(i.k32, i.a)),
    SLUICE_BITS("cvtepi32_epi16", _mm512_maskz_cvtepi32_epi16(0xffff, i.a)),
    SLUICE_BITS("cvtepi32_epi8", _mm512_maskz_cvtepi32_epi8(0xffff, i.a)),
    SLUICE_BITS("cvtsepi32_epi8", _mm512_cvtsepi32_epi8(i.a)),
    SLUICE_BITS("cvtusepi32_epi8", _mm512_cvtusepi32_epi8(i.a)),
    SLUICE_BITS("cvtepi32_ps", _mm512_cvtepi32_ps(i.a)),
    SLUICE_BITS("cvtps_epi32", _mm512_cvtps_epi32(i.x)),
    SLUICE_BITS("cvttps_epi32", _mm512_cvttps_epi32(i.x)),
    SLUICE_BITS("cvtph_ps", _mm512_cvtph_ps(i.a256)),
    SLUICE_NUMBERS("dpbf16_ps", _mm512_dpbf16_ps(i.z, (__m512bh)i.a, (__m512bh)i.b)),
    SLUICE_BITS("cvtneps_pbh", _mm512_cvtneps_pbh(i.x)),
    SLUICE_BITS("cvtne2ps_pbh", _mm512_cvtne2ps_pbh(i.x, i.y)),

    SLUICE_BITS("set1_epi8", _mm512_set1_epi8(static_cast<char>(i.k))),
    SLUICE_BITS("set1_epi16", _mm512_set1_epi16(static_cast<short>(i.k))),
    SLUICE_BITS("set1_epi32", _mm512_set1_epi32(static_cast<int>(i.k))),
    SLUICE_BITS("set1_epi64", _mm512_set1_epi64(static_cast<long long>(i.k))),
    SLUICE_BITS("set1_ps", _mm512_set1_ps(static_cast<float>(i.k8))),
    SLUICE_BITS("set4_epi32", _mm512_set4_epi32(4, 3, 2, static_cast<int>(i.k))),
    SLUICE_BITS("setr_epi32",
                _mm512_setr_epi32(static_cast<int>(i.k), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)),
    SLUICE_BITS("set_epi64", _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, static_cast<long long>(i.k))),
    SLUICE_BITS("maskz_set1_epi8", _mm512_maskz_set1_epi8(i.k, 5)),
    SLUICE_BITS("zextsi128_si512", _mm512_zextsi128_si512(i.a128)),
    SLUICE_BITS("castsi512_si256", _mm512_castsi512_si256(i.a)),
    SLUICE_BITS("maskz_loadu_epi8", _mm512_maskz_loadu_epi8(i.k, operands.a)),
    SLUICE_BITS("maskz_loadu_epi16", _mm512_maskz_loadu_epi16(i.k32, operands.a)),
    SLUICE_BITS("maskz_loadu_epi32", _mm512_maskz_loadu_epi32(i.k16, operands.a)),
    SLUICE_BITS("maskz_loadu_ps", _mm512_maskz_loadu_ps(i.k16, operands.a)),
    SLUICE_BITS("mask_loadu_epi8", _mm512_mask_loadu_epi8(i.c, i.k, operands.a)),
    SLUICE_BITS("256:maskz_loadu_epi8", _mm256_maskz_loadu_epi8(i.k32, operands.a)),
    SLUICE_BITS("mask_storeu_epi8", stored_by(i, [&](void* p) { _mm512_mask_storeu_epi8(p, i.k, i.a); })),
    SLUICE_BITS("mask_storeu_epi16", stored_by(i, [&](void* p) { _mm512_mask_storeu_epi16(p, i.k32, i.a); })),
    SLUICE_BITS("mask_storeu_epi32", stored_by(i, [&](void* p) { _mm512_mask_storeu_epi32(p, i.k16, i.a); })),
    SLUICE_BITS("mask_storeu_ps", stored_by(i, [&](void* p) { _mm512_mask_storeu_ps(p, i.k16, i.x); })),
    SLUICE_BITS("256:mask_storeu_epi8",
                stored_by(i, [&](void* p) { _mm256_mask_storeu_epi8(p, i.k32, i.a256); })),
};

}  // namespace
}  // namespace sluice::emulation
