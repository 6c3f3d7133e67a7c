// Works on 32 words at a time; the scalar kernel does the tail.
#include <immintrin.h>

#include "codec/exponents/bf16_split_impl.h"

namespace sluice::codec {
namespace {

constexpr std::size_t kStep = 32;

const __m256i* at(const std::byte* p) { return reinterpret_cast<const __m256i*>(p); }
__m256i* at(std::byte* p) { return reinterpret_cast<__m256i*>(p); }

// Packs two vectors of 16 words below 256 into 32 bytes in order: packus works within 128-bit halves, and the
// permutation puts the halves in order.
__m256i narrow(__m256i first, __m256i second) {
  return _mm256_permute4x64_epi64(_mm256_packus_epi16(first, second), 0b11'01'10'00);
}

__m256i exponent_of(__m256i words) {
  return _mm256_and_si256(_mm256_srli_epi16(words, 7), _mm256_set1_epi16(0xff));
}

__m256i sign_mantissa_of(__m256i words) {
  const __m256i sign = _mm256_and_si256(_mm256_srli_epi16(words, 8), _mm256_set1_epi16(0x80));
  return _mm256_or_si256(sign, _mm256_and_si256(words, _mm256_set1_epi16(0x7f)));
}

void split_avx2(const std::byte* words, std::size_t count, std::byte* exponents, std::byte* sign_mantissas) {
  std::size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    const __m256i first = _mm256_loadu_si256(at(words + 2 * i));
    const __m256i second = _mm256_loadu_si256(at(words + 2 * i + 32));
    _mm256_storeu_si256(at(exponents + i), narrow(exponent_of(first), exponent_of(second)));
    _mm256_storeu_si256(at(sign_mantissas + i), narrow(sign_mantissa_of(first), sign_mantissa_of(second)));
  }
  kBf16SplitScalar.split(words + 2 * i, count - i, exponents + i, sign_mantissas + i);
}

__m256i merged(__m128i exponents, __m128i sign_mantissas) {
  const __m256i e = _mm256_slli_epi16(_mm256_cvtepu8_epi16(exponents), 7);
  const __m256i sm = _mm256_cvtepu8_epi16(sign_mantissas);
  const __m256i sign = _mm256_slli_epi16(_mm256_and_si256(sm, _mm256_set1_epi16(0x80)), 8);
  const __m256i mantissa = _mm256_and_si256(sm, _mm256_set1_epi16(0x7f));
  return _mm256_or_si256(_mm256_or_si256(e, sign), mantissa);
}

void merge_avx2(const std::byte* exponents, const std::byte* sign_mantissas, std::size_t count,
                std::byte* words) {
  std::size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    const __m256i e = _mm256_loadu_si256(at(exponents + i));
    const __m256i sm = _mm256_loadu_si256(at(sign_mantissas + i));
    _mm256_storeu_si256(at(words + 2 * i), merged(_mm256_castsi256_si128(e), _mm256_castsi256_si128(sm)));
    _mm256_storeu_si256(at(words + 2 * i + 32),
                        merged(_mm256_extracti128_si256(e, 1), _mm256_extracti128_si256(sm, 1)));
  }
  kBf16SplitScalar.merge(exponents + i, sign_mantissas + i, count - i, words + 2 * i);
}

}  // namespace

constinit const Bf16SplitKernels kBf16SplitAvx2 = {split_avx2, merge_avx2};

}  // namespace sluice::codec
