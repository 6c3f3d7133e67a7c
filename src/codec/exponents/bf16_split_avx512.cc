// Works on 32 words at a time; masked loads and stores do the tail and touch no byte outside.
#include "base/machine/avx512_intrinsics.h"
#include "codec/exponents/bf16_split_impl.h"

namespace sluice::codec {
namespace {

constexpr std::size_t kStep = 32;

// Low bytes of 32 words. (The form without a mask makes g++ 12 warn about its own header.)
__m256i narrow(__m512i words) { return _mm512_maskz_cvtepi16_epi8(~__mmask32{0}, words); }

__m256i exponent_of(__m512i words) { return narrow(_mm512_srli_epi16(words, 7)); }

__m256i sign_mantissa_of(__m512i words) {
  const __m512i sign = _mm512_and_si512(_mm512_srli_epi16(words, 8), _mm512_set1_epi16(0x80));
  return narrow(_mm512_or_si512(sign, _mm512_and_si512(words, _mm512_set1_epi16(0x7f))));
}

__mmask32 tail_mask(std::size_t count) { return static_cast<__mmask32>((1ull << count) - 1); }

void split_avx512(const std::byte* words, std::size_t count, std::byte* exponents,
                  std::byte* sign_mantissas) {
  std::size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    const __m512i w = _mm512_loadu_si512(words + 2 * i);
    _mm256_storeu_epi8(exponents + i, exponent_of(w));
    _mm256_storeu_epi8(sign_mantissas + i, sign_mantissa_of(w));
  }
  if (i == count) return;
  const __mmask32 tail = tail_mask(count - i);
  const __m512i w = _mm512_maskz_loadu_epi16(tail, words + 2 * i);
  _mm256_mask_storeu_epi8(exponents + i, tail, exponent_of(w));
  _mm256_mask_storeu_epi8(sign_mantissas + i, tail, sign_mantissa_of(w));
}

__m512i merged(__m256i exponents, __m256i sign_mantissas) {
  const __m512i e = _mm512_slli_epi16(_mm512_cvtepu8_epi16(exponents), 7);
  const __m512i sm = _mm512_cvtepu8_epi16(sign_mantissas);
  const __m512i sign = _mm512_slli_epi16(_mm512_and_si512(sm, _mm512_set1_epi16(0x80)), 8);
  const __m512i mantissa = _mm512_and_si512(sm, _mm512_set1_epi16(0x7f));
  return _mm512_or_si512(_mm512_or_si512(e, sign), mantissa);
}

void merge_avx512(const std::byte* exponents, const std::byte* sign_mantissas, std::size_t count,
                  std::byte* words) {
  std::size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    const __m256i e = _mm256_loadu_epi8(exponents + i);
    const __m256i sm = _mm256_loadu_epi8(sign_mantissas + i);
    _mm512_storeu_si512(words + 2 * i, merged(e, sm));
  }
  if (i == count) return;
  const __mmask32 tail = tail_mask(count - i);
  const __m256i e = _mm256_maskz_loadu_epi8(tail, exponents + i);
  const __m256i sm = _mm256_maskz_loadu_epi8(tail, sign_mantissas + i);
  _mm512_mask_storeu_epi16(words + 2 * i, tail, merged(e, sm));
}

}  // namespace

constinit const Bf16SplitKernels kBf16SplitAvx512 = {split_avx512, merge_avx512};

}  // namespace sluice::codec
