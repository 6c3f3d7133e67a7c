// An NVIDIA GPU as a unit that computes. docs/devices.md, "GPUs".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "device/accountant.h"
#include "device/chunked_link.h"
#include "device/clock.h"
#include "device/cuda/cuda_api.h"
#include "device/device.h"

namespace sluice::device {

struct CudaOptions {
  int index = 0;  // the GPU's, as CUDA counts
  // What Device::memory() has, taken at once. What the context and the kernels' code take comes on top
  // (CudaFacts::context).
  Bytes memory = 0;
  std::optional<double> link_bytes_per_s = {};  // each way, at the most; none: as fast as it goes
  // Its buffers that cross the link are page-locked as long as the device exists (page_lock.h); null: none.
  // Must outlive the device.
  Accountant* host = nullptr;
  // Whether kernels read these buffers where they are (Device::in_place); none: if the GPU shares the host's
  // memory (CudaProperties). One that has its own reads them over its link, each time that a kernel does.
  std::optional<bool> in_place = {};
  // For tests: the calls, the clock that paces a limited link, and LinkOptions::fault.
  CudaApi* api = nullptr;  // null: cuda_api()
  Clock* clock = nullptr;  // null: the machine's
  std::function<Fault(std::uint64_t copy, Bytes moved)> fault = {};
};

// Its name is "cuda". Operations of its streams only launch, on access.queue().stream; they are over when the
// GPU has done that, and what access.data() gives are pointers of the GPU, which the host never follows.
//
// Each call of CUDA is checked. What a call refuses fails one operation or copy; when the GPU answers nothing
// any more it is lost. An impossible operand that a kernel has met (DeviceQueue::fault) is Error(kCorrupt).
//
// Error(kUnsupported) in a build without CUDA, kNotFound if there is no such GPU, kBudget if it has not so
// much memory free, kIo if CUDA refuses. A buffer of the host's that cannot be locked for kernels is not read
// in place, and is locked for copies, if it can be.
std::unique_ptr<Device> make_cuda_device(CudaOptions options);

}  // namespace sluice::device
