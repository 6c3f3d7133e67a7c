// Blocks of 32 elements with one binary16 scale d, and a minimum m in some: GGUF's Q4_0, Q4_1, Q5_0, Q5_1 and
// Q8_0. docs/formats.md.
#include "codec/blocks/block_codes.h"

namespace sluice::codec {
namespace {

using namespace blocks;

struct Q40 {
  static constexpr std::uint64_t kElements = 32;
  static constexpr Bytes kBytes = 18;
  static bool sound(const std::byte* block) { return std::isfinite(half(block)); }
  static void decode(const std::byte* block, float* out) {
    const float d = half(block);
    for (unsigned i = 0; i < kElements; ++i)
      out[i] = d * static_cast<float>(static_cast<int>(nibble32(block + 2, i)) - 8);
  }
};

struct Q41 {
  static constexpr std::uint64_t kElements = 32;
  static constexpr Bytes kBytes = 20;
  static bool sound(const std::byte* block) {
    return std::isfinite(half(block)) && std::isfinite(half(block + 2));
  }
  static void decode(const std::byte* block, float* out) {
    const float d = half(block), m = half(block + 2);
    for (unsigned i = 0; i < kElements; ++i) out[i] = d * static_cast<float>(nibble32(block + 4, i)) + m;
  }
};

struct Q50 {
  static constexpr std::uint64_t kElements = 32;
  static constexpr Bytes kBytes = 22;
  static bool sound(const std::byte* block) { return std::isfinite(half(block)); }
  static void decode(const std::byte* block, float* out) {
    const float d = half(block);
    for (unsigned i = 0; i < kElements; ++i)
      out[i] = d * static_cast<float>(static_cast<int>(code5(block + 2, block + 6, i)) - 16);
  }
};

struct Q51 {
  static constexpr std::uint64_t kElements = 32;
  static constexpr Bytes kBytes = 24;
  static bool sound(const std::byte* block) {
    return std::isfinite(half(block)) && std::isfinite(half(block + 2));
  }
  static void decode(const std::byte* block, float* out) {
    const float d = half(block), m = half(block + 2);
    for (unsigned i = 0; i < kElements; ++i)
      out[i] = d * static_cast<float>(code5(block + 4, block + 8, i)) + m;
  }
};

struct Q80 {
  static constexpr std::uint64_t kElements = 32;
  static constexpr Bytes kBytes = 34;
  static bool sound(const std::byte* block) { return std::isfinite(half(block)); }
  static void decode(const std::byte* block, float* out) {
    const float d = half(block);
    for (unsigned i = 0; i < kElements; ++i)
      out[i] = d * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
  }
};

}  // namespace

constinit const MatrixFormat kFormatQ40 = BlockFormat<Q40>::named("q4_0");
constinit const MatrixFormat kFormatQ41 = BlockFormat<Q41>::named("q4_1");
constinit const MatrixFormat kFormatQ50 = BlockFormat<Q50>::named("q5_0");
constinit const MatrixFormat kFormatQ51 = BlockFormat<Q51>::named("q5_1");
constinit const MatrixFormat kFormatQ80 = BlockFormat<Q80>::named("q8_0");

}  // namespace sluice::codec
