// Oracle: the product with the fp32 words that a format's definition makes of the same bytes, in plain code.
#include "kernels/products/blocks/block_products_impl.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/machine/thread_pool.h"
#include "codec/matrix_format.h"
#include "device/space.h"
#include "kernels/products/blocks/block_test_data.h"
#include "kernels/products/format_kernels.h"
#include "kernels/products/products.h"
#include "kernels/test_data.h"

namespace sluice::kernels {
namespace {

using codec::MatrixShape;

using Matrix = GuardedBlocks;

std::vector<float> expected(const Matrix& matrix, const std::vector<float>& x, std::size_t tokens,
                            std::span<const float> bias) {
  const std::vector<float> words = matrix.words();
  const MatrixShape shape = matrix.ref().shape;
  return product_of({nullptr, Isa::kScalar},
                    codec::word_matrix(bytes_of(words).data(), DType::kF32, shape.rows, shape.columns), x,
                    tokens, bias);
}

std::string name_of(const Matrix& matrix, Isa isa, std::size_t tokens) {
  const codec::MatrixRef& ref = matrix.ref();
  return std::string(ref.format->name) + ' ' + std::string(isa_name(isa)) + ' ' +
         std::to_string(ref.shape.rows) + 'x' + std::to_string(ref.shape.columns) + ", " +
         std::to_string(tokens);
}

TEST(BlockProducts, AreThereForEveryFormatOfBlocks) {
  for (const Blocks& blocks : all_blocks()) {
    const FormatRow& row = format_row({}, &blocks.format);
    EXPECT_EQ(row.driver, &kDecodedProducts) << blocks.format.name;
    EXPECT_EQ(row.of(Isa::kScalar).blocks, nullptr) << blocks.format.name;
#if defined(__x86_64__)
    EXPECT_NE(row.of(Isa::kAvx2).blocks, nullptr) << blocks.format.name;
    EXPECT_NE(row.of(Isa::kAvx512).blocks, nullptr) << blocks.format.name;
    EXPECT_NE(row.of(Isa::kAvx512).blocks, row.of(Isa::kAvx2).blocks) << blocks.format.name;
#endif
  }
}

// One activation is 1, the others 0, so that a product is a number of the matrix.
TEST(BlockProducts, HaveTheNumbersOfTheFormat) {
  std::mt19937_64 random = test_random(201);
  for (const Blocks& blocks : all_blocks()) {
    for (const BlockScales scales : {BlockScales::kAlike, BlockScales::kAny}) {
      constexpr std::size_t kColumns = 256;
      const Matrix matrix(blocks, {9, kColumns}, scales, random);
      const std::vector<float> words = matrix.words();
      std::vector<float> ones(kColumns * kColumns);
      for (std::size_t c = 0; c < kColumns; ++c) ones[c * kColumns + c] = 1;
      for (const Isa isa : vector_isas()) {
        const std::vector<float> all = product_of({nullptr, isa}, matrix.ref(), ones, kColumns, {});
        for (std::size_t c = 0; c < kColumns; ++c) {
          const std::vector<float> x(&ones[c * kColumns], &ones[c * kColumns] + kColumns),
              one = product_of({nullptr, isa}, matrix.ref(), x, 1, {});
          for (std::size_t r = 0; r < 9; ++r) {
            const std::span<const float> row(&words[r * kColumns], kColumns);
            // Times 0 an infinite number is none.
            if (std::ranges::any_of(row, [](float number) { return std::isinf(number); })) continue;
            const float word = row[c];
            ASSERT_EQ(one[r], word) << name_of(matrix, isa, 1) << ", row " << r << ", column " << c;
            ASSERT_EQ(all[c * 9 + r], word) << name_of(matrix, isa, kColumns) << ", " << r << ", " << c;
          }
        }
      }
    }
  }
}

TEST(BlockProducts, HaveTheBitsOfTheirWordsOnEveryInstructionSet) {
  std::mt19937_64 random = test_random(202);
  ThreadPool three(3);
  for (const Blocks& blocks : all_blocks()) {
    const std::size_t block = blocks.format.block.columns;
    for (const auto& [rows, columns, tokens] : {std::array<std::size_t, 3>{1, block, 1},
                                                {7, 3 * block, 1},
                                                {37, 512 + block, 3},
                                                {21, 5 * block, 13},
                                                {18, block, 50},
                                                {300, 768, 1}}) {
      for (const BlockScales scales : {BlockScales::kAlike, BlockScales::kAny}) {
        const Matrix matrix(blocks, {rows, columns}, scales, random);
        const bool wild = scales == BlockScales::kAny;
        const std::vector<float> x =
            wild ? wild_floats(random, tokens * columns) : normal_floats(random, tokens * columns);
        const std::vector<float> bias = normal_floats(random, random() % 2 * rows);
        const std::vector<float> wanted = expected(matrix, x, tokens, bias);
        for (const Isa isa : available_isas())
          for (ThreadPool* const pool : {static_cast<ThreadPool*>(nullptr), &three})
            ASSERT_TRUE(same_bits(wanted, product_of({pool, isa}, matrix.ref(), x, tokens, bias)))
                << name_of(matrix, isa, tokens);
      }
    }
  }
}

// Sums that round to −0 stay so, unless half of the last block is zeros.
TEST(BlockProducts, HaveTheSignOfAZeroSum) {
  std::mt19937_64 random = test_random(203);
  for (const Blocks& blocks : all_blocks()) {
    for (const std::size_t columns : {std::size_t{256}, std::size_t{768} + blocks.format.block.columns}) {
      const Matrix matrix(blocks, {33, columns}, BlockScales::kAny, random);
      std::vector<float> x(columns);
      for (float& number : x)
        number = std::bit_cast<float>(static_cast<std::uint32_t>(random() % 3) << 31 | 1u);
      const std::vector<float> wanted = expected(matrix, x, 1, {});
      for (const Isa isa : vector_isas())
        ASSERT_TRUE(same_bits(wanted, product_of({nullptr, isa}, matrix.ref(), x, 1, {})))
            << name_of(matrix, isa, 1);
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
