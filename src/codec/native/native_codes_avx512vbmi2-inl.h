// A line is one register. Tables have 64 entries, chosen by the low 6 bits of a byte: three codes of 2 bits,
// with one table for each of the three. Expands with vpexpandb from a register only: from memory it is slow
// on some CPUs.
#pragma once

#include "codec/native/native_lines_avx512-inl.h"

namespace sluice::codec {
namespace {

// 0, 1, 2 … 63, shifted and masked: the code that an index of 6 bits has at one place.
template <int kShift, int kMask>
[[gnu::always_inline]] inline __m512i codes_at() {
  alignas(64) static constexpr auto kCodes = [] {
    struct {
      unsigned char of[64];
    } codes{};
    for (int i = 0; i < 64; ++i) codes.of[i] = static_cast<unsigned char>(i >> kShift & kMask);
    return codes;
  }();
  return _mm512_load_si512(kCodes.of);
}

struct Table2 {
  explicit Table2(std::uint32_t entries) {
    const __m512i all = _mm512_set1_epi32(static_cast<int>(entries));
    at[0] = _mm512_shuffle_epi8(all, codes_at<0, 3>());
    at[1] = _mm512_shuffle_epi8(all, codes_at<2, 3>());
    at[2] = _mm512_shuffle_epi8(all, codes_at<4, 3>());
  }
  __m512i at[3];  // for the code in bits 0 and 1, 2 and 3, 4 and 5 of an index
};

struct Table3 {
  explicit Table3(std::uint64_t entries) {
    const __m512i all = _mm512_set1_epi64(static_cast<long long>(entries));
    at[0] = _mm512_shuffle_epi8(all, codes_at<0, 7>());
    at[1] = _mm512_shuffle_epi8(all, codes_at<3, 7>());
  }
  __m512i at[2];  // bits 0 to 2, 3 to 5
};

struct Codes2 {
  [[gnu::always_inline]] explicit Codes2(Line codes) : line(codes.v), upper(_mm512_srli_epi16(line, 2)) {}
  __m512i line, upper;  // bits 6 and 7 are ignored
};

struct Codes3 {
  [[gnu::always_inline]] Codes3(Line first, Line second, Line third) : a(first.v), b(second.v), c(third.v) {
    // Codes 6 and 7 have their low two bits above the first pair of a line, their high bit in the third line.
    const __m512i low = set1(3);
    six = select(low, _mm512_srli_epi16(a, 6), _mm512_srli_epi16(c, 4));
    seven = select(low, _mm512_srli_epi16(b, 6), _mm512_srli_epi16(c, 5));
  }
  __m512i a, b, c, six, seven;
};

// (The form without a mask makes g++ 12 warn about its own header.)
[[gnu::always_inline]] inline __m512i permuted(__m512i index, __m512i table) {
  return _mm512_maskz_permutexvar_epi8(~__mmask64{0}, index, table);
}

template <int kS>
[[gnu::always_inline]] inline Line lookup(const Table2& table, const Codes2& codes) {
  if constexpr (kS == 3)
    return {permuted(codes.upper, table.at[2])};
  else
    return {permuted(codes.line, table.at[kS])};
}

template <int kS>
[[gnu::always_inline]] inline Line lookup(const Table3& table, const Codes3& codes) {
  const __m512i* const lines[] = {&codes.a, &codes.a, &codes.b,   &codes.b,
                                  &codes.c, &codes.c, &codes.six, &codes.seven};
  return {permuted(*lines[kS], table.at[kS < 6 ? kS % 2 : 0])};
}

template <int, class Codes>
[[gnu::always_inline]] inline Line expand(const Codes&, Line entries, Mask mask, const std::byte*& next) {
  __m512i list = _mm512_loadu_si512(next);
  load_apart(list);
  const Line expanded = {_mm512_mask_expand_epi8(entries.v, mask, list)};
  next += __builtin_popcountll(mask);
  return expanded;
}

}  // namespace
}  // namespace sluice::codec
