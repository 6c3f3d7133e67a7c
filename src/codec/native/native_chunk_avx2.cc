// A line is two registers. No instruction expands bytes: each place's index into the list is the number of
// escapes before it, and a shuffle takes the byte from 16 bytes of the list.
#include <immintrin.h>

#include "codec/native/native_chunk_impl.h"

namespace sluice::codec {
namespace {

struct Line {
  __m256i v[2];
};
using Mask = Line;  // 255 in each place that the mask holds

[[gnu::always_inline]] inline __m256i set1(unsigned value) {
  return _mm256_set1_epi8(static_cast<char>(value));
}

[[gnu::always_inline]] inline Line load(const std::byte* p) {
  const auto* q = reinterpret_cast<const __m256i*>(p);
  return {{_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)}};
}
[[gnu::always_inline]] inline void store(std::byte* p, Line line) {
  auto* q = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(q, line.v[0]);
  _mm256_storeu_si256(q + 1, line.v[1]);
}

[[gnu::always_inline]] inline void stream(std::byte* p, Line line) {
  auto* q = reinterpret_cast<__m256i*>(p);
  _mm256_stream_si256(q, line.v[0]);
  _mm256_stream_si256(q + 1, line.v[1]);
}
[[gnu::always_inline]] inline void streamed() { _mm_sfence(); }

// Calls f(register, register …) for both halves.
template <class F, class... Lines>
[[gnu::always_inline]] inline Line each(const F& f, const Lines&... lines) {
  return {{f(lines.v[0]...), f(lines.v[1]...)}};
}

[[gnu::always_inline]] inline Mask first_places(std::int64_t n) {
  alignas(32) static constexpr signed char kPlaces[64] = {
      0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
      22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
      44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
  const __m256i count = _mm256_set1_epi8(static_cast<char>(n < 0 ? 0 : n));
  return each(
      [&](__m256i place) __attribute__((always_inline)) { return _mm256_cmpgt_epi8(count, place); },
      load(reinterpret_cast<const std::byte*>(kPlaces)));
}
[[gnu::always_inline]] inline Mask both(Mask a, Mask b) {
  return each(
      [](__m256i x, __m256i y) __attribute__((always_inline)) { return _mm256_and_si256(x, y); }, a, b);
}

// Both tables have 16 entries, for an index of 4 bits that holds two codes of 2 bits, or one code of 3 bits
// and a bit of another code.
struct Table2 {
  explicit Table2(std::uint32_t entries) {
    const __m256i all = _mm256_set1_epi32(static_cast<int>(entries));
    at[0] = _mm256_shuffle_epi8(all, _mm256_set1_epi32(0x03020100));
    at[1] = _mm256_shuffle_epi8(
        all, _mm256_setr_epi32(0, 0x01010101, 0x02020202, 0x03030303, 0, 0x01010101, 0x02020202, 0x03030303));
  }
  __m256i at[2];  // for the low and the high code of an index
};

struct Table3 {
  explicit Table3(std::uint64_t entries) : at(_mm256_set1_epi64x(static_cast<long long>(entries))) {}
  __m256i at;
};

template <int kShift>
[[gnu::always_inline]] inline Line index_at(Line codes, unsigned mask) {
  return each(
      [&](__m256i x) __attribute__((always_inline)) {
        return _mm256_and_si256(_mm256_srli_epi16(x, kShift), set1(mask));
      },
      codes);
}

// Counts the escapes before each of 16 places, for two 4-bit numbers a byte that are 0 or 1 each: at most 15.
[[gnu::always_inline]] inline __m256i escapes_before(__m256i escapes) {
  __m256i sum = _mm256_add_epi8(escapes, _mm256_slli_epi64(escapes, 8));
  sum = _mm256_add_epi8(sum, _mm256_slli_epi64(sum, 16));
  sum = _mm256_add_epi8(sum, _mm256_slli_epi64(sum, 32));  // within each 8 places, each place included
  const __m256i last_of_8 = _mm256_setr_epi32(-1, -1, 0x07070707, 0x07070707, -1, -1, 0x07070707, 0x07070707);
  return _mm256_add_epi8(_mm256_sub_epi8(sum, escapes), _mm256_shuffle_epi8(sum, last_of_8));
}

struct Codes2 {
  [[gnu::always_inline]] explicit Codes2(Line codes)
      : low(index_at<0>(codes, 15)), high(index_at<4>(codes, 15)) {
    for (int i = 0; i < 2; ++i) {
      const __m256i both_bits = _mm256_and_si256(codes.v[i], _mm256_srli_epi16(codes.v[i], 1));
      before[0].v[i] = escapes_before(_mm256_and_si256(both_bits, set1(0x11)));
      before[1].v[i] = escapes_before(_mm256_and_si256(_mm256_srli_epi16(both_bits, 2), set1(0x11)));
    }
  }
  Line low, high;
  // Escapes before each place of its 16, in 4 bits each: for codes 0 and 2, for codes 1 and 3.
  Line before[2];
};

struct Codes3 {
  [[gnu::always_inline]] Codes3(Line a, Line b, Line c)
      : index{index_at<0>(a, 7),
              index_at<3>(a, 7),
              index_at<0>(b, 7),
              index_at<3>(b, 7),
              index_at<0>(c, 7),
              index_at<3>(c, 7),
              both_parts(index_at<6>(a, 3), index_at<4>(c, 4)),
              both_parts(index_at<6>(b, 3), index_at<5>(c, 4))} {}
  [[gnu::always_inline]] static Line both_parts(Line low, Line high) {
    return each(
        [](__m256i x, __m256i y) __attribute__((always_inline)) { return _mm256_or_si256(x, y); }, low, high);
  }
  Line index[8];
};

template <int kS>
[[gnu::always_inline]] inline Line lookup(const Table2& table, const Codes2& codes) {
  return each(
      [&](__m256i i) __attribute__((always_inline)) { return _mm256_shuffle_epi8(table.at[kS % 2], i); },
      kS < 2 ? codes.low : codes.high);
}

template <int kS>
[[gnu::always_inline]] inline Line lookup(const Table3& table, const Codes3& codes) {
  return each(
      [&](__m256i i) __attribute__((always_inline)) { return _mm256_shuffle_epi8(table.at, i); },
      codes.index[kS]);
}

template <int, class Codes>
[[gnu::always_inline]] inline Mask escapes(const Codes&, Line entries) {
  return each(
      [](__m256i x) __attribute__((always_inline)) { return _mm256_cmpeq_epi8(x, set1(255)); }, entries);
}

// Each place's index into the 16 bytes of the list that its 16 places take.
template <int kS>
[[gnu::always_inline]] inline Line list_index(const Codes2& codes, const Mask&) {
  return index_at<kS / 2 * 4>(codes.before[kS % 2], 15);
}

template <int kS>
[[gnu::always_inline]] inline Line list_index(const Codes3&, const Mask& escapes) {
  return each(
      [](__m256i x) __attribute__((always_inline)) { return escapes_before(_mm256_and_si256(x, set1(1))); },
      escapes);
}

[[gnu::always_inline]] inline __m128i load16(const std::byte* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

template <int kS, class Codes>
[[gnu::always_inline]] inline Line expand(const Codes& codes, Line entries, Mask mask,
                                          const std::byte*& next) {
  const Line index = list_index<kS>(codes, mask);
  Line line;
  for (int i = 0; i < 2; ++i) {
    const auto places = static_cast<std::uint32_t>(_mm256_movemask_epi8(mask.v[i]));
    const std::byte* const upper = next + __builtin_popcount(places & 0xffff);
    const __m256i list = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(next)), load16(upper), 1);
    next += __builtin_popcount(places);
    // Where the mask is 255 the entry is also 255: 255 ^ ~x is x.
    const __m256i taken = _mm256_shuffle_epi8(list, index.v[i]);
    line.v[i] = _mm256_xor_si256(entries.v[i], _mm256_andnot_si256(taken, mask.v[i]));
  }
  return line;
}

// Takes bits of `low` where the mask is 0x7f, of `high` where it is 0x80.
[[gnu::always_inline]] inline __m256i low_and_high(__m256i low, __m256i high) {
  return _mm256_or_si256(_mm256_and_si256(low, set1(0x7f)), _mm256_and_si256(high, set1(0x80)));
}

[[gnu::always_inline]] inline Line rotated(Line exponents) {
  return each(
      [](__m256i x) __attribute__((always_inline)) {
        return low_and_high(_mm256_srli_epi16(x, 1), _mm256_slli_epi16(x, 7));
      },
      exponents);
}

[[gnu::always_inline]] inline void words_of(Line exponents, Line sm, Line& low, Line& high) {
  for (int i = 0; i < 2; ++i) {
    const __m256i first = low_and_high(sm.v[i], exponents.v[i]);  // first bytes of the words
    const __m256i second = low_and_high(exponents.v[i], sm.v[i]);
    low.v[i] = _mm256_unpacklo_epi8(first, second);
    high.v[i] = _mm256_unpackhi_epi8(first, second);
  }
}

}  // namespace
}  // namespace sluice::codec

#include "codec/native/native_tiers-inl.h"

namespace sluice::codec {

constinit const NativeKernels kNativeAvx2 = {decode, merge, merge_raw};

}  // namespace sluice::codec
