// A line is two registers.
#include <immintrin.h>

#include <cstdint>

#include "codec/native/native_encode_impl.h"

namespace sluice::codec {
namespace {

struct Line {
  __m256i v[2];
};
using Mask = Line;  // 255 in each place that the mask holds

[[gnu::always_inline]] inline Line load(const std::byte* p) {
  const auto* q = reinterpret_cast<const __m256i*>(p);
  return {{_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)}};
}
[[gnu::always_inline]] inline void store(std::byte* p, Line line) {
  auto* q = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(q, line.v[0]);
  _mm256_storeu_si256(q + 1, line.v[1]);
}
[[gnu::always_inline]] inline Line filled(unsigned value) {
  const __m256i v = _mm256_set1_epi8(static_cast<char>(value));
  return {{v, v}};
}

// Calls f(register, register …) for both halves.
template <class F, class... Lines>
[[gnu::always_inline]] inline Line each(const F& f, const Lines&... lines) {
  return {{f(lines.v[0]...), f(lines.v[1]...)}};
}

[[gnu::always_inline]] inline Mask equal(Line a, Line b) {
  return each(
      [](__m256i x, __m256i y) __attribute__((always_inline)) { return _mm256_cmpeq_epi8(x, y); }, a, b);
}
[[gnu::always_inline]] inline Line chosen(Mask mask, Line a, Line b) {
  return each(
      [](__m256i m, __m256i x, __m256i y)
          __attribute__((always_inline)) { return _mm256_blendv_epi8(y, x, m); },
      mask, a, b);
}
template <int kShift>
[[gnu::always_inline]] inline Line joined(Line a, Line b) {
  return each(
      [](__m256i x, __m256i y)
          __attribute__((always_inline)) { return _mm256_or_si256(x, _mm256_slli_epi16(y, kShift)); },
      a, b);
}
[[gnu::always_inline]] inline Line low_bits(Line a, unsigned mask) {
  return each(
      [](__m256i x, __m256i y) __attribute__((always_inline)) { return _mm256_and_si256(x, y); }, a,
      filled(mask));
}
template <int kFrom, int kTo>
[[gnu::always_inline]] inline Line bit_of(Line a) {
  return joined<kTo - kFrom>(filled(0), low_bits(a, 1u << kFrom));
}

// Appends eight places at a time.
[[gnu::always_inline]] inline std::byte* append(std::byte* rest, const std::byte* exponents, Line,
                                                Mask mask) {
  alignas(32) std::uint64_t masks[8];
  store(reinterpret_cast<std::byte*>(masks), mask);
  for (int i = 0; i < 8; ++i) {
    std::uint64_t eight;
    __builtin_memcpy(&eight, exponents + 8 * i, 8);
    const std::uint64_t kept = _pext_u64(eight, masks[i]);
    __builtin_memcpy(rest, &kept, 8);
    rest += __builtin_popcountll(masks[i]) / 8;
  }
  return rest;
}

[[gnu::always_inline]] inline void split_line(const std::byte* words, std::byte* exponents,
                                              std::byte* sign_mantissas) {
  const Line low = load(words), high = load(words + 64);
  const auto exponent = [](__m256i w) __attribute__((always_inline)) {
    return _mm256_and_si256(_mm256_srli_epi16(w, 7), _mm256_set1_epi16(0xff));
  };
  const auto sign_mantissa = [](__m256i w) __attribute__((always_inline)) {
    const __m256i sign = _mm256_and_si256(_mm256_srli_epi16(w, 8), _mm256_set1_epi16(0x80));
    return _mm256_or_si256(sign, _mm256_and_si256(w, _mm256_set1_epi16(0x7f)));
  };
  // packus takes 8 words of each in turn within 128 bits, which is the order of a line.
  const auto narrow = [](__m256i a, __m256i b) __attribute__((always_inline)) {
    return _mm256_packus_epi16(a, b);
  };
  store(exponents, each(narrow, each(exponent, low), each(exponent, high)));
  store(sign_mantissas, each(narrow, each(sign_mantissa, low), each(sign_mantissa, high)));
}

}  // namespace
}  // namespace sluice::codec

#include "codec/native/native_encode-inl.h"

namespace sluice::codec {

constinit const NativeEncodeKernels kNativeEncodeAvx2 = {split_lines, two_bits, three_bits};

}  // namespace sluice::codec
