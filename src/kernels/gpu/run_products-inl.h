// Products with stored matrices and MLPs, as launches.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "codec/native/tiles.h"
#include "kernels/gpu/place.h"
#include "kernels/gpu/products/arrange-inl.h"
#include "kernels/gpu/products/gating_kernel-inl.h"
#include "kernels/gpu/products/launch_products-inl.h"
#include "kernels/gpu/products/transposed-inl.h"
#include "kernels/ops/gating.h"
#include "kernels/ops/ops.h"
#include "kernels/products/words/matmul.h"

namespace sluice::kernels::gpu {

inline std::uint32_t small(std::size_t number) {
  SLUICE_CHECK(number <= UINT32_MAX / 4, std::to_string(number));
  return static_cast<std::uint32_t>(number);
}

// Operands of products, as kernels take them.
template <class Launcher>
class ProductOperands {
 public:
  ProductOperands(Launcher& launcher, const device::Access& access) : launcher_(launcher), access_(access) {}

  ProductSide side(const codec::MatrixRef& matrix, const Vector& bias) {
    ProductSide side{};
    for (std::size_t plane = 0; plane < matrix.format->plane_count(); ++plane)
      side.planes[plane] = plane_at(access_, matrix, plane);
    SLUICE_CHECK(bias.size == 0 || bias.size == matrix.shape.rows,
                 std::to_string(bias.size) + " biases, " + std::to_string(matrix.shape.rows) + " rows");
    side.bias = vector_at(access_, bias);
    if (matrix.format == &codec::kFormatPacked) side.first_chunk = add_chunks(matrix, side.planes[1]);
    return side;
  }

  // One row further on.
  ProductSide next_row(ProductSide side, const codec::MatrixRef& matrix) const {
    for (std::size_t plane = 0; plane < matrix.format->plane_count(); ++plane)
      if (matrix.format->fixed_size())
        side.planes[plane] += matrix.format->plane_bytes({1, matrix.shape.columns}, plane);
    if (side.bias != nullptr) ++side.bias;
    return side;
  }

  // y = x · matrix (+ bias); x arranged.
  ProductItem plain(const codec::MatrixRef& matrix, const Vector& bias, Floats x, std::size_t tokens,
                    Floats y, std::size_t y_stride) {
    SLUICE_CHECK(!matrix.empty(), "no matrix");
    const std::size_t rows = matrix.shape.rows;
    SLUICE_CHECK(y_stride >= rows || tokens <= 1,
                 std::to_string(y_stride) + ", " + std::to_string(rows) + " rows");
    SLUICE_CHECK(y_stride <= UINT32_MAX / 16, std::to_string(y_stride));
    ProductItem item = product(matrix, x, tokens);
    item.sides[0] = side(matrix, bias);
    look_at_alignment(item);
    item.rows = small(rows);
    item.y = floats_at(access_, y, strided(tokens, rows, y_stride));
    item.y_stride = y_stride;
    return item;
  }

  // The planes of a packed matrix, without a product.
  ProductItem planes(const codec::MatrixRef& matrix) {
    ProductItem item{};
    item.sides[0] = side(matrix, {});
    look_at_alignment(item);
    item.rows = small(matrix.shape.rows);
    item.columns = small(matrix.shape.columns);
    return item;
  }

  // `inner` = what the gating makes of gate·x and up·x, arranged for `down`; gate and up have one format.
  ProductItem gated(const op::Mlp& mlp) {
    ProductItem item =
        product(mlp.up, mlp.inputs[static_cast<std::size_t>(*mlp.up.format->input)], mlp.tokens);
    to_inner(mlp, item);
    item.sides[0] = side(mlp.up, mlp.up_bias);
    if (mlp.gating.form == GatingForm::kClampedPairs) {
      item.row_step = 2;
      item.sides[1] = next_row(item.sides[0], mlp.up);
    } else if (is_paired(item.form)) {
      item.sides[1] = item.sides[0];
      item.sides[0] = side(mlp.gate, mlp.gate_bias);
    }
    look_at_alignment(item);
    return item;
  }

  // Everything of gated() but the products.
  void to_inner(const op::Mlp& mlp, ProductItem& item) {
    static constexpr std::array<ProductForm, kGatingForms> kForms = {
        ProductForm::kSilu, ProductForm::kRelu, ProductForm::kClamped, ProductForm::kClamped};
    item.form = kForms[static_cast<std::size_t>(mlp.gating.form)];
    item.limit = mlp.gating.clamped.limit;
    item.alpha = mlp.gating.clamped.alpha;
    item.tokens = small(mlp.tokens);
    item.rows = small(mlp.down.shape.columns);
    item.y_stride = arranged_floats(mlp.down.shape.columns);
    item.y = floats_at(access_, mlp.inner, mlp.tokens * item.y_stride);
  }

  // The tables of all packed matrices, for what is launched from now on.
  const PackedChunk* chunks() {
    return chunks_.empty() ? nullptr : launcher_.upload(access_, std::span<const PackedChunk>(chunks_));
  }

 private:
  static bool is_aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

  void look_at_alignment(ProductItem& item) const {
    item.aligned = is_aligned(item.x);
    for (const ProductSide& side : item.sides)
      for (const std::byte* const plane : side.planes) item.aligned &= is_aligned(plane);
    item.aligned &= aligned_chunks_;
  }

  // Returns where the table of this matrix begins.
  std::uint32_t add_chunks(const codec::MatrixRef& matrix, const std::byte* exponents) {
    const codec::TileShape tiles{matrix.shape.rows, matrix.shape.columns};
    const std::uint32_t first = small(chunks_.size());
    std::uint64_t group = 0;
    for (const codec::PlaneChunk& chunk : matrix.chunks) {
      const std::uint64_t groups = chunk.count / tiles.group_places();
      SLUICE_CHECK(
          chunk.first == group * tiles.group_places() && chunk.count == groups * tiles.group_places(),
          std::to_string(chunk.first) + ", " + std::to_string(chunk.count));
      SLUICE_CHECK(chunk.coded || chunk.bytes == chunk.count, std::to_string(chunk.bytes));
      SLUICE_CHECK(chunk.place + chunk.bytes <= plane_bytes(matrix, 1), std::to_string(chunk.place));
      chunks_.push_back({exponents + chunk.place, chunk.bytes, small(group), small(groups), chunk.coded});
      aligned_chunks_ &= chunk.place % 16 == 0;
      group += groups;
    }
    SLUICE_CHECK(group == tiles.groups(), std::to_string(group));
    chunks_.push_back({nullptr, 0, UINT32_MAX, 0, 0});
    return first;
  }

  ProductItem product(const codec::MatrixRef& matrix, Floats x, std::size_t tokens) {
    ProductItem item{};
    item.columns = small(matrix.shape.columns);
    item.tokens = small(tokens);
    item.row_step = 1;
    item.x = floats_at(access_, x, tokens * arranged_floats(matrix.shape.columns));
    if (matrix.format->words) item.type = *matrix.format->words;
    return item;
  }

  Launcher& launcher_;
  const device::Access& access_;
  std::vector<PackedChunk> chunks_;
  bool aligned_chunks_ = true;
};

template <class Launcher>
void launch_arrange(Launcher& launcher, const device::Access& access, Floats x, std::size_t tokens,
                    std::size_t columns, std::size_t x_stride, Floats arranged) {
  const std::size_t floats = arranged_floats(columns);
  if (tokens == 0 || floats == 0) return;
  const std::uint32_t parts = ceil_div(small(floats), ArrangeKernel::kPart);
  launcher.template launch<ArrangeKernel>(access, tokens * parts,
                                          {.x = floats_at(access, x, strided(tokens, columns, x_stride)),
                                           .arranged = floats_at(access, arranged, tokens * floats),
                                           .x_stride = x_stride,
                                           .columns = small(columns),
                                           .parts = parts});
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::Arrange& op) {
  SLUICE_CHECK(op.form != codec::InputForm::kCells, "activations for slices");
  launch_arrange(launcher, access, op.x, op.tokens, op.columns, op.x_stride, op.arranged);
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::Matmul& op) {
  ProductLaunches launches(launcher, access, op.exact);
  ProductOperands operands(launcher, access);
  launches.add(*op.weight->format, operands.plain(*op.weight, op.bias, op.x, op.tokens, op.y, op.y_stride));
  launches.run(operands.chunks());
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::MatmulTransposed& op) {
  const codec::MatrixShape shape = op.weight.shape;
  SLUICE_CHECK(!op.weight.empty() && op.weight.format->words, "no matrix of words");
  SLUICE_CHECK(op.y_stride >= shape.columns || op.tokens <= 1,
               std::to_string(op.y_stride) + ", " + std::to_string(shape.columns) + " columns");
  const std::uint32_t column_tiles = ceil_div(small(shape.columns), TransposedKernel::kColumns),
                      token_tiles = ceil_div(small(op.tokens), TransposedKernel::kTokens);
  if (column_tiles == 0 || token_tiles == 0) return;
  launcher.template launch<TransposedKernel>(
      access, std::uint64_t{column_tiles} * token_tiles,
      {.x = floats_at(access, op.x, strided(op.tokens, shape.rows, op.x_stride)),
       .weights = plane_at(access, op.weight, 0),
       .y = floats_at(access, op.y, strided(op.tokens, shape.columns, op.y_stride)),
       .x_stride = op.x_stride,
       .y_stride = op.y_stride,
       .rows = small(shape.rows),
       .columns = small(shape.columns),
       .tokens = small(op.tokens),
       .column_tiles = column_tiles,
       .token_tiles = token_tiles,
       .type = *op.weight.format->words});
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::Project& op) {
  launch_arrange(launcher, access, op.x, op.tokens, op.weight.shape.columns, op.x_stride, op.arranged);
  ProductLaunches launches(launcher, access);
  ProductOperands operands(launcher, access);
  launches.add(*op.weight.format,
               operands.plain(op.weight, op.bias, op.arranged, op.tokens, op.y, op.y_stride));
  launches.run(operands.chunks());
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::VectorMatmuls& op) {
  ProductLaunches launches(launcher, access);
  ProductOperands operands(launcher, access);
  for (const op::VectorMatmul& one : op.products)
    launches.add(*one.weight->format,
                 operands.plain(*one.weight, one.bias, one.x, 1, one.y, one.weight->shape.rows));
  launches.run(operands.chunks());
}

// Gate and up of all MLPs, then down of all.
template <class Launcher>
void run(Launcher& launcher, const device::Access& access, std::span<const op::Mlp> mlps) {
  ProductLaunches inner(launcher, access), down(launcher, access);
  ProductOperands operands(launcher, access);
  const auto is_fused = [](const op::Mlp& mlp) {
    return mlp.gate.empty() || mlp.gate.format == mlp.up.format;
  };
  for (const op::Mlp& mlp : mlps) {
    const GatingRow& gating = gating_row(mlp.gating.form);
    SLUICE_CHECK(mlp.gate.empty() != gating.gate, "a gate that the form has not, or lacks");
    SLUICE_CHECK(mlp.up.shape.rows == mlp.down.shape.columns * gating.up_rows,
                 std::to_string(mlp.up.shape.rows));
    if (is_fused(mlp)) {
      inner.add(*mlp.up.format, operands.gated(mlp));
      continue;
    }
    const auto input = [&](const codec::MatrixRef& matrix) {
      return mlp.inputs[static_cast<std::size_t>(*matrix.format->input)];
    };
    const std::size_t width = mlp.down.shape.columns;
    inner.add(*mlp.gate.format,
              operands.plain(mlp.gate, mlp.gate_bias, input(mlp.gate), mlp.tokens, mlp.gate_room, width));
    inner.add(*mlp.up.format,
              operands.plain(mlp.up, mlp.up_bias, input(mlp.up), mlp.tokens, mlp.up_room, width));
  }
  for (const op::Mlp& mlp : mlps)
    down.add(*mlp.down.format,
             operands.plain(mlp.down, mlp.down_bias, mlp.inner, mlp.tokens, mlp.out, mlp.down.shape.rows));
  const PackedChunk* const chunks = operands.chunks();
  inner.run(chunks);
  for (const op::Mlp& mlp : mlps) {
    const std::size_t numbers = mlp.tokens * mlp.down.shape.columns;
    if (is_fused(mlp) || numbers == 0) continue;
    GatingKernel::Args args{};
    operands.to_inner(mlp, args.item);
    args.a = floats_at(access, mlp.gate_room, numbers);
    args.b = floats_at(access, mlp.up_room, numbers);
    args.parts = ceil_div(args.item.rows, GatingKernel::kPart);
    launcher.template launch<GatingKernel>(access, mlp.tokens * args.parts, args);
  }
  down.run(chunks);
}

}  // namespace sluice::kernels::gpu
