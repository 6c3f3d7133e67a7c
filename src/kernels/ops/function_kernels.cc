#include "kernels/ops/function_kernels.h"

#include "device/space.h"
#include "kernels/ops/run-inl.h"
#include "kernels/products/matrix_bytes.h"

namespace sluice::kernels {
namespace {

using codec::MatrixRef;
using device::Access;

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

Context device_context(ThreadPool& pool, const Context& host) {
  Context context = host;
  context.pool = &pool;
  context.scratch = nullptr;  // each operation has one in the device's memory
  return context;
}

}  // namespace

Bytes FunctionKernels::scratch_bytes(ThreadPool& pool, const Context& host, const ScratchShape& shape) {
  return Scratch::bytes(device_context(pool, host), shape);
}

FunctionKernels::FunctionKernels(device::Memory& memory, ThreadPool& pool, const Context& host,
                                 const ScratchShape& shape)
    : context_(device_context(pool, host)),
      shape_(shape),
      scratch_bytes_(scratch_bytes(pool, host, shape)),
      scratch_(memory.allocate(device::Account::kActivations, scratch_bytes_)) {}

template <class Op>
void FunctionKernels::run_here(const Access& access, const Op& op) {
  const DevicePlace place{access};
  const Scratch scratch(context_, shape_, place.bytes(scratch_.address(), scratch_bytes_));
  Context context = context_;
  context.scratch = &scratch;
  run_at(context, place, op);
}

void FunctionKernels::run(const Access& access, const op::RmsNorm& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, const op::Arrange& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, const op::Matmul& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, const op::MatmulTransposed& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, const op::Project& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, const op::VectorMatmuls& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, std::span<const op::Mlp> mlps) {
  for (const op::Mlp& mlp : mlps) run_here(access, mlp);
}
void FunctionKernels::run(const Access& access, const op::Rope& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, const op::StoreCache& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, const op::Attention& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, const op::Add& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, const op::AddToRows& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, const op::Scale& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, const op::Clamp& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, const op::Clear& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, const op::GateRows& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, const op::CopyRows& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, const op::GatherRows& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, const op::CopyCacheRows& op) { run_here(access, op); }
void FunctionKernels::run(const Access& access, const op::CombineRows& op) { run_here(access, op); }

}  // namespace sluice::kernels
