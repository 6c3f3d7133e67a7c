// What a GPU has, as plans and reports ask.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "device/cuda/cuda_api.h"
#include "device/cuda/gpu_memory_use.h"
#include "device/gpu_info.h"

namespace sluice::device {

struct CudaFacts {
  int index = 0;
  std::string name;  // "NVIDIA H200"
  int compute_major = 0, compute_minor = 0;
  int multiprocessors = 0, copy_engines = 0;
  bool shares_memory = false;  // with the host
  Bytes total = 0, free = 0;   // free: beside the context
  // What this process takes of the GPU before it allocates anything: context, kernels' code, their stacks.
  Bytes context = 0;
  bool context_is_measured = false;  // else kAssumedContext
};

// 2 to 3 times what a context with a hundred kernels was seen to take of a data centre's GPU.
inline constexpr Bytes kAssumedContext = 600 * kMiB;

struct CudaQuestion {
  int index = 0;
  // For tests.
  CudaApi* api = nullptr;       // null: cuda_api()
  GpuMemoryUse* use = nullptr;  // null: NVML, if the driver has it
};

// Makes the context, which stays until the process ends. It can be measured by the first who asks in a
// process: the answer should be kept. Errors as make_cuda_device.
CudaFacts cuda_facts(const CudaQuestion& question);

// Bytes a second of page-locked memory, the one way and the other, nothing else going on.
struct CudaLinkRates {
  double to_device = 0, from_device = 0;
};
// Takes this many bytes of both memories, and a fraction of a second. Errors as make_cuda_device. `api`: for
// tests; null: cuda_api().
CudaLinkRates measure_cuda_link(int index, Bytes bytes = 64 * kMiB, CudaApi* api = nullptr);

// As list_gpus(), gpu_runtime() and gpu_lack(), of these calls. `use` may be null.
std::vector<GpuInfo> list_gpus_of(CudaApi& api, GpuMemoryUse* use);
std::string gpu_runtime_of(CudaApi& api);
GpuLack gpu_lack_of(CudaApi& api);

}  // namespace sluice::device
