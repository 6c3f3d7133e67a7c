// What calls of CUDA return, as errors.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/setting.h"

namespace sluice::kernels::gpu {

inline void check_cuda(cudaError_t result, std::string_view call) {
  if (result == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw Error(ErrorKind::kIo, "CUDA: " + std::string(call) + " failed")
      .found(cudaGetErrorString(result))
      .fix("see the messages of the driver (dmesg), or give " + Setting::kDevice + " none");
}

}  // namespace sluice::kernels::gpu
