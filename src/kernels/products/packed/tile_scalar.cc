// One number after the other: the oracle of the orders of tile_impl.h, and their implementation on CPUs
// without the instructions.
#include <cmath>
#include <cstring>

#include "base/float16.h"
#include "kernels/kernel_table.h"
#include "kernels/lanes/lanes_scalar.h"
#include "kernels/products/packed/tile_impl.h"

namespace sluice::kernels {
namespace {

constexpr float kLeastNormal = 0x1p-126f;

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

// a·b + c, flushed if it is below kLeastNormal when rounded to 24 bits with unlimited exponents.
float fma_flushed(float a, float b, float c) {
  const float sum = std::fma(a, b, c);
  if (std::fabs(sum) != kLeastNormal) return flushed(sum);
  // The amount that rounding added. Exact: products of BF16 numbers are, and c and the sum are close enough.
  const double added = (double{sum} - double{c}) - double{a} * double{b};
  return std::copysign(1.0f, sum) * added > 0x1p-151 ? std::copysign(0.0f, sum) : sum;
}

float number(const std::byte* word) {
  std::uint16_t bits;
  std::memcpy(&bits, word, sizeof(bits));
  return flushed(bf16_to_float(bits));
}

// The order of a matrix unit.
struct Tiles {
  static constexpr std::size_t kTokens = 16, kGroupTokens = 16, kGroups = 2;

  static void interleave(const std::byte* rows, std::size_t row_bytes, std::size_t tokens, std::size_t steps,
                         std::byte* tiles) {
    std::memset(tiles, 0, steps * 64 * kTokens);
    for (std::size_t s = 0; s < steps; ++s) {
      for (std::size_t k = 0; k < 16; ++k) {
        for (std::size_t t = 0; t < tokens; ++t)
          std::memcpy(tiles + (16 * s + k) * 64 + 4 * t, rows + t * row_bytes + 64 * s + 4 * k, 4);
      }
    }
  }

  static float dot(const std::byte* weights, const Activations& activations, std::size_t token,
                   std::size_t steps) {
    float sum = 0;
    for (std::size_t s = 0; s < steps; ++s) {
      float halves[2] = {0, 0};
      for (std::size_t k = 0; k < 16; ++k) {
        const std::byte* const pair = activations.tiles + (16 * s + k) * activations.row_bytes + 4 * token;
        for (std::size_t half = 0; half < 2; ++half)
          halves[half] = flushed(
              std::fma(number(weights + 64 * s + 4 * k + 2 * half), number(pair + 2 * half), halves[half]));
      }
      sum = flushed(sum + flushed(halves[0] + halves[1]));
    }
    return sum;
  }
};

// The order of dot products of pairs.
struct Pairs {
  static constexpr std::size_t kTokens = 12, kGroupTokens = 2, kGroups = 1;

  static void interleave(const std::byte* rows, std::size_t row_bytes, std::size_t tokens, std::size_t steps,
                         std::byte* tiles) {
    for (std::size_t s = 0; s < steps; ++s) {
      for (std::size_t t = 0; t < tokens; ++t)
        std::memcpy(tiles + (s * tokens + t) * 64, rows + t * row_bytes + 64 * s, 64);
    }
  }

  static float dot(const std::byte* weights, const Activations& activations, std::size_t token,
                   std::size_t steps) {
    Lanes lanes{};
    for (std::size_t s = 0; s < steps; ++s) {
      const std::byte *const w = weights + 64 * s, *const x = activations.tiles +
                                                              (s * activations.tokens + token) * 64;
      for (std::size_t l = 0; l < 16; ++l) {
        for (const std::size_t byte : {4 * l + 2, 4 * l})
          lanes[l] = fma_flushed(number(w + byte), number(x + byte), lanes[l]);
      }
    }
    return sum_tree(lanes);
  }
};

void round(const float* x, std::size_t cols, std::byte* row) {
  for (std::size_t c = 0; c < (cols + 63) / 64 * 64; ++c) {
    const std::uint16_t word = c < cols ? float_to_bf16(x[c]) : 0;
    std::memcpy(row + 2 * c, &word, sizeof(word));
  }
}

template <class Order>
void multiply(const TileArgs& a) {
  float* out = a.out;
  for (std::size_t tile = 0; tile < a.token_tiles; ++tile) {
    for (std::size_t t = 0; t < a.activations[tile].tokens; ++t, out += a.out_stride) {
      for (std::size_t r = 0; r < a.row_tiles * kTileWeights; ++r)
        out[r] = Order::dot(a.rows + r * a.row_bytes, a.activations[tile], t, a.steps);
    }
  }
}

template <class Order>
bool multiply_groups(const TileGroupArgs& a) {
  const codec::NativeKernels& native = codec::native_kernels(Isa::kScalar);
  for (std::size_t g = 0; g < a.count; ++g) {
    const PackedGroup& p = a.groups[g];
    const std::size_t columns = p.blocks * codec::kTileColumns;
    if (!p.coded) {
      native.merge_raw(p.exponents, p.sign_mantissas, p.blocks, codec::kTileRows, columns, a.words,
                       codec::Stores::kCached);
    } else if (!native.merge(p.group, p.scratch, p.sign_mantissas, codec::kTileRows, columns, a.words,
                             codec::Stores::kCached)) {
      return false;
    }
    for (std::size_t t = 0; t < a.activations.tokens; ++t) {
      for (std::size_t r = 0; r < codec::kTileRows; ++r)
        a.out[t * kTileWeights + g * codec::kTileRows + r] =
            Order::dot(a.words + r * 2 * columns, a.activations, t, 2 * p.blocks);
    }
  }
  return true;
}

template <class Order>
constexpr TileKernels kKernels = {.tile_tokens = Order::kTokens,
                                  .group_tokens = Order::kGroupTokens,
                                  .groups = Order::kGroups,
                                  .ahead_tokens = 1,
                                  .ahead_rows = 1,
                                  .block_bytes = std::size_t{1} << 19,
                                  .round = round,
                                  .interleave = Order::interleave,
                                  .begin = [](std::size_t) {},
                                  .end = [] {},
                                  .multiply = multiply<Order>,
                                  .multiply_groups = multiply_groups<Order>,
                                  .words = nullptr};

}  // namespace

constinit const TileKernels kTilesScalar = kKernels<Tiles>;
constinit const TileKernels kPairsScalar = kKernels<Pairs>;

}  // namespace sluice::kernels
