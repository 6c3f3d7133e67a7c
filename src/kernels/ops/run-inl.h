// What each operation does, where its operands have become pointers. `Place` turns addresses into them:
// that of the host (host_ops.cc), or of a device's memory while an operation runs (stream_ops.cc).
//
//   float* floats(Floats, count)                   null for null
//   std::byte* bytes(device::Address, Bytes)
//   MatrixRef matrix(const MatrixRef&)             with planes in host_space()
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/context.h"
#include "kernels/ops/mlp.h"
#include "kernels/ops/ops.h"
#include "kernels/products/input_form.h"
#include "kernels/products/products.h"
#include "kernels/products/vector_products.h"

namespace sluice::kernels {

inline Context exact(const Context& ctx) {
  Context context = ctx;
  context.products = Products::kExact;
  return context;
}

// Numbers from the first of some rows to the end of the last.
constexpr std::size_t strided(std::size_t rows, std::size_t columns, std::size_t stride) {
  return rows == 0 ? 0 : (rows - 1) * stride + columns;
}

template <class Place>
std::span<const float> vector_at(const Place& place, const Vector& vector) {
  return {place.floats(vector.data, vector.size), vector.size};
}

template <class Place>
void run_at(const Context& ctx, const Place& place, const op::RmsNorm& op) {
  rms_norm(ctx, place.floats(op.x, strided(op.rows, op.columns, op.x_stride)), op.rows, op.columns,
           op.x_stride, vector_at(place, op.weight), op.eps,
           place.floats(op.y, strided(op.rows, op.columns, op.y_stride)), op.y_stride);
}

template <class Place>
void run_at(const Context& ctx, const Place& place, const op::Arrange& op) {
  const InputFormRow& form = input_form(op.form);
  form.arrange(op.exact ? exact(ctx) : ctx, place.floats(op.x, strided(op.tokens, op.columns, op.x_stride)),
               op.tokens, op.columns, op.x_stride,
               place.floats(op.arranged, op.tokens * form.floats(op.columns)));
}

template <class Place>
void run_at(const Context& ctx, const Place& place, const op::Matmul& op) {
  const codec::MatrixShape shape = op.weight->shape;
  const auto product = [&](const Context& context) {
    matmul(context, place.floats(op.x, op.tokens * activation_floats(*op.weight)), op.tokens,
           place.matrix(*op.weight), vector_at(place, op.bias),
           place.floats(op.y, strided(op.tokens, shape.rows, op.y_stride)), op.y_stride);
  };
  if (op.exact)
    product(exact(ctx));
  else
    product(ctx);
}

template <class Place>
void run_at(const Context& ctx, const Place& place, const op::MatmulTransposed& op) {
  const codec::MatrixShape shape = op.weight.shape;
  matmul_transposed(ctx, place.floats(op.x, strided(op.tokens, shape.rows, op.x_stride)), op.tokens,
                    op.x_stride, place.matrix(op.weight),
                    place.floats(op.y, strided(op.tokens, shape.columns, op.y_stride)), op.y_stride);
}

template <class Place>
void run_at(const Context& ctx, const Place& place, const op::Project& op) {
  const codec::MatrixShape shape = op.weight.shape;
  float* const arranged = place.floats(op.arranged, op.tokens * activation_floats(op.weight));
  arrange_for(ctx, op.weight, place.floats(op.x, strided(op.tokens, shape.columns, op.x_stride)), op.tokens,
              op.x_stride, arranged);
  matmul(ctx, arranged, op.tokens, place.matrix(op.weight), vector_at(place, op.bias),
         place.floats(op.y, strided(op.tokens, shape.rows, op.y_stride)), op.y_stride);
}

template <class Place>
void run_at(const Context& ctx, const Place& place, const op::VectorMatmuls& op) {
  std::array<codec::MatrixRef, 3> weights;
  std::array<VectorProduct, 3> products;
  for (std::size_t i = 0; i < products.size(); ++i) {
    const op::VectorMatmul& one = op.products[i];
    weights[i] = place.matrix(*one.weight);
    products[i] = {place.floats(one.x, activation_floats(*one.weight)), &weights[i],
                   place.floats(one.y, one.weight->shape.rows), vector_at(place, one.bias)};
  }
  multiply_vectors(ctx, products);
}

template <class Place>
void run_at(const Context& ctx, const Place& place, const op::Mlp& op) {
  const std::size_t width = op.down.shape.columns, d = op.up.shape.columns;
  Mlp one{.gate = op.gate.empty() ? codec::MatrixRef{} : place.matrix(op.gate),
          .up = place.matrix(op.up),
          .down = place.matrix(op.down),
          .out = place.floats(op.out, op.tokens * op.down.shape.rows),
          .gate_bias = vector_at(place, op.gate_bias),
          .up_bias = vector_at(place, op.up_bias),
          .down_bias = vector_at(place, op.down_bias),
          .gating = op.gating};
  for (std::size_t form = 0; form < op.inputs.size(); ++form)
    one.inputs[form] =
        place.floats(op.inputs[form], op.tokens * input_form(static_cast<codec::InputForm>(form)).floats(d));
  mlp(ctx, one, op.tokens,
      {place.floats(op.gate_room, op.tokens * width), place.floats(op.up_room, op.tokens * op.up.shape.rows),
       place.floats(op.inner, op.tokens * activation_floats(op.down))});
}

template <class Place>
void run_at(const Context&, const Place& place, const op::Rope& op) {
  float* const x =
      place.floats(op.x, strided(op.tokens, strided(op.heads, 2 * op.half, op.head_stride), op.token_stride));
  const float* const cos = place.floats(op.cos, op.tokens * op.half);
  const float* const sin = place.floats(op.sin, op.tokens * op.half);
  for (std::size_t t = 0; t < op.tokens; ++t)
    rope(op.form, x + t * op.token_stride, op.heads, op.head_stride, op.half, cos + t * op.half,
         sin + t * op.half);
}

template <class Place>
void run_at(const Context&, const Place& place, const op::StoreCache& op) {
  const float* const x = place.floats(op.x, strided(op.tokens, op.to.heads * op.to.columns, op.x_stride));
  std::byte* const data = place.bytes(op.to.data, op.to.data_bytes());
  float* const scales = place.floats({op.to.scales}, op.to.scale_floats());
  for (std::size_t t = 0; t < op.tokens; ++t)
    store_cache(x + t * op.x_stride, op.to.row(data, scales, op.to.row_of(op.first_position + t)));
}

template <class Place>
void run_at(const Context& ctx, const Place& place, const op::Attention& op) {
  const auto view = [&](const CacheRows& cache) {
    return cache.view(place.bytes(cache.data, cache.data_bytes()),
                      place.floats({cache.scales}, cache.scale_floats()));
  };
  const AttentionShape& shape = op.shape;
  attention(ctx, shape, place.floats(op.q, op.tokens * shape.heads * shape.key_dim), op.tokens,
            op.first_position, view(op.keys), view(op.values),
            place.floats(op.out, op.tokens * shape.heads * shape.value_dim),
            place.floats(op.scratch, op.scratch_floats),
            {place.floats(op.bias, shape.heads * op.bias_stride), op.bias_stride, op.bias_center},
            vector_at(place, op.sinks).data());
}

template <class Place>
void run_at(const Context& ctx, const Place& place, const op::Add& op) {
  add(ctx, place.floats(op.x, op.count), op.count, place.floats(op.to, op.count));
}

template <class Place>
void run_at(const Context& ctx, const Place& place, const op::AddToRows& op) {
  const float* const x = place.floats(op.x, op.columns);
  float* const to = place.floats(op.to, op.rows * op.columns);
  for (std::size_t row = 0; row < op.rows; ++row) add(ctx, x, op.columns, to + row * op.columns);
}

template <class Place>
void run_at(const Context& ctx, const Place& place, const op::Scale& op) {
  scale(ctx, op.factor, op.count, place.floats(op.x, op.count));
}

template <class Place>
void run_at(const Context& ctx, const Place& place, const op::Clamp& op) {
  clamp(ctx, op.limit, op.count, place.floats(op.x, op.count));
}

template <class Place>
void run_at(const Context&, const Place& place, const op::Clear& op) {
  std::fill_n(place.floats(op.x, op.count), op.count, 0.0f);
}

template <class Place>
void run_at(const Context& ctx, const Place& place, const op::GateRows& op) {
  const float* const gate = place.floats(op.gate, op.rows);
  float* const x = place.floats(op.x, op.rows * op.columns);
  for (std::size_t row = 0; row < op.rows; ++row)
    scale(ctx, sigmoid(gate[row]), op.columns, x + row * op.columns);
}

template <class Place>
void run_at(const Context&, const Place& place, const op::CopyRows& op) {
  const float* const from = place.floats(op.from, strided(op.rows, op.columns, op.from_stride));
  float* const to = place.floats(op.to, strided(op.rows, op.columns, op.to_stride));
  for (std::size_t row = 0; row < op.rows; ++row)
    std::copy_n(from + row * op.from_stride, op.columns, to + row * op.to_stride);
}

template <class Place>
void run_at(const Context&, const Place& place, const op::GatherRows& op) {
  const float* const from = place.floats(op.from, op.from_rows * op.columns);
  float* const to = place.floats(op.to, op.which.size() * op.columns);
  for (std::size_t row = 0; row < op.which.size(); ++row)
    std::copy_n(from + op.which[row] * op.columns, op.columns, to + row * op.columns);
}

template <class Place>
void run_at(const Context&, const Place& place, const op::CopyCacheRows& op) {
  const CacheRows& in = op.in;
  std::byte* const data = place.bytes(in.data, in.data_bytes());
  const Bytes row = in.row_bytes();
  std::memcpy(data + op.to * row, data + op.from * row, op.rows * row);
  float* const scales = place.floats({in.scales}, in.scale_floats());
  for (std::size_t group = 0; group < in.scale_floats(); group += in.rows)
    std::copy_n(scales + group + op.from, op.rows, scales + group + op.to);
}

template <class Place>
void run_at(const Context& ctx, const Place& place, const op::CombineRows& op) {
  const float* const rows = place.floats(op.rows, op.row_count * op.columns);
  float* const to = place.floats(op.to, op.tokens * op.columns);
  for (const op::WeightedRow& sum : op.sums)
    add_scaled(ctx, rows + sum.row * op.columns, sum.weight, op.columns, to + sum.token * op.columns);
}

}  // namespace sluice::kernels
