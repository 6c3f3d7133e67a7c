#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/machine/soon.h"
#include "device/cuda/cuda_api.h"

namespace sluice::device {
namespace {

static_assert(cudaErrorMemoryAllocation == kCudaOutOfMemory && cudaSuccess == 0);

constexpr std::chrono::microseconds kLook{50};

cudaStream_t stream_of(CudaQueue queue) { return static_cast<cudaStream_t>(queue); }
cudaEvent_t event_of(CudaMark mark) { return static_cast<cudaEvent_t>(mark); }

// The driver's own functions have no library to link: the runtime knows where they are.
using PrimaryContextState = int (*)(int device, unsigned* flags, int* active);
PrimaryContextState primary_context_state() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  const cudaError_t code = cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &found, 12000,
                                                            cudaEnableDefault, &result);
#else
  const cudaError_t code =
      cudaGetDriverEntryPoint("cuDevicePrimaryCtxGetState", &found, cudaEnableDefault, &result);
#endif
  const bool is_there = code == cudaSuccess && result == cudaDriverEntryPointSuccess;
  return is_there ? reinterpret_cast<PrimaryContextState>(found) : nullptr;
}

class RuntimeApi final : public CudaApi {
 public:
  std::string text(CudaCode code) override {
    const auto error = static_cast<cudaError_t>(code);
    return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
  }
  CudaCode versions(int& runtime, int& driver) override {
    if (const cudaError_t code = cudaRuntimeGetVersion(&runtime); code != cudaSuccess) return code;
    return cudaDriverGetVersion(&driver);
  }
  CudaCode count(int& gpus) override { return cudaGetDeviceCount(&gpus); }

  CudaCode properties(int index, CudaProperties& properties) override {
    cudaDeviceProp found{};
    if (const cudaError_t code = cudaGetDeviceProperties(&found, index); code != cudaSuccess) return code;
    char bus_id[32] = {};
    if (const cudaError_t code = cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, index); code != cudaSuccess)
      return code;
    properties = {.name = found.name,
                  .bus_id = bus_id,
                  .compute_major = found.major,
                  .compute_minor = found.minor,
                  .multiprocessors = found.multiProcessorCount,
                  .copy_engines = found.asyncEngineCount,
                  .memory = found.totalGlobalMem,
                  .shares_memory = found.integrated != 0};
    return cudaSuccess;
  }

  CudaCode has_context(int index, bool& there) override {
    const PrimaryContextState ask = primary_context_state();
    if (ask == nullptr) return cudaErrorNotSupported;
    unsigned flags = 0;
    int active = 0;
    // Numbers of the driver's errors are the runtime's, too.
    if (const int code = ask(index, &flags, &active); code != 0) return code;
    there = active != 0;
    return cudaSuccess;
  }

  CudaCode use(int index) override { return cudaSetDevice(index); }  // makes the context since CUDA 12
  CudaCode memory(Bytes& free, Bytes& total) override {
    std::size_t free_bytes = 0, total_bytes = 0;
    const cudaError_t code = cudaMemGetInfo(&free_bytes, &total_bytes);
    free = free_bytes;
    total = total_bytes;
    return code;
  }
  CudaCode last_error() override { return cudaGetLastError(); }

  CudaCode allocate(Bytes bytes, void*& data) override { return cudaMalloc(&data, bytes); }
  CudaCode free(void* data) override { return cudaFree(data); }
  CudaCode lock(void* data, Bytes bytes, CudaLock lock) override {
    const unsigned mapped = lock == CudaLock::kKernels ? cudaHostRegisterMapped : 0;
    return cudaHostRegister(data, bytes, cudaHostRegisterPortable | mapped);
  }
  CudaCode mapped_at(void* data, void*& on_device) override {
    return cudaHostGetDevicePointer(&on_device, data, 0);
  }
  CudaCode unlock(void* data) override { return cudaHostUnregister(data); }
  CudaCode allocate_mapped(Bytes bytes, void*& on_host, void*& on_device) override {
    void* host = nullptr;
    if (const cudaError_t code = cudaHostAlloc(&host, bytes, cudaHostAllocMapped); code != cudaSuccess)
      return code;
    if (const cudaError_t code = cudaHostGetDevicePointer(&on_device, host, 0); code != cudaSuccess) {
      cudaFreeHost(host);
      return code;
    }
    std::memset(host, 0, bytes);
    on_host = host;
    return cudaSuccess;
  }
  CudaCode free_mapped(void* on_host) override { return cudaFreeHost(on_host); }

  CudaCode make_queue(CudaQueue& queue) override {
    cudaStream_t stream = nullptr;
    const cudaError_t code = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    queue = stream;
    return code;
  }
  CudaCode drop_queue(CudaQueue queue) override { return cudaStreamDestroy(stream_of(queue)); }
  // The stream alone would be waited for by looking again and again.
  CudaCode drain(CudaQueue queue) override {
    CudaMark mark = nullptr;
    CudaCode code = make_mark(mark);
    if (code != cudaSuccess) return cudaStreamSynchronize(stream_of(queue));
    code = put(mark, queue);
    code = code == cudaSuccess ? await(mark) : cudaStreamSynchronize(stream_of(queue));
    drop_mark(mark);
    return code;
  }
  CudaCode make_mark(CudaMark& mark) override {
    cudaEvent_t event = nullptr;
    const cudaError_t code = cudaEventCreateWithFlags(&event, cudaEventBlockingSync);
    mark = event;
    return code;
  }
  CudaCode drop_mark(CudaMark mark) override { return cudaEventDestroy(event_of(mark)); }
  CudaCode put(CudaMark mark, CudaQueue queue) override {
    return cudaEventRecord(event_of(mark), stream_of(queue));
  }
  // Who sleeps is woken 50 µs late or more on a virtual machine, as long as a layer's experts take. So what
  // ends soon is looked at first, for as long as one such sleep costs.
  CudaCode await(CudaMark mark) override {
    const auto end = std::chrono::steady_clock::now() + kLook;
    do {
      const cudaError_t code = cudaEventQuery(event_of(mark));
      if (code != cudaErrorNotReady) return code;
      pause();
    } while (std::chrono::steady_clock::now() < end);
    return cudaEventSynchronize(event_of(mark));
  }
  CudaCode follow(CudaQueue queue, CudaMark mark) override {
    return cudaStreamWaitEvent(stream_of(queue), event_of(mark), 0);
  }
  CudaCode seconds(CudaMark from, CudaMark to, double& seconds) override {
    float milliseconds = 0;
    const cudaError_t code = cudaEventElapsedTime(&milliseconds, event_of(from), event_of(to));
    seconds = milliseconds * 1e-3;
    return code;
  }
  CudaCode copy(void* to, const void* from, Bytes bytes, CudaWay way, CudaQueue queue) override {
    return cudaMemcpyAsync(to, from, bytes,
                           way == CudaWay::kToDevice ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                           stream_of(queue));
  }
};

}  // namespace

CudaApi* cuda_api() {
  static RuntimeApi api;
  // Kernels' code is loaded with the context, so that what it takes is measured with that.
  static const int eager = setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  static_cast<void>(eager);
  return &api;
}

}  // namespace sluice::device
