// Products by units for matrices. Oracle: sums in double precision of activations that are rounded to BF16.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "base/float16.h"
#include "kernels/gpu/gpu_test_units.h"
#include "kernels/gpu/run_products-inl.h"
#include "kernels/ops/host_ops.h"
#include "kernels/products/products.h"

namespace sluice::kernels::gpu {
namespace {

std::size_t below(std::mt19937_64& random, std::size_t end) { return random() % end; }

class FastProducts : public OnUnits {};
INSTANTIATE_TEST_SUITE_P(Units, FastProducts, test_units(), unit_of_test);

// A product with its operands.
struct Product {
  Product(std::mt19937_64& random, std::size_t rows, std::size_t columns, std::size_t tokens)
      : weight(random, codec::kFormatBf16, rows, columns, false),
        bias(below(random, 2) == 0 ? std::vector<float>() : normal_floats(random, rows)),
        x(normal_floats(random, tokens * columns)),
        tokens(tokens),
        arranged(tokens * activation_floats(weight.ref())) {
    arrange_for({}, weight.ref(), x.data(), tokens, columns, arranged.data());
  }
  std::size_t rows() const { return weight.ref().shape.rows; }
  std::size_t columns() const { return weight.ref().shape.columns; }
  // The outputs of `count` tokens from `first` on.
  std::vector<float> run(TestUnit unit, std::size_t first, std::size_t count, bool exact = false) const {
    std::vector<float> y(count * rows());
    run_on(unit,
           op::Matmul{.x = floats_of(arranged) + first * activation_floats(weight.ref()),
                      .tokens = count,
                      .weight = &weight.ref(),
                      .bias = vector_of(bias),
                      .y = floats_of(y),
                      .y_stride = rows(),
                      .exact = exact},
           kFast);
    return y;
  }

  TestMatrix weight;
  std::vector<float> bias, x;
  std::size_t tokens;
  std::vector<float> arranged;
};

double weight_at(const Product& product, std::size_t row, std::size_t column) {
  const std::byte* const words = device::host_space().pointer(product.weight.ref().planes[0]);
  std::uint16_t word;
  std::memcpy(&word, words + 2 * (row * product.columns() + column), sizeof(word));
  return bf16_to_float(word);
}

void expect_near(const Product& product, const std::vector<float>& found) {
  for (std::size_t t = 0; t < product.tokens; ++t)
    for (std::size_t row = 0; row < product.rows(); ++row) {
      double sum = product.bias.empty() ? 0 : product.bias[row], size = std::abs(sum);
      for (std::size_t c = 0; c < product.columns(); ++c) {
        const double x = bf16_to_float(float_to_bf16(product.x[t * product.columns() + c]));
        sum += weight_at(product, row, c) * x;
        size += std::abs(weight_at(product, row, c) * x);
      }
      // A unit may cut off what is 2^-23 of the largest that it adds at a time.
      ASSERT_NEAR(found[t * product.rows() + row], sum, size * 1e-6 + 1e-30)
          << product.rows() << " x " << product.columns() << ", token " << t << " of " << product.tokens;
    }
}

TEST_P(FastProducts, AreNearTheSumsOfRoundedActivations) {
  std::mt19937_64 random = test_random(1);
  for (int trial = 0; trial < 60; ++trial) {
    const Product product(random, 1 + below(random, 90), 8 * (1 + below(random, 90)), 1 + below(random, 40));
    expect_near(product, product.run(GetParam(), 0, product.tokens));
  }
}

TEST_P(FastProducts, DoNotDependOnWhatElseIsMultiplied) {
  std::mt19937_64 random = test_random(2);
  struct Case {
    std::size_t rows, columns, tokens;
  };
  // So that each way of cutting up a launch is taken.
  for (const Case& one : {Case{40, 200, 70},
                          {34000, 40, 6},
                          {34000, 32, 12},
                          {40, 72, 12},
                          {2200, 64, 1000},
                          {1100, 64, 1000}}) {
    const Product product(random, one.rows, one.columns, one.tokens);
    const std::vector<float> all = product.run(GetParam(), 0, product.tokens);
    if (one.rows < 100) expect_near(product, all);
    for (int trial = 0; trial < 4; ++trial) {
      const std::size_t first = below(random, product.tokens),
                        count = 1 + below(random, product.tokens - first);
      const std::vector<float> some = product.run(GetParam(), first, std::min<std::size_t>(count, 40));
      ASSERT_TRUE(std::ranges::equal(some, std::span(all).subspan(first * product.rows(), some.size())))
          << first << ", " << some.size() / product.rows() << " tokens";
    }
  }
}

TEST_P(FastProducts, ThoseOfRoutersHaveTheHostsBits) {
  std::mt19937_64 random = test_random(3);
  const Product product(random, 60, 512, 9);
  std::vector<float> expected(product.tokens * product.rows());
  matmul({}, product.arranged.data(), product.tokens, product.weight.ref(), product.bias, expected.data(),
         product.rows());
  EXPECT_TRUE(same_bits(expected, product.run(GetParam(), 0, product.tokens, true)));
  EXPECT_FALSE(same_bits(expected, product.run(GetParam(), 0, product.tokens)));
}

// Experts of each form, whose inner numbers go from one product to the next.
TEST_P(FastProducts, MlpsAreNearTheHosts) {
  std::mt19937_64 random = test_random(4);
  for (int trial = 0; trial < 40; ++trial) {
    const auto form = static_cast<GatingForm>(trial % kGatingForms);
    const GatingRow& row = gating_row(form);
    const std::size_t d = 8 * (1 + below(random, 30)), width = 8 * (1 + below(random, 30)),
                      tokens = 1 + below(random, 40);
    const TestMatrix gate(random, codec::kFormatBf16, width, d, false),
        up(random, codec::kFormatBf16, width * row.up_rows, d, false),
        down(random, codec::kFormatBf16, d, width, false);
    const std::vector<float> x = normal_floats(random, tokens * d);
    std::vector<float> arranged(tokens * activation_floats(up.ref())), gate_room(tokens * width),
        up_room(tokens * width * row.up_rows), inner(tokens * activation_floats(down.ref())),
        found(tokens * d), alone(d);
    arrange_for({}, up.ref(), x.data(), tokens, d, arranged.data());
    op::Mlp mlp;
    if (row.gate) mlp.gate = gate.ref();
    mlp.up = up.ref();
    mlp.down = down.ref();
    mlp.gating = {form, {.limit = .7f, .alpha = 1.702f}};
    mlp.inputs.fill(floats_of(arranged));
    mlp.tokens = tokens;
    mlp.gate_room = floats_of(gate_room);
    mlp.up_room = floats_of(up_room);
    mlp.inner = floats_of(inner);
    mlp.out = floats_of(found);
    run_on(GetParam(), std::span<const op::Mlp>(&mlp, 1), kFast);
    std::vector<float> expected(found.size());
    op::Mlp here = mlp;
    here.out = floats_of(expected);
    HostOps(Context{}).run(here);
    double error = 0, size = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      error += std::pow(double{found[i]} - expected[i], 2);
      size += std::pow(double{expected[i]}, 2);
    }
    EXPECT_LT(error, 1e-3 * size) << static_cast<int>(form) << ", " << d << ", " << width;
    here.tokens = 1;
    here.inputs.fill(floats_of(arranged) + (tokens - 1) * activation_floats(up.ref()));
    here.out = floats_of(alone);
    run_on(GetParam(), std::span<const op::Mlp>(&here, 1), kFast);
    EXPECT_TRUE(std::ranges::equal(alone, std::span(found).last(d)));
  }
}

}  // namespace
}  // namespace sluice::kernels::gpu
