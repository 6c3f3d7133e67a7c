#include "kernels/tile_matmul.h"

#include <cmath>

#include "base/error.h"
#include "base/float16.h"
#include "kernels/kernel_table.h"
#include "kernels/packed_test_data.h"
#include "kernels/test_data.h"

namespace sluice::kernels {
namespace {

// One output element as tile_impl.h says it, from unrounded activations. In double, where a product of two
// BF16 numbers and its sum with a float are rounded once: as by a fused multiply-add, but for halfway cases
// that need more than 53 bits, which these numbers have not.
float by_definition(const std::vector<float>& x, std::size_t token, const std::vector<std::byte>& words,
                    std::size_t row, std::size_t cols) {
  const auto weight = [&](std::size_t c) {
    std::uint16_t word;
    std::memcpy(&word, &words[2 * (row * cols + c)], 2);
    return bf16_to_float(word);
  };
  float sum = 0;
  for (std::size_t first = 0; first < (cols + 63) / 64 * 64; first += 32) {
    float even = 0, odd = 0;
    for (std::size_t c = first; c < first + 32 && c < cols; c += 2) {
      even = static_cast<float>(
          double{weight(c)} * double{bf16_to_float(float_to_bf16(x[token * cols + c]))} + double{even});
      if (c + 1 < cols)
        odd = static_cast<float>(double{weight(c + 1)} *
                                     double{bf16_to_float(float_to_bf16(x[token * cols + c + 1]))} +
                                 double{odd});
    }
    sum += even + odd;
  }
  return sum;
}

std::vector<float> product(const Context& ctx, const std::vector<float>& x, std::size_t tokens,
                           const Packed& matrix, const std::vector<float>& bias, bool packed_view) {
  const std::size_t rows = matrix.shape.rows, cols = matrix.shape.columns;
  std::vector<float> packed(tokens * packed_floats(cols)), y(tokens * rows);
  pack_activations(ctx, x.data(), tokens, cols, cols, packed.data());
  if (packed_view)
    packed_matmul(ctx, packed.data(), tokens, matrix.weight(), bias, y.data(), rows);
  else
    matmul(ctx, packed.data(), tokens, {matrix.words.data(), DType::kBF16, rows, cols}, bias, y.data(), rows);
  return y;
}

TEST(TileMatmul, FollowsItsDefinition) {
  std::mt19937_64 random = test_random(11);
  for (int round = 0; round < 40; ++round) {
    const std::size_t rows = 1 + random() % 70, cols = 1 + random() % 300, tokens = 1 + random() % 40;
    const Packed matrix = pack_matrix(random, rows, cols, false);
    const std::vector<float> x = normal_floats(random, tokens * cols);
    std::vector<float> expected(tokens * rows);
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t r = 0; r < rows; ++r)
        expected[t * rows + r] = by_definition(x, t, matrix.words, r, cols);
    }
    EXPECT_TRUE(same_bits(expected, product({nullptr, Isa::kScalar, true}, x, tokens, matrix, {}, false)))
        << rows << 'x' << cols << ", " << tokens;
  }
}

TEST(TileMatmul, HasTheSameBitsOnEveryPath) {
  std::mt19937_64 random = test_random(12);
  ThreadPool pool(2);
  bool unit = false;
  for (int round = 0; round < 80; ++round) {
    const bool large = round % 20 == 0;
    const std::size_t rows = 1 + random() % (large ? 400 : 100), cols = 1 + random() % (large ? 2100 : 300),
                      tokens = 1 + random() % (large ? 600 : 70);
    const Packed matrix = pack_matrix(random, rows, cols, random() % 4 == 0);
    const std::vector<float> x =
        random() % 4 == 0 ? wild_floats(random, tokens * cols) : normal_floats(random, tokens * cols);
    const std::vector<float> bias = normal_floats(random, random() % 2 * rows);
    // The last token by itself, one number after the other.
    const std::vector<float> last(x.end() - static_cast<std::ptrdiff_t>(cols), x.end());
    const std::vector<float> expected = product({nullptr, Isa::kScalar, true}, last, 1, matrix, bias, false);
    for (const Isa isa : available_isas()) {
      if (isa != Isa::kScalar && !has_tiles(isa)) continue;
      if (isa == Isa::kScalar && large) continue;
      unit = unit || has_tiles(isa);
      for (const bool packed_view : {false, true}) {
        for (ThreadPool* const threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
          const std::vector<float> y = product({threads, isa, true}, x, tokens, matrix, bias, packed_view);
          EXPECT_TRUE(same_bits(expected, {y.end() - static_cast<std::ptrdiff_t>(rows), y.end()}))
              << isa_name(isa) << ' ' << rows << 'x' << cols << ", " << tokens
              << (packed_view ? " packed" : "");
        }
      }
    }
  }
  if (!unit) GTEST_SKIP() << "this CPU has no matrix unit (AMX-BF16): only the scalar path was run";
}

TEST(TileMatmul, RoundsOnlyActivations) {
  // Weights of other types are taken as they are.
  std::mt19937_64 random = test_random(13);
  constexpr std::size_t kRows = 5, kCols = 70;
  const std::vector<float> weights = normal_floats(random, kRows * kCols), x = normal_floats(random, kCols);
  std::vector<float> rounded(kCols);
  for (std::size_t c = 0; c < kCols; ++c) rounded[c] = bf16_to_float(float_to_bf16(x[c]));
  const std::vector<std::byte> bytes = encode(weights, DType::kF32);
  for (const Isa isa : available_isas()) {
    std::vector<float> expected(kRows), found(kRows), packed(packed_floats(kCols));
    const Context exact{nullptr, isa}, tiles{nullptr, isa, true};
    pack_activations(exact, rounded.data(), 1, kCols, kCols, packed.data());
    matmul(exact, packed.data(), 1, {bytes.data(), DType::kF32, kRows, kCols}, {}, expected.data(), kRows);
    pack_activations(tiles, x.data(), 1, kCols, kCols, packed.data());
    matmul(tiles, packed.data(), 1, {bytes.data(), DType::kF32, kRows, kCols}, {}, found.data(), kRows);
    EXPECT_TRUE(same_bits(expected, found)) << isa_name(isa);
  }
}

TEST(TileMatmul, ADamagedChunkIsAnError) {
  std::mt19937_64 random = test_random(14);
  Packed matrix = pack_matrix(random, 64, 256, false);
  ASSERT_TRUE(damage(matrix));
  for (const std::size_t tokens : {std::size_t{1}, std::size_t{40}}) {
    const std::vector<float> x(tokens * 256);
    for (const Isa isa : available_isas())
      EXPECT_THROW(product({nullptr, isa, true}, x, tokens, matrix, {}, true), Error);
  }
}

}  // namespace
}  // namespace sluice::kernels
