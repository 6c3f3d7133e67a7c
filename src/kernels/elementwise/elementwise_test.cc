#include "kernels/elementwise/elementwise.h"

#include <functional>
#include <limits>

#include "base/machine/thread_pool.h"
#include "kernels/elementwise/elementwise_impl.h"
#include "kernels/kernel_table.h"
#include "kernels/test_data.h"

namespace sluice::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

// Calls f with every instruction set and 1 to 3 threads, and compares its results with scalar on one thread.
void expect_same_everywhere(const std::function<std::vector<float>(const Context&)>& f) {
  const std::vector<float> expected = f({nullptr, Isa::kScalar});
  for (const Isa isa : available_isas()) {
    EXPECT_TRUE(same_bits(expected, f({nullptr, isa}))) << isa_name(isa);
    for (unsigned threads = 1; threads <= 3; ++threads) {
      ThreadPool pool(threads);
      EXPECT_TRUE(same_bits(expected, f({&pool, isa}))) << isa_name(isa) << ", threads " << threads;
    }
  }
}

// The ulp of fp32 at `value`.
double ulp(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, std::max(exponent - 24, -149));
}

TEST(Exp, WithinTwoUlpOfStdExp) {
  double worst = 0;
  float worst_at = 0;
  const auto check = [&](float x) {
    const double exact = std::exp(double{x});
    const float found = exp_f32(x);
    if (exact > double{std::numeric_limits<float>::max()}) {
      EXPECT_TRUE(found == kInf || found == std::numeric_limits<float>::max()) << x;
      return;
    }
    const double error = std::fabs(double{found} - exact) / ulp(exact);
    if (error > worst) {
      worst = error;
      worst_at = x;
    }
  };
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 991) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (!std::isnan(x) && std::fabs(x) < 110.0f) check(x);
  }
  for (float x = -105.0f; x < 90.0f; x += 3.1e-5f) check(x);
  std::cout << "worst error " << worst << " ulp at " << worst_at << '\n';
  EXPECT_LE(worst, 2.0);
}

TEST(Exp, Ends) {
  for (const Isa isa : available_isas()) {
    const auto exp = [&](float x) {
      float y = 0;
      kernel_table(isa).elementwise->exp(&x, 1, &y);
      return y;
    };
    EXPECT_EQ(exp(0.0f), 1.0f);
    EXPECT_EQ(exp(-0.0f), 1.0f);
    EXPECT_EQ(exp(-104.0f), 0.0f);
    EXPECT_EQ(exp(-1e30f), 0.0f);
    EXPECT_EQ(exp(-kInf), 0.0f);
    EXPECT_EQ(exp(-103.9f), 0x1p-149f);
    EXPECT_EQ(exp(88.73f), kInf);
    EXPECT_EQ(exp(kInf), kInf);
    EXPECT_LT(exp(88.72f), kInf);
    EXPECT_TRUE(std::isnan(exp(kNan)));
    EXPECT_TRUE(std::isnan(exp(-kNan)));
  }
}

TEST(Exp, EveryInstructionSetHasTheBitsOfScalar) {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4093) {
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  for (float v = -106.0f; v < 90.0f; v += 1.7e-3f) x.push_back(v);
  std::vector<float> expected(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) expected[i] = exp_f32(x[i]);
  for (const Isa isa : available_isas()) {
    std::vector<float> found(x.size());
    kernel_table(isa).elementwise->exp(x.data(), x.size(), found.data());
    EXPECT_TRUE(same_bits(expected, found)) << isa_name(isa);
  }
}

TEST(RmsNorm, SameEverywhereAndNearDoublePrecision) {
  std::mt19937_64 random = test_random(1);
  for (const std::size_t cols : {1, 2, 15, 16, 17, 31, 64, 100, 128, 513, 2048}) {
    for (const bool wild : {false, true}) {
      const std::size_t rows = 1 + random() % 60, stride = cols + random() % 5;
      const std::vector<float> x =
          wild ? wild_floats(random, rows * stride) : normal_floats(random, rows * stride);
      const std::vector<float> w = normal_floats(random, cols);
      const auto norm = [&](const Context& ctx) {
        std::vector<float> y(rows * cols);
        rms_norm(ctx, x.data(), rows, cols, stride, w, 1e-6f, y.data(), cols);
        return y;
      };
      expect_same_everywhere(norm);
      expect_same_everywhere([&](const Context& ctx) {  // in place
        std::vector<float> y = x;
        rms_norm(ctx, y.data(), rows, cols, stride, w, 1e-6f, y.data(), stride);
        std::vector<float> dense;
        for (std::size_t r = 0; r < rows; ++r) {
          dense.insert(dense.end(), y.begin() + r * stride, y.begin() + r * stride + cols);
        }
        EXPECT_TRUE(same_bits(norm(ctx), dense));
        return dense;
      });
      if (wild) continue;
      const std::vector<float> y = norm({nullptr, best_isa()});
      for (std::size_t r = 0; r < rows; ++r) {
        double squares = 0;
        for (std::size_t c = 0; c < cols; ++c)
          squares += double{x[r * stride + c]} * double{x[r * stride + c]};
        const double factor = 1 / std::sqrt(squares / static_cast<double>(cols) + double{1e-6f});
        for (std::size_t c = 0; c < cols; ++c) {
          const double exact = double{x[r * stride + c]} * factor * double{w[c]};
          const double roundings = (static_cast<double>(cols) / 16 + 6) / 2 + 6;
          EXPECT_NEAR(y[r * cols + c], exact, roundings * 0x1p-24 * std::fabs(exact));
        }
      }
    }
  }
}

TEST(Elementwise, SameEverywhere) {
  std::mt19937_64 random = test_random(2);
  for (const std::size_t n : {1, 3, 16, 17, 100, 1408, 70001}) {
    const std::vector<float> x = wild_floats(random, n), y = wild_floats(random, n);
    expect_same_everywhere([&](const Context& ctx) {
      std::vector<float> out(n);
      silu_mul(ctx, x.data(), y.data(), n, out.data());
      return out;
    });
    expect_same_everywhere([&](const Context& ctx) {
      std::vector<float> out(n);
      clamped_mul(ctx, {2.0f, 1.702f}, x.data(), y.data(), n, out.data());
      return out;
    });
    std::vector<float> pairs;
    for (std::size_t i = 0; i < n; ++i) pairs.insert(pairs.end(), {x[i], y[i]});
    expect_same_everywhere([&](const Context& ctx) {
      std::vector<float> out(n);
      clamped_mul_pairs(ctx, {2.0f, 1.702f}, pairs.data(), n, out.data());
      return out;
    });
    expect_same_everywhere([&](const Context& ctx) {
      std::vector<float> out = y;
      add(ctx, x.data(), n, out.data());
      return out;
    });
    expect_same_everywhere([&](const Context& ctx) {
      std::vector<float> out = y;
      add_scaled(ctx, x.data(), 0.37f, n, out.data());
      return out;
    });
    expect_same_everywhere([&](const Context& ctx) {
      std::vector<float> out = y;
      scale(ctx, 1.7f, n, out.data());
      clamp(ctx, 2.0f, n, out.data());
      return out;
    });
  }
}

TEST(Elementwise, NearDoublePrecision) {
  std::mt19937_64 random = test_random(3);
  const std::size_t n = 1000;
  std::vector<float> gate = normal_floats(random, n), up = normal_floats(random, n);
  for (float& g : gate) g *= 20.0f;
  gate[0] = -88.0f;
  gate[1] = -89.0f;
  std::vector<float> out(n), sum = up;
  const Context ctx{nullptr, best_isa()};
  silu_mul(ctx, gate.data(), up.data(), n, out.data());
  add_scaled(ctx, gate.data(), -0.6f, n, sum.data());
  for (std::size_t i = 0; i < n; ++i) {
    const double g = double{gate[i]};
    const double divisor = 1 + std::exp(-g);  // infinite in fp32 from g = -88.73 on
    const double exact = divisor > std::numeric_limits<float>::max() ? 0.0 : g / divisor * double{up[i]};
    EXPECT_NEAR(out[i], exact, 8 * 0x1p-24 * std::fabs(exact) + 1e-40);
    const double added = std::fma(double{-0.6f}, g, double{up[i]});
    EXPECT_NEAR(sum[i], added, 0x1p-24 * std::fabs(added));
    EXPECT_NEAR(sigmoid(gate[i]), 1 / (1 + std::exp(-g)), 6 * 0x1p-24);
  }
}

// Both arrangements have the same bits, and those of the definition.
TEST(Elementwise, ClampedProductsAreNearDoublePrecision) {
  std::mt19937_64 random = test_random(6);
  const std::size_t n = 3001;
  std::vector<float> gate = normal_floats(random, n), up = normal_floats(random, n), pairs;
  for (std::size_t i = 0; i < n; ++i) {
    gate[i] *= 6;
    up[i] *= 6;
    pairs.insert(pairs.end(), {gate[i], up[i]});
  }
  const ClampedGate gating{7.0f, 1.702f};
  std::vector<float> out(n), of_pairs(n);
  clamped_mul({nullptr, best_isa()}, gating, gate.data(), up.data(), n, out.data());
  clamped_mul_pairs({nullptr, best_isa()}, gating, pairs.data(), n, of_pairs.data());
  EXPECT_TRUE(same_bits(out, of_pairs));
  std::size_t cut = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double g = std::min(double{gate[i]}, 7.0), u = std::clamp(double{up[i]}, -7.0, 7.0);
    cut += g != double{gate[i]} || u != double{up[i]} ? 1 : 0;
    const double alpha = double{gating.alpha}, exact = (u + 1) * g / (1 + std::exp(-alpha * g));
    const double far = std::fabs(alpha * g) + 10;  // rounding of alpha·g, made relative by exp
    EXPECT_NEAR(out[i], exact, far * 0x1p-23 * (std::fabs(exact) + std::fabs(g) * 1e-1)) << i;
  }
  EXPECT_GT(cut, 100u);
}

TEST(Elementwise, ClampedProductsKeepNanAndBoundInfinity) {
  const std::vector<float> gate = {kInf, -kInf, kNan, 1.0f, 9.0f}, up = {1.0f, 1.0f, 1.0f, kNan, -kInf};
  std::vector<float> out(gate.size());
  clamped_mul({nullptr, Isa::kScalar}, {7.0f, 1.0f}, gate.data(), up.data(), gate.size(), out.data());
  EXPECT_NEAR(out[0], 2 * 7 / (1 + std::exp(-7.0)), 1e-5);
  EXPECT_TRUE(std::isnan(out[2]) && std::isnan(out[3]));
  EXPECT_NEAR(out[4], -6 * 7 / (1 + std::exp(-7.0)), 1e-4);
}

TEST(Elementwise, ClampKeepsNanAndBoundsInfinity) {
  std::vector<float> x = {-kInf, -3.0f, -2.0f, 0.5f, 2.0f, 2.5f, kInf, kNan};
  clamp({}, 2.0f, x.size(), x.data());
  EXPECT_TRUE(same_bits(std::vector<float>{-2.0f, -2.0f, -2.0f, 0.5f, 2.0f, 2.0f, 2.0f, kNan}, x));
}

TEST(Elementwise, ReluKeepsNanAndWhatIsNotNegative) {
  std::vector<float> x = {-1.0f, -0.0f, 0.0f, 2.5f, kNan, -kInf, kInf, -1e-45f};
  relu({nullptr, Isa::kScalar}, x.size(), x.data());
  EXPECT_TRUE(std::isnan(x[4]));
  x[4] = 0.0f;
  EXPECT_EQ(x, (std::vector<float>{0.0f, 0.0f, 0.0f, 2.5f, 0.0f, 0.0f, kInf, 0.0f}));
}

TEST(Softmax, SameEverywhereAndNearDoublePrecision) {
  std::mt19937_64 random = test_random(4);
  for (const std::size_t cols : {1, 2, 15, 16, 17, 60, 64, 128, 1000}) {
    const std::size_t rows = 1 + random() % 100;
    std::vector<float> x = normal_floats(random, rows * cols);
    for (float& v : x) v *= 5.0f;
    const auto softmax = [&](const Context& ctx) {
      std::vector<float> y = x;
      softmax_rows(ctx, y.data(), rows, cols);
      return y;
    };
    expect_same_everywhere(softmax);
    const std::vector<float> y = softmax({nullptr, best_isa()});
    for (std::size_t r = 0; r < rows; ++r) {
      double largest = -HUGE_VAL, total = 0;
      for (std::size_t c = 0; c < cols; ++c) largest = std::max(largest, double{x[r * cols + c]});
      for (std::size_t c = 0; c < cols; ++c) total += std::exp(double{x[r * cols + c]} - largest);
      for (std::size_t c = 0; c < cols; ++c) {
        const double exact = std::exp(double{x[r * cols + c]} - largest) / total;
        const double far =
            std::fabs(double{x[r * cols + c]} - largest) + 5;  // rounding of x − max, made relative
        EXPECT_NEAR(y[r * cols + c], exact,
                    (far + 10 + static_cast<double>(cols) / 16) * 0x1p-24 * exact + 1e-44);
      }
    }
    std::vector<float> wild = wild_floats(random, rows * cols);
    wild[0] = -kInf;
    expect_same_everywhere([&](const Context& ctx) {
      std::vector<float> z = wild;
      softmax_rows(ctx, z.data(), rows, cols);
      return z;
    });
  }
}

TEST(Rope, BothFormsAgainstComplexRotation) {
  std::mt19937_64 random = test_random(5);
  for (const std::size_t half : {1, 3, 32, 64}) {
    const std::size_t heads = 3, stride = 2 * half + 5;
    std::vector<float> cos(half), sin(half);
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = 17.0 * std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half));
      cos[i] = static_cast<float>(std::cos(angle));
      sin[i] = static_cast<float>(std::sin(angle));
    }
    const std::vector<float> x = normal_floats(random, heads * stride);
    for (const RopeForm form : {RopeForm::kHalf, RopeForm::kInterleaved}) {
      std::vector<float> y = x;
      rope(form, y.data(), heads, stride, half, cos.data(), sin.data());
      for (std::size_t h = 0; h < heads; ++h) {
        for (std::size_t i = 0; i < half; ++i) {
          const bool halves = form == RopeForm::kHalf;
          const double a = x[h * stride + (halves ? i : 2 * i)];
          const double b = x[h * stride + (halves ? i + half : 2 * i + 1)];
          const double bound = 3 * 0x1p-24 * (std::fabs(a) + std::fabs(b));
          EXPECT_NEAR(y[h * stride + i], a * double{cos[i]} - b * double{sin[i]}, bound);
          EXPECT_NEAR(y[h * stride + i + half], b * double{cos[i]} + a * double{sin[i]}, bound);
        }
        for (std::size_t i = 2 * half; i < stride; ++i) EXPECT_EQ(y[h * stride + i], x[h * stride + i]);
      }
    }
  }
}

TEST(Argmax, TiesNanAndInfinity) {
  const auto argmax_of = [](std::vector<float> x) { return argmax(x.data(), x.size()); };
  EXPECT_EQ(argmax_of({3.0f}), 0u);
  EXPECT_EQ(argmax_of({1.0f, 5.0f, 5.0f, 2.0f}), 1u);
  EXPECT_EQ(argmax_of({-0.0f, 0.0f}), 0u);
  EXPECT_EQ(argmax_of({kNan, 1.0f, kNan, 2.0f, kNan}), 3u);
  EXPECT_EQ(argmax_of({kNan, -kInf}), 1u);
  EXPECT_EQ(argmax_of({kNan, kNan}), 0u);
  EXPECT_EQ(argmax_of({1.0f, kInf, kInf}), 1u);
}

TEST(Argmax, IsTheFirstOfTheLargest) {
  std::mt19937_64 random = test_random(9);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<float> x(1 + random() % 200);
    for (float& number : x) {
      const std::uint64_t kind = random() % 8;
      number = kind == 0 ? kNan : kind == 1 ? -kInf : static_cast<float>(random() % 9) - 4;
    }
    std::size_t expected = 0;
    for (std::size_t i = 1; i < x.size(); ++i)
      if (x[i] > x[expected] || (std::isnan(x[expected]) && !std::isnan(x[i]))) expected = i;
    EXPECT_EQ(argmax(x.data(), x.size()), expected) << x.size() << " numbers";
  }
}

TEST(Elementwise, ReadsAndWritesNothingOutside) {
  for (std::size_t n = 1; n <= 50; ++n) {
    const std::vector<float> numbers(n, 0.5f);
    GuardedBytes x(bytes_of(numbers)), y(bytes_of(numbers)), z(bytes_of(numbers));
    for (const Isa isa : available_isas()) {
      const Context ctx{nullptr, isa};
      rms_norm(ctx, x.floats(), 1, n, n, std::span(y.floats(), n), 1e-5f, z.floats(), n);
      silu_mul(ctx, x.floats(), y.floats(), n, z.floats());
      clamped_mul(ctx, {2.0f, 1.7f}, x.floats(), y.floats(), n, z.floats());
      clamped_mul_pairs(ctx, {2.0f, 1.7f}, x.floats(), n / 2, z.floats());
      add_scaled(ctx, x.floats(), 2.0f, n, z.floats());
      softmax_rows(ctx, z.floats(), 1, n);
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
