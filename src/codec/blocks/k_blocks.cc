// Blocks of 256 elements in sub-blocks that have scales of their own, which are codes times the block's
// binary16 scale d; in some also minima, which are codes times the block's dmin: GGUF's Q2_K to Q6_K.
// docs/formats.md. Products of d, a scale's code and an element's code are exact in fp32.
#include "codec/blocks/block_codes.h"

namespace sluice::codec {
namespace {

using namespace blocks;

constexpr unsigned kAll = 256;

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
  static void decode(const std::byte* block, float* out) {
    const float d = half(block + 108);
    for (unsigned i = 0; i < kAll; ++i)
      out[i] = d * static_cast<float>(q3k_scale(block + 96, i / 16)) * static_cast<float>(q3k_code(block, i));
  }
};

// `code`: an element's, below 32.
template <class Code>
void decode_sub_blocks(const std::byte* block, float* out, const Code& code) {
  const float d = half(block), dmin = half(block + 2);
  for (unsigned i = 0; i < kAll; ++i) {
    const auto [scale, minimum] = of_sub_block(block + 4, i / 32);
    out[i] = d * static_cast<float>(scale) * static_cast<float>(code(i)) - dmin * static_cast<float>(minimum);
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
    decode_sub_blocks(block, out, [&](unsigned i) { return q5k_code(block, i); });
  }
};

struct Q6K {
  static constexpr std::uint64_t kElements = kAll;
  static constexpr Bytes kBytes = 210;
  static bool sound(const std::byte* block) { return std::isfinite(half(block + 208)); }
  static void decode(const std::byte* block, float* out) {
    const float d = half(block + 208);
    for (unsigned i = 0; i < kAll; ++i)
      out[i] = d * static_cast<float>(static_cast<std::int8_t>(block[192 + i / 16])) *
               static_cast<float>(q6k_code(block, i));
  }
};

}  // namespace

constinit const MatrixFormat kFormatQ2K = BlockFormat<Q2K>::named("q2_k");
constinit const MatrixFormat kFormatQ3K = BlockFormat<Q3K>::named("q3_k");
constinit const MatrixFormat kFormatQ4K = BlockFormat<Q4K>::named("q4_k");
constinit const MatrixFormat kFormatQ5K = BlockFormat<Q5K>::named("q5_k");
constinit const MatrixFormat kFormatQ6K = BlockFormat<Q6K>::named("q6_k");

}  // namespace sluice::codec
