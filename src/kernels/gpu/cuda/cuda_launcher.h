// Launches kernels on the queue that an Access names: a Launcher (lockstep_launcher.h) of a CUDA device.
// Included by files that nvcc compiles.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "device/access.h"
#include "device/memory.h"
#include "kernels/gpu/cuda/cuda_lists.h"
#include "kernels/gpu/cuda_warp-inl.h"
#include "kernels/gpu/gpu_kernel_options.h"
#include "kernels/gpu/warp.h"

namespace sluice::kernels::gpu {

// Warps of a block at most.
inline constexpr std::uint32_t kBlockWarps = 8;

// Bytes of memory that the lanes of a warp share, of a kernel that has some.
template <class K>
constexpr std::uint32_t shared_bytes() {
  if constexpr (requires { K::kShared; })
    return K::kShared;
  else
    return 0;
}

// Blocks that a multiprocessor shall hold at least, of a kernel that says so: it has fewer registers.
template <class K>
constexpr int least_blocks() {
  if constexpr (requires { K::kBlocks; })
    return K::kBlocks;
  else
    return 1;
}

// Warps of a block at most, of a kernel that says so.
template <class K>
constexpr std::uint32_t block_warps_of() {
  if constexpr (requires { K::kBlockWarps; })
    return K::kBlockWarps;
  else
    return kBlockWarps;
}

template <class K>
__global__ void __launch_bounds__(32 * block_warps_of<K>(), least_blocks<K>())
    run_kernel(std::uint64_t warps, const __grid_constant__ typename K::Args args) {
  const std::uint64_t index = std::uint64_t{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32;
  if (index < warps) K::run(CudaWarp(index, shared_bytes<K>()), args);
}

// Thread-compatible. The memory must outlive it.
class CudaLauncher {
 public:
  // Takes its room of the memory, beside lists. Error(kUnsupported) of kFast if the GPU has no units for it,
  // (kBudget), (kIo).
  CudaLauncher(device::Memory& memory, const GpuKernelOptions& options);
  DeviceMath math() const { return math_; }

  template <class K>
  void launch(const device::Access& access, std::uint64_t warps, const typename K::Args& args) {
    if (warps == 0) return;
    const std::uint32_t in_block = block_warps(warps, block_warps_of<K>());
    const std::uint64_t blocks = (warps + in_block - 1) / in_block;
    const auto stream = static_cast<cudaStream_t>(access.queue().stream);
    run_kernel<K>
        <<<static_cast<unsigned>(blocks), 32 * in_block, in_block * shared_bytes<K>(), stream>>>(warps, args);
    check_launch(__PRETTY_FUNCTION__);
  }
  template <class T>
  const T* upload(const device::Access& access, std::span<const T> list) {
    return reinterpret_cast<const T*>(lists_->upload(access, std::as_bytes(list)));
  }
  std::span<std::byte> room(const device::Access& access);
  std::uint32_t* fault(const device::Access& access) { return access.queue().fault; }
  // What kernels find comes out of the stream.
  void finish(const device::Access&) {}

 private:
  // So that few warps are spread over all multiprocessors.
  std::uint32_t block_warps(std::uint64_t warps, std::uint32_t most) const;
  static void check_launch(std::string_view function);

  DeviceMath math_;
  std::uint32_t multiprocessors_ = 0;
  std::unique_ptr<CudaLists> lists_;
  device::Block room_;
  cudaStream_t room_stream_ = nullptr;  // that has used it last
};

}  // namespace sluice::kernels::gpu
