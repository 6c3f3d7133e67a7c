// The codes of a line without VBMI2. No instruction expands bytes: each place's index into the list is the
// number of escapes before it, and a shuffle takes the byte from 16 bytes of the list.
#pragma once

#include "codec/native/native_lines_avx512-inl.h"

namespace sluice::codec {
namespace {

// Both tables have 16 entries, for an index of 4 bits that holds two codes of 2 bits, or one code of 3 bits
// and a bit of another code.
struct Table2 {
  explicit Table2(std::uint32_t entries) {
    const __m512i all = _mm512_set1_epi32(static_cast<int>(entries));
    at[0] = _mm512_shuffle_epi8(all, _mm512_set1_epi32(0x03020100));
    at[1] = _mm512_shuffle_epi8(all, _mm512_set4_epi32(0x03030303, 0x02020202, 0x01010101, 0));
  }
  __m512i at[2];  // for the low and the high code of an index
};

struct Table3 {
  explicit Table3(std::uint64_t entries) : at(_mm512_set1_epi64(static_cast<long long>(entries))) {}
  __m512i at;
};

template <int kShift>
[[gnu::always_inline]] inline __m512i index_at(__m512i codes, unsigned mask) {
  return _mm512_and_si512(_mm512_srli_epi16(codes, kShift), set1(mask));
}

// (The form without a mask makes g++ 12 warn about its own header.)
template <int kPlaces>
[[gnu::always_inline]] inline __m512i moved_up(__m512i bytes) {
  return _mm512_maskz_slli_epi64(~__mmask8{0}, bytes, 8 * kPlaces);
}

// Counts the escapes before each of 16 places, for two 4-bit numbers a byte that are 0 or 1 each: at most 15.
[[gnu::always_inline]] inline __m512i escapes_before(__m512i escapes) {
  __m512i sum = _mm512_add_epi8(escapes, moved_up<1>(escapes));
  sum = _mm512_add_epi8(sum, moved_up<2>(sum));
  sum = _mm512_add_epi8(sum, moved_up<4>(sum));  // within each 8 places, each place included
  const __m512i last_of_8 = _mm512_set4_epi32(0x07070707, 0x07070707, -1, -1);
  return _mm512_add_epi8(_mm512_sub_epi8(sum, escapes), _mm512_shuffle_epi8(sum, last_of_8));
}

struct Codes2 {
  [[gnu::always_inline]] explicit Codes2(Line codes)
      : low(index_at<0>(codes.v, 15)), high(index_at<4>(codes.v, 15)) {
    const __m512i both_bits = _mm512_and_si512(codes.v, _mm512_srli_epi16(codes.v, 1));
    before[0] = escapes_before(_mm512_and_si512(both_bits, set1(0x11)));
    before[1] = escapes_before(index_at<2>(both_bits, 0x11));
  }
  __m512i low, high;
  // Escapes before each place of its 16, in 4 bits each: for codes 0 and 2, for codes 1 and 3.
  __m512i before[2];
};

struct Codes3 {
  [[gnu::always_inline]] Codes3(Line a, Line b, Line c)
      : index{index_at<0>(a.v, 7),
              index_at<3>(a.v, 7),
              index_at<0>(b.v, 7),
              index_at<3>(b.v, 7),
              index_at<0>(c.v, 7),
              index_at<3>(c.v, 7),
              _mm512_or_si512(index_at<6>(a.v, 3), index_at<4>(c.v, 4)),
              _mm512_or_si512(index_at<6>(b.v, 3), index_at<5>(c.v, 4))} {}
  __m512i index[8];
};

template <int kS>
[[gnu::always_inline]] inline Line lookup(const Table2& table, const Codes2& codes) {
  return {_mm512_shuffle_epi8(table.at[kS % 2], kS < 2 ? codes.low : codes.high)};
}

template <int kS>
[[gnu::always_inline]] inline Line lookup(const Table3& table, const Codes3& codes) {
  return {_mm512_shuffle_epi8(table.at, codes.index[kS])};
}

[[gnu::always_inline]] inline __m128i load16(const std::byte* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

// Each place's index into the 16 bytes of the list that its 16 places take.
template <int kS>
[[gnu::always_inline]] inline __m512i list_index(const Codes2& codes, Mask) {
  return index_at<kS / 2 * 4>(codes.before[kS % 2], 15);
}

template <int kS>
[[gnu::always_inline]] inline __m512i list_index(const Codes3&, Mask escapes) {
  return escapes_before(_mm512_maskz_set1_epi8(escapes, 1));
}

template <int kS, class Codes>
[[gnu::always_inline]] inline Line expand(const Codes& codes, Line entries, Mask mask,
                                          const std::byte*& next) {
  const __m512i index = list_index<kS>(codes, mask);
  const auto before = [&](int places) __attribute__((always_inline)) {
    return next + __builtin_popcountll(mask << (64 - places));
  };
  __m512i list = _mm512_castsi128_si512(load16(next));
  list = _mm512_inserti32x4(list, load16(before(16)), 1);
  list = _mm512_inserti32x4(list, load16(before(32)), 2);
  list = _mm512_inserti32x4(list, load16(before(48)), 3);
  next = before(64);
  return {_mm512_mask_shuffle_epi8(entries.v, mask, list, index)};
}

}  // namespace
}  // namespace sluice::codec
