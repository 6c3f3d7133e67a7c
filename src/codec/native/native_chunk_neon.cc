// A line is four registers. No instruction expands bytes: each place's index into the list is the number of
// escapes before it, and a table look-up takes the byte from 16 bytes of the list.
#include <arm_neon.h>

#include "codec/native/native_chunk_impl.h"

namespace sluice::codec {
namespace {

struct Line {
  uint8x16_t v[4];
};
using Mask = Line;  // 255 in each place that the mask holds

[[gnu::always_inline]] inline const std::uint8_t* bytes(const std::byte* p) {
  return reinterpret_cast<const std::uint8_t*>(p);
}

[[gnu::always_inline]] inline Line load(const std::byte* p) {
  return {{vld1q_u8(bytes(p)), vld1q_u8(bytes(p) + 16), vld1q_u8(bytes(p) + 32), vld1q_u8(bytes(p) + 48)}};
}
[[gnu::always_inline]] inline void store(std::byte* p, Line line) {
  for (int i = 0; i < 4; ++i) vst1q_u8(reinterpret_cast<std::uint8_t*>(p) + 16 * i, line.v[i]);
}

// NEON has no intrinsic for stores past the caches.
[[gnu::always_inline]] inline void stream(std::byte* p, Line line) { store(p, line); }
[[gnu::always_inline]] inline void streamed() {}

// Calls f(register, register …) for all four.
template <class F, class... Lines>
[[gnu::always_inline]] inline Line each(const F& f, const Lines&... lines) {
  return {{f(lines.v[0]...), f(lines.v[1]...), f(lines.v[2]...), f(lines.v[3]...)}};
}

[[gnu::always_inline]] inline Mask first_places(std::int64_t n) {
  static constexpr std::uint8_t kPlaces[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const uint8x16_t count = vdupq_n_u8(static_cast<std::uint8_t>(n < 0 ? 0 : n));
  uint8x16_t place = vld1q_u8(kPlaces);
  Mask mask;
  for (int i = 0; i < 4; ++i, place = vaddq_u8(place, vdupq_n_u8(16))) mask.v[i] = vcltq_u8(place, count);
  return mask;
}
[[gnu::always_inline]] inline Mask both(Mask a, Mask b) {
  return each([](uint8x16_t x, uint8x16_t y) { return vandq_u8(x, y); }, a, b);
}

// Both tables have 16 entries, for an index of 4 bits that holds two codes of 2 bits, or one code of 3 bits
// and a bit of another code.
struct Table2 {
  explicit Table2(std::uint32_t entries) {
    static constexpr std::uint8_t kHigh[16] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
    at[0] = vreinterpretq_u8_u32(vdupq_n_u32(entries));
    at[1] = vqtbl1q_u8(at[0], vld1q_u8(kHigh));
  }
  uint8x16_t at[2];  // for the low and the high code of an index
};

struct Table3 {
  explicit Table3(std::uint64_t entries) : at(vreinterpretq_u8_u64(vdupq_n_u64(entries))) {}
  uint8x16_t at;
};

template <int kShift>
[[gnu::always_inline]] inline Line index_at(Line codes, std::uint8_t mask) {
  return each(
      [&](uint8x16_t x) {
        if constexpr (kShift > 0) x = vshrq_n_u8(x, kShift);
        return vandq_u8(x, vdupq_n_u8(mask));
      },
      codes);
}

struct Codes2 {
  [[gnu::always_inline]] explicit Codes2(Line codes)
      : low(index_at<0>(codes, 15)), high(index_at<4>(codes, 15)) {}
  Line low, high;
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
    return each([](uint8x16_t x, uint8x16_t y) { return vorrq_u8(x, y); }, low, high);
  }
  Line index[8];
};

template <int kS>
[[gnu::always_inline]] inline Line lookup(const Table2& table, const Codes2& codes) {
  return each([&](uint8x16_t i) { return vqtbl1q_u8(table.at[kS % 2], i); }, kS < 2 ? codes.low : codes.high);
}

template <int kS>
[[gnu::always_inline]] inline Line lookup(const Table3& table, const Codes3& codes) {
  return each([&](uint8x16_t i) { return vqtbl1q_u8(table.at, i); }, codes.index[kS]);
}

template <int, class Codes>
[[gnu::always_inline]] inline Mask escapes(const Codes&, Line entries) {
  return each([](uint8x16_t x) { return vceqq_u8(x, vdupq_n_u8(255)); }, entries);
}

template <int kPlaces>
[[gnu::always_inline]] inline uint8x16_t moved_up(uint8x16_t bytes) {
  return vextq_u8(vdupq_n_u8(0), bytes, 16 - kPlaces);
}

template <int, class Codes>
[[gnu::always_inline]] inline Line expand(const Codes&, Line entries, Mask mask, const std::byte*& next) {
  Line line;
  for (int i = 0; i < 4; ++i) {
    // Sums −1 for each escape up to a place.
    uint8x16_t sum = vaddq_u8(mask.v[i], moved_up<1>(mask.v[i]));
    sum = vaddq_u8(sum, moved_up<2>(sum));
    sum = vaddq_u8(sum, moved_up<4>(sum));
    sum = vaddq_u8(sum, moved_up<8>(sum));
    const uint8x16_t list = vqtbl1q_u8(vld1q_u8(bytes(next)), vmvnq_u8(sum));  // at −sum − 1
    line.v[i] = vbslq_u8(mask.v[i], list, entries.v[i]);
    next -= static_cast<std::int8_t>(vgetq_lane_u8(sum, 15));
  }
  return line;
}

// Takes bits of `low` where the mask is 0x7f, of `high` where it is 0x80.
[[gnu::always_inline]] inline uint8x16_t low_and_high(uint8x16_t low, uint8x16_t high) {
  return vbslq_u8(vdupq_n_u8(0x7f), low, high);
}

[[gnu::always_inline]] inline Line rotated(Line exponents) {
  return each([](uint8x16_t x) { return vorrq_u8(vshrq_n_u8(x, 1), vshlq_n_u8(x, 7)); }, exponents);
}

[[gnu::always_inline]] inline void words_of(Line exponents, Line sm, Line& low, Line& high) {
  for (int i = 0; i < 4; ++i) {
    const uint8x16_t first = low_and_high(sm.v[i], exponents.v[i]);  // first bytes of the words
    const uint8x16_t second = low_and_high(exponents.v[i], sm.v[i]);
    low.v[i] = vzip1q_u8(first, second);
    high.v[i] = vzip2q_u8(first, second);
  }
}

}  // namespace
}  // namespace sluice::codec

#include "codec/native/native_tiers-inl.h"

namespace sluice::codec {

constinit const NativeKernels kNativeNeon = {decode, merge, merge_raw};

}  // namespace sluice::codec
