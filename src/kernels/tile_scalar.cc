// One number after the other: the oracle of the matrix units, and what they are where there are none.
#include <cmath>
#include <cstring>

#include "base/float16.h"
#include "kernels/kernel_table.h"

namespace sluice::kernels {
namespace {

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

float number(const std::byte* word) {
  std::uint16_t bits;
  std::memcpy(&bits, word, sizeof(bits));
  return flushed(bf16_to_float(bits));
}

// 32 columns of a row of weights, and of a token in a B tile.
float step(const std::byte* weights, const std::byte* pairs, std::size_t row_bytes, float sum) {
  float halves[2] = {0, 0};
  for (std::size_t k = 0; k < 16; ++k) {
    for (std::size_t half = 0; half < 2; ++half)
      halves[half] = flushed(std::fma(number(weights + 4 * k + 2 * half),
                                      number(pairs + k * row_bytes + 2 * half), halves[half]));
  }
  return flushed(sum + flushed(halves[0] + halves[1]));
}

float row_times_token(const std::byte* weights, const Activations& activations, std::size_t token,
                      std::size_t steps) {
  float sum = 0;
  for (std::size_t s = 0; s < steps; ++s)
    sum = step(weights + 64 * s, activations.tiles + 16 * activations.row_bytes * s + 4 * token,
               activations.row_bytes, sum);
  return sum;
}

void round(const float* x, std::size_t cols, std::byte* row) {
  for (std::size_t c = 0; c < (cols + 63) / 64 * 64; ++c) {
    const std::uint16_t word = c < cols ? float_to_bf16(x[c]) : 0;
    std::memcpy(row + 2 * c, &word, sizeof(word));
  }
}

void interleave(const std::byte* rows, std::size_t row_bytes, std::size_t tokens, std::size_t steps,
                std::byte* tiles) {
  std::memset(tiles, 0, steps * kTileBytes);
  for (std::size_t s = 0; s < steps; ++s) {
    for (std::size_t k = 0; k < 16; ++k) {
      for (std::size_t t = 0; t < tokens; ++t)
        std::memcpy(tiles + s * kTileBytes + k * 64 + 4 * t, rows + t * row_bytes + 64 * s + 4 * k, 4);
    }
  }
}

void multiply(const TileArgs& a) {
  for (std::size_t tile = 0; tile < a.token_tiles; ++tile) {
    for (std::size_t t = 0; t < a.activations[tile].tokens; ++t) {
      for (std::size_t r = 0; r < a.row_tiles * kTileWeights; ++r)
        a.out[(tile * kTileTokens + t) * a.out_stride + r] =
            row_times_token(a.rows + r * a.row_bytes, a.activations[tile], t, a.steps);
    }
  }
}

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
            row_times_token(a.words + r * 2 * columns, a.activations, t, 2 * p.blocks);
    }
  }
  return true;
}

}  // namespace

constinit const TileKernels kTilesScalar = {round, interleave, [](std::size_t) {},
                                            [] {}, multiply,   multiply_groups};

}  // namespace sluice::kernels
