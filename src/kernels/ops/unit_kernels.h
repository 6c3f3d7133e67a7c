// What a device computes with: the operations of ops.h, on operands in its memory.
#pragma once

#include <span>

#include "device/access.h"
#include "kernels/ops/ops.h"

namespace sluice::kernels {

// Called while an operation of the device's stream runs, one after the other. Either it is done when the call
// returns, or it is queued on access.queue(); then what it reads of the caller's (lists of rows, tables of
// blocks, chunks of a matrix) has been copied when the call returns. Error(kCorrupt) for impossible codes,
// from here or from the stream. Thread-compatible.
class UnitKernels {
 public:
  virtual ~UnitKernels() = default;
  virtual void run(const device::Access& access, const op::RmsNorm& op) = 0;
  virtual void run(const device::Access& access, const op::Arrange& op) = 0;
  virtual void run(const device::Access& access, const op::Matmul& op) = 0;
  virtual void run(const device::Access& access, const op::MatmulTransposed& op) = 0;
  virtual void run(const device::Access& access, const op::Project& op) = 0;
  virtual void run(const device::Access& access, const op::VectorMatmuls& op) = 0;
  // Each with rooms of its own, so that they may be computed together.
  virtual void run(const device::Access& access, std::span<const op::Mlp> mlps) = 0;
  virtual void run(const device::Access& access, const op::Rope& op) = 0;
  virtual void run(const device::Access& access, const op::StoreCache& op) = 0;
  virtual void run(const device::Access& access, const op::Attention& op) = 0;
  virtual void run(const device::Access& access, const op::Add& op) = 0;
  virtual void run(const device::Access& access, const op::AddToRows& op) = 0;
  virtual void run(const device::Access& access, const op::Scale& op) = 0;
  virtual void run(const device::Access& access, const op::Clamp& op) = 0;
  virtual void run(const device::Access& access, const op::Clear& op) = 0;
  virtual void run(const device::Access& access, const op::GateRows& op) = 0;
  virtual void run(const device::Access& access, const op::CopyRows& op) = 0;
  virtual void run(const device::Access& access, const op::GatherRows& op) = 0;
  virtual void run(const device::Access& access, const op::CopyCacheRows& op) = 0;
  virtual void run(const device::Access& access, const op::CombineRows& op) = 0;
};

}  // namespace sluice::kernels
