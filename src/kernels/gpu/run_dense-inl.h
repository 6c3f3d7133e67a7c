// What stands between products, as launches: norms, rotary positions, caches, attention, sums of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "kernels/gpu/dense/combine-inl.h"
#include "kernels/gpu/dense/combined_sums.h"
#include "kernels/gpu/dense/elementwise-inl.h"
#include "kernels/gpu/dense/rope-inl.h"
#include "kernels/gpu/dense/run_attention-inl.h"
#include "kernels/gpu/dense/store_cache-inl.h"
#include "kernels/gpu/norm-inl.h"
#include "kernels/gpu/place.h"
#include "kernels/ops/ops.h"

namespace sluice::kernels::gpu {

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::RmsNorm& op) {
  const float* const x = floats_at(access, op.x, strided(op.rows, op.columns, op.x_stride));
  float* const y = floats_at(access, op.y, strided(op.rows, op.columns, op.y_stride));
  // Where a row is not overwritten, several warps may read all of it.
  const bool apart = x + strided(op.rows, op.columns, op.x_stride) <= y ||
                     y + strided(op.rows, op.columns, op.y_stride) <= x;
  const std::size_t parts = apart ? (op.columns + kNormPart - 1) / kNormPart : 1;
  launcher.template launch<RmsNormKernel>(access, op.rows * parts,
                                          {.x = x,
                                           .weight = vector_at(access, op.weight),
                                           .y = y,
                                           .columns = op.columns,
                                           .x_stride = op.x_stride,
                                           .y_stride = op.y_stride,
                                           .parts = parts,
                                           .eps = op.eps});
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::Rope& op) {
  SLUICE_CHECK(op.half <= kMostRopePairs, "too many pairs in a head");
  const RopeArgs args{
      .x = floats_at(access, op.x,
                     strided(op.tokens, strided(op.heads, 2 * op.half, op.head_stride), op.token_stride)),
      .cos = floats_at(access, op.cos, op.tokens * op.half),
      .sin = floats_at(access, op.sin, op.tokens * op.half),
      .token_stride = op.token_stride,
      .heads = op.heads,
      .head_stride = op.head_stride,
      .half = static_cast<std::uint32_t>(op.half)};
  const std::size_t parts = (op.half + 31) / 32, heads = op.tokens * op.heads;
  if (parts == 0) return;
  if (op.form == RopeForm::kHalf)
    launcher.template launch<RopeHalfKernel>(access, heads * parts, args);
  else if (parts == 1)
    launcher.template launch<RopeInterleavedKernel<1>>(access, heads, args);
  else if (parts <= 4)
    launcher.template launch<RopeInterleavedKernel<4>>(access, heads, args);
  else
    launcher.template launch<RopeInterleavedKernel<kMostRopeParts>>(access, heads, args);
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::StoreCache& op) {
  const CacheRows& to = op.to;
  const std::size_t columns = to.heads * to.columns, positions = op.first_position + op.tokens;
  const std::uint32_t* blocks = nullptr;
  if (to.blocks != nullptr)
    blocks = launcher.upload(access, std::span(to.blocks, (positions + kCacheBlock - 1) / kCacheBlock));
  StoreCacheArgs args{.x = floats_at(access, op.x, strided(op.tokens, columns, op.x_stride)),
                      .x_stride = op.x_stride,
                      .data = bytes_at(access, to.data, to.data_bytes()),
                      .row_bytes = to.row_bytes(),
                      .blocks = blocks,
                      .first_position = op.first_position,
                      .columns = static_cast<std::uint32_t>(columns),
                      .heads = static_cast<std::uint32_t>(to.heads),
                      .scales = floats_at(access, {to.scales}, to.scale_floats()),
                      .scale_stride = to.rows};
  if (to.dtype == DType::kI8) {
    SLUICE_CHECK(args.scales != nullptr, "a cache of codes without scales");
    args.columns = static_cast<std::uint32_t>(to.columns);
    launcher.template launch<StoreCodesKernel>(access, op.tokens * to.heads * cache_groups(to.columns), args);
    return;
  }
  SLUICE_CHECK(to.dtype == DType::kBF16 || to.dtype == DType::kF32, "a cache of another type");
  const std::uint64_t warps = op.tokens * row_parts(columns);
  if (to.dtype == DType::kBF16)
    launcher.template launch<StoreNumbersKernel<true>>(access, warps, args);
  else
    launcher.template launch<StoreNumbersKernel<false>>(access, warps, args);
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::Add& op) {
  launcher.template launch<AddKernel>(access, row_parts(op.count),
                                      {.x = floats_at(access, op.x, op.count),
                                       .to = floats_at(access, op.to, op.count),
                                       .columns = op.count,
                                       .x_stride = 0});
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::AddToRows& op) {
  launcher.template launch<AddKernel>(access, op.rows * row_parts(op.columns),
                                      {.x = floats_at(access, op.x, op.columns),
                                       .to = floats_at(access, op.to, op.rows * op.columns),
                                       .columns = op.columns,
                                       .x_stride = 0});
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::Scale& op) {
  launcher.template launch<ScaleKernel>(
      access, row_parts(op.count),
      {.x = floats_at(access, op.x, op.count), .count = op.count, .factor = op.factor});
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::Clamp& op) {
  launcher.template launch<ClampKernel>(
      access, row_parts(op.count),
      {.x = floats_at(access, op.x, op.count), .count = op.count, .limit = op.limit});
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::Clear& op) {
  launcher.template launch<ClearKernel>(access, row_parts(op.count),
                                        {.x = floats_at(access, op.x, op.count), .count = op.count});
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::GateRows& op) {
  launcher.template launch<GateRowsKernel>(access, op.rows * row_parts(op.columns),
                                           {.gate = floats_at(access, op.gate, op.rows),
                                            .x = floats_at(access, op.x, op.rows * op.columns),
                                            .columns = op.columns});
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::CopyRows& op) {
  launcher.template launch<CopyRowsKernel>(
      access, op.rows * row_parts(op.columns),
      {.from = floats_at(access, op.from, strided(op.rows, op.columns, op.from_stride)),
       .to = floats_at(access, op.to, strided(op.rows, op.columns, op.to_stride)),
       .which = nullptr,
       .columns = op.columns,
       .from_stride = op.from_stride,
       .to_stride = op.to_stride});
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::GatherRows& op) {
  if (op.which.empty()) return;
  launcher.template launch<CopyRowsKernel>(access, op.which.size() * row_parts(op.columns),
                                           {.from = floats_at(access, op.from, op.from_rows * op.columns),
                                            .to = floats_at(access, op.to, op.which.size() * op.columns),
                                            .which = launcher.upload(access, op.which),
                                            .columns = op.columns,
                                            .from_stride = op.columns,
                                            .to_stride = op.columns});
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::CopyCacheRows& op) {
  const CacheRows& in = op.in;
  const Bytes row = in.row_bytes(), bytes = op.rows * row;
  std::byte* const data = bytes_at(access, in.data, in.data_bytes());
  const std::byte* const from = data + op.from * row;
  std::byte* const to = data + op.to * row;
  const auto whole = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at) % sizeof(float) == 0; };
  if (whole(from) && whole(to) && bytes % sizeof(float) == 0)
    launcher.template launch<CopyRowsKernel>(access, row_parts(bytes / sizeof(float)),
                                             {.from = reinterpret_cast<const float*>(from),
                                              .to = reinterpret_cast<float*>(to),
                                              .which = nullptr,
                                              .columns = bytes / sizeof(float),
                                              .from_stride = 0,
                                              .to_stride = 0});
  else
    launcher.template launch<CopyBytesKernel>(access, row_parts(bytes),
                                              {.from = from, .to = to, .count = bytes});
  if (!in.scales) return;
  float* const scales = floats_at(access, {in.scales}, in.scale_floats());
  launcher.template launch<CopyRowsKernel>(access, in.scale_floats() / in.rows * row_parts(op.rows),
                                           {.from = scales + op.from,
                                            .to = scales + op.to,
                                            .which = nullptr,
                                            .columns = op.rows,
                                            .from_stride = in.rows,
                                            .to_stride = in.rows});
}

template <class Launcher>
void run(Launcher& launcher, const device::Access& access, const op::CombineRows& op) {
  if (op.sums.empty()) return;
  const CombinedSums sums(op.sums);
  launcher.template launch<CombineRowsKernel>(access, sums.count() * row_parts(op.columns),
                                              {.rows = floats_at(access, op.rows, op.row_count * op.columns),
                                               .to = floats_at(access, op.to, op.tokens * op.columns),
                                               .sources = launcher.upload(access, sums.sources()),
                                               .tokens = launcher.upload(access, sums.tokens()),
                                               .columns = op.columns});
}

}  // namespace sluice::kernels::gpu
