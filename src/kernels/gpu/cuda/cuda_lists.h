// Lists of the host's on their way to kernels of a CUDA device.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "device/access.h"
#include "device/memory.h"
#include "kernels/gpu/gpu_kernels.h"

namespace sluice::kernels::gpu {

// A ring of kGpuListBytes, page-locked here and as much there, in segments. Who needs a segment again waits
// until all that was launched while it was filled is over. Thread-compatible.
class CudaLists {
 public:
  // Error(kBudget), (kIo).
  explicit CudaLists(device::Memory& memory);
  ~CudaLists();
  CudaLists(const CudaLists&) = delete;
  CudaLists& operator=(const CudaLists&) = delete;

  // Where the list will be for what is launched on the queue from now on. It is copied at once.
  // Error(kBudget) for one that no segment holds, (kIo).
  const std::byte* upload(const device::Access& access, std::span<const std::byte> list);

 private:
  static constexpr std::size_t kSegments = 4, kAlignment = 256;
  static constexpr std::size_t kSegmentBytes = kGpuListBytes / kSegments;
  struct Use {
    cudaStream_t stream;
    cudaEvent_t over;  // recorded when the next segment begins
  };
  void begin_next();

  device::Block block_;
  std::byte* locked_ = nullptr;
  std::array<std::vector<Use>, kSegments> uses_;
  std::size_t segment_ = 0, used_ = 0;
};

}  // namespace sluice::kernels::gpu
