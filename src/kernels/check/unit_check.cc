#include "kernels/check/unit_check.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "device/space.h"
#include "kernels/check/unit_operands.h"
#include "kernels/ops/host_place-inl.h"
#include "kernels/ops/run-inl.h"

namespace sluice::kernels {
namespace {

using codec::MatrixFormat;
using codec::MatrixRef;
using device::Traffic;

constexpr std::size_t kColumns = 150;  // no multiple of anything

template <class Op>
void run_here(const Op& op) {
  run_at(Context{}, HostPlace{}, op);
}
void run_here(const std::vector<op::Mlp>& mlps) {
  for (const op::Mlp& one : mlps) run_here(one);
}

template <class Op>
void run_there(UnitKernels& kernels, const device::Access& access, const Op& op) {
  kernels.run(access, op);
}
void run_there(UnitKernels& kernels, const device::Access& access, const std::vector<op::Mlp>& mlps) {
  kernels.run(access, std::span(mlps));
}

class Trials {
 public:
  Trials(device::Device& device, UnitKernels& kernels, DeviceMath math)
      : device_(device),
        kernels_(kernels),
        math_(math),
        block_(device.memory().allocate(device::Account::kActivations, UnitOperands::kBytes)) {}

  // `build(operands)` makes the operation. One that has failed is not tried again.
  template <class Build>
  void with(const UnitFault& what, const Build& build) {
    const auto failed = std::ranges::find(check_.faults, what.operation, &UnitFault::operation);
    if (failed != check_.faults.end()) return;
    if (what.operation != last_) check_.tried += 1;
    last_ = what.operation;
    UnitOperands here, there(block_.address());
    const auto expected = build(here), asked = build(there);
    run_here(expected);
    const bool may_differ = math_ == DeviceMath::kFast && what.format == &codec::kFormatBf16;
    std::string found = fault_of(asked, here, there, may_differ);
    if (found.empty()) return;
    UnitFault fault = what;
    fault.found = std::move(found);
    check_.faults.push_back(std::move(fault));
  }
  UnitCheck result() { return std::move(check_); }

 private:
  // Empty: there is none.
  template <class Op>
  std::string fault_of(const Op& op, UnitOperands& here, UnitOperands& there, bool may_differ) {
    device::Stream& stream = device_.compute();
    std::vector<std::byte> found(there.bytes().size());
    const device::Ticket down = device_.link().copy(there.bytes(), block_.address(), Traffic::kDemand);
    stream.wait(down.event());
    stream.enqueue({[&](const device::Access& access) { run_there(kernels_, access, op); }});
    const device::Ticket up =
        device_.link().copy_back(block_.address(), found, Traffic::kResult, stream.record());
    down.event().settled().wait();
    up.event().settled().wait();
    try {
      stream.synchronize();
      up.event().wait();
    } catch (const Error& error) {
      if (device_.lost()) throw;
      return error.what();
    }
    if (may_differ) return here.near(found) ? "" : "numbers far from the host's";
    return here.same(found) ? "" : "other bits than the host's";
  }

  device::Device& device_;
  UnitKernels& kernels_;
  const DeviceMath math_;
  const device::Block block_;
  UnitCheck check_;
  std::string last_;  // that was tried
};

// Both dimensions of a square that a format can hold.
std::size_t side_of(const MatrixFormat& format) {
  if (&format == &codec::kFormatPacked) return 128;
  return std::max<std::size_t>(64, format.block.columns);
}

op::Mlp mlp_of(UnitOperands& operands, const MatrixFormat& format, const Gating& gating, std::size_t tokens,
               bool biases, std::size_t offset) {
  const GatingRow& row = gating_row(gating.form);
  const std::size_t d = side_of(format), width = d, rows = 24;
  op::Mlp mlp;
  if (row.gate) mlp.gate = operands.matrix(format, width, d, offset);
  mlp.up = operands.matrix(format, width * row.up_rows, d, offset);
  mlp.down = operands.matrix(format, rows, width, offset);
  if (biases) {
    if (row.gate) mlp.gate_bias = operands.vector(width);
    mlp.up_bias = operands.vector(width * row.up_rows);
    mlp.down_bias = operands.vector(rows);
  }
  mlp.gating = gating;
  const std::size_t form = static_cast<std::size_t>(*format.input);
  mlp.inputs[form] = operands.numbers(tokens * input_form(*format.input).floats(d));
  mlp.tokens = tokens;
  mlp.gate_room = operands.room(tokens * width);
  mlp.up_room = operands.room(tokens * width * row.up_rows);
  mlp.inner = operands.room(tokens * input_form(*format.input).floats(width));
  mlp.out = operands.numbers(tokens * rows);
  return mlp;
}

void try_mlps(Trials& trials, const UnitFault& what, const MatrixFormat& format, const Gating& gating) {
  struct Case {
    std::size_t tokens, offset;
    bool biases;
  };
  for (const Case& one :
       {Case{1, 0, false}, {2, 0, true}, {4, 0, false}, {7, 0, true}, {20, 0, false}, {3, 4, false}})
    trials.with(what, [&](UnitOperands& operands) {
      std::vector<op::Mlp> mlps;
      mlps.push_back(mlp_of(operands, format, gating, one.tokens, one.biases, one.offset));
      mlps.push_back(mlp_of(operands, format, gating, 1, false, one.offset));
      return mlps;
    });
}

void try_matmuls(Trials& trials, const MatrixFormat& format) {
  const UnitFault what{.operation = fmt::format("products with dense matrices in {}", format.name),
                       .of_dense = true,
                       .format = &format};
  const std::size_t columns = side_of(format);
  const auto arranged = [&](UnitOperands& operands, std::size_t tokens, std::size_t of) {
    return operands.numbers(tokens * input_form(*format.input).floats(of));
  };
  for (const std::size_t tokens : {1, 2, 4, 7, 20})
    trials.with(what, [&](UnitOperands& operands) {
      const MatrixRef& weight = operands.matrix(format, 13, columns);
      return op::Matmul{.x = arranged(operands, tokens, columns),
                        .tokens = tokens,
                        .weight = &weight,
                        .bias = operands.vector(13),
                        .y = operands.numbers(tokens * 13),
                        .y_stride = 13};
    });
  trials.with(what, [&](UnitOperands& operands) {
    op::VectorMatmuls op;
    for (op::VectorMatmul& one : op.products) {
      one.weight = &operands.matrix(format, 16, columns, 4);
      one.x = arranged(operands, 1, columns);
      one.y = operands.numbers(16);
    }
    return op;
  });
  if (!format.words) return;
  trials.with(what, [&](UnitOperands& operands) {
    const std::size_t tokens = 3;
    return op::Project{.x = operands.numbers(tokens * 160),
                       .tokens = tokens,
                       .x_stride = 160,
                       .weight = operands.matrix(format, 13, kColumns),
                       .arranged = operands.room(tokens * input_form(*format.input).floats(kColumns)),
                       .y = operands.numbers(tokens * 13),
                       .y_stride = 13};
  });
  trials.with({.operation = fmt::format("products with columns of dense matrices in {}", format.name),
               .of_dense = true,
               .format = &format},
              [&](UnitOperands& operands) {
                return op::MatmulTransposed{.x = operands.numbers(5 * 13),
                                            .tokens = 5,
                                            .x_stride = 13,
                                            .weight = operands.matrix(format, 13, kColumns),
                                            .y = operands.numbers(5 * kColumns),
                                            .y_stride = kColumns};
              });
}

void try_caches(Trials& trials, DType dtype) {
  static constexpr std::array<std::uint32_t, 3> kBlocks = {2, 0, 1};
  const auto what = [&](const char* text) {
    return UnitFault{.operation = fmt::format("{} a {} cache", text, dtype_name(dtype)), .of_dense = true};
  };
  trials.with(what("writing to"), [&](UnitOperands& operands) {
    return op::StoreCache{.x = operands.numbers(5 * 100),
                          .tokens = 5,
                          .x_stride = 100,
                          .first_position = 30,
                          .to = operands.cache(dtype, 96, 2, 48, kBlocks.data())};
  });
  trials.with(what("copies within"), [&](UnitOperands& operands) {
    return op::CopyCacheRows{.in = operands.cache(dtype, 64, 2, 48), .from = 32, .rows = 7, .to = 3};
  });
  const auto attention = [&](UnitOperands& operands, const AttentionShape& shape, std::size_t tokens,
                             std::size_t first) {
    op::Attention op;
    op.shape = shape;
    op.tokens = tokens;
    op.first_position = first;
    op.q = operands.numbers(tokens * shape.heads * shape.key_dim);
    op.out = operands.numbers(tokens * shape.heads * shape.value_dim);
    op.scratch_floats = attention_scratch_floats(shape, first + tokens);
    op.scratch = operands.room(op.scratch_floats);
    return op;
  };
  trials.with(what("attention over"), [&](UnitOperands& operands) {
    op::Attention op = attention(operands, {4, 2, 40, 24, 0.17f, 37}, 3, 42);
    op.keys = operands.cache(dtype, 96, 2, 40, kBlocks.data());
    op.values = operands.cache(dtype, 96, 2, 24, kBlocks.data());
    op.bias_center = 44;
    op.bias_stride = 92;
    op.bias = operands.numbers(4 * op.bias_stride);
    op.sinks = operands.vector(4);
    return op;
  });
  // One head of keys, whose beginnings are the values.
  trials.with(what("attention over"), [&](UnitOperands& operands) {
    op::Attention op = attention(operands, {4, 1, 72, 64, 0.11f}, 1, 70);
    op.keys = op.values = operands.cache(dtype, 96, 1, 72, kBlocks.data());
    return op;
  });
}

void try_rows(Trials& trials) {
  const auto what = [](const char* text) { return UnitFault{.operation = text, .of_dense = true}; };
  constexpr std::size_t kRows = 5, kCount = kRows * kColumns;
  trials.with(what("norms of rows"), [&](UnitOperands& operands) {
    return op::RmsNorm{.x = operands.numbers(kRows * 160),
                       .rows = kRows,
                       .columns = kColumns,
                       .x_stride = 160,
                       .weight = operands.vector(kColumns),
                       .eps = 1e-6f,
                       .y = operands.numbers(kCount),
                       .y_stride = kColumns};
  });
  trials.with(what("arranging activations"), [&](UnitOperands& operands) {
    return op::Arrange{
        .form = codec::InputForm::kWords,
        .x = operands.numbers(kRows * 160),
        .tokens = kRows,
        .columns = kColumns,
        .x_stride = 160,
        .arranged = operands.numbers(kRows * input_form(codec::InputForm::kWords).floats(kColumns))};
  });
  for (const RopeForm form : {RopeForm::kHalf, RopeForm::kInterleaved})
    trials.with(what("rotary positions"), [&](UnitOperands& operands) {
      return op::Rope{.form = form,
                      .x = operands.numbers(3 * 200),
                      .tokens = 3,
                      .token_stride = 200,
                      .heads = 2,
                      .head_stride = 90,
                      .half = 33,
                      .cos = operands.numbers(3 * 33),
                      .sin = operands.numbers(3 * 33)};
    });
  trials.with(what("sums of numbers"), [&](UnitOperands& operands) {
    return op::Add{operands.numbers(kCount), kCount, operands.numbers(kCount)};
  });
  trials.with(what("sums of rows"), [&](UnitOperands& operands) {
    return op::AddToRows{
        .x = operands.numbers(kColumns), .rows = kRows, .columns = kColumns, .to = operands.numbers(kCount)};
  });
  trials.with(what("multiples of numbers"), [&](UnitOperands& operands) {
    return op::Scale{0.3f, kCount, operands.numbers(kCount)};
  });
  trials.with(what("limits of numbers"), [&](UnitOperands& operands) {
    return op::Clamp{0.8f, kCount, operands.numbers(kCount)};
  });
  trials.with(what("zeros"), [&](UnitOperands& operands) {
    return op::Clear{kCount, operands.numbers(kCount)};
  });
  trials.with(what("gates of rows"), [&](UnitOperands& operands) {
    return op::GateRows{operands.numbers(kRows), kRows, kColumns, operands.numbers(kCount)};
  });
  trials.with(what("copies of rows"), [&](UnitOperands& operands) {
    return op::CopyRows{.from = operands.numbers(kRows * 160),
                        .rows = kRows,
                        .columns = kColumns,
                        .from_stride = 160,
                        .to = operands.numbers(kCount),
                        .to_stride = kColumns};
  });
  static constexpr std::array<op::WeightedRow, 4> kSums = {
      {{0, 2, 0.3f}, {1, 0, 0.7f}, {0, 1, -.2f}, {1, 1, 1}}};
  trials.with(what("weighted sums of rows"), [&](UnitOperands& operands) {
    return op::CombineRows{.rows = operands.numbers(3 * kColumns),
                           .row_count = 3,
                           .columns = kColumns,
                           .sums = kSums,
                           .to = operands.numbers(2 * kColumns),
                           .tokens = 2};
  });
}

void try_experts(Trials& trials, const UnitWork& work) {
  if (work.experts.empty()) return;
  static constexpr std::array<std::uint32_t, 3> kWhich = {4, 0, 4};
  trials.with({.operation = "gathering rows of experts", .of_experts = true}, [&](UnitOperands& operands) {
    return op::GatherRows{.from = operands.numbers(5 * kColumns),
                          .from_rows = 5,
                          .columns = kColumns,
                          .which = kWhich,
                          .to = operands.numbers(3 * kColumns)};
  });
  for (const MatrixFormat* const format : work.experts)
    try_mlps(trials,
             {.operation = fmt::format("experts in {}", format->name), .of_experts = true, .format = format},
             *format, work.gating);
}

}  // namespace

UnitCheck check_unit(device::Device& device, UnitKernels& kernels, const UnitWork& work) {
  Trials trials(device, kernels, work.math);
  try_experts(trials, work);
  if (!work.dense_part) return trials.result();
  try_rows(trials);
  for (const DType dtype : work.caches) try_caches(trials, dtype);
  for (const MatrixFormat* const format : work.dense) {
    try_matmuls(trials, *format);
    try_mlps(trials,
             {.operation = fmt::format("dense MLPs in {}", format->name), .of_dense = true, .format = format},
             *format, work.gating);
  }
  return trials.result();
}

}  // namespace sluice::kernels
