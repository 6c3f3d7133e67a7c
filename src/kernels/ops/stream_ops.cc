#include "kernels/ops/stream_ops.h"

#include <array>
#include <memory>
#include <span>
#include <utility>

#include "base/error.h"
#include "device/space.h"
#include "kernels/ops/run-inl.h"

namespace sluice::kernels {
namespace {

using codec::MatrixRef;
using device::Access;
using device::WeightUse;

Bytes plane_bytes(const MatrixRef& matrix, std::size_t plane) {
  if (matrix.format->planes[plane].bytes != nullptr) return matrix.format->plane_bytes(matrix.shape, plane);
  return matrix.chunks.empty() ? 0 : matrix.chunks.back().place + matrix.chunks.back().bytes;
}

// While an operation of the device runs.
struct DevicePlace {
  const Access& access;

  std::byte* bytes(device::Address at, Bytes bytes) const { return at ? access.data(at, bytes) : nullptr; }
  float* floats(Floats floats, std::size_t count) const {
    return reinterpret_cast<float*>(bytes(floats.at, count * sizeof(float)));
  }
  MatrixRef matrix(const MatrixRef& matrix) const {
    MatrixRef here = matrix;
    for (std::size_t plane = 0; plane < matrix.format->plane_count(); ++plane)
      if (matrix.planes[plane])
        here.planes[plane] =
            device::host_space().address(access.data(matrix.planes[plane], plane_bytes(matrix, plane)));
    return here;
  }
};

WeightUse use_of(const MatrixRef& matrix, std::size_t tokens) {
  WeightUse use{0, static_cast<std::uint32_t>(tokens)};
  for (std::size_t plane = 0; !matrix.empty() && plane < matrix.format->plane_count(); ++plane)
    if (matrix.planes[plane]) use.bytes += plane_bytes(matrix, plane);
  return use;
}

// The table of a cache's blocks, as far as an operation reads it.
class Blocks {
 public:
  Blocks(const CacheRows& cache, std::size_t positions) {
    if (cache.blocks != nullptr)
      blocks_ = {cache.blocks, cache.blocks + (positions + kCacheBlock - 1) / kCacheBlock};
  }
  CacheRows with(CacheRows cache) const {
    if (cache.blocks != nullptr) cache.blocks = blocks_.data();
    return cache;
  }

 private:
  std::vector<std::uint32_t> blocks_;
};

}  // namespace

Context StreamOps::device_context(ThreadPool& pool, const Context& host) {
  Context context = host;
  context.pool = &pool;
  context.scratch = nullptr;  // each operation has one in the device's memory
  return context;
}

Bytes StreamOps::scratch_bytes(ThreadPool& pool, const Context& host, const ScratchShape& shape) {
  return Scratch::bytes(device_context(pool, host), shape);
}

StreamOps::StreamOps(device::Device& device, const Context& host, const ScratchShape& shape)
    : device_(device),
      context_(device_context(device.pool(), host)),
      shape_(shape),
      scratch_bytes_(scratch_bytes(device.pool(), host, shape)),
      scratch_(device.memory().allocate(device::Account::kActivations, scratch_bytes_)) {}

template <class Operation>
void StreamOps::enqueue(Operation operation, std::vector<WeightUse> weights) {
  device_.compute().enqueue({[this, operation = std::move(operation)](const Access& access) {
                               const DevicePlace place{access};
                               const Scratch scratch(context_, shape_,
                                                     place.bytes(scratch_.address(), scratch_bytes_));
                               Context context = context_;
                               context.scratch = &scratch;
                               operation(context, place);
                             },
                             std::move(weights)});
}

template <class Op>
void StreamOps::enqueue_run(const Op& op, std::vector<WeightUse> weights) {
  enqueue([op](const Context& ctx, const DevicePlace& place) { run_at(ctx, place, op); }, std::move(weights));
}

void StreamOps::run(const op::RmsNorm& op) { enqueue_run(op); }
void StreamOps::run(const op::Arrange& op) { enqueue_run(op); }
void StreamOps::run(const op::Rope& op) { enqueue_run(op); }
void StreamOps::run(const op::Add& op) { enqueue_run(op); }
void StreamOps::run(const op::AddToRows& op) { enqueue_run(op); }
void StreamOps::run(const op::Scale& op) { enqueue_run(op); }
void StreamOps::run(const op::Clamp& op) { enqueue_run(op); }
void StreamOps::run(const op::Clear& op) { enqueue_run(op); }
void StreamOps::run(const op::GateRows& op) { enqueue_run(op); }
void StreamOps::run(const op::CopyRows& op) { enqueue_run(op); }

void StreamOps::run(const op::CopyCacheRows& op) {
  op::CopyCacheRows here = op;
  here.in.blocks = nullptr;
  enqueue_run(here);
}

void StreamOps::run(const op::Matmul& op) { enqueue_run(op, {use_of(*op.weight, op.tokens)}); }
void StreamOps::run(const op::MatmulTransposed& op) { enqueue_run(op, {use_of(op.weight, op.tokens)}); }
void StreamOps::run(const op::Project& op) { enqueue_run(op, {use_of(op.weight, op.tokens)}); }

void StreamOps::run(const op::VectorMatmuls& op) {
  std::vector<WeightUse> weights;
  for (const op::VectorMatmul& one : op.products) weights.push_back(use_of(*one.weight, 1));
  enqueue_run(op, std::move(weights));
}

void StreamOps::run(const op::Mlp& op) {
  enqueue_run(op, {use_of(op.gate, op.tokens), use_of(op.up, op.tokens), use_of(op.down, op.tokens)});
}

// The next three also keep what an operation reads of the caller's.
void StreamOps::run(const op::StoreCache& op) {
  enqueue([op, blocks = Blocks(op.to, op.first_position + op.tokens)](const Context& ctx,
                                                                      const DevicePlace& place) {
    op::StoreCache here = op;
    here.to = blocks.with(op.to);
    run_at(ctx, place, here);
  });
}

void StreamOps::run(const op::Attention& op) {
  const std::size_t positions = op.shape.visible != 0 ? op.shape.visible : op.first_position + op.tokens;
  enqueue([op, keys = Blocks(op.keys, positions), values = Blocks(op.values, positions)](
              const Context& ctx, const DevicePlace& place) {
    op::Attention here = op;
    here.keys = keys.with(op.keys);
    here.values = values.with(op.values);
    run_at(ctx, place, here);
  });
}

void StreamOps::run(const op::CombineRows& op) {
  enqueue(
      [op, sums = std::vector(op.sums.begin(), op.sums.end())](const Context& ctx, const DevicePlace& place) {
        op::CombineRows here = op;
        here.sums = sums;
        run_at(ctx, place, here);
      });
}

void StreamOps::send(std::span<const float> from, Floats to, device::Traffic traffic) {
  if (from.empty()) return;
  sent_.push_back(device_.link().copy(std::as_bytes(from), to.at, traffic));
  device_.compute().wait(sent_.back().event());
}

void StreamOps::receive(Floats from, std::span<float> to) {
  if (to.empty()) return;
  device_.link()
      .copy_back(from.at, std::as_writable_bytes(to), device::Traffic::kResult, device_.compute().record())
      .event()
      .wait();
}

void StreamOps::settle() {
  for (const device::Ticket& ticket : sent_) ticket.event().settled().wait();
  sent_.clear();
  device_.compute().synchronize();
}

void StreamOps::abandon() noexcept {
  try {
    settle();
  } catch (const Error&) {  // of what is abandoned
  }
}

}  // namespace sluice::kernels
