#include "kernels/ops/stream_ops.h"

#include <span>
#include <utility>

#include "base/error.h"
#include "kernels/products/matrix_bytes.h"

namespace sluice::kernels {
namespace {

using codec::MatrixRef;
using device::Access;
using device::WeightUse;

WeightUse use_of(const MatrixRef& matrix, std::size_t tokens) {
  return {matrix_bytes(matrix), static_cast<std::uint32_t>(tokens)};
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

template <class Op>
void StreamOps::enqueue(const Op& op, std::vector<WeightUse> weights) {
  device_.compute().enqueue(
      {[&kernels = kernels_, op](const Access& access) { kernels.run(access, op); }, std::move(weights)});
}

void StreamOps::run(const op::RmsNorm& op) { enqueue(op); }
void StreamOps::run(const op::Arrange& op) { enqueue(op); }
void StreamOps::run(const op::Rope& op) { enqueue(op); }
void StreamOps::run(const op::Add& op) { enqueue(op); }
void StreamOps::run(const op::AddToRows& op) { enqueue(op); }
void StreamOps::run(const op::Scale& op) { enqueue(op); }
void StreamOps::run(const op::Clamp& op) { enqueue(op); }
void StreamOps::run(const op::Clear& op) { enqueue(op); }
void StreamOps::run(const op::GateRows& op) { enqueue(op); }
void StreamOps::run(const op::CopyRows& op) { enqueue(op); }

void StreamOps::run(const op::CopyCacheRows& op) {
  op::CopyCacheRows here = op;
  here.in.blocks = nullptr;
  enqueue(here);
}

void StreamOps::run(const op::Matmul& op) { enqueue(op, {use_of(*op.weight, op.tokens)}); }
void StreamOps::run(const op::MatmulTransposed& op) { enqueue(op, {use_of(op.weight, op.tokens)}); }
void StreamOps::run(const op::Project& op) { enqueue(op, {use_of(op.weight, op.tokens)}); }

void StreamOps::run(const op::VectorMatmuls& op) {
  std::vector<WeightUse> weights;
  for (const op::VectorMatmul& one : op.products) weights.push_back(use_of(*one.weight, 1));
  enqueue(op, std::move(weights));
}

void StreamOps::run(const op::Mlp& op) {
  device_.compute().enqueue(
      {[&kernels = kernels_, op](const Access& access) { kernels.run(access, std::span(&op, 1)); },
       {use_of(op.gate, op.tokens), use_of(op.up, op.tokens), use_of(op.down, op.tokens)}});
}

// The next three also keep what an operation reads of the caller's.
void StreamOps::run(const op::StoreCache& op) {
  const auto run = [&kernels = kernels_, op,
                    blocks = Blocks(op.to, op.first_position + op.tokens)](const Access& access) {
    op::StoreCache here = op;
    here.to = blocks.with(op.to);
    kernels.run(access, here);
  };
  device_.compute().enqueue({run});
}

void StreamOps::run(const op::Attention& op) {
  const std::size_t positions = op.shape.visible != 0 ? op.shape.visible : op.first_position + op.tokens;
  const auto run = [&kernels = kernels_, op, keys = Blocks(op.keys, positions),
                    values = Blocks(op.values, positions)](const Access& access) {
    op::Attention here = op;
    here.keys = keys.with(op.keys);
    here.values = values.with(op.values);
    kernels.run(access, here);
  };
  device_.compute().enqueue({run});
}

void StreamOps::run(const op::CombineRows& op) {
  const auto run = [&kernels = kernels_, op,
                    sums = std::vector(op.sums.begin(), op.sums.end())](const Access& access) {
    op::CombineRows here = op;
    here.sums = sums;
    kernels.run(access, here);
  };
  device_.compute().enqueue({run});
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
  } catch (const Error&) {  // an error of what is abandoned
  }
}

}  // namespace sluice::kernels
