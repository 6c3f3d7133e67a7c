// A device as the unit of a forward pass: each operation is one of its stream.
#pragma once

#include <vector>

#include "device/device.h"
#include "kernels/ops/ops.h"
#include "kernels/ops/unit_kernels.h"

namespace sluice::kernels {

// References must outlive it.
class StreamOps final : public Ops {
 public:
  // `kernels`: those of the device.
  StreamOps(device::Device& device, UnitKernels& kernels) : device_(device), kernels_(kernels) {}
  ~StreamOps() override { abandon(); }

  bool on_host() const override { return false; }
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
  void settle() override;
  void abandon() noexcept override;

 private:
  template <class Op>
  void enqueue(const Op& op, std::vector<device::WeightUse> weights = {});

  device::Device& device_;
  UnitKernels& kernels_;
  std::vector<device::Ticket> sent_;  // since the last settle()
};

}  // namespace sluice::kernels
