#include "codec/blocks/quantise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <span>
#include <string>

#include "base/error.h"
#include "base/float16.h"
#include "codec/blocks/tables.h"

namespace sluice::codec {
namespace {

using Numbers = std::span<const float>;

constexpr unsigned kAll = 256;

// Writes a binary16 and returns what it stands for.
float put_half(std::byte* place, float value) {
  const std::uint16_t word = double_to_fp16(value);
  std::memcpy(place, &word, sizeof(word));
  return fp16_to_float(word);
}
void put_bits(std::byte& place, unsigned bits, unsigned shift) {
  place |= static_cast<std::byte>(bits << shift);
}

// The number that is farthest from 0.
float extreme(Numbers numbers) {
  return *std::ranges::max_element(numbers, {}, [](float number) { return std::abs(number); });
}
// The nearest code of `scale`, within a range; of a scale of 0 the code 0.
int code_of(float number, float scale, int least, int most) {
  const float code = scale == 0 ? 0 : std::nearbyint(number / scale);
  return static_cast<int>(std::clamp(code, static_cast<float>(least), static_cast<float>(most)));
}
// The place in a table of the entry that is nearest to number / scale.
unsigned nearest(std::span<const float, 16> table, float number, float scale) {
  const float wanted = scale == 0 ? 0 : number / scale;
  return static_cast<unsigned>(
      std::ranges::min_element(table, {}, [&](float entry) { return std::abs(entry - wanted); }) -
      table.begin());
}
// 32 codes of four bits in 16 bytes, the first 16 in the lower halves.
void put_nibbles32(std::byte* out, unsigned i, unsigned code) { put_bits(out[i % 16], code, i / 16 * 4); }

// --- 32 elements, one scale ---

void q8_0(Numbers x, std::byte* out) {
  const float d = put_half(out, std::abs(extreme(x)) / 127);
  for (unsigned i = 0; i < 32; ++i)
    out[2 + i] = static_cast<std::byte>(static_cast<std::int8_t>(code_of(x[i], d, -127, 127)));
}
void q4_0(Numbers x, std::byte* out) {
  const float d = put_half(out, extreme(x) / -8);
  for (unsigned i = 0; i < 32; ++i)
    put_nibbles32(out + 2, i, static_cast<unsigned>(code_of(x[i], d, -8, 7) + 8));
}
void q5_0(Numbers x, std::byte* out) {
  const float d = put_half(out, extreme(x) / -16);
  for (unsigned i = 0; i < 32; ++i) {
    const auto code = static_cast<unsigned>(code_of(x[i], d, -16, 15) + 16);
    put_bits(out[2 + i / 8], code >> 4, i % 8);
    put_nibbles32(out + 6, i, code & 15);
  }
}
void q4_1(Numbers x, std::byte* out) {
  const auto [least, most] = std::ranges::minmax(x);
  const float d = put_half(out, (most - least) / 15), m = put_half(out + 2, least);
  for (unsigned i = 0; i < 32; ++i)
    put_nibbles32(out + 4, i, static_cast<unsigned>(code_of(x[i] - m, d, 0, 15)));
}
void q5_1(Numbers x, std::byte* out) {
  const auto [least, most] = std::ranges::minmax(x);
  const float d = put_half(out, (most - least) / 31), m = put_half(out + 2, least);
  for (unsigned i = 0; i < 32; ++i) {
    const auto code = static_cast<unsigned>(code_of(x[i] - m, d, 0, 31));
    put_bits(out[4 + i / 8], code >> 4, i % 8);
    put_nibbles32(out + 8, i, code & 15);
  }
}
void iq4_nl(Numbers x, std::byte* out) {
  const float d = put_half(out, extreme(x) / blocks::kIq4[0]);
  for (unsigned i = 0; i < 32; ++i) put_nibbles32(out + 2, i, nearest(blocks::kIq4, x[i], d));
}
void mxfp4(Numbers x, std::byte* out) {
  // The largest number becomes one of 4 to 8: 2 is the exponent of the largest code, 6.
  const float largest = std::abs(extreme(x));
  const int exponent = largest == 0 ? -127 : std::clamp(std::ilogb(largest) - 2, -127, 127);
  out[0] = static_cast<std::byte>(exponent + 127);
  const float scale = std::ldexp(1.F, exponent);
  for (unsigned i = 0; i < 32; ++i) put_nibbles32(out + 1, i, nearest(blocks::kFp4, x[i], scale));
}

// --- 256 elements in sub-blocks, whose scales are codes themselves ---

// Scales of sub-blocks of `kSize` elements, each that of its extreme number at `code`, as codes from -most to
// most (`least` at the other end) times the d that is returned.
template <unsigned kSize>
float signed_scales(Numbers x, float code, int least, int most, std::byte* d_place,
                    std::array<int, kAll / kSize>& codes) {
  std::array<float, kAll / kSize> scales;
  for (unsigned j = 0; j < scales.size(); ++j) scales[j] = extreme(x.subspan(j * kSize, kSize)) / code;
  const float d = put_half(d_place, std::abs(extreme(scales)) / static_cast<float>(most));
  for (unsigned j = 0; j < scales.size(); ++j) codes[j] = code_of(scales[j], d, least, most);
  return d;
}

// Scales and minima of sub-blocks of `kSize` elements as codes from 0 to most, times d and dmin. The minimum
// is taken away, so it is that of 0 and the numbers, turned round.
template <unsigned kSize>
struct Ranges {
  float d, dmin;
  std::array<unsigned, kAll / kSize> scales, minima;
  Ranges(Numbers x, int codes, int most, std::byte* d_place, std::byte* dmin_place) {
    std::array<float, kAll / kSize> wide, low;
    for (unsigned j = 0; j < wide.size(); ++j) {
      const auto [least, largest] = std::ranges::minmax(x.subspan(j * kSize, kSize));
      low[j] = std::max(0.F, -least);
      wide[j] = (std::max(largest, 0.F) + low[j]) / static_cast<float>(codes);
    }
    d = put_half(d_place, extreme(wide) / static_cast<float>(most));
    dmin = put_half(dmin_place, extreme(low) / static_cast<float>(most));
    for (unsigned j = 0; j < wide.size(); ++j) {
      scales[j] = static_cast<unsigned>(code_of(wide[j], d, 0, most));
      minima[j] = static_cast<unsigned>(code_of(low[j], dmin, 0, most));
    }
  }
  unsigned code(float number, unsigned j, int codes) const {
    const float minimum = dmin * static_cast<float>(minima[j]);
    return static_cast<unsigned>(code_of(number + minimum, d * static_cast<float>(scales[j]), 0, codes));
  }
};

// Two bits of element i: 128 elements share 32 bytes.
void put_pair(std::byte* codes, unsigned i, unsigned bits) {
  put_bits(codes[i / 128 * 32 + i % 32], bits, i % 128 / 32 * 2);
}
// Four bits of element i: 64 elements share 32 bytes.
void put_nibble64(std::byte* codes, unsigned i, unsigned bits) {
  put_bits(codes[i / 64 * 32 + i % 32], bits, i % 64 / 32 * 4);
}

void q2_k(Numbers x, std::byte* out) {
  const Ranges<16> ranges(x, 3, 15, out + 80, out + 82);
  for (unsigned j = 0; j < 16; ++j) out[j] = static_cast<std::byte>(ranges.scales[j] | ranges.minima[j] << 4);
  for (unsigned i = 0; i < kAll; ++i) put_pair(out + 16, i, ranges.code(x[i], i / 16, 3));
}

void q3_k(Numbers x, std::byte* out) {
  std::array<int, 16> scales;
  const float d = signed_scales<16>(x, -4, -32, 31, out + 108, scales);
  for (unsigned j = 0; j < 16; ++j) {
    const auto code = static_cast<unsigned>(scales[j] + 32);
    put_bits(out[96 + j % 8], code & 15, j / 8 * 4);
    put_bits(out[104 + j % 4], code >> 4, j / 4 * 2);
  }
  for (unsigned i = 0; i < kAll; ++i) {
    const auto code = static_cast<unsigned>(code_of(x[i], d * static_cast<float>(scales[i / 16]), -4, 3) + 4);
    put_bits(out[i % 32], code >> 2, i / 32);
    put_pair(out + 32, i, code & 3);
  }
}

// Six bits each of scale and minimum of eight sub-blocks, in twelve bytes.
void put_six_bits(std::byte* out, const Ranges<32>& ranges) {
  for (unsigned j = 0; j < 4; ++j) {
    put_bits(out[j], ranges.scales[j], 0);
    put_bits(out[j + 4], ranges.minima[j], 0);
  }
  for (unsigned j = 4; j < 8; ++j) {
    put_bits(out[j + 4], (ranges.scales[j] & 15) | (ranges.minima[j] & 15) << 4, 0);
    put_bits(out[j - 4], ranges.scales[j] >> 4, 6);
    put_bits(out[j], ranges.minima[j] >> 4, 6);
  }
}

void q4_k(Numbers x, std::byte* out) {
  const Ranges<32> ranges(x, 15, 63, out, out + 2);
  put_six_bits(out + 4, ranges);
  for (unsigned i = 0; i < kAll; ++i) put_nibble64(out + 16, i, ranges.code(x[i], i / 32, 15));
}

void q5_k(Numbers x, std::byte* out) {
  const Ranges<32> ranges(x, 31, 63, out, out + 2);
  put_six_bits(out + 4, ranges);
  for (unsigned i = 0; i < kAll; ++i) {
    const unsigned code = ranges.code(x[i], i / 32, 31);
    put_bits(out[16 + i % 32], code >> 4, i / 32);
    put_nibble64(out + 48, i, code & 15);
  }
}

void q6_k(Numbers x, std::byte* out) {
  std::array<int, 16> scales;
  const float d = signed_scales<16>(x, -32, -128, 127, out + 208, scales);
  for (unsigned j = 0; j < 16; ++j)
    out[192 + j] = static_cast<std::byte>(static_cast<std::int8_t>(scales[j]));
  for (unsigned i = 0; i < kAll; ++i) {
    const auto code =
        static_cast<unsigned>(code_of(x[i], d * static_cast<float>(scales[i / 16]), -32, 31) + 32);
    const unsigned part = i / 128, t = i % 128 / 32, c = i % 32;
    put_bits(out[64 * part + 32 * (t % 2) + c], code & 15, t / 2 * 4);
    put_bits(out[128 + 32 * part + c], code >> 4, 2 * t);
  }
}

void iq4_xs(Numbers x, std::byte* out) {
  std::array<int, 8> scales;
  const float d = signed_scales<32>(x, blocks::kIq4[0], -32, 31, out, scales);
  for (unsigned j = 0; j < 8; ++j) {
    const auto code = static_cast<unsigned>(scales[j] + 32);
    put_bits(out[2 + j / 4], code >> 4, j % 4 * 2);
    put_bits(out[4 + j / 2], code & 15, j % 2 * 4);
  }
  for (unsigned i = 0; i < kAll; ++i)
    put_nibbles32(out + 8 + i / 32 * 16, i % 32,
                  nearest(blocks::kIq4, x[i], d * static_cast<float>(scales[i / 32])));
}

struct Quantiser {
  const MatrixFormat* format;
  void (*block)(Numbers numbers, std::byte* out);  // `out` is zeros
};
constexpr Quantiser kQuantisers[] = {{&kFormatQ40, q4_0},   {&kFormatQ41, q4_1},     {&kFormatQ50, q5_0},
                                     {&kFormatQ51, q5_1},   {&kFormatQ80, q8_0},     {&kFormatQ2K, q2_k},
                                     {&kFormatQ3K, q3_k},   {&kFormatQ4K, q4_k},     {&kFormatQ5K, q5_k},
                                     {&kFormatQ6K, q6_k},   {&kFormatIq4Nl, iq4_nl}, {&kFormatIq4Xs, iq4_xs},
                                     {&kFormatMxfp4, mxfp4}};

const Quantiser* find(const MatrixFormat& format) {
  const auto* const found = std::ranges::find(kQuantisers, &format, &Quantiser::format);
  return found == std::end(kQuantisers) ? nullptr : found;
}

}  // namespace

bool can_quantise(const MatrixFormat& format) { return find(format) != nullptr; }

void quantise_row(const MatrixFormat& format, const float* numbers, std::uint64_t columns, std::byte* out) {
  const Quantiser* const quantiser = find(format);
  const std::uint64_t elements = format.block.columns;
  SLUICE_CHECK(quantiser != nullptr && columns % elements == 0, std::string(format.name));
  const Bytes bytes = format.plane_bytes({1, elements}, 0);
  std::memset(out, 0, format.plane_bytes({1, columns}, 0));
  for (std::uint64_t column = 0; column < columns; column += elements, out += bytes)
    quantiser->block({numbers + column, elements}, out);
}

}  // namespace sluice::codec
