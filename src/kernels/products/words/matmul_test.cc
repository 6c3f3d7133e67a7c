#include "kernels/products/words/matmul.h"

#include "base/machine/thread_pool.h"
#include "kernels/products/products.h"
#include "kernels/test_data.h"

namespace sluice::kernels {
namespace {

constexpr DType kDTypes[] = {DType::kBF16, DType::kF16, DType::kF32};

std::vector<float> pack(const Context& ctx, std::span<const float> x, std::size_t tokens, std::size_t cols) {
  std::vector<float> packed(tokens * arranged_floats(cols), std::nanf(""));
  arrange_activations(ctx, x.data(), tokens, cols, cols, packed.data());
  return packed;
}

std::vector<float> multiply(const Context& ctx, std::span<const float> x, std::size_t tokens,
                            const codec::MatrixRef& w, std::span<const float> bias) {
  const std::vector<float> packed = pack(ctx, x, tokens, w.shape.columns);
  std::vector<float> y(tokens * w.shape.rows, -1.0f);
  matmul(ctx, packed.data(), tokens, w, bias, y.data(), w.shape.rows);
  return y;
}

std::vector<float> multiply_transposed(const Context& ctx, std::span<const float> x, std::size_t tokens,
                                       const codec::MatrixRef& w) {
  std::vector<float> y(tokens * w.shape.columns, -1.0f);
  matmul_transposed(ctx, x.data(), tokens, w.shape.rows, w, y.data(), w.shape.columns);
  return y;
}

struct Shape {
  std::size_t rows, cols, tokens;
};

// Every small size once in each direction, sizes around the tiles, and realistic ones.
std::vector<Shape> shapes(std::mt19937_64& random) {
  std::vector<Shape> all;
  for (std::size_t i = 1; i <= 40; ++i) all.push_back({i, 1 + random() % 200, 1 + random() % 40});
  for (std::size_t i = 1; i <= 200; ++i) all.push_back({1 + random() % 40, i, 1 + random() % 8});
  for (std::size_t i = 1; i <= 40; ++i) all.push_back({1 + random() % 20, 1 + random() % 200, i});
  all.push_back({60, 2048, 3});
  all.push_back({1408, 2048, 2});
  all.push_back({33, 1408, 13});
  all.push_back({16, 10944, 30});  // more tokens than one block of L2 holds
  return all;
}

TEST(Matmul, EveryInstructionSetHasTheBitsOfScalar) {
  std::mt19937_64 random = test_random(1);
  for (const Shape& s : shapes(random)) {
    for (const DType dtype : kDTypes) {
      const bool wild = random() % 4 == 0;
      const auto numbers = [&](std::size_t n) {
        return wild ? wild_floats(random, n) : normal_floats(random, n);
      };
      const std::vector<float> x = numbers(s.tokens * s.cols);
      const std::vector<float> bias = numbers(random() % 2 * s.rows);
      const std::vector<std::byte> words = encode(numbers(s.rows * s.cols), dtype);
      const codec::MatrixRef w = codec::word_matrix(words.data(), dtype, s.rows, s.cols);
      const std::vector<float> expected = multiply({nullptr, Isa::kScalar}, x, s.tokens, w, bias);
      for (const Isa isa : vector_isas()) {
        EXPECT_TRUE(same_bits(expected, multiply({nullptr, isa}, x, s.tokens, w, bias)))
            << isa_name(isa) << ' ' << dtype_name(dtype) << ' ' << s.rows << 'x' << s.cols << ", "
            << s.tokens;
      }
    }
  }
}

TEST(Matmul, EveryWordOfTheNarrowTypes) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    std::vector<std::uint16_t> words(65536);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint16_t>(i);
    const codec::MatrixRef column =
        codec::word_matrix(reinterpret_cast<const std::byte*>(words.data()), dtype, 65536, 1);
    const codec::MatrixRef rows =
        codec::word_matrix(reinterpret_cast<const std::byte*>(words.data()), dtype, 512, 128);
    const std::vector<float> one = {1.0f};
    std::vector<float> ones(128, 1.0f);
    std::vector<float> values(65536);
    for (std::size_t r = 0; r < 512; ++r) codec::row_to_float(rows, r, &values[128 * r]);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float exact = decode(reinterpret_cast<const std::byte*>(words.data()), dtype, i);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(exact), std::bit_cast<std::uint32_t>(values[i]));
    }
    for (const Isa isa : available_isas()) {
      std::vector<float> found = multiply({nullptr, isa}, one, 1, column, {});
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] == 0.0f) found[i] = values[i];  // +0 + −0 = +0
      }
      EXPECT_TRUE(same_bits(values, found)) << isa_name(isa) << ' ' << dtype_name(dtype);
      EXPECT_TRUE(same_bits(multiply({nullptr, Isa::kScalar}, ones, 1, rows, {}),
                            multiply({nullptr, isa}, ones, 1, rows, {})));
    }
  }
}

TEST(Matmul, ThreadsAndChunksDoNotShow) {
  std::mt19937_64 random = test_random(2);
  const std::size_t rows = 203, cols = 391, tokens = 37;
  const std::vector<float> x = normal_floats(random, tokens * cols);
  const std::vector<float> bias = normal_floats(random, rows);
  for (const DType dtype : kDTypes) {
    const std::vector<std::byte> words = encode(normal_floats(random, rows * cols), dtype);
    const codec::MatrixRef w = codec::word_matrix(words.data(), dtype, rows, cols);
    for (const Isa isa : available_isas()) {
      const std::vector<float> whole = multiply({nullptr, isa}, x, tokens, w, bias);
      for (unsigned threads = 1; threads <= 3; ++threads) {
        ThreadPool pool(threads);
        EXPECT_TRUE(same_bits(whole, multiply({&pool, isa}, x, tokens, w, bias))) << threads;
        for (const std::size_t chunk : {1, 2, 7, 36}) {
          std::vector<float> parts;
          for (std::size_t t = 0; t < tokens; t += chunk) {
            const std::size_t n = std::min(chunk, tokens - t);
            const std::vector<float> part =
                multiply({&pool, isa}, std::span(x).subspan(t * cols, n * cols), n, w, bias);
            parts.insert(parts.end(), part.begin(), part.end());
          }
          EXPECT_TRUE(same_bits(whole, parts)) << threads << " threads, chunks of " << chunk;
        }
      }
      // A range of rows alone.
      const std::vector<float> some =
          multiply({nullptr, isa}, x, 1, codec::rows_of(w, 5, 17), std::span(bias).subspan(5, 17));
      EXPECT_TRUE(same_bits(std::span(whole).subspan(5, 17), some));
    }
  }
}

TEST(Matmul, WithinTheErrorBoundOfDoublePrecision) {
  std::mt19937_64 random = test_random(3);
  for (const Shape& s : {Shape{40, 2048, 3}, Shape{7, 199, 11}, Shape{9, 5000, 2}, Shape{3, 1, 1}}) {
    for (const DType dtype : kDTypes) {
      const std::vector<float> x = normal_floats(random, s.tokens * s.cols);
      const std::vector<float> bias = normal_floats(random, s.rows);
      const std::vector<std::byte> words = encode(normal_floats(random, s.rows * s.cols), dtype);
      const codec::MatrixRef w = codec::word_matrix(words.data(), dtype, s.rows, s.cols);
      const std::vector<float> y = multiply({nullptr, Isa::kScalar}, x, s.tokens, w, bias);
      for (std::size_t t = 0; t < s.tokens; ++t) {
        for (std::size_t r = 0; r < s.rows; ++r) {
          double sum = bias[r], norm = std::fabs(bias[r]);
          for (std::size_t c = 0; c < s.cols; ++c) {
            const double product =
                double{x[t * s.cols + c]} * double{decode(words.data(), dtype, r * s.cols + c)};
            sum += product;
            norm += std::fabs(product);
          }
          // A product passes at most cols/16 + 4 fused additions in its lane, 4 of the tree, and the bias.
          const double roundings = static_cast<double>(s.cols) / 16 + 9;
          EXPECT_NEAR(y[t * s.rows + r], sum, roundings * 0x1p-24 * 1.01 * norm);
        }
      }
    }
  }
}

TEST(Matmul, TheOrderIsTheWrittenOne) {
  // Written from the header alone: columns 2l and 2l+1 of each half to lane l, then the tree.
  std::mt19937_64 random = test_random(4);
  for (const std::size_t cols : {1, 2, 33, 63, 64, 65, 97, 130, 517}) {
    const std::vector<float> x = normal_floats(random, cols);
    const std::vector<float> numbers = normal_floats(random, cols);
    float lanes[16] = {};
    for (std::size_t block = 0; block < cols; block += 64) {
      for (std::size_t half = block; half < block + 64; half += 32) {
        for (std::size_t l = 0; l < 16; ++l) {
          for (const std::size_t c : {half + 2 * l, half + 2 * l + 1}) {
            lanes[l] = std::fma(c < cols ? x[c] : 0.0f, c < cols ? numbers[c] : 0.0f, lanes[l]);
          }
        }
      }
    }
    for (int l = 0; l < 8; ++l) lanes[l] += lanes[l + 8];
    for (int l = 0; l < 4; ++l) lanes[l] += lanes[l + 4];
    const float sum = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
    const codec::MatrixRef w =
        codec::word_matrix(reinterpret_cast<const std::byte*>(numbers.data()), DType::kF32, 1, cols);
    for (const Isa isa : available_isas()) {
      EXPECT_TRUE(same_bits(std::vector{sum}, multiply({nullptr, isa}, x, 1, w, {}))) << cols;
    }
  }
}

TEST(Matmul, ReadsAndWritesNothingOutside) {
  std::mt19937_64 random = test_random(5);
  for (int i = 0; i < 60; ++i) {
    const std::size_t rows = 1 + random() % 20, cols = 1 + random() % 140, tokens = 1 + random() % 9;
    for (const DType dtype : kDTypes) {
      const std::vector<float> numbers = normal_floats(random, tokens * (cols + rows));
      GuardedBytes words(encode(normal_floats(random, rows * cols), dtype));
      GuardedBytes x(bytes_of(std::span(numbers).first(tokens * cols)));
      GuardedBytes xt(bytes_of(std::span(numbers).first(tokens * rows)));
      GuardedBytes packed(bytes_of(std::vector<float>(tokens * arranged_floats(cols))));
      GuardedBytes y(bytes_of(std::vector<float>(tokens * rows)));
      GuardedBytes yt(bytes_of(std::vector<float>(tokens * cols)));
      const codec::MatrixRef w = codec::word_matrix(words.data(), dtype, rows, cols);
      for (const Isa isa : available_isas()) {
        const Context ctx{nullptr, isa};
        arrange_activations(ctx, x.floats(), tokens, cols, cols, packed.floats());
        matmul(ctx, packed.floats(), tokens, w, {}, y.floats(), rows);
        matmul_transposed(ctx, xt.floats(), tokens, rows, w, yt.floats(), cols);
        codec::row_to_float(w, rows - 1, yt.floats());
      }
    }
  }
}

TEST(Matmul, StridesLeaveGapsAlone) {
  std::mt19937_64 random = test_random(6);
  const std::size_t rows = 11, cols = 45, tokens = 8, stride = 61;
  const std::vector<float> wide = normal_floats(random, tokens * stride);
  const std::vector<std::byte> words = encode(normal_floats(random, rows * cols), DType::kBF16);
  const codec::MatrixRef w = codec::word_matrix(words.data(), DType::kBF16, rows, cols);
  for (const Isa isa : available_isas()) {
    const Context ctx{nullptr, isa};
    std::vector<float> dense;
    for (std::size_t t = 0; t < tokens; ++t) {
      dense.insert(dense.end(), wide.begin() + t * stride, wide.begin() + t * stride + cols);
    }
    std::vector<float> packed(tokens * arranged_floats(cols));
    arrange_activations(ctx, wide.data(), tokens, cols, stride, packed.data());
    EXPECT_TRUE(same_bits(pack(ctx, dense, tokens, cols), packed));
    std::vector<float> y(tokens * stride, 7.0f);
    matmul(ctx, packed.data(), tokens, w, {}, y.data(), stride);
    const std::vector<float> expected = multiply(ctx, dense, tokens, w, {});
    for (std::size_t t = 0; t < tokens; ++t) {
      EXPECT_TRUE(
          same_bits(std::span(expected).subspan(t * rows, rows), std::span(y).subspan(t * stride, rows)));
      for (std::size_t c = rows; c < stride; ++c) ASSERT_EQ(y[t * stride + c], 7.0f);
    }
  }
}

TEST(MatmulTransposed, EveryInstructionSetThreadAndChunkHasTheBitsOfScalar) {
  std::mt19937_64 random = test_random(7);
  std::vector<Shape> sizes = {{128, 512, 1}, {512, 128, 5}, {300, 200, 40}, {700, 70, 3}, {256, 16, 33}};
  for (std::size_t i = 1; i <= 150; ++i) sizes.push_back({1 + random() % 40, i, 1 + random() % 12});
  for (const Shape& s : sizes) {
    for (const DType dtype : kDTypes) {
      const bool wild = random() % 4 == 0;
      const auto numbers = [&](std::size_t n) {
        return wild ? wild_floats(random, n) : normal_floats(random, n);
      };
      const std::vector<float> x = numbers(s.tokens * s.rows);
      const std::vector<std::byte> words = encode(numbers(s.rows * s.cols), dtype);
      const codec::MatrixRef w = codec::word_matrix(words.data(), dtype, s.rows, s.cols);
      std::vector<float> expected(s.tokens * s.cols);  // ascending rows, one fused multiply-add each
      for (std::size_t t = 0; t < s.tokens; ++t) {
        for (std::size_t r = 0; r < s.rows; ++r) {
          for (std::size_t c = 0; c < s.cols; ++c) {
            float& y = expected[t * s.cols + c];
            y = std::fma(x[t * s.rows + r], decode(words.data(), dtype, r * s.cols + c), y);
          }
        }
      }
      for (const Isa isa : available_isas()) {
        ThreadPool pool(static_cast<unsigned>(1 + random() % 3));
        EXPECT_TRUE(same_bits(expected, multiply_transposed({&pool, isa}, x, s.tokens, w)))
            << isa_name(isa) << ' ' << s.rows << 'x' << s.cols << ", " << s.tokens;
        EXPECT_TRUE(same_bits(std::span(expected).first(s.cols),
                              multiply_transposed({nullptr, isa}, std::span(x).first(s.rows), 1, w)));
      }
    }
  }
}

TEST(Matmul, NothingToDo) {
  for (const Isa isa : available_isas()) {
    const Context ctx{nullptr, isa};
    float y[3] = {5.0f, 5.0f, 5.0f};
    const float bias[3] = {1.0f, 2.0f, 3.0f};
    matmul(ctx, nullptr, 0, codec::word_matrix(nullptr, DType::kBF16, 3, 0), {}, y, 3);
    EXPECT_EQ(y[0], 5.0f);
    matmul(ctx, y, 1, codec::word_matrix(nullptr, DType::kBF16, 3, 0), bias, y,
           3);  // no columns: only the bias
    EXPECT_TRUE(same_bits(bias, y));
    matmul(ctx, y, 1, codec::word_matrix(nullptr, DType::kBF16, 0, 64), {}, y, 0);
    EXPECT_TRUE(same_bits(bias, y));
  }
}

TEST(MatmulDeathTest, RefusesOtherTypesAndShortBias) {
  const std::byte word[4] = {};
  float y = 0.0f;
  const Context ctx;
  EXPECT_DEATH(matmul(ctx, &y, 1, codec::word_matrix(word, DType::kI8, 1, 1), {}, &y, 1), "I8");
  const float bias[2] = {};
  EXPECT_DEATH(matmul(ctx, &y, 1, codec::word_matrix(word, DType::kF32, 1, 1), bias, &y, 1), "2 biases");
}

}  // namespace
}  // namespace sluice::kernels
