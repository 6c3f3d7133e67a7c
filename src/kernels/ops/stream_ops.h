// A device whose operations are functions of this program as the unit of a forward pass: each operation is
// one of its stream, and computes in its memory with the host's kernels.
#pragma once

#include <vector>

#include "device/device.h"
#include "kernels/context.h"
#include "kernels/ops/ops.h"
#include "kernels/products/scratch.h"

namespace sluice::kernels {

// References must outlive it.
class StreamOps final : public Ops {
 public:
  // `host`: kernels of the host; the device computes with the same, on threads of its own. Its memory holds
  // scratch_bytes() for products of `shape`. Error(kBudget).
  StreamOps(device::Device& device, const Context& host, const ScratchShape& shape);
  ~StreamOps() override { abandon(); }
  // `pool`: of as many threads as the device's.
  static Bytes scratch_bytes(ThreadPool& pool, const Context& host, const ScratchShape& shape);

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
  static Context device_context(ThreadPool& pool, const Context& host);
  template <class Operation>
  void enqueue(Operation operation, std::vector<device::WeightUse> weights = {});
  template <class Op>
  void enqueue_run(const Op& op, std::vector<device::WeightUse> weights = {});  // of run-inl.h

  device::Device& device_;
  const Context context_;  // of the device
  const ScratchShape shape_;
  const Bytes scratch_bytes_;
  device::Block scratch_;
  std::vector<device::Ticket> sent_;  // since the last settle()
};

}  // namespace sluice::kernels
