// Oracles: sums in double precision of the values of codec::dequantise_int8_row(); the plain order of sums
// for every instruction set.
#include "kernels/products/codes/int8_matmul_impl.h"

#include <cmath>
#include <string>

#include "base/machine/thread_pool.h"
#include "codec/slices/int8_matrix.h"
#include "kernels/products/products.h"
#include "kernels/products/words/matmul.h"
#include "kernels/test_data.h"

namespace sluice::kernels {
namespace {

using codec::Int8Shape;

struct Matrix {
  Int8Shape shape;
  std::vector<std::byte> bytes;
  codec::MatrixRef weight() const { return codec::int8_ref({shape.rows, shape.columns}, bytes.data()); }
};

Matrix normal_matrix(std::mt19937_64& random, std::size_t rows, std::size_t columns) {
  const std::vector<float> weights = normal_floats(random, rows * columns);
  Matrix m{{{rows, columns}}, {}};
  m.bytes.resize(m.shape.bytes());
  codec::quantise_int8(std::as_bytes(std::span(weights)), DType::kF32, m.shape, m.bytes.data(),
                       m.bytes.data() + m.shape.scales_offset());
  return m;
}

std::vector<float> multiply(const Context& ctx, const std::vector<float>& x, std::size_t tokens,
                            const Matrix& m, const std::vector<float>& bias) {
  const std::size_t rows = m.shape.rows, columns = m.shape.columns;
  std::vector<float> packed(tokens * arranged_floats(columns)), y(tokens * rows, -1.0f);
  arrange_activations(ctx, x.data(), tokens, columns, columns, packed.data());
  matmul(ctx, packed.data(), tokens, m.weight(), bias, y.data(), rows);
  return y;
}

struct Shape {
  std::size_t rows, columns, tokens;
};

std::vector<Shape> shapes(std::mt19937_64& random) {
  std::vector<Shape> all;
  for (std::size_t i = 1; i <= 40; ++i) all.push_back({i, 1 + random() % 300, 1 + random() % 5});
  for (std::size_t i = 1; i <= 270; i += 1 + random() % 3) all.push_back({1 + random() % 40, i, 1});
  for (std::size_t i : {1, 2, 63, 64, 65, 130}) all.push_back({33, 200, i});
  all.push_back({300, 520, 2});
  return all;
}

TEST(Int8Matmul, IsNearTheExactSums) {
  std::mt19937_64 random = test_random(71);
  for (const Shape& shape : shapes(random)) {
    const Matrix m = normal_matrix(random, shape.rows, shape.columns);
    const std::vector<float> x = normal_floats(random, shape.tokens * shape.columns),
                             bias = normal_floats(random, random() % 2 * shape.rows);
    const std::vector<float> y = multiply({nullptr, best_isa()}, x, shape.tokens, m, bias);
    std::vector<float> row(shape.columns);
    const double groups = std::ceil(static_cast<double>(shape.columns) / 128);
    for (std::size_t r = 0; r < shape.rows; ++r) {
      codec::dequantise_int8_row(m.bytes, m.shape, r, row);
      for (std::size_t t = 0; t < shape.tokens; ++t) {
        double sum = bias.empty() ? 0 : bias[r], size = std::abs(sum);
        for (std::size_t c = 0; c < shape.columns; ++c) {
          const double product = double{row[c]} * double{x[t * shape.columns + c]};
          sum += product;
          size += std::abs(product);
        }
        ASSERT_NEAR(y[t * shape.rows + r], sum, (36 + groups) * 0x1p-24 * size)
            << shape.rows << 'x' << shape.columns << ", " << shape.tokens << " tokens";
      }
    }
  }
}

TEST(Int8Matmul, HasTheSameBitsOnEveryInstructionSetAndAnyNumberOfTokensAndThreads) {
  std::mt19937_64 random = test_random(72);
  ThreadPool three(3);
  for (const Shape& shape : shapes(random)) {
    const Matrix m = normal_matrix(random, shape.rows, shape.columns);
    const std::vector<float> x = normal_floats(random, shape.tokens * shape.columns),
                             bias = normal_floats(random, random() % 2 * shape.rows);
    const std::vector<float> expected = multiply({nullptr, Isa::kScalar}, x, shape.tokens, m, bias);
    for (const Isa isa : available_isas()) {
      for (ThreadPool* const pool : {static_cast<ThreadPool*>(nullptr), &three}) {
        EXPECT_TRUE(same_bits(expected, multiply({pool, isa}, x, shape.tokens, m, bias)))
            << isa_name(isa) << ", " << shape.rows << 'x' << shape.columns << ", " << shape.tokens;
        const std::vector<float> last(x.end() - static_cast<std::ptrdiff_t>(shape.columns), x.end());
        const std::vector<float> alone = multiply({pool, isa}, last, 1, m, bias);
        EXPECT_TRUE(
            same_bits({expected.end() - static_cast<std::ptrdiff_t>(shape.rows), expected.end()}, alone));
      }
    }
  }
}

// Where products round, so do these: their activations were rounded when they were packed.
TEST(Int8Matmul, TakesRoundedActivations) {
  std::mt19937_64 random = test_random(73);
  const Matrix m = normal_matrix(random, 48, 260);
  std::vector<float> x = normal_floats(random, 3 * 260);
  const Context rounding{nullptr, Isa::kScalar, Products::kTiles};
  const std::vector<float> found = multiply(rounding, x, 3, m, {});
  for (float& value : x) value = bf16_to_float(float_to_bf16(value));
  EXPECT_TRUE(same_bits(multiply({nullptr, Isa::kScalar}, x, 3, m, {}), found));
}

}  // namespace
}  // namespace sluice::kernels
