// Oracles: sums in double precision of the values of codec::dequantise_row(), and the order of sums written
// once more from the header alone.
#include "kernels/products/codes/sliced_matmul.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "base/machine/thread_pool.h"
#include "kernels/products/codes/sliced_test_data.h"
#include "kernels/products/products.h"

namespace sluice::kernels::sliced_matmul_test {
namespace {

std::vector<float> pack(const Context& ctx, std::span<const float> x, std::size_t tokens,
                        std::size_t columns) {
  std::vector<float> packed(tokens * sliced_floats(columns), std::nanf(""));
  arrange_for_slices(ctx, x.data(), tokens, columns, columns, packed.data());
  return packed;
}

std::vector<float> multiply(const Context& ctx, std::span<const float> x, std::size_t tokens,
                            const SlicedView& w, SliceView which, std::span<const float> bias) {
  const std::vector<float> packed = pack(ctx, x, tokens, w.shape.columns);
  std::vector<float> y(tokens * w.shape.rows, -1.0f);
  matmul(ctx, packed.data(), tokens, codec::sliced_ref(w, which), bias, y.data(), w.shape.rows);
  return y;
}

void expect_the_bits_of_scalar(Isa isa, std::uint64_t salt) {
  std::mt19937_64 random = test_random(salt);
  for (const SlicedProduct& s : sliced_products(random)) {
    const SliceBits bits = codec::kStoredSliceBits[random() % codec::kStoredSliceBits.size()];
    const bool wild = random() % 4 == 0;
    const auto numbers = [&](std::size_t n) {
      return wild ? wild_floats(random, n) : normal_floats(random, n);
    };
    const SlicedMatrix m = random() % 4 == 0 ? any_bytes(random, s.rows, s.columns, bits)
                                             : normal_matrix(random, s.rows, s.columns, bits);
    const std::vector<float> x = numbers(s.tokens * s.columns), bias = numbers(random() % 2 * s.rows);
    for (const SliceView which : kViews) {
      EXPECT_TRUE(same_bits(multiply({nullptr, Isa::kScalar}, x, s.tokens, m.view(), which, bias),
                            multiply({nullptr, isa}, x, s.tokens, m.view(), which, bias)))
          << isa_name(isa) << ' ' << name_of(m.shape, which, s.tokens);
    }
  }
}

bool available(Isa isa) { return std::ranges::count(available_isas(), isa) != 0; }

TEST(SlicedMatmul, Avx2HasTheBitsOfScalar) {
  if (!available(Isa::kAvx2)) GTEST_SKIP() << "this CPU has no AVX2: its kernels were not run";
  expect_the_bits_of_scalar(Isa::kAvx2, 20);
}

TEST(SlicedMatmul, Avx512HasTheBitsOfScalar) {
  if (!available(Isa::kAvx512)) GTEST_SKIP() << "this CPU has no AVX-512: its kernels were not run";
  expect_the_bits_of_scalar(Isa::kAvx512, 21);
}

TEST(SlicedMatmul, NeonHasTheBitsOfScalar) {
  if (!available(Isa::kNeon)) GTEST_SKIP() << "this CPU has no NEON: its kernels were not run";
  expect_the_bits_of_scalar(Isa::kNeon, 19);
}

TEST(SlicedMatmul, ThreadsAndChunksDoNotShow) {
  std::mt19937_64 random = test_random(22);
  const std::size_t rows = 203, columns = 391, tokens = 37;
  const std::vector<float> x = normal_floats(random, tokens * columns), bias = normal_floats(random, rows);
  for (const SliceBits bits : codec::kStoredSliceBits) {
    const SlicedMatrix m = normal_matrix(random, rows, columns, bits);
    const SliceView which = kViews[random() % 3];
    for (const Isa isa : available_isas()) {
      const std::vector<float> whole = multiply({nullptr, isa}, x, tokens, m.view(), which, bias);
      for (unsigned threads = 1; threads <= 3; ++threads) {
        ThreadPool pool(threads);
        EXPECT_TRUE(same_bits(whole, multiply({&pool, isa}, x, tokens, m.view(), which, bias)))
            << name_of(m.shape, which, tokens) << ", " << threads << " threads";
        for (const std::size_t chunk : {1, 2, 7, 36}) {
          std::vector<float> parts;
          for (std::size_t t = 0; t < tokens; t += chunk) {
            const std::size_t n = std::min(chunk, tokens - t);
            const std::vector<float> part = multiply(
                {&pool, isa}, std::span(x).subspan(t * columns, n * columns), n, m.view(), which, bias);
            parts.insert(parts.end(), part.begin(), part.end());
          }
          EXPECT_TRUE(same_bits(whole, parts)) << threads << " threads, chunks of " << chunk;
        }
      }
    }
  }
}

TEST(SlicedMatmul, WithinTheErrorBoundOfDoublePrecision) {
  std::mt19937_64 random = test_random(23);
  for (const SlicedProduct& s : {SlicedProduct{40, 2048, 3}, SlicedProduct{7, 199, 11},
                                 SlicedProduct{19, 5000, 1}, SlicedProduct{3, 1, 1}}) {
    for (const SliceBits bits : codec::kStoredSliceBits) {
      const SlicedMatrix m = normal_matrix(random, s.rows, s.columns, bits);
      const std::vector<float> x = normal_floats(random, s.tokens * s.columns);
      const std::vector<float> bias = normal_floats(random, s.rows);
      const std::size_t groups = m.shape.groups();
      for (const SliceView which : kViews) {
        const std::vector<float> y = multiply({nullptr, Isa::kScalar}, x, s.tokens, m.view(), which, bias);
        std::vector<float> weights(s.columns);
        for (std::size_t r = 0; r < s.rows; ++r) {
          codec::dequantise_row(m.view(), which, r, weights);
          for (std::size_t t = 0; t < s.tokens; ++t) {
            double sum = bias[r], norm = std::fabs(bias[r]);
            for (std::size_t c = 0; c < s.columns; ++c) {
              const std::size_t cell = r / 16 * groups + c / 32;
              std::uint16_t word;
              std::memcpy(&word, m.view().scales + 2 * (16 * cell + r % 16), 2);
              const double scale = fp16_to_float(word),
                           zero = std::to_integer<int>(m.view().zeros[16 * cell + r % 16]);
              const double value = x[t * s.columns + c], weight = weights[c];
              sum += value * weight;
              // f·(q + |z|) ≤ |f·(q − z)| + 2·f·|z|, and f·|z| ≤ zero + (2^S − 1)/2.
              const double middle = which == SliceView::kCenter ? ((1u << bits.shift()) - 1) / 2.0 : 0;
              norm += std::fabs(value) * (std::fabs(weight) + 2 * scale * (zero + middle));
            }
            const double roundings = static_cast<double>(groups) + 12;
            EXPECT_NEAR(y[t * s.rows + r], sum, roundings * 0x1p-24 * 1.01 * norm)
                << name_of(m.shape, which, s.tokens);
          }
        }
      }
    }
  }
}

TEST(SlicedMatmul, TheOrderIsTheWrittenOne) {
  // Written from the header alone.
  std::mt19937_64 random = test_random(24);
  for (const SliceBits bits : codec::kStoredSliceBits) {
    for (const std::size_t columns : {1, 2, 31, 32, 33, 100, 517}) {
      const std::size_t rows = 21, row = random() % rows, r = row % 16;
      const SlicedMatrix m = normal_matrix(random, rows, columns, bits);
      const std::vector<float> x = normal_floats(random, columns);
      const float step = static_cast<float>(1u << bits.shift());
      for (const SliceView which : kViews) {
        float total = 0;
        for (std::size_t g = 0; g < (columns + 31) / 32; ++g) {
          const std::size_t cell = row / 16 * ((columns + 31) / 32) + g;
          std::uint8_t high[32], low[32];
          codec::get_codes(m.msb.data() + cell * 64 * bits.low, bits.low, r, high);
          codec::get_codes(m.lsb.data() + cell * 64 * bits.shift(), bits.shift(), r, low);
          float chains[4] = {}, sums[4] = {};
          for (std::size_t i = 0; i < 8; ++i) {
            for (std::size_t k = 0; k < 4; ++k) {
              const std::size_t c = std::array{0, 16, 4, 20, 8, 24, 12, 28}[i] + k;
              const float value = 32 * g + c < columns ? x[32 * g + c] : 0.0f;
              const int code = which == SliceView::kHigh ? (high[c] << bits.shift()) + low[c] : high[c];
              chains[k] = std::fma(value, static_cast<float>(code), chains[k]);
              sums[k] += value;
            }
          }
          const auto zero = static_cast<float>(std::to_integer<int>(m.view().zeros[16 * cell + r]));
          const float z = which == SliceView::kHigh  ? zero
                          : which == SliceView::kLow ? std::floor(zero / step)
                                                     : (zero - (step - 1) / 2) / step;
          std::uint16_t word;
          std::memcpy(&word, m.view().scales + 2 * (16 * cell + r), 2);
          const float sum = (chains[0] + chains[1]) + (chains[2] + chains[3]);
          const float x_sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
          total = std::fma(fp16_to_float(word), std::fma(-z, x_sum, sum), total);
        }
        if (which != SliceView::kHigh) total *= step;
        for (const Isa isa : available_isas()) {
          const std::vector<float> y = multiply({nullptr, isa}, x, 1, m.view(), which, {});
          EXPECT_TRUE(same_bits(std::vector{total}, std::span(y).subspan(row, 1)))
              << isa_name(isa) << ' ' << name_of(m.shape, which, 1);
        }
      }
    }
  }
}

TEST(SlicedMatmul, TheLowViewsReadNoLowerSlice) {
  std::mt19937_64 random = test_random(25);
  const std::vector<float> x = normal_floats(random, 100);
  for (const SliceBits bits : codec::kStoredSliceBits) {
    const SlicedMatrix m = normal_matrix(random, 20, 100, bits);
    const SlicedView alone = codec::sliced_view(m.shape, m.msb, {});
    for (const SliceView which : {SliceView::kLow, SliceView::kCenter}) {
      for (const Isa isa : available_isas()) {
        EXPECT_TRUE(same_bits(multiply({nullptr, isa}, x, 1, m.view(), which, {}),
                              multiply({nullptr, isa}, x, 1, alone, which, {})));
      }
    }
  }
}

TEST(SlicedMatmul, ReadsAndWritesNothingOutside) {
  std::mt19937_64 random = test_random(26);
  for (int i = 0; i < 40; ++i) {
    const std::size_t rows = 1 + random() % 40, columns = 1 + random() % 140, tokens = 1 + random() % 9;
    for (const SliceBits bits : codec::kStoredSliceBits) {
      const SlicedMatrix m = normal_matrix(random, rows, columns, bits);
      // Each plane ends at its page; borders of arrays within a plane: strip_reads_test.cc.
      GuardedBytes msb(m.msb);
      GuardedBytes lsb(m.lsb);
      GuardedBytes x(bytes_of(normal_floats(random, tokens * columns)));
      GuardedBytes packed(bytes_of(std::vector<float>(tokens * sliced_floats(columns))));
      GuardedBytes y(bytes_of(std::vector<float>(tokens * rows)));
      const SlicedView view =
          codec::sliced_view(m.shape, {msb.data(), m.msb.size()}, {lsb.data(), m.lsb.size()});
      for (const Isa isa : available_isas()) {
        const Context ctx{nullptr, isa};
        arrange_for_slices(ctx, x.floats(), tokens, columns, columns, packed.floats());
        for (const SliceView which : kViews)
          matmul(ctx, packed.floats(), tokens, codec::sliced_ref(view, which), {}, y.floats(), rows);
      }
    }
  }
}

TEST(SlicedMatmul, StridesLeaveGapsAlone) {
  std::mt19937_64 random = test_random(27);
  const std::size_t rows = 21, columns = 45, tokens = 8, stride = 61;
  const std::vector<float> wide = normal_floats(random, tokens * stride);
  const SlicedMatrix m = normal_matrix(random, rows, columns, {8, 4});
  std::vector<float> dense;
  for (std::size_t t = 0; t < tokens; ++t)
    dense.insert(dense.end(), wide.begin() + static_cast<long>(t * stride),
                 wide.begin() + static_cast<long>(t * stride + columns));
  for (const Isa isa : available_isas()) {
    const Context ctx{nullptr, isa};
    std::vector<float> packed(tokens * sliced_floats(columns)), y(tokens * stride, 7.0f);
    arrange_for_slices(ctx, wide.data(), tokens, columns, stride, packed.data());
    matmul(ctx, packed.data(), tokens, codec::sliced_ref(m.view(), SliceView::kHigh), {}, y.data(), stride);
    const std::vector<float> expected = multiply(ctx, dense, tokens, m.view(), SliceView::kHigh, {});
    for (std::size_t t = 0; t < tokens; ++t) {
      EXPECT_TRUE(
          same_bits(std::span(expected).subspan(t * rows, rows), std::span(y).subspan(t * stride, rows)));
      for (std::size_t c = rows; c < stride; ++c) ASSERT_EQ(y[t * stride + c], 7.0f);
    }
  }
}

TEST(SlicedMatmul, NoActivationThatIsNoNumberIsLost) {
  std::mt19937_64 random = test_random(28);
  const std::size_t rows = 33, columns = 77, tokens = 3;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float value : {std::nanf(""), infinity, -infinity}) {
    for (const SliceBits bits : codec::kStoredSliceBits) {
      const SlicedMatrix m = normal_matrix(random, rows, columns, bits);
      std::vector<float> x = normal_floats(random, tokens * columns);
      x[columns + random() % columns] = value;  // in token 1
      for (const SliceView which : kViews) {
        for (const Isa isa : available_isas()) {
          const std::vector<float> y = multiply({nullptr, isa}, x, tokens, m.view(), which, {});
          for (std::size_t i = 0; i < y.size(); ++i) {
            EXPECT_EQ(std::isfinite(y[i]), i / rows != 1);
            EXPECT_TRUE(!std::isnan(value) || std::isnan(y[i]) == (i / rows == 1));
          }
        }
      }
    }
  }
}

TEST(SlicedMatmul, ActivationsBelowTheLeastAreZero) {
  // Weights 1 … 4: codes 51 … 255 at a scale near 1/64.
  std::vector<float> weights(64);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 4 + 1);
  const SlicedMatrix m = matrix_of(weights, 1, 64, {8, 4});
  const std::vector<float> bias = {3.0f};
  for (const Isa isa : available_isas()) {
    for (const float least : {0x1p-100f, -0x1p-100f}) {
      const std::vector<float> at(64, least), below(64, std::nextafterf(least, 0.0f));
      const float y = multiply({nullptr, isa}, at, 1, m.view(), SliceView::kHigh, {})[0];
      EXPECT_NEAR(y / least, 160, 1);
      EXPECT_TRUE(
          same_bits(std::vector{0.0f}, multiply({nullptr, isa}, below, 1, m.view(), SliceView::kHigh, {})));
      EXPECT_TRUE(same_bits(bias, multiply({nullptr, isa}, below, 1, m.view(), SliceView::kHigh, bias)));
    }
  }
}

TEST(SlicedMatmul, NothingToDo) {
  const std::vector<float> bias = {1.0f, 2.0f, 3.0f};
  for (const Isa isa : available_isas()) {
    const Context ctx{nullptr, isa};
    float y[3] = {5.0f, 5.0f, 5.0f};
    const SlicedView no_columns{{{3, 0}, {8, 4}}}, no_rows{{{0, 64}, {8, 4}}};
    for (const SliceView which : kViews) {
      matmul(ctx, nullptr, 0, codec::sliced_ref(no_columns, which), {}, y, 3);
      matmul(ctx, y, 1, codec::sliced_ref(no_rows, which), {}, y, 0);
      EXPECT_EQ(y[0], 5.0f);
    }
    for (const SliceView which : kViews) {
      for (const std::size_t tokens : {1, 2}) {
        std::vector<float> sums(tokens * 3, 5.0f);
        matmul(ctx, y, tokens, codec::sliced_ref(no_columns, which), bias, sums.data(), 3);
        for (std::size_t t = 0; t < tokens; ++t)
          EXPECT_TRUE(same_bits(bias, std::span(sums).subspan(3 * t, 3)));
      }
    }
  }
}

TEST(SlicedMatmulDeathTest, RefusesWhatIsNotThere) {
  std::mt19937_64 random = test_random(29);
  const SlicedMatrix m = normal_matrix(random, 2, 32, {8, 4});
  const SlicedView alone = codec::sliced_view(m.shape, m.msb, {});
  const std::vector<float> x(32, 1.0f), bias(3, 1.0f);
  EXPECT_DEATH(multiply({}, x, 1, alone, SliceView::kHigh, {}), "no LSB slice");
  EXPECT_DEATH(multiply({}, x, 1, m.view(), SliceView::kHigh, bias), "3 biases");
  SlicedView other = m.view();
  other.shape.bits = {7, 4};
  EXPECT_DEATH(multiply({}, x, 1, other, SliceView::kHigh, {}), "7/4");
}

}  // namespace
}  // namespace sluice::kernels::sliced_matmul_test
