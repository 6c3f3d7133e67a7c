#include "kernels/gpu/cuda/cuda_launcher.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "kernels/gpu/cuda/cuda_check.h"

namespace sluice::kernels::gpu {

namespace {

constexpr int kFirstWithUnits = 8;  // of BF16: Ampere

}  // namespace

CudaLauncher::CudaLauncher(device::Memory& memory, DeviceMath math)
    : math_(math), lists_(std::make_unique<CudaLists>(memory)) {
  int current = 0, multiprocessors = 0, major = 0;
  check_cuda(cudaGetDevice(&current), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, current),
             "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, current),
             "cudaDeviceGetAttribute");
  if (math == DeviceMath::kFast && major < kFirstWithUnits)
    throw Error(ErrorKind::kUnsupported, "this GPU has no units that multiply matrices of BF16")
        .in(Setting::kDeviceMath)
        .expected("same, or a GPU of compute capability 8.0 or later")
        .found("fast, and compute capability " + std::to_string(major))
        .fix("leave " + Setting::kDeviceMath + " out");
  multiprocessors_ = static_cast<std::uint32_t>(multiprocessors);
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
