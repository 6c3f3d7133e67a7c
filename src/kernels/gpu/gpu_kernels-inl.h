// The operations of ops.h as launches of kernels of a GPU, whatever starts these (a Launcher, as in
// lockstep_launcher.h). Bits are the host's with Products::kExact and ActivationForm::kF32.
#pragma once

#include <span>
#include <utility>

#include "kernels/gpu/run_dense-inl.h"
#include "kernels/gpu/run_products-inl.h"
#include "kernels/ops/unit_kernels.h"

namespace sluice::kernels::gpu {

template <class Launcher>
class GpuKernels final : public UnitKernels {
 public:
  explicit GpuKernels(Launcher launcher) : launcher_(std::move(launcher)) {}

  void run(const device::Access& access, const op::RmsNorm& op) override { run_one(access, op); }
  void run(const device::Access& access, const op::Arrange& op) override { run_one(access, op); }
  void run(const device::Access& access, const op::Matmul& op) override { run_one(access, op); }
  void run(const device::Access& access, const op::MatmulTransposed& op) override { run_one(access, op); }
  void run(const device::Access& access, const op::Project& op) override { run_one(access, op); }
  void run(const device::Access& access, const op::VectorMatmuls& op) override { run_one(access, op); }
  void run(const device::Access& access, std::span<const op::Mlp> mlps) override { run_one(access, mlps); }
  void run(const device::Access& access, const op::Rope& op) override { run_one(access, op); }
  void run(const device::Access& access, const op::StoreCache& op) override { run_one(access, op); }
  void run(const device::Access& access, const op::Attention& op) override { run_one(access, op); }
  void run(const device::Access& access, const op::Add& op) override { run_one(access, op); }
  void run(const device::Access& access, const op::AddToRows& op) override { run_one(access, op); }
  void run(const device::Access& access, const op::Scale& op) override { run_one(access, op); }
  void run(const device::Access& access, const op::Clamp& op) override { run_one(access, op); }
  void run(const device::Access& access, const op::Clear& op) override { run_one(access, op); }
  void run(const device::Access& access, const op::GateRows& op) override { run_one(access, op); }
  void run(const device::Access& access, const op::CopyRows& op) override { run_one(access, op); }
  void run(const device::Access& access, const op::GatherRows& op) override { run_one(access, op); }
  void run(const device::Access& access, const op::CopyCacheRows& op) override { run_one(access, op); }
  void run(const device::Access& access, const op::CombineRows& op) override { run_one(access, op); }

 private:
  template <class Op>
  void run_one(const device::Access& access, const Op& op) {
    gpu::run(launcher_, access, op);
    launcher_.finish(access);
  }

  Launcher launcher_;
};

}  // namespace sluice::kernels::gpu
