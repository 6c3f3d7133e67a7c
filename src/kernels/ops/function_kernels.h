// A device whose operations are functions of this program computes with the host's kernels, in its own memory
// and with its own threads.
#pragma once

#include <span>

#include "base/machine/thread_pool.h"
#include "device/memory.h"
#include "kernels/context.h"
#include "kernels/ops/unit_kernels.h"
#include "kernels/products/scratch.h"

namespace sluice::kernels {

// References must outlive it.
class FunctionKernels final : public UnitKernels {
 public:
  // `host`: kernels of the host, of which the device computes with the same. `pool`: the device's. Its memory
  // holds scratch_bytes() for products of `shape`. Error(kBudget).
  FunctionKernels(device::Memory& memory, ThreadPool& pool, const Context& host, const ScratchShape& shape);
  // `pool`: of as many threads as the device's.
  static Bytes scratch_bytes(ThreadPool& pool, const Context& host, const ScratchShape& shape);

  void run(const device::Access& access, const op::RmsNorm& op) override;
  void run(const device::Access& access, const op::Arrange& op) override;
  void run(const device::Access& access, const op::Matmul& op) override;
  void run(const device::Access& access, const op::MatmulTransposed& op) override;
  void run(const device::Access& access, const op::Project& op) override;
  void run(const device::Access& access, const op::VectorMatmuls& op) override;
  void run(const device::Access& access, std::span<const op::Mlp> mlps) override;
  void run(const device::Access& access, const op::Rope& op) override;
  void run(const device::Access& access, const op::StoreCache& op) override;
  void run(const device::Access& access, const op::Attention& op) override;
  void run(const device::Access& access, const op::Add& op) override;
  void run(const device::Access& access, const op::AddToRows& op) override;
  void run(const device::Access& access, const op::Scale& op) override;
  void run(const device::Access& access, const op::Clamp& op) override;
  void run(const device::Access& access, const op::Clear& op) override;
  void run(const device::Access& access, const op::GateRows& op) override;
  void run(const device::Access& access, const op::CopyRows& op) override;
  void run(const device::Access& access, const op::GatherRows& op) override;
  void run(const device::Access& access, const op::CopyCacheRows& op) override;
  void run(const device::Access& access, const op::CombineRows& op) override;

 private:
  template <class Op>
  void run_here(const device::Access& access, const Op& op);  // as run-inl.h does

  const Context context_;  // the device's
  const ScratchShape shape_;
  const Bytes scratch_bytes_;
  device::Block scratch_;
};

}  // namespace sluice::kernels
