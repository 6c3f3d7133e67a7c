#include "kernels/products/packed/tile_matmul.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/float16.h"
#include "base/machine/thread_pool.h"
#include "kernels/kernel_table.h"
#include "kernels/products/packed/packed_test_data.h"
#include "kernels/products/products.h"
#include "kernels/products/words/matmul.h"
#include "kernels/test_data.h"

namespace sluice::kernels {
namespace {

constexpr Products kOrders[] = {Products::kTiles, Products::kPairs};

const char* name_of(Products products) { return products == Products::kTiles ? " tiles" : " pairs"; }

// A sum of a product and a number, rounded once, computed in double: a product of two BF16 numbers and its
// sum with a float are exact there, except halfway cases that need more than 53 bits, which these numbers do
// not have.
float fma_by_double(float a, float b, float c) {
  return static_cast<float>(double{a} * double{b} + double{c});
}

// One output element as tile_impl.h defines it, from unrounded activations without tiny numbers.
float by_definition(Products products, const std::vector<float>& x, std::size_t token,
                    const std::vector<std::byte>& words, std::size_t row, std::size_t cols) {
  const auto weight = [&](std::size_t c) {
    std::uint16_t word = 0;
    if (c < cols) std::memcpy(&word, &words[2 * (row * cols + c)], 2);
    return bf16_to_float(word);
  };
  const auto activation = [&](std::size_t c) {
    return c < cols ? bf16_to_float(float_to_bf16(x[token * cols + c])) : 0.0f;
  };
  const std::size_t padded = (cols + 63) / 64 * 64;
  if (products == Products::kTiles) {
    float sum = 0;
    for (std::size_t first = 0; first < padded; first += 32) {
      float even = 0, odd = 0;
      for (std::size_t c = first; c < first + 32; c += 2) {
        even = fma_by_double(weight(c), activation(c), even);
        odd = fma_by_double(weight(c + 1), activation(c + 1), odd);
      }
      sum += even + odd;
    }
    return sum;
  }
  float lanes[16] = {};
  for (std::size_t l = 0; l < 16; ++l) {
    for (std::size_t c = 2 * l; c < padded; c += 32) {
      lanes[l] = fma_by_double(weight(c + 1), activation(c + 1), lanes[l]);
      lanes[l] = fma_by_double(weight(c), activation(c), lanes[l]);
    }
  }
  for (std::size_t apart = 8; apart > 0; apart /= 2) {
    for (std::size_t l = 0; l < apart; ++l) lanes[l] += lanes[l + apart];
  }
  return lanes[0];
}

std::vector<float> product(const Context& ctx, const std::vector<float>& x, std::size_t tokens,
                           const Packed& matrix, const std::vector<float>& bias, bool packed_view) {
  const std::size_t rows = matrix.shape.rows, cols = matrix.shape.columns;
  std::vector<float> packed(tokens * arranged_floats(cols)), y(tokens * rows);
  arrange_activations(ctx, x.data(), tokens, cols, cols, packed.data());
  if (packed_view)
    matmul(ctx, packed.data(), tokens, matrix.weight(), bias, y.data(), rows);
  else
    matmul(ctx, packed.data(), tokens, codec::word_matrix(matrix.words.data(), DType::kBF16, rows, cols),
           bias, y.data(), rows);
  return y;
}

TEST(TileMatmul, FollowsItsDefinition) {
  std::mt19937_64 random = test_random(11);
  for (int round = 0; round < 40; ++round) {
    const std::size_t rows = 1 + random() % 70, cols = 1 + random() % 300, tokens = 1 + random() % 40;
    const Packed matrix = pack_matrix(random, rows, cols, false);
    const std::vector<float> x = normal_floats(random, tokens * cols);
    for (const Products products : kOrders) {
      std::vector<float> expected(tokens * rows);
      for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t r = 0; r < rows; ++r)
          expected[t * rows + r] = by_definition(products, x, t, matrix.words, r, cols);
      }
      EXPECT_TRUE(
          same_bits(expected, product({nullptr, Isa::kScalar, products}, x, tokens, matrix, {}, false)))
          << rows << 'x' << cols << ", " << tokens << name_of(products);
    }
  }
}

std::vector<Isa> isas_with(Products products) {
  std::vector<Isa> isas = {Isa::kScalar};
  for (const Isa isa : available_isas()) {
    if (rounded_products(isa) == products) isas.push_back(isa);
  }
  return isas;
}

// Numbers many of whose products are just below or above the smallest normal number.
std::vector<float> tiny_floats(std::mt19937_64& random, std::size_t n) {
  std::vector<float> numbers = normal_floats(random, n);
  for (float& number : numbers) number = std::ldexp(number, -61 - static_cast<int>(random() % 5));
  return numbers;
}

class TileMatmulOrder : public ::testing::TestWithParam<Products> {};
INSTANTIATE_TEST_SUITE_P(Orders, TileMatmulOrder, ::testing::ValuesIn(kOrders),
                         [](const auto& info) { return info.param == Products::kTiles ? "Tiles" : "Pairs"; });

TEST_P(TileMatmulOrder, HasTheSameBitsOnEveryPath) {
  const Products products = GetParam();
  std::mt19937_64 random = test_random(12);
  ThreadPool pool(2);
  const std::vector<Isa> isas = isas_with(products);
  for (int round = 0; round < 100; ++round) {
    const bool large = round % 20 == 0;
    const std::size_t rows = 1 + random() % (large ? 400 : 100), cols = 1 + random() % (large ? 2100 : 300),
                      tokens = 1 + random() % (large ? 600 : 70);
    Packed matrix = pack_matrix(random, rows, cols, random() % 4 == 0);
    const std::uint64_t kind = random() % 4;
    std::vector<float> x =
        kind == 0 ? wild_floats(random, tokens * cols) : normal_floats(random, tokens * cols);
    if (kind == 1 && products == Products::kPairs) {
      x = tiny_floats(random, tokens * cols);
      matrix = pack_numbers(random, rows, cols, tiny_floats(random, rows * cols));
    }
    const std::vector<float> bias = normal_floats(random, random() % 2 * rows);
    // The last token alone, one number after the other.
    const std::vector<float> last(x.end() - static_cast<std::ptrdiff_t>(cols), x.end());
    const std::vector<float> expected =
        product({nullptr, Isa::kScalar, products}, last, 1, matrix, bias, false);
    for (const Isa isa : isas) {
      if (isa == Isa::kScalar && large) continue;
      for (const bool packed_view : {false, true}) {
        for (ThreadPool* const threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
          const std::vector<float> y =
              product({threads, isa, products}, x, tokens, matrix, bias, packed_view);
          EXPECT_TRUE(same_bits(expected, {y.end() - static_cast<std::ptrdiff_t>(rows), y.end()}))
              << isa_name(isa) << ' ' << rows << 'x' << cols << ", " << tokens
              << (packed_view ? " packed" : "");
        }
      }
    }
  }
  if (isas.size() == 1) {
    GTEST_SKIP() << "this CPU has no instructions for" << name_of(products)
                 << " (AMX-BF16; AVX512-BF16 with VBMI2): only the scalar path was run";
  }
}

// Rows so long that few tokens fill a block; the last block has one token.
TEST_P(TileMatmulOrder, AFewTokensMayRemainForTheLastBlock) {
  const Products products = GetParam();
  std::mt19937_64 random = test_random(15);
  constexpr std::size_t kRows = 8, kCols = 8200;
  const Packed matrix = pack_matrix(random, kRows, kCols, false);
  for (const std::size_t tokens : {25, 33, 253}) {
    const std::vector<float> x = normal_floats(random, tokens * kCols);
    const std::vector<float> last(x.end() - static_cast<std::ptrdiff_t>(kCols), x.end());
    const std::vector<float> expected =
        product({nullptr, Isa::kScalar, products}, last, 1, matrix, {}, false);
    for (const Isa isa : isas_with(products)) {
      if (isa == Isa::kScalar && tokens > 100) continue;
      for (const bool packed_view : {false, true}) {
        const std::vector<float> y = product({nullptr, isa, products}, x, tokens, matrix, {}, packed_view);
        EXPECT_TRUE(same_bits(expected, {y.end() - static_cast<std::ptrdiff_t>(kRows), y.end()}))
            << isa_name(isa) << ' ' << tokens << (packed_view ? " packed" : "");
      }
    }
  }
}

// How kPairs treats sums near the smallest normal number, and in which order it adds, by hand.
TEST(TileMatmul, PairsFlushAsTheInstructionDoes) {
  const float least = 0x1p-126f;
  struct Term {
    std::size_t column;
    float weight, activation;
  };
  struct Case {
    std::vector<Term> terms;
    float sum;
  };
  // Columns 0, 1, 32, 33: lane 0 of both steps. Columns 2 and 16: lanes 1 and 8.
  const Case cases[] = {
      {{{0, least, 1}}, least},
      {{{0, least, 1}, {32, -0x1p-100f, 0x1p-100f}}, least},  // with 24 bits, too
      {{{0, least, 1}, {32, -0x1p-75f, 0x1p-76f}}, least},    // a tie of 24 bits
      {{{0, least, 1}, {32, -0x1.02p-75f, 0x1p-76f}}, 0},     // more than that: only rounded to 23 bits
      {{{0, -least, 1}, {32, 0x1.02p-75f, 0x1p-76f}}, 0},
      {{{0, least, 1}, {32, 0x1p-100f, 0x1p-100f}}, least},
      {{{0, -least, 1}, {32, 0x1p-75f, 0x1p-76f}}, -least},
      {{{0, least, 1}, {32, -0x1p-75f, 0x1p-74f}}, 0},
      {{{0, least * 1.5f, 1}, {32, -least, 1}, {33, 1, 1}}, 1},
      {{{0, least * 1.5f, 1}, {32, -least, 1}, {34, 1, 0}}, 0},
      {{{0, least * 1.5f, 1}, {2, -least, 1}}, least / 2},  // lanes keep subnormal numbers
      {{{0, least / 2, 1}}, 0},                             // words and activations do not
      {{{0, 1, least / 2}}, 0},
      {{{0, 0x1p100f, 0x1p-120f * 0.5f}, {1, least / 2, 0x1p120f}}, 0x1p-21f},
      {{{0, 1, 1}, {33, -1, 1}, {32, 0x1p-15f, 0x1p-15f}}, 0x1p-30f},  // the odd column first
      {{{0, 1, 1}, {32, -1, 1}, {33, 0x1p-15f, 0x1p-15f}}, 0},
      {{{0, 0x1p127f, 1}, {32, 0x1p127f, 1}}, std::numeric_limits<float>::infinity()},
      {{{1, 0x1p127f, 2}, {0, -0x1p127f, 2}}, std::numeric_limits<float>::infinity()},
      {{{1, std::numeric_limits<float>::infinity(), 1}, {0, -std::numeric_limits<float>::infinity(), 1}},
       std::numeric_limits<float>::quiet_NaN()},
  };
  for (const Isa isa : isas_with(Products::kPairs)) {
    for (std::size_t i = 0; i < std::size(cases); ++i) {
      std::vector<float> weights(64), x(64);
      for (const Term& term : cases[i].terms) {
        weights[term.column] = term.weight;
        x[term.column] = term.activation;
      }
      std::mt19937_64 random = test_random(16);
      const Packed matrix = pack_numbers(random, 1, 64, weights);
      for (const bool packed_view : {false, true}) {
        const std::vector<float> y = product({nullptr, isa, Products::kPairs}, x, 1, matrix, {}, packed_view);
        EXPECT_TRUE(same_bits({&cases[i].sum, 1}, y)) << isa_name(isa) << " case " << i;
      }
    }
  }
}

TEST(TileMatmul, RoundsOnlyActivations) {
  // Weights of other types are used unchanged.
  std::mt19937_64 random = test_random(13);
  constexpr std::size_t kRows = 5, kCols = 70;
  const std::vector<float> weights = normal_floats(random, kRows * kCols), x = normal_floats(random, kCols);
  std::vector<float> rounded(kCols);
  for (std::size_t c = 0; c < kCols; ++c) rounded[c] = bf16_to_float(float_to_bf16(x[c]));
  const std::vector<std::byte> bytes = encode(weights, DType::kF32);
  for (const Isa isa : available_isas()) {
    std::vector<float> expected(kRows), found(kRows), packed(arranged_floats(kCols));
    const Context exact{nullptr, isa};
    arrange_activations(exact, rounded.data(), 1, kCols, kCols, packed.data());
    matmul(exact, packed.data(), 1, codec::word_matrix(bytes.data(), DType::kF32, kRows, kCols), {},
           expected.data(), kRows);
    for (const Products products : kOrders) {
      const Context rounds{nullptr, isa, products};
      arrange_activations(rounds, x.data(), 1, kCols, kCols, packed.data());
      matmul(rounds, packed.data(), 1, codec::word_matrix(bytes.data(), DType::kF32, kRows, kCols), {},
             found.data(), kRows);
      EXPECT_TRUE(same_bits(expected, found)) << isa_name(isa) << name_of(products);
    }
  }
}

TEST(TileMatmul, ADamagedChunkIsAnError) {
  std::mt19937_64 random = test_random(14);
  const Packed matrix = damaged_matrix(random, 64, 256);
  for (const std::size_t tokens : {std::size_t{1}, std::size_t{40}}) {
    const std::vector<float> x(tokens * 256);
    for (const Isa isa : available_isas()) {
      for (const Products products : kOrders)
        EXPECT_THROW(product({nullptr, isa, products}, x, tokens, matrix, {}, true), Error);
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
