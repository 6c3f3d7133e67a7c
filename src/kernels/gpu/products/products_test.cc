// Kernels of products. Oracle: the host's kernels, scalar and of the widest instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "kernels/gpu/gpu_formats.h"
#include "kernels/gpu/gpu_test_units.h"
#include "kernels/gpu/run_products-inl.h"
#include "kernels/ops/host_ops.h"
#include "kernels/products/input_form.h"
#include "kernels/products/products.h"

namespace sluice::kernels::gpu::products_test {
namespace {

using codec::MatrixFormat;

std::vector<const MatrixFormat*> formats() {
  std::vector<const MatrixFormat*> all;
  for (const MatrixFormat* const format : codec::matrix_formats())
    if (gpu_multiplies(*format)) all.push_back(format);
  return all;
}

std::size_t below(std::mt19937_64& random, std::size_t end) { return random() % end; }

// At least one, and whole blocks where the format has no others.
std::size_t some_columns(std::mt19937_64& random, const MatrixFormat& format, std::size_t most) {
  const std::size_t columns = 1 + below(random, most);
  if (below(random, 2) == 0 && format.ragged) return columns;
  const std::size_t unit = format.ragged ? 8 : format.block.columns;
  return (columns + unit - 1) / unit * unit;
}

std::vector<float> some_floats(std::mt19937_64& random, std::size_t count) {
  return below(random, 2) == 0 ? wild_floats(random, count) : normal_floats(random, count);
}

std::vector<float> some_bias(std::mt19937_64& random, std::size_t rows) {
  return below(random, 2) == 0 ? std::vector<float>() : normal_floats(random, rows);
}

class GpuProducts : public OnUnits {};
INSTANTIATE_TEST_SUITE_P(Units, GpuProducts, test_units(), unit_of_test);

// Calls compute() on each of the host's sets that is an oracle.
template <class Compute>
void for_each_oracle(const Compute& compute) {
  for (const Isa isa : {Isa::kScalar, best_isa()}) {
    Context context;
    context.isa = isa;
    HostOps ops(context);
    compute(ops);
  }
}

std::vector<float> unset(std::size_t count) { return std::vector<float>(count, -123.25f); }

TEST_P(GpuProducts, MatmulHasTheHostsBits) {
  std::mt19937_64 random = test_random(1);
  for (const MatrixFormat* const format : formats()) {
    for (int trial = 0; trial < 60; ++trial) {
      const std::size_t rows = 1 + below(random, 70), columns = some_columns(random, *format, 700);
      const std::size_t tokens = 1 + below(random, trial % 4 == 0 ? 70 : 9), stride = rows + below(random, 3);
      const TestMatrix weight(random, *format, rows, columns, trial % 3 == 0, below(random, 3) == 0 ? 1 : 0);
      const std::vector<float> bias = some_bias(random, rows);
      const std::vector<float> x = some_floats(random, tokens * columns);
      std::vector<float> arranged(tokens * activation_floats(weight.ref()));
      arrange_for({}, weight.ref(), x.data(), tokens, columns, arranged.data());
      std::vector<float> found = unset(tokens * stride), expected = found;
      const auto op = [&](const std::vector<float>& y) {
        return op::Matmul{.x = floats_of(arranged),
                          .tokens = tokens,
                          .weight = &weight.ref(),
                          .bias = vector_of(bias),
                          .y = floats_of(y),
                          .y_stride = stride};
      };
      run_on(GetParam(), op(found));
      for_each_oracle([&](HostOps& host) {
        host.run(op(expected));
        ASSERT_TRUE(same_bits(expected, found))
            << format->name << " " << rows << " x " << columns << ", " << tokens << " tokens";
      });
    }
  }
}

TEST_P(GpuProducts, LargeMatricesTakeEachWayOfCuttingThemUp) {
  std::mt19937_64 random = test_random(2);
  struct Case {
    std::size_t rows, columns, tokens;
  };
  for (const MatrixFormat* const format : formats()) {
    // Columns: so that the loop that reads ahead runs often, seldom, and not at all.
    for (const Case& each : {Case{8500, 64, 1}, Case{4300, 96, 1}, Case{17000, 32, 8}, Case{17000, 488, 6},
                             Case{9000, 328, 7}, Case{9000, 104, 4}, Case{4300, 64, 3}, Case{9000, 200, 2},
                             Case{700, 200, 200}, Case{300, 520, 64}, Case{37, 1224, 20}}) {
      const std::size_t columns = format->ragged ? each.columns
                                                 : (each.columns + format->block.columns - 1) /
                                                       format->block.columns * format->block.columns;
      const TestMatrix weight(random, *format, each.rows, columns, false);
      const std::vector<float> x = normal_floats(random, each.tokens * columns);
      std::vector<float> arranged(each.tokens * activation_floats(weight.ref()));
      arrange_for({}, weight.ref(), x.data(), each.tokens, columns, arranged.data());
      std::vector<float> found = unset(each.tokens * each.rows), expected = found;
      const auto op = [&](const std::vector<float>& y) {
        return op::Matmul{.x = floats_of(arranged),
                          .tokens = each.tokens,
                          .weight = &weight.ref(),
                          .y = floats_of(y),
                          .y_stride = each.rows};
      };
      run_on(GetParam(), op(found));
      Context context;
      context.isa = best_isa();
      HostOps(context).run(op(expected));
      ASSERT_TRUE(same_bits(expected, found)) << format->name << " " << each.rows << " rows";
    }
  }
}

TEST_P(GpuProducts, TransposedHasTheHostsBits) {
  std::mt19937_64 random = test_random(3);
  for (const MatrixFormat* const format : formats()) {
    if (!gpu_multiplies_transposed(*format)) continue;
    for (int trial = 0; trial < 40; ++trial) {
      const std::size_t rows = 1 + below(random, 40), columns = 1 + below(random, 150);
      const std::size_t tokens = 1 + below(random, 20), x_stride = rows + below(random, 3),
                        y_stride = columns + below(random, 3);
      const TestMatrix weight(random, *format, rows, columns, trial % 2 == 0, below(random, 3) == 0 ? 1 : 0);
      const std::vector<float> x = some_floats(random, tokens * x_stride);
      std::vector<float> found = unset(tokens * y_stride), expected = found;
      const auto op = [&](const std::vector<float>& y) {
        return op::MatmulTransposed{.x = floats_of(x),
                                    .tokens = tokens,
                                    .x_stride = x_stride,
                                    .weight = weight.ref(),
                                    .y = floats_of(y),
                                    .y_stride = y_stride};
      };
      run_on(GetParam(), op(found));
      for_each_oracle([&](HostOps& host) {
        host.run(op(expected));
        ASSERT_TRUE(same_bits(expected, found)) << format->name << " " << rows << " x " << columns;
      });
    }
  }
}

TEST_P(GpuProducts, ArrangeAndProjectHaveTheHostsBits) {
  std::mt19937_64 random = test_random(4);
  for (const MatrixFormat* const format : formats()) {
    for (int trial = 0; trial < 10; ++trial) {
      const std::size_t rows = 1 + below(random, 30), columns = some_columns(random, *format, 400);
      const std::size_t tokens = 1 + below(random, 5), x_stride = columns + below(random, 4);
      const TestMatrix weight(random, *format, rows, columns, false);
      const std::vector<float> x = some_floats(random, tokens * x_stride), bias = some_bias(random, rows);
      std::vector<float> arranged = unset(tokens * activation_floats(weight.ref())), room = arranged;
      std::vector<float> found = unset(tokens * rows), expected = found;
      const auto op = [&](const std::vector<float>& y, const std::vector<float>& to) {
        return op::Project{.x = floats_of(x),
                           .tokens = tokens,
                           .x_stride = x_stride,
                           .weight = weight.ref(),
                           .bias = vector_of(bias),
                           .arranged = floats_of(to),
                           .y = floats_of(y),
                           .y_stride = rows};
      };
      run_on(GetParam(), op(found, arranged));
      for_each_oracle([&](HostOps& host) {
        host.run(op(expected, room));
        ASSERT_TRUE(same_bits(room, arranged)) << format->name << " " << columns << " columns";
        ASSERT_TRUE(same_bits(expected, found)) << format->name << " " << rows << " x " << columns;
      });
      std::vector<float> again = unset(arranged.size());
      run_on(GetParam(), op::Arrange{.form = *format->input,
                                     .x = floats_of(x),
                                     .tokens = tokens,
                                     .columns = columns,
                                     .x_stride = x_stride,
                                     .arranged = floats_of(again)});
      ASSERT_TRUE(same_bits(room, again));
    }
  }
}

TEST_P(GpuProducts, VectorsHaveTheHostsBits) {
  std::mt19937_64 random = test_random(5);
  const std::vector<const MatrixFormat*> all = formats();
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<TestMatrix> weights;
    std::vector<std::vector<float>> x, bias, found, expected;
    for (int i = 0; i < 3; ++i) {
      const MatrixFormat& format = *all[below(random, all.size())];
      const std::size_t rows = 1 + below(random, 60), columns = some_columns(random, format, 300);
      weights.emplace_back(random, format, rows, columns, false);
      const std::vector<float> plain = normal_floats(random, columns);
      x.emplace_back(activation_floats(weights.back().ref()));
      arrange_for({}, weights.back().ref(), plain.data(), 1, columns, x.back().data());
      bias.push_back(some_bias(random, rows));
      found.push_back(unset(rows));
    }
    expected = found;
    const auto op = [&](const std::vector<std::vector<float>>& y) {
      op::VectorMatmuls all_three;
      for (std::size_t i = 0; i < 3; ++i)
        all_three.products[i] = {floats_of(x[i]), &weights[i].ref(), floats_of(y[i]), vector_of(bias[i])};
      return all_three;
    };
    run_on(GetParam(), op(found));
    for_each_oracle([&](HostOps& host) {
      host.run(op(expected));
      for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(same_bits(expected[i], found[i])) << i;
    });
  }
}

// An MLP with its operands.
struct TestMlp {
  std::vector<TestMatrix> matrices;  // gate where there is one, up, down
  std::vector<float> gate_bias, up_bias, down_bias;
  std::array<std::vector<float>, codec::kInputForms> inputs;
  std::vector<float> gate_room, up_room, inner, out;
  op::Mlp op;

  op::Mlp with_rooms() {
    for (std::vector<float>* const room : {&gate_room, &up_room, &inner})
      std::ranges::fill(*room, std::numeric_limits<float>::quiet_NaN());
    out.assign(out.size(), -123.25f);
    op::Mlp here = op;
    here.gate_room = floats_of(gate_room);
    here.up_room = floats_of(up_room);
    here.inner = floats_of(inner);
    here.out = floats_of(out);
    return here;
  }
};

struct MlpFormats {
  const MatrixFormat *gate, *up, *down;
};

std::unique_ptr<TestMlp> mlp_of(std::mt19937_64& random, const MlpFormats& formats, GatingForm gating,
                                std::size_t d, std::size_t width, std::size_t tokens) {
  auto mlp = std::make_unique<TestMlp>();
  const GatingRow& row = gating_row(gating);
  if (row.gate) mlp->matrices.emplace_back(random, *formats.gate, width, d, false);
  mlp->matrices.emplace_back(random, *formats.up, width * row.up_rows, d, false);
  mlp->matrices.emplace_back(random, *formats.down, d, width, false);
  op::Mlp& op = mlp->op;
  if (row.gate) op.gate = mlp->matrices.front().ref();
  op.up = mlp->matrices[mlp->matrices.size() - 2].ref();
  op.down = mlp->matrices.back().ref();
  op.tokens = tokens;
  op.gating = {gating, {.limit = .7f, .alpha = 1.702f}};
  if (row.gate) mlp->gate_bias = some_bias(random, width);
  mlp->up_bias = some_bias(random, op.up.shape.rows);
  mlp->down_bias = some_bias(random, d);
  op.gate_bias = vector_of(mlp->gate_bias);
  op.up_bias = vector_of(mlp->up_bias);
  op.down_bias = vector_of(mlp->down_bias);
  const std::vector<float> x = normal_floats(random, tokens * d);
  for (std::size_t form = 0; form < codec::kInputForms; ++form) {
    if (form == static_cast<std::size_t>(codec::InputForm::kCells)) continue;
    const InputFormRow& input = input_form(static_cast<codec::InputForm>(form));
    mlp->inputs[form].resize(tokens * input.floats(d));
    input.arrange({}, x.data(), tokens, d, d, mlp->inputs[form].data());
    op.inputs[form] = floats_of(mlp->inputs[form]);
  }
  mlp->gate_room.resize(tokens * width);
  mlp->up_room.resize(tokens * op.up.shape.rows);
  mlp->inner.resize(tokens * activation_floats(op.down));
  mlp->out.resize(tokens * d);
  return mlp;
}

std::unique_ptr<TestMlp> some_mlp(std::mt19937_64& random, std::size_t tokens, bool alike) {
  const std::vector<const MatrixFormat*> all = formats();
  const auto any = [&] { return all[below(random, all.size())]; };
  MlpFormats some{any(), any(), any()};
  if (alike) some.up = some.gate;
  std::size_t d = 1 + below(random, 200);
  for (const MatrixFormat* const format : {some.gate, some.up})
    if (!format->ragged) d = (d + format->block.columns - 1) / format->block.columns * format->block.columns;
  return mlp_of(random, some, static_cast<GatingForm>(below(random, kGatingForms)), d,
                some_columns(random, *some.down, 150), tokens);
}

TEST_P(GpuProducts, MlpsHaveTheHostsBits) {
  std::mt19937_64 random = test_random(6);
  for (int trial = 0; trial < 80; ++trial) {
    const std::size_t count = trial == 0 ? 2 * kProductItems + 5 : 1 + below(random, 5);
    const bool one_token = trial % 2 == 0;
    std::vector<std::unique_ptr<TestMlp>> mlps;
    for (std::size_t i = 0; i < count; ++i)
      mlps.push_back(some_mlp(random, one_token ? 1 : 1 + below(random, 20), below(random, 4) != 0));
    std::vector<op::Mlp> ops;
    for (const auto& mlp : mlps) ops.push_back(mlp->with_rooms());
    run_on(GetParam(), std::span<const op::Mlp>(ops));
    for (const auto& mlp : mlps) {
      const std::vector<float> found = mlp->out;
      for_each_oracle([&](HostOps& host) {
        host.run(mlp->with_rooms());
        ASSERT_TRUE(same_bits(mlp->out, found))
            << mlp->op.up.format->name << ", then " << mlp->op.down.format->name << ", "
            << mlp->op.up.shape.rows << " x " << mlp->op.up.shape.columns << ", " << mlp->op.tokens
            << " tokens, form " << static_cast<int>(mlp->op.gating.form);
      });
    }
  }
}

TEST_P(GpuProducts, WideMlpsTakeEachWayOfCuttingThemUp) {
  std::mt19937_64 random = test_random(8);
  for (const MatrixFormat* const format : formats()) {
    for (const std::size_t width : {std::size_t{8704}, std::size_t{4352}}) {
      const std::size_t d = format->ragged ? 48 : format->block.columns;
      const std::unique_ptr<TestMlp> mlp =
          mlp_of(random, {format, format, &codec::kFormatBf16}, GatingForm::kSilu, d, width, 1);
      const op::Mlp op = mlp->with_rooms();
      run_on(GetParam(), std::span<const op::Mlp>(&op, 1));
      const std::vector<float> found = mlp->out;
      Context context;
      context.isa = best_isa();
      HostOps(context).run(mlp->with_rooms());
      ASSERT_TRUE(same_bits(mlp->out, found)) << format->name << ", width " << width;
    }
  }
}

// Products that underflow leave -0 in the lanes; the half block of zeros behind an odd one makes +0 of it.
TEST_P(GpuProducts, ZerosHaveTheHostsSigns) {
  for (const std::size_t columns : {std::size_t{32}, std::size_t{40}, std::size_t{64}, std::size_t{96}}) {
    const std::vector<float> numbers(3 * columns, -0x1p-90f), x(columns, 0x1p-80f);
    const std::vector<std::byte> words = encode(numbers, DType::kBF16), wide = encode(numbers, DType::kF32);
    const std::vector<std::byte> codes(3 * columns / 2, std::byte{0x99}),
        scales(3 * columns / 32, std::byte{37});
    std::vector<codec::MatrixRef> matrices = {codec::word_matrix(words.data(), DType::kBF16, 3, columns),
                                              codec::word_matrix(wide.data(), DType::kF32, 3, columns)};
    if (columns % 32 == 0)
      matrices.push_back(
          {&codec::kFormatMxfp4Pair,
           {3, columns},
           {device::host_space().address(codes.data()), device::host_space().address(scales.data())}});
    for (const codec::MatrixRef& matrix : matrices) {
      std::vector<float> arranged(activation_floats(matrix)), found = unset(3), expected = found;
      arrange_for({}, matrix, x.data(), 1, columns, arranged.data());
      const auto op = [&](const std::vector<float>& y) {
        return op::Matmul{.x = floats_of(arranged), .weight = &matrix, .y = floats_of(y), .y_stride = 3};
      };
      run_on(GetParam(), op(found));
      for_each_oracle([&](HostOps& host) { host.run(op(expected)); });
      EXPECT_EQ(std::signbit(expected[0]), columns % 64 == 0) << columns;
      ASSERT_TRUE(same_bits(expected, found)) << matrix.format->name << ", " << columns << " columns";
    }
  }
}

TEST_P(GpuProducts, NothingIsDoneForNoTokens) {
  std::mt19937_64 random = test_random(7);
  const TestMatrix weight(random, codec::kFormatBf16, 3, 5, false);
  const std::vector<float> y = unset(3);
  run_on(GetParam(), op::Matmul{.x = floats_of(y), .tokens = 0, .weight = &weight.ref(), .y = floats_of(y)});
  EXPECT_TRUE(same_bits(unset(3), y));
}

}  // namespace
}  // namespace sluice::kernels::gpu::products_test
