#include "kernels/products/packed/packed_matmul.h"

#include "base/error.h"
#include "base/machine/thread_pool.h"
#include "kernels/products/packed/packed_test_data.h"
#include "kernels/products/products.h"
#include "kernels/products/words/matmul.h"

namespace sluice::kernels {
namespace {

TEST(PackedMatmul, HasTheBitsOfTheWords) {
  std::mt19937_64 random = test_random(7);
  ThreadPool pool(2);
  for (int round = 0; round < 120; ++round) {
    const bool large = round % 20 == 0;
    const std::size_t rows = 1 + random() % (large ? 1500 : 70),
                      columns = 1 + random() % (large ? 2100 : 300), tokens = 1 + random() % (large ? 40 : 9);
    const Packed matrix = pack_matrix(random, rows, columns, random() % 4 == 0);
    const std::vector<float> x = normal_floats(random, tokens * columns),
                             bias = normal_floats(random, random() % 2 * rows);
    const codec::MatrixRef words = codec::word_matrix(matrix.words.data(), DType::kBF16, rows, columns);
    for (const Isa isa : available_isas()) {
      for (ThreadPool* const threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
        const Context ctx{threads, isa};
        std::vector<float> packed(tokens * arranged_floats(columns)), expected(tokens * rows),
            found(tokens * rows);
        arrange_activations(ctx, x.data(), tokens, columns, columns, packed.data());
        matmul(ctx, packed.data(), tokens, words, bias, expected.data(), rows);
        matmul(ctx, packed.data(), tokens, matrix.weight(), bias, found.data(), rows);
        EXPECT_TRUE(same_bits(expected, found))
            << isa_name(isa) << ' ' << rows << 'x' << columns << ", " << tokens;
      }
    }
  }
}

TEST(PackedMatmul, ADamagedChunkIsAnError) {
  std::mt19937_64 random = test_random(8);
  const Packed matrix = damaged_matrix(random, 64, 256);
  std::vector<float> packed(arranged_floats(256)), y(64);
  for (const Isa isa : available_isas())
    EXPECT_THROW(matmul({nullptr, isa}, packed.data(), 1, matrix.weight(), {}, y.data(), 64), Error);
}

}  // namespace
}  // namespace sluice::kernels
