// Oracles: whole numbers and sums in double precision, from the header alone; the plain path for every
// instruction set. Kernels are also called directly, because a CPU uses only some of those that it could.
#include "kernels/products/codes/activation_codes.h"

#include <array>
#include <limits>

#include "base/machine/thread_pool.h"
#include "codec/slices/int8_matrix.h"
#include "kernels/kernel_table.h"
#include "kernels/products/codes/int8_matmul_impl.h"
#include "kernels/products/codes/integer_test_data.h"
#include "kernels/products/codes/sliced_matmul.h"
#include "kernels/products/codes/sliced_test_data.h"
#include "kernels/products/products.h"
#include "kernels/products/words/matmul.h"

namespace sluice::kernels {
namespace {

using codec::Int8Shape;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Context coding(Isa isa, ThreadPool* pool = nullptr) {
  return {pool, isa, Products::kExact, ActivationForm::kInt8};
}

struct Coded {
  std::size_t columns, groups;
  std::vector<float> floats;  // (tokens, activation_code_floats(columns))
  int code(std::size_t t, std::size_t column) const {
    const auto* const bytes = reinterpret_cast<const std::int8_t*>(row(t));
    return bytes[column];
  }
  float scale(std::size_t t, std::size_t group) const { return row(t)[8 * groups + group]; }
  float minus_sum(std::size_t t, std::size_t group) const { return row(t)[9 * groups + group]; }
  const float* row(std::size_t t) const { return floats.data() + t * 10 * groups; }
};

Coded code(std::span<const float> x, std::size_t tokens, std::size_t columns) {
  Coded coded{columns, (columns + 31) / 32, {}};
  const std::size_t stride = activation_code_floats(columns);
  coded.floats.assign(tokens * stride, std::nanf(""));
  code_activations({}, x.data(), tokens, columns, columns, coded.floats.data(), stride);
  return coded;
}

struct DenseMatrix {
  Int8Shape shape;
  std::vector<std::byte> bytes;
  codec::MatrixRef weight() const { return codec::int8_ref({shape.rows, shape.columns}, bytes.data()); }
};

DenseMatrix dense_matrix(std::mt19937_64& random, std::size_t rows, std::size_t columns, bool wild) {
  DenseMatrix m{{{rows, columns}}, {}};
  m.bytes.resize(m.shape.bytes());
  if (wild) {
    for (std::byte& b : m.bytes) b = static_cast<std::byte>(random());
    return m;
  }
  const std::vector<float> weights = normal_floats(random, rows * columns);
  codec::quantise_int8(std::as_bytes(std::span(weights)), DType::kF32, m.shape, m.bytes.data(),
                       m.bytes.data() + m.shape.scales_offset());
  return m;
}

ProductArgs args_of(const Coded& x, std::size_t tokens, codec::CellShape shape, std::span<const float> bias,
                    std::vector<float>& y) {
  y.assign(tokens * shape.rows, -1.0f);
  ProductArgs args{};
  args.x = x.floats.data();
  args.x_stride = activation_code_floats(x.columns);
  args.tokens = tokens;
  args.rows = shape.rows;
  args.columns = shape.columns;
  args.bias = bias.empty() ? nullptr : bias.data();
  args.y = y.data();
  args.y_stride = shape.rows;
  return args;
}

std::vector<float> multiply_slices(const IntegerKernels& kernels, const Coded& x, std::size_t tokens,
                                   const SlicedView& w, SliceView which, std::span<const float> bias) {
  std::vector<float> y;
  ProductArgs args = args_of(x, tokens, w.shape, bias, y);
  args.planes[0] = w.msb;
  args.planes[1] = which == SliceView::kHigh ? w.lsb : nullptr;
  args.view = which;
  const auto bits = std::ranges::find(codec::kStoredSliceBits, w.shape.bits);
  kernels.slices.of_bits[bits - codec::kStoredSliceBits.begin()](args, 0, w.shape.rows);
  return y;
}

std::vector<float> multiply_dense(const IntegerKernels& kernels, const Coded& x, std::size_t tokens,
                                  const DenseMatrix& m, std::span<const float> bias) {
  std::vector<float> y;
  ProductArgs args = args_of(x, tokens, m.shape, bias, y);
  args.planes[0] = m.bytes.data();
  kernels.dense(args, 0, m.shape.rows);
  return y;
}

std::vector<float> multiply(const Context& ctx, std::span<const float> x, std::size_t tokens,
                            const SlicedView& w, SliceView which, std::span<const float> bias) {
  std::vector<float> packed(tokens * sliced_floats(w.shape.columns)), y(tokens * w.shape.rows, -1.0f);
  arrange_for_slices(ctx, x.data(), tokens, w.shape.columns, w.shape.columns, packed.data());
  matmul(ctx, packed.data(), tokens, codec::sliced_ref(w, which), bias, y.data(), w.shape.rows);
  return y;
}

std::vector<float> multiply(const Context& ctx, std::span<const float> x, std::size_t tokens,
                            const DenseMatrix& m, std::span<const float> bias) {
  const std::size_t rows = m.shape.rows, columns = m.shape.columns;
  std::vector<float> packed(tokens * arranged_floats(columns)), y(tokens * rows, -1.0f);
  arrange_activations(ctx, x.data(), tokens, columns, columns, packed.data());
  matmul(ctx, packed.data(), tokens, m.weight(), bias, y.data(), rows);
  return y;
}

TEST(ActivationCodes, AreTheNearestOnes) {
  std::mt19937_64 random = test_random(81);
  for (std::size_t columns = 1; columns <= 130; ++columns) {
    const float size = std::ldexp(1.0f, static_cast<int>(random() % 200) - 100);
    std::vector<float> x = normal_floats(random, 2 * columns);
    for (float& value : x) value *= size;
    if (random() % 4 == 0) std::fill_n(x.begin(), std::min<std::size_t>(columns, 32), 0.0f);
    const Coded coded = code(x, 2, columns);
    for (std::size_t t = 0; t < 2; ++t) {
      for (std::size_t g = 0; g < coded.groups; ++g) {
        const std::size_t first = 32 * g, n = std::min<std::size_t>(32, columns - first);
        float most = 0;
        for (std::size_t c = 0; c < n; ++c) most = std::max(most, std::fabs(x[t * columns + first + c]));
        if (most < 0x1p-100f) most = 0;
        EXPECT_EQ(coded.scale(t, g), most / 127);
        int sum = 0;
        for (std::size_t c = 0; c < 32; ++c) {
          const int found = coded.code(t, first + c);
          sum += found;
          if (c >= n || most == 0) {
            EXPECT_EQ(found, 0);
            continue;
          }
          const float value = x[t * columns + first + c];
          const double exact = value / (double{most} / 127);
          EXPECT_NEAR(found, exact, 0.5001) << value << " of " << most << ", seed " << test_seed();
          if (std::fabs(value) == most) {
            EXPECT_EQ(std::abs(found), 127);
          }
        }
        EXPECT_EQ(coded.minus_sum(t, g), static_cast<float>(-sum));
      }
    }
  }
}

TEST(ActivationCodes, TiesGoToTheEvenOne) {
  const std::vector<float> x = {127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f, -125.5f};
  const Coded coded = code(x, 1, x.size());
  const int expected[] = {127, 0, 2, 2, 0, -2, -2, 126, -126};
  for (std::size_t c = 0; c < x.size(); ++c) EXPECT_EQ(coded.code(0, c), expected[c]) << x[c];
  EXPECT_EQ(coded.scale(0, 0), 1.0f);
}

TEST(ActivationCodes, OfWhatIsNoNumberHaveNoScale) {
  for (const float value : {std::nanf(""), -std::nanf(""), kInfinity, -kInfinity}) {
    std::vector<float> x(70, 1.0f);
    x[40] = value;
    const Coded coded = code(x, 1, x.size());
    EXPECT_EQ(coded.scale(0, 0), 1.0f / 127);
    EXPECT_TRUE(std::isnan(coded.scale(0, 1)));
    EXPECT_EQ(coded.scale(0, 2), 1.0f / 127);
    for (std::size_t c = 32; c < 64; ++c) EXPECT_EQ(coded.code(0, c), 0);
    EXPECT_EQ(coded.minus_sum(0, 1), 0.0f);
  }
  const Coded huge = code(std::vector<float>{3e38f, -1e38f}, 1, 2);
  EXPECT_EQ(huge.code(0, 0), 127);
  EXPECT_EQ(huge.code(0, 1), -42);
}

// Activations for a product of codes: numbers of all kinds, or groups of the largest codes.
std::vector<float> activations(std::mt19937_64& random, std::size_t n) {
  switch (random() % 4) {
    case 0:
      return wild_floats(random, n);
    case 1: {
      std::vector<float> x(n);
      for (float& value : x) value = random() % 8 != 0 ? 1.0f : -1.0f;
      return x;
    }
    default:
      return normal_floats(random, n);
  }
}

void expect_the_bits_of_scalar(const NamedIntegerKernels& kernels, std::uint64_t salt) {
  if (!kernels.available) GTEST_SKIP() << "this CPU has no " << kernels.name << ": its kernels were not run";
  std::mt19937_64 random = test_random(salt);
  std::vector<SlicedProduct> products = sliced_products(random);
  for (std::size_t tokens = 1; tokens <= 100; ++tokens)
    products.push_back({1 + random() % 50, 1 + random() % 150, tokens});
  for (const SlicedProduct& s : products) {
    const Coded x = code(activations(random, s.tokens * s.columns), s.tokens, s.columns);
    const std::vector<float> bias = normal_floats(random, random() % 2 * s.rows);
    for (const SliceBits bits : codec::kStoredSliceBits) {
      const SlicedMatrix m = random() % 2 == 0 ? any_bytes(random, s.rows, s.columns, bits)
                                               : normal_matrix(random, s.rows, s.columns, bits);
      for (const SliceView which : kViews)
        EXPECT_TRUE(same_bits(multiply_slices(kIntegerScalar, x, s.tokens, m.view(), which, bias),
                              multiply_slices(*kernels.kernels, x, s.tokens, m.view(), which, bias)))
            << kernels.name << ' ' << name_of(m.shape, which, s.tokens);
    }
    const DenseMatrix m = dense_matrix(random, s.rows, s.columns, random() % 2 == 0);
    EXPECT_TRUE(same_bits(multiply_dense(kIntegerScalar, x, s.tokens, m, bias),
                          multiply_dense(*kernels.kernels, x, s.tokens, m, bias)))
        << kernels.name << " dense, " << s.rows << 'x' << s.columns << ", " << s.tokens << " tokens";
  }
}

#if defined(__x86_64__)
TEST(IntegerProducts, Avx2HasTheBitsOfScalar) { expect_the_bits_of_scalar(vector_integer_kernels()[0], 82); }
TEST(IntegerProducts, Avx512HasTheBitsOfScalar) {
  expect_the_bits_of_scalar(vector_integer_kernels()[1], 83);
}
TEST(IntegerProducts, Avx512VnniHasTheBitsOfScalar) {
  expect_the_bits_of_scalar(vector_integer_kernels()[2], 84);
}
TEST(IntegerProducts, AmxInt8HasTheBitsOfScalar) {
  expect_the_bits_of_scalar(vector_integer_kernels()[3], 85);
}
#elif defined(__aarch64__)
TEST(IntegerProducts, NeonHasTheBitsOfScalar) { expect_the_bits_of_scalar(vector_integer_kernels()[0], 87); }
#endif

// The largest sums that 16 bits, or 32, must hold.
TEST(IntegerProducts, NoSumOverflows) {
  const std::size_t rows = 16, columns = 64;
  for (const float sign : {1.0f, -1.0f}) {
    const std::vector<float> ones(20 * columns, sign);
    const Coded x = code(ones, 20, columns);
    for (const NamedIntegerKernels& kernels : available_integer_kernels()) {
      for (const SliceBits bits : codec::kStoredSliceBits) {
        SlicedMatrix m{{{rows, columns}, bits}, {}, {}};
        m.msb.assign(m.shape.msb_bytes(), std::byte{0xff});
        m.lsb.assign(m.shape.lsb_bytes(), std::byte{0xff});
        for (std::size_t i = 0; i < m.shape.scale_bytes(); i += 2)
          std::memcpy(&m.msb[m.shape.scales_offset() + i], "\x00\x3c", 2);  // 1
        for (const bool zero : {false, true}) {
          std::fill(m.msb.begin() + static_cast<long>(m.shape.zeros_offset()), m.msb.end(),
                    static_cast<std::byte>(zero ? 0 : 255));
          const auto code_most = static_cast<float>((1u << bits.high) - 1);
          const float expected = sign * 64 * (zero ? code_most : code_most - 255);
          for (const std::size_t tokens : {1, 20})
            for (const float y : multiply_slices(*kernels.kernels, x, tokens, m.view(), SliceView::kHigh, {}))
              ASSERT_NEAR(y, expected, std::fabs(expected) * 0x1p-22)
                  << kernels.name << ' ' << codec::slice_bits_text(bits);
        }
      }
      DenseMatrix dense{{{rows, columns}}, {}};
      dense.bytes.resize(dense.shape.bytes());
      for (std::size_t i = 0; i < dense.shape.scale_bytes(); i += 2)
        std::memcpy(&dense.bytes[dense.shape.scales_offset() + i], "\x00\x3c", 2);
      for (const int least : {-128, 127}) {
        std::fill_n(dense.bytes.begin(), dense.shape.scales_offset(), static_cast<std::byte>(least));
        for (const float y : multiply_dense(*kernels.kernels, x, 20, dense, {}))
          ASSERT_NEAR(y, sign * 64 * static_cast<float>(least), 0.01) << kernels.name;
      }
    }
  }
}

// The order of sums, from the header: exact values in double precision, and fp32 where the header says so.
TEST(IntegerProducts, TheOrderIsTheWrittenOne) {
  std::mt19937_64 random = test_random(86);
  for (const SliceBits bits : codec::kStoredSliceBits) {
    for (const std::size_t columns : {1, 2, 31, 32, 33, 100, 517}) {
      const std::size_t rows = 21, row = random() % rows, r = row % 16;
      const SlicedMatrix m = normal_matrix(random, rows, columns, bits);
      const Coded x = code(normal_floats(random, columns), 1, columns);
      const double step = 1u << bits.shift();
      for (const SliceView which : kViews) {
        float total = 0;
        for (std::size_t g = 0; g < x.groups; ++g) {
          const std::size_t cell = row / 16 * x.groups + g;
          std::uint8_t high[32], low[32];
          codec::get_codes(m.msb.data() + cell * 64 * bits.low, bits.low, r, high);
          codec::get_codes(m.lsb.data() + cell * 64 * bits.shift(), bits.shift(), r, low);
          const double zero = std::to_integer<int>(m.view().zeros[16 * cell + r]);
          const double z = which == SliceView::kHigh  ? zero
                           : which == SliceView::kLow ? std::floor(zero / step)
                                                      : (zero - (step - 1) / 2) / step;
          double sum = 0;
          for (std::size_t c = 0; c < 32; ++c) {
            const double q = which == SliceView::kHigh ? high[c] * step + low[c] : high[c];
            sum += (q - z) * x.code(0, 32 * g + c);
          }
          std::uint16_t word;
          std::memcpy(&word, m.view().scales + 2 * (16 * cell + r), 2);
          ASSERT_EQ(sum, static_cast<float>(sum));
          total = std::fma(fp16_to_float(word), x.scale(0, g) * static_cast<float>(sum), total);
        }
        if (which != SliceView::kHigh) total *= static_cast<float>(step);
        const std::vector<float> y = multiply_slices(kIntegerScalar, x, 1, m.view(), which, {});
        EXPECT_TRUE(same_bits(std::vector{total}, std::span(y).subspan(row, 1)))
            << name_of(m.shape, which, 1);
      }
    }
  }
}

// Compares with the product of the weights' values and the original activations.
void expect_near(float found, std::span<const float> weights, std::span<const float> x, float bias) {
  double sum = bias, coding = 0, size = std::fabs(bias);
  const std::size_t groups = (x.size() + 31) / 32;
  for (std::size_t g = 0; g < groups; ++g) {
    double most = 0, norm = 0, part = 0;
    for (std::size_t c = 32 * g; c < std::min(x.size(), 32 * g + 32); ++c) {
      sum += double{x[c]} * weights[c];
      part += std::fabs(double{x[c]} * weights[c]);
      most = std::max<double>(most, std::fabs(x[c]));
      norm += std::fabs(weights[c]);
    }
    coding += 0.5001 / 127 * most * norm;
    size += part;
  }
  size += coding;
  EXPECT_NEAR(found, sum, coding + static_cast<double>(groups + 3) * 0x1p-24 * size)
      << "seed " << test_seed();
}

TEST(IntegerProducts, WithinTheErrorBoundOfDoublePrecision) {
  std::mt19937_64 random = test_random(87);
  for (const SlicedProduct& s : {SlicedProduct{40, 2048, 3}, SlicedProduct{7, 199, 11},
                                 SlicedProduct{19, 5000, 1}, SlicedProduct{3, 1, 1}}) {
    const std::vector<float> x = normal_floats(random, s.tokens * s.columns),
                             bias = normal_floats(random, s.rows);
    std::vector<float> weights(s.columns);
    const auto check = [&](const std::vector<float>& y, std::size_t r) {
      for (std::size_t t = 0; t < s.tokens; ++t)
        expect_near(y[t * s.rows + r], weights, std::span(x).subspan(t * s.columns, s.columns), bias[r]);
    };
    for (const SliceBits bits : codec::kStoredSliceBits) {
      const SlicedMatrix m = normal_matrix(random, s.rows, s.columns, bits);
      for (const SliceView which : kViews) {
        const std::vector<float> y = multiply(coding(best_isa()), x, s.tokens, m.view(), which, bias);
        for (std::size_t r = 0; r < s.rows; ++r) {
          codec::dequantise_row(m.view(), which, r, weights);
          check(y, r);
        }
      }
    }
    const DenseMatrix m = dense_matrix(random, s.rows, s.columns, false);
    const std::vector<float> y = multiply(coding(best_isa()), x, s.tokens, m, bias);
    for (std::size_t r = 0; r < s.rows; ++r) {
      codec::dequantise_int8_row(m.bytes, m.shape, r, weights);
      check(y, r);
    }
  }
}

TEST(IntegerProducts, InstructionSetsThreadsAndChunksDoNotShow) {
  std::mt19937_64 random = test_random(88);
  const std::size_t rows = 203, columns = 391, tokens = 150;
  const std::vector<float> x = normal_floats(random, tokens * columns), bias = normal_floats(random, rows);
  const SlicedMatrix slices = normal_matrix(random, rows, columns, codec::kStoredSliceBits[random() % 3]);
  const DenseMatrix dense = dense_matrix(random, rows, columns, false);
  const SliceView which = kViews[random() % 3];
  const std::vector<float> expected_slices =
      multiply(coding(Isa::kScalar), x, tokens, slices.view(), which, bias);
  const std::vector<float> expected_dense = multiply(coding(Isa::kScalar), x, tokens, dense, bias);
  for (const Isa isa : available_isas()) {
    for (unsigned threads = 1; threads <= 3; ++threads) {
      ThreadPool pool(threads);
      const Context ctx = coding(isa, &pool);
      for (const std::size_t chunk : {1, 2, 7, 36, 150}) {
        std::vector<float> of_slices, of_dense;
        for (std::size_t t = 0; t < tokens; t += chunk) {
          const std::size_t n = std::min(chunk, tokens - t);
          const std::span<const float> some = std::span(x).subspan(t * columns, n * columns);
          const std::vector<float> a = multiply(ctx, some, n, slices.view(), which, bias),
                                   b = multiply(ctx, some, n, dense, bias);
          of_slices.insert(of_slices.end(), a.begin(), a.end());
          of_dense.insert(of_dense.end(), b.begin(), b.end());
        }
        EXPECT_TRUE(same_bits(expected_slices, of_slices)) << isa_name(isa) << ", chunks of " << chunk;
        EXPECT_TRUE(same_bits(expected_dense, of_dense)) << isa_name(isa) << ", chunks of " << chunk;
      }
    }
  }
}

// Dense products take activations as their context has packed them, rounded or not.
TEST(IntegerProducts, OfDenseMatricesCodeRoundedActivationsWhereProductsRound) {
  std::mt19937_64 random = test_random(89);
  const DenseMatrix m = dense_matrix(random, 48, 260, false);
  std::vector<float> x = normal_floats(random, 3 * 260);
  Context rounding = coding(Isa::kScalar);
  rounding.products = Products::kTiles;
  const std::vector<float> found = multiply(rounding, x, 3, m, {});
  for (float& value : x) value = bf16_to_float(float_to_bf16(value));
  EXPECT_TRUE(same_bits(multiply(coding(Isa::kScalar), x, 3, m, {}), found));
}

TEST(IntegerProducts, NoActivationThatIsNoNumberIsLost) {
  std::mt19937_64 random = test_random(90);
  const std::size_t rows = 33, columns = 77, tokens = 3;
  const DenseMatrix dense = dense_matrix(random, rows, columns, false);
  for (const float value : {std::nanf(""), kInfinity, -kInfinity}) {
    std::vector<float> x = normal_floats(random, tokens * columns);
    x[columns + random() % columns] = value;  // in token 1
    const auto check = [&](const std::vector<float>& y) {
      for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / rows == 1);
    };
    for (const Isa isa : available_isas()) {
      for (const SliceBits bits : codec::kStoredSliceBits)
        for (const SliceView which : kViews)
          check(
              multiply(coding(isa), x, tokens, normal_matrix(random, rows, columns, bits).view(), which, {}));
      check(multiply(coding(isa), x, tokens, dense, {}));
    }
  }
}

TEST(IntegerProducts, OfZerosAreTheBias) {
  std::mt19937_64 random = test_random(91);
  const std::vector<float> below(64, std::nextafterf(0x1p-100f, 0.0f)), bias = normal_floats(random, 20);
  const SlicedMatrix m = normal_matrix(random, 20, 64, {8, 4});
  for (const Isa isa : available_isas())
    EXPECT_TRUE(same_bits(bias, multiply(coding(isa), below, 1, m.view(), SliceView::kHigh, bias)));
}

TEST(IntegerProducts, ReadAndWriteNothingOutside) {
  std::mt19937_64 random = test_random(92);
  for (int i = 0; i < 40; ++i) {
    const std::size_t rows = 1 + random() % 40, columns = 1 + random() % 300, tokens = 1 + random() % 20;
    const std::size_t stride = activation_code_floats(columns);
    GuardedBytes x(bytes_of(normal_floats(random, tokens * columns)));
    GuardedBytes coded(bytes_of(std::vector<float>(tokens * stride)));
    GuardedBytes y(bytes_of(std::vector<float>(tokens * rows)));
    code_activations({}, x.floats(), tokens, columns, columns, coded.floats(), stride);
    const SliceBits bits = codec::kStoredSliceBits[random() % 3];
    const SlicedMatrix m = normal_matrix(random, rows, columns, bits);
    GuardedBytes msb(m.msb);
    GuardedBytes lsb(m.lsb);
    const DenseMatrix d = dense_matrix(random, rows, columns, false);
    GuardedBytes dense(d.bytes);
    for (const NamedIntegerKernels& kernels : available_integer_kernels()) {
      ProductArgs args{};
      args.x = coded.floats();
      args.x_stride = stride;
      args.tokens = tokens;
      args.planes[0] = msb.data();
      args.planes[1] = lsb.data();
      args.rows = rows;
      args.columns = columns;
      args.y = y.floats();
      args.y_stride = rows;
      const auto of_bits = std::ranges::find(codec::kStoredSliceBits, bits) - codec::kStoredSliceBits.begin();
      for (const SliceView which : kViews) {
        args.view = which;
        kernels.kernels->slices.of_bits[of_bits](args, 0, rows);
      }
      args.planes[0] = dense.data();
      args.planes[1] = nullptr;
      args.view = SliceView::kHigh;
      kernels.kernels->dense(args, 0, rows);
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
