// AVX-512 (F, BW, DQ, VL, VBMI, VBMI2, VNNI, BF16) and AMX in plain C++, so that kernels written with them
// can be tested on CPUs without them. Sources include it through base/machine/avx512_intrinsics.h when
// SLUICE_EMULATED_INTRINSICS is defined; they then need AVX2, FMA, F16C and BMI2, whose intrinsics are the
// CPU's own.
//
// Inside namespace sluice, these functions are found before the compiler's functions of the same names. Types
// are the compiler's: vectors of 64 bytes exist without AVX-512. Intrinsics that are not emulated do not
// compile.
#pragma once

#include <immintrin.h>
// Some of the compiler's intrinsics are macros; those of AMX compile with any flags, so all of these are
// undefined.
#undef _mm256_dpbusd_epi32
#undef _mm256_dpbusds_epi32
#undef _mm256_dpwssd_epi32
#undef _mm512_alignr_epi8
#undef _mm512_cmp_ps_mask
#undef _mm512_cmpeq_epi16_mask
#undef _mm512_cmpeq_epi32_mask
#undef _mm512_cmpeq_epi8_mask
#undef _mm512_cmpgt_epi32_mask
#undef _mm512_cmpgt_epi8_mask
#undef _mm512_cmpgt_epu8_mask
#undef _mm512_cmple_epu8_mask
#undef _mm512_cmplt_epi32_mask
#undef _mm512_cmplt_epu8_mask
#undef _mm512_cmpneq_epi8_mask
#undef _mm512_extractf32x4_ps
#undef _mm512_extractf32x8_ps
#undef _mm512_extracti32x4_epi32
#undef _mm512_extracti32x8_epi32
#undef _mm512_extracti64x4_epi64
#undef _mm512_inserti32x4
#undef _mm512_inserti32x8
#undef _mm512_inserti64x4
#undef _mm512_mask_blend_epi8
#undef _mm512_mask_cmpeq_epi8_mask
#undef _mm512_mask_slli_epi16
#undef _mm512_mask_slli_epi32
#undef _mm512_mask_slli_epi64
#undef _mm512_mask_srai_epi16
#undef _mm512_mask_srai_epi32
#undef _mm512_mask_srli_epi16
#undef _mm512_mask_srli_epi32
#undef _mm512_mask_srli_epi64
#undef _mm512_maskz_slli_epi16
#undef _mm512_maskz_slli_epi32
#undef _mm512_maskz_slli_epi64
#undef _mm512_maskz_srai_epi16
#undef _mm512_maskz_srai_epi32
#undef _mm512_maskz_srli_epi16
#undef _mm512_maskz_srli_epi32
#undef _mm512_maskz_srli_epi64
#undef _mm512_permute_ps
#undef _mm512_roundscale_ps
#undef _mm512_setr_epi32
#undef _mm512_setr_epi64
#undef _mm512_shuffle_epi32
#undef _mm512_shuffle_f32x4
#undef _mm512_shuffle_i32x4
#undef _mm512_shuffle_i64x2
#undef _mm512_shuffle_ps
#undef _mm512_slli_epi16
#undef _mm512_slli_epi32
#undef _mm512_slli_epi64
#undef _mm512_srai_epi16
#undef _mm512_srai_epi32
#undef _mm512_srli_epi16
#undef _mm512_srli_epi32
#undef _mm512_srli_epi64
#undef _mm512_ternarylogic_epi32
#undef _mm512_ternarylogic_epi64
#undef _tile_dpbf16ps
#undef _tile_dpbssd
#undef _tile_dpbsud
#undef _tile_dpbusd
#undef _tile_dpbuud
#undef _tile_loadconfig
#undef _tile_loadd
#undef _tile_release
#undef _tile_storeconfig
#undef _tile_stored
#undef _tile_stream_loadd
#undef _tile_zero

#include "emulation/bf16.h"
#include "emulation/floats.h"
#include "emulation/integers.h"
#include "emulation/memory.h"
#include "emulation/shuffles.h"
#include "emulation/tiles.h"

namespace sluice {
using namespace emulation;
}
