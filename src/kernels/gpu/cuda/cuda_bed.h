// A CUDA device for tests and measurements of its kernels alone: memory, one queue, and the kernels.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/function_ref.h"
#include "codec/matrix_format.h"
#include "device/access.h"
#include "device/address.h"
#include "kernels/gpu/gpu_kernel_options.h"
#include "kernels/ops/unit_kernels.h"

namespace sluice::kernels::gpu {

// Thread-compatible, and of one thread.
class CudaBed {
 public:
  using Launches = FunctionRef<void(UnitKernels& kernels, const device::Access& access)>;

  // A device with `memory` bytes for operands, beside the room of its kernels. Null where there is none, or
  // none in this build: `why` says so. Error(kIo).
  static std::unique_ptr<CudaBed> make(Bytes memory, const GpuKernelOptions& kernels, std::string& why);
  virtual ~CudaBed() = default;

  virtual std::string name() const = 0;  // and its memory, multiprocessors, cache
  virtual Bytes cache_bytes() const = 0;

  // Launches, and waits. Operands may be in this process's memory: each range that is asked for is copied
  // to the device, at the same place relative to 256 bytes, and back behind it. Error(kCorrupt) for what
  // kernels report, (kIo), (kBudget) if they do not fit.
  virtual void run(const Launches& launches) = 0;

  // Bytes on the device, until clear(). At a multiple of 256. Error(kBudget).
  virtual device::Address room(Bytes bytes) = 0;
  virtual device::Address put(std::span<const std::byte> bytes) = 0;
  virtual void get(device::Address from, std::span<std::byte> to) = 0;
  virtual void clear() = 0;

  // Launches that no kernel of UnitKernels has by itself. The words of a packed matrix, as its products with
  // many tokens make them: (rows, columns) BF16.
  virtual void recover(const device::Access& access, const codec::MatrixRef& matrix,
                       device::Address words) = 0;
  // `bytes` on the device, to another place there.
  virtual void copy(const device::Access& access, device::Address from, device::Address to, Bytes bytes) = 0;

  // Seconds that the device takes for what is launched, all of it on the device: the median of `rounds`. It
  // is launched as one graph, so that the host's part of each launch does not count.
  virtual double seconds(int rounds, const Launches& launches) = 0;
  // Bytes a second that a kernel reads which does nothing else, from `bytes` of the room at `from`.
  virtual double read_rate(device::Address from, Bytes bytes) = 0;
};

}  // namespace sluice::kernels::gpu
