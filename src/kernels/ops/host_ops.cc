#include "kernels/ops/host_ops.h"

#include <algorithm>

#include "device/space.h"
#include "kernels/ops/host_place-inl.h"
#include "kernels/ops/run-inl.h"

namespace sluice::kernels {
Floats floats_at(const float* host) {
  return {device::host_space().address(reinterpret_cast<const std::byte*>(host))};
}

float* host_floats(Floats floats) { return HostPlace{}.floats(floats, 0); }

void HostOps::run(const op::RmsNorm& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::Arrange& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::Matmul& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::MatmulTransposed& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::Project& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::VectorMatmuls& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::Mlp& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::Rope& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::StoreCache& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::Attention& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::Add& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::AddToRows& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::Scale& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::Clamp& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::Clear& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::GateRows& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::CopyRows& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::CopyCacheRows& op) { run_at(context_, HostPlace{}, op); }
void HostOps::run(const op::CombineRows& op) { run_at(context_, HostPlace{}, op); }

void HostOps::send(std::span<const float> from, Floats to, device::Traffic) {
  float* const there = host_floats(to);
  if (there != from.data()) std::copy_n(from.data(), from.size(), there);
}

void HostOps::receive(Floats from, std::span<float> to) {
  const float* const here = host_floats(from);
  if (here != to.data()) std::copy_n(here, to.size(), to.data());
}

}  // namespace sluice::kernels
