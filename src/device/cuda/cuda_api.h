// The entry points of the CUDA runtime that this program uses, without its header: what stands on them is
// built and tested in every build, also where there is neither a toolkit nor a GPU.
#pragma once

#include <string>

#include "base/bytes.h"

namespace sluice::device {

// A result of the runtime, by its own number; 0: it worked.
using CudaCode = int;
inline constexpr CudaCode kCudaOutOfMemory = 2;

// A cudaStream_t and a cudaEvent_t.
using CudaQueue = void*;
using CudaMark = void*;

struct CudaProperties {
  std::string name;    // "NVIDIA H200"
  std::string bus_id;  // on PCI, as NVML takes it: "00000000:3B:00.0"
  int compute_major = 0, compute_minor = 0;
  int multiprocessors = 0, copy_engines = 0;
  Bytes memory = 0;            // used or not
  bool shares_memory = false;  // with the host: an integrated GPU
};

enum class CudaWay { kToDevice, kFromDevice };
// Whom pages are locked for: copies alone, or kernels, too.
enum class CudaLock { kCopies, kKernels };

// One implementation calls the runtime (cuda_api()); tests have one that plays a GPU. What a function gives
// back stands in its last parameters, and only if it worked. Functions act on the GPU that this thread uses
// (use), where no index is given. Thread-safe.
class CudaApi {
 public:
  virtual ~CudaApi() = default;
  virtual std::string text(CudaCode code) = 0;  // "out of memory (cudaErrorMemoryAllocation)"

  virtual CudaCode versions(int& runtime, int& driver) = 0;  // 12080 is 12.8; driver 0: none is installed
  virtual CudaCode count(int& gpus) = 0;
  virtual CudaCode properties(int index, CudaProperties& properties) = 0;  // makes no context
  virtual CudaCode has_context(int index, bool& there) = 0;                // so does this
  virtual CudaCode use(int index) = 0;  // by this thread, from now on; makes the context
  virtual CudaCode memory(Bytes& free, Bytes& total) = 0;
  virtual CudaCode last_error() = 0;  // from this thread's calls and launches; forgets it if it can be

  virtual CudaCode allocate(Bytes bytes, void*& data) = 0;
  virtual CudaCode free(void* data) = 0;
  // Whole pages of this process's memory: locked, so that the GPU can copy from and to them by itself. With
  // kKernels its kernels may reach them where mapped_at() says.
  virtual CudaCode lock(void* data, Bytes bytes, CudaLock lock) = 0;
  // Where kernels find the first of these pages, as long as they are locked. `data`: as it was locked.
  virtual CudaCode mapped_at(void* data, void*& on_device) = 0;
  virtual CudaCode unlock(void* data) = 0;
  // Host memory that kernels reach, too: zero at first.
  virtual CudaCode allocate_mapped(Bytes bytes, void*& on_host, void*& on_device) = 0;
  virtual CudaCode free_mapped(void* on_host) = 0;

  virtual CudaCode make_queue(CudaQueue& queue) = 0;  // without order to the default stream
  virtual CudaCode drop_queue(CudaQueue queue) = 0;
  virtual CudaCode drain(CudaQueue queue) = 0;     // sleeps until it is empty
  virtual CudaCode make_mark(CudaMark& mark) = 0;  // a thread that waits for it sleeps
  virtual CudaCode drop_mark(CudaMark mark) = 0;
  virtual CudaCode put(CudaMark mark, CudaQueue queue) = 0;  // behind what is queued
  virtual CudaCode await(CudaMark mark) = 0;                 // sleeps until the queue has come to it
  // What is put into the queue from now on begins when the mark is reached where it stands now.
  virtual CudaCode follow(CudaQueue queue, CudaMark mark) = 0;
  virtual CudaCode seconds(CudaMark from, CudaMark to, double& seconds) = 0;  // both were reached
  virtual CudaCode copy(void* to, const void* from, Bytes bytes, CudaWay way, CudaQueue queue) = 0;
};

// The runtime's; null in a build without CUDA. Stateless.
CudaApi* cuda_api();

}  // namespace sluice::device
