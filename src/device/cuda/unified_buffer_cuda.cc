#include <cuda_runtime_api.h>

#include <string>

#include "base/error.h"
#include "device/cuda/unified_buffer.h"

namespace sluice::device {
namespace {

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();
  throw Error(ErrorKind::kIo, std::string("CUDA: ") + what).found(cudaGetErrorString(result));
}

}  // namespace

bool unified_memory_available() {
  int count = 0, managed = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0 ||
      cudaDeviceGetAttribute(&managed, cudaDevAttrManagedMemory, 0) != cudaSuccess) {
    cudaGetLastError();  // a missing driver or GPU is an answer; a later call must not find it as an error
    return false;
  }
  return managed != 0;
}

UnifiedBuffer::UnifiedBuffer(Bytes bytes) : size_(bytes) {
  if (!unified_memory_available())
    throw Error(ErrorKind::kUnsupported, "no CUDA device with unified memory")
        .fix("run on a machine with a GPU");
  void* data = nullptr;
  check(cudaMallocManaged(&data, bytes), "cudaMallocManaged");
  data_ = static_cast<std::byte*>(data);
}

UnifiedBuffer::~UnifiedBuffer() {
  if (data_ != nullptr) cudaFree(data_);
}

void UnifiedBuffer::to_device() const {
  int concurrent = 0;
  check(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0), "cudaDeviceGetAttribute");
  if (concurrent == 0) return;
#if CUDART_VERSION >= 13000
  cudaMemLocation place{};
  place.type = cudaMemLocationTypeDevice;
  place.id = 0;
  check(cudaMemPrefetchAsync(data_, size_, place, 0), "cudaMemPrefetchAsync");
#else
  check(cudaMemPrefetchAsync(data_, size_, 0), "cudaMemPrefetchAsync");
#endif
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

}  // namespace sluice::device
