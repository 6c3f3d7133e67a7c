// The host as the unit of a forward pass: every operation is a call of its kernel.
#pragma once

#include "kernels/context.h"
#include "kernels/ops/ops.h"

namespace sluice::kernels {

// Addresses are of device::host_space(). `context` must outlive it; it may change between operations.
class HostOps final : public Ops {
 public:
  explicit HostOps(const Context& context) : context_(context) {}

  bool on_host() const override { return true; }
  void run(const op::RmsNorm& op) override;
  void run(const op::Arrange& op) override;
  void run(const op::Matmul& op) override;
  void run(const op::MatmulTransposed& op) override;
  void run(const op::Project& op) override;
  void run(const op::VectorMatmuls& op) override;
  void run(const op::Mlp& op) override;
  void run(const op::Rope& op) override;
  void run(const op::StoreCache& op) override;
  void run(const op::Attention& op) override;
  void run(const op::Add& op) override;
  void run(const op::AddToRows& op) override;
  void run(const op::Scale& op) override;
  void run(const op::Clamp& op) override;
  void run(const op::Clear& op) override;
  void run(const op::GateRows& op) override;
  void run(const op::CopyRows& op) override;
  void run(const op::CopyCacheRows& op) override;
  void run(const op::CombineRows& op) override;
  void send(std::span<const float> from, Floats to, device::Traffic traffic) override;
  void receive(Floats from, std::span<float> to) override;
  void settle() override {}
  void abandon() noexcept override {}

 private:
  const Context& context_;
};

// Numbers of the host by their address, and back. REQUIRES: null, or in host_space().
Floats floats_at(const float* host);
float* host_floats(Floats floats);

}  // namespace sluice::kernels
