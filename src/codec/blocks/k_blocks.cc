// Blocks of 256 elements in sub-blocks that have scales of their own, which are codes times the block's
// binary16 scale d; in some also minima, which are codes times the block's dmin: GGUF's Q2_K to Q6_K.
// docs/formats.md. Products of d, a scale's code and an element's code are exact in fp32.
#include "codec/blocks/block_format.h"

namespace sluice::codec {
namespace {

using namespace blocks;

constexpr unsigned kAll = 256;

// Where element i has its two bits: 128 elements share 32 bytes, 32 of them the same two bits of each byte.
unsigned pair_of_bits(const std::byte* codes, unsigned i) {
  return byte(codes + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3;
}

struct Q2K {
  static constexpr std::uint64_t kElements = kAll;
  static constexpr Bytes kBytes = 84;
  static bool sound(const std::byte* block) {
    return std::isfinite(half(block + 80)) && std::isfinite(half(block + 82));
  }
  static void decode(const std::byte* block, float* out) {
    const float d = half(block + 80), dmin = half(block + 82);
    for (unsigned i = 0; i < kAll; ++i) {
      const unsigned scale = byte(block + i / 16);
      out[i] = d * static_cast<float>(scale & 15) * static_cast<float>(pair_of_bits(block + 16, i)) -
               dmin * static_cast<float>(scale >> 4);
    }
  }
};

struct Q3K {
  static constexpr std::uint64_t kElements = kAll;
  static constexpr Bytes kBytes = 110;
  static bool sound(const std::byte* block) { return std::isfinite(half(block + 108)); }
  // Six bits: four of them in the first eight bytes, two in the last four.
  static int scale(const std::byte* scales, unsigned j) {
    const unsigned low = byte(scales + j % 8) >> (j / 8 * 4) & 15,
                   high = byte(scales + 8 + j % 4) >> (j / 4 * 2) & 3;
    return static_cast<int>(low | high << 4) - 32;
  }
  static void decode(const std::byte* block, float* out) {
    const float d = half(block + 108);
    for (unsigned i = 0; i < kAll; ++i) {
      const bool high = (byte(block + i % 32) >> (i / 32) & 1) != 0;
      const int code = static_cast<int>(pair_of_bits(block + 32, i)) - (high ? 0 : 4);
      out[i] = d * static_cast<float>(scale(block + 96, i / 16)) * static_cast<float>(code);
    }
  }
};

// Q4_K and Q5_K have six bits each for the scale and the minimum of a sub-block of 32.
struct ScaleAndMinimum {
  float scale, minimum;
};
ScaleAndMinimum of_sub_block(const std::byte* codes, unsigned j) {
  const auto at = [&](unsigned k) { return byte(codes + k); };
  if (j < 4) return {static_cast<float>(at(j) & 63), static_cast<float>(at(j + 4) & 63)};
  return {static_cast<float>((at(j + 4) & 15) | (at(j - 4) >> 6) << 4),
          static_cast<float>(at(j + 4) >> 4 | (at(j) >> 6) << 4)};
}
// 64 elements share 32 bytes.
unsigned nibble64(const std::byte* codes, unsigned i) {
  return byte(codes + i / 64 * 32 + i % 32) >> (i % 64 / 32 * 4) & 15;
}

// `code`: an element's, below 32.
template <class Code>
void decode_sub_blocks(const std::byte* block, float* out, const Code& code) {
  const float d = half(block), dmin = half(block + 2);
  for (unsigned i = 0; i < kAll; ++i) {
    const auto [scale, minimum] = of_sub_block(block + 4, i / 32);
    out[i] = d * scale * static_cast<float>(code(i)) - dmin * minimum;
  }
}
bool sound_halves(const std::byte* block) {
  return std::isfinite(half(block)) && std::isfinite(half(block + 2));
}

struct Q4K {
  static constexpr std::uint64_t kElements = kAll;
  static constexpr Bytes kBytes = 144;
  static bool sound(const std::byte* block) { return sound_halves(block); }
  static void decode(const std::byte* block, float* out) {
    decode_sub_blocks(block, out, [&](unsigned i) { return nibble64(block + 16, i); });
  }
};

struct Q5K {
  static constexpr std::uint64_t kElements = kAll;
  static constexpr Bytes kBytes = 176;
  static bool sound(const std::byte* block) { return sound_halves(block); }
  static void decode(const std::byte* block, float* out) {
    decode_sub_blocks(block, out, [&](unsigned i) {
      return nibble64(block + 48, i) | (byte(block + 16 + i % 32) >> (i / 32) & 1) << 4;
    });
  }
};

struct Q6K {
  static constexpr std::uint64_t kElements = kAll;
  static constexpr Bytes kBytes = 210;
  static bool sound(const std::byte* block) { return std::isfinite(half(block + 208)); }
  static void decode(const std::byte* block, float* out) {
    const float d = half(block + 208);
    for (unsigned i = 0; i < kAll; ++i) {
      const unsigned part = i / 128, t = i % 128 / 32, c = i % 32;
      const unsigned low = byte(block + 64 * part + 32 * (t % 2) + c) >> (t / 2 * 4) & 15,
                     high = byte(block + 128 + 32 * part + c) >> (2 * t) & 3;
      out[i] = d * static_cast<float>(static_cast<std::int8_t>(block[192 + i / 16])) *
               static_cast<float>(static_cast<int>(low | high << 4) - 32);
    }
  }
};

}  // namespace

constinit const MatrixFormat kFormatQ2K = BlockFormat<Q2K>::named("q2_k");
constinit const MatrixFormat kFormatQ3K = BlockFormat<Q3K>::named("q3_k");
constinit const MatrixFormat kFormatQ4K = BlockFormat<Q4K>::named("q4_k");
constinit const MatrixFormat kFormatQ5K = BlockFormat<Q5K>::named("q5_k");
constinit const MatrixFormat kFormatQ6K = BlockFormat<Q6K>::named("q6_k");

}  // namespace sluice::codec
