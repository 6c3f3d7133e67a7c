// MLPs of every form, against plain double precision, for one token and for several.
#include "kernels/ops/gating.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/machine/thread_pool.h"
#include "kernels/ops/mlp.h"
#include "kernels/products/products.h"
#include "kernels/products/words/matmul.h"
#include "kernels/test_data.h"

namespace sluice::kernels {
namespace {

constexpr std::size_t kHidden = 40, kWidth = 23;  // a width that no vector divides
constexpr float kLimit = 1.5f, kAlpha = 1.702f;

// The numbers of one MLP. `up` has gate and up by turns where the form says so.
struct Numbers {
  GatingForm form;
  std::vector<float> x, gate, up, down, gate_bias, up_bias, down_bias;

  Numbers(std::mt19937_64& random, GatingForm of, std::size_t tokens)
      : form(of), x(normal_floats(random, tokens * kHidden)) {
    const GatingRow& row = gating_row(form);
    const std::size_t up_rows = kWidth * row.up_rows;
    if (row.gate) {
      gate = normal_floats(random, kWidth * kHidden);
      gate_bias = normal_floats(random, kWidth);
    }
    up = normal_floats(random, up_rows * kHidden);
    up_bias = normal_floats(random, up_rows);
    down = normal_floats(random, kHidden * kWidth);
    down_bias = normal_floats(random, kHidden);
    for (auto* matrix : {&gate, &up, &down})
      for (float& weight : *matrix) weight *= 0.2f;
  }
  std::size_t tokens() const { return x.size() / kHidden; }
};

codec::MatrixRef matrix(const std::vector<float>& words, std::size_t rows, std::size_t columns) {
  return codec::word_matrix(reinterpret_cast<const std::byte*>(words.data()), DType::kF32, rows, columns);
}

// The outputs for the first `tokens` tokens.
std::vector<float> run(const Context& ctx, const Numbers& n, std::size_t tokens) {
  const GatingRow& row = gating_row(n.form);
  std::vector<float> arranged(tokens * arranged_floats(kHidden)), gate(tokens * kWidth),
      up(tokens * kWidth * row.up_rows), inner(tokens * arranged_floats(kWidth)), out(tokens * kHidden);
  Mlp one{.gate = row.gate ? matrix(n.gate, kWidth, kHidden) : codec::MatrixRef{},
          .up = matrix(n.up, kWidth * row.up_rows, kHidden),
          .down = matrix(n.down, kHidden, kWidth),
          .out = out.data(),
          .gate_bias = n.gate_bias,
          .up_bias = n.up_bias,
          .down_bias = n.down_bias,
          .gating = {n.form, {kLimit, kAlpha}}};
  arrange_for(ctx, one.up, n.x.data(), tokens, kHidden, arranged.data());
  one.inputs[static_cast<std::size_t>(*one.up.format->input)] = arranged.data();
  mlp(ctx, one, tokens, {gate.data(), up.data(), inner.data()});
  return out;
}

double product(const std::vector<float>& w, std::size_t row, const float* x, const std::vector<float>& bias) {
  double sum = double{bias[row]};
  for (std::size_t c = 0; c < kHidden; ++c) sum += double{w[row * kHidden + c]} * double{x[c]};
  return sum;
}

// What `down` reads as its number i.
double between(const Numbers& n, const float* x, std::size_t i) {
  const bool pairs = n.form == GatingForm::kClampedPairs;
  const double u = product(n.up, pairs ? 2 * i + 1 : i, x, n.up_bias);
  if (n.form == GatingForm::kRelu) return std::max(u, 0.0);
  const double g = pairs ? product(n.up, 2 * i, x, n.up_bias) : product(n.gate, i, x, n.gate_bias);
  if (n.form == GatingForm::kSilu) return g / (1 + std::exp(-g)) * u;
  const double limit = double{kLimit}, cut = std::min(g, limit);
  return (std::clamp(u, -limit, limit) + 1) * cut / (1 + std::exp(-double{kAlpha} * cut));
}

class EveryGating : public ::testing::TestWithParam<GatingForm> {};

TEST_P(EveryGating, IsTheDefinitionOnEveryInstructionSet) {
  std::mt19937_64 random = test_random(1);
  const Numbers n(random, GetParam(), 5);
  const std::vector<float> expected = run({nullptr, Isa::kScalar}, n, n.tokens());
  for (std::size_t t = 0; t < n.tokens(); ++t)
    for (std::size_t r = 0; r < kHidden; ++r) {
      double sum = double{n.down_bias[r]};
      for (std::size_t i = 0; i < kWidth; ++i)
        sum += double{n.down[r * kWidth + i]} * between(n, n.x.data() + t * kHidden, i);
      EXPECT_NEAR(expected[t * kHidden + r], sum, 1e-5);
    }
  for (const Isa isa : available_isas()) {
    ThreadPool pool(2);
    EXPECT_TRUE(same_bits(expected, run({&pool, isa}, n, n.tokens()))) << isa_name(isa);
    // One token goes another way.
    EXPECT_TRUE(same_bits(std::span(expected).first(kHidden), run({&pool, isa}, n, 1))) << isa_name(isa);
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, EveryGating,
                         ::testing::Values(GatingForm::kSilu, GatingForm::kRelu, GatingForm::kClamped,
                                           GatingForm::kClampedPairs));

// Several MLPs of one token at once, of different forms: none disturbs another's room.
TEST(MlpsTogether, HaveTheBitsOfEach) {
  std::mt19937_64 random = test_random(2);
  std::vector<Numbers> all;
  for (const GatingForm form : {GatingForm::kClampedPairs, GatingForm::kSilu, GatingForm::kClamped,
                                GatingForm::kRelu, GatingForm::kClampedPairs}) {
    all.emplace_back(random, form, 1);
    all.back().x = all.front().x;
  }
  const Context ctx{nullptr, best_isa()};
  std::vector<float> arranged(arranged_floats(kHidden)), gate(5 * kWidth), up(5 * 2 * kWidth),
      inner(5 * arranged_floats(kWidth));
  std::vector<std::vector<float>> out(all.size(), std::vector<float>(kHidden));
  std::vector<Mlp> mlps;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Numbers& n = all[i];
    const GatingRow& row = gating_row(n.form);
    Mlp& one = mlps.emplace_back(Mlp{.gate = row.gate ? matrix(n.gate, kWidth, kHidden) : codec::MatrixRef{},
                                     .up = matrix(n.up, kWidth * row.up_rows, kHidden),
                                     .down = matrix(n.down, kHidden, kWidth),
                                     .out = out[i].data(),
                                     .gate_bias = n.gate_bias,
                                     .up_bias = n.up_bias,
                                     .down_bias = n.down_bias,
                                     .gating = {n.form, {kLimit, kAlpha}}});
    arrange_for(ctx, one.up, n.x.data(), 1, kHidden, arranged.data());
    one.inputs[static_cast<std::size_t>(*one.up.format->input)] = arranged.data();
  }
  mlps_together(ctx, mlps, {gate.data(), up.data(), inner.data()});
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(same_bits(run(ctx, all[i], 1), out[i])) << i;
}

}  // namespace
}  // namespace sluice::kernels
