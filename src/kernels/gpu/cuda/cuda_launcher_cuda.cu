#include "kernels/gpu/cuda/cuda_launcher.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "kernels/gpu/cuda/cuda_check.h"

namespace sluice::kernels::gpu {

namespace {

constexpr int kFirstWithUnits = 8;  // units for BF16: Ampere

}  // namespace

CudaLauncher::CudaLauncher(device::Memory& memory, const GpuKernelOptions& options)
    : math_(options.math),
      lists_(std::make_unique<CudaLists>(memory)),
      room_(memory.allocate(device::Account::kActivations, options.room)) {
  int current = 0, multiprocessors = 0, major = 0;
  check_cuda(cudaGetDevice(&current), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, current),
             "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, current),
             "cudaDeviceGetAttribute");
  if (math_ == DeviceMath::kFast && major < kFirstWithUnits)
    throw Error(ErrorKind::kUnsupported, "this GPU has no units that multiply matrices of BF16")
        .in(Setting::kDeviceMath)
        .expected("same, or a GPU of compute capability 8.0 or later")
        .found("fast, and compute capability " + std::to_string(major))
        .fix("leave " + Setting::kDeviceMath + " out");
  multiprocessors_ = static_cast<std::uint32_t>(multiprocessors);
}

// A stream that takes it over waits for the one before.
std::span<std::byte> CudaLauncher::room(const device::Access& access) {
  if (!room_) return {};
  const auto stream = static_cast<cudaStream_t>(access.queue().stream);
  if (room_stream_ != nullptr && room_stream_ != stream) {
    cudaEvent_t over = nullptr;
    check_cuda(cudaEventCreateWithFlags(&over, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    check_cuda(cudaEventRecord(over, room_stream_), "cudaEventRecord");
    check_cuda(cudaStreamWaitEvent(stream, over, 0), "cudaStreamWaitEvent");
    check_cuda(cudaEventDestroy(over), "cudaEventDestroy");  // once it is over
  }
  room_stream_ = stream;
  return {access.data(room_.address(), room_.size()), room_.size()};
}

std::uint32_t CudaLauncher::block_warps(std::uint64_t warps, std::uint32_t most) const {
  std::uint32_t in_block = most;
  while (in_block > 1 && warps / in_block < 2 * multiprocessors_) in_block /= 2;
  return in_block;
}

void CudaLauncher::check_launch(std::string_view function) {
  const cudaError_t result = cudaGetLastError();
  if (result == cudaSuccess) return;
  // "… launch(…) [with K = sluice::kernels::gpu::RmsNormKernel; …]"
  const std::size_t begin = function.find("K = ");
  const std::string_view kernel =
      begin == std::string_view::npos
          ? function
          : function.substr(begin + 4, function.find_first_of(";]", begin) - begin - 4);
  check_cuda(result, "launch of " + std::string(kernel));
}

}  // namespace sluice::kernels::gpu
