// Kernels that do something around every operation of others: for tests.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "kernels/ops/unit_kernels.h"

namespace sluice::kernels {

// `Derived` has a function template around(access, op); op: an operation, or a span of MLPs.
template <class Derived>
class AroundKernels : public UnitKernels {
 public:
  explicit AroundKernels(std::unique_ptr<UnitKernels> inner) : inner_(std::move(inner)) {}

  void run(const device::Access& access, const op::RmsNorm& op) override { pass(access, op); }
  void run(const device::Access& access, const op::Arrange& op) override { pass(access, op); }
  void run(const device::Access& access, const op::Matmul& op) override { pass(access, op); }
  void run(const device::Access& access, const op::MatmulTransposed& op) override { pass(access, op); }
  void run(const device::Access& access, const op::Project& op) override { pass(access, op); }
  void run(const device::Access& access, const op::VectorMatmuls& op) override { pass(access, op); }
  void run(const device::Access& access, std::span<const op::Mlp> mlps) override { pass(access, mlps); }
  void run(const device::Access& access, const op::Rope& op) override { pass(access, op); }
  void run(const device::Access& access, const op::StoreCache& op) override { pass(access, op); }
  void run(const device::Access& access, const op::Attention& op) override { pass(access, op); }
  void run(const device::Access& access, const op::Add& op) override { pass(access, op); }
  void run(const device::Access& access, const op::AddToRows& op) override { pass(access, op); }
  void run(const device::Access& access, const op::Scale& op) override { pass(access, op); }
  void run(const device::Access& access, const op::Clamp& op) override { pass(access, op); }
  void run(const device::Access& access, const op::Clear& op) override { pass(access, op); }
  void run(const device::Access& access, const op::GateRows& op) override { pass(access, op); }
  void run(const device::Access& access, const op::CopyRows& op) override { pass(access, op); }
  void run(const device::Access& access, const op::GatherRows& op) override { pass(access, op); }
  void run(const device::Access& access, const op::CopyCacheRows& op) override { pass(access, op); }
  void run(const device::Access& access, const op::CombineRows& op) override { pass(access, op); }

 protected:
  UnitKernels& inner() { return *inner_; }

 private:
  template <class Op>
  void pass(const device::Access& access, const Op& op) {
    static_cast<Derived&>(*this).around(access, op);
  }

  const std::unique_ptr<UnitKernels> inner_;
};

}  // namespace sluice::kernels
