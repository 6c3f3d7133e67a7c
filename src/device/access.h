// The right to read and write a unit's memory. Only its own threads have one, for as long as they work.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/error.h"
#include "device/address.h"

namespace sluice::device {

// What stands before a memory. Streams and links of a device hold it; nobody else gets hold of it.
// Thread-safe.
class Gate {
 public:
  virtual ~Gate() = default;
  // Called by each thread of the device, first. Threads that it starts then need not call it.
  virtual void admit_this_thread() = 0;
  virtual void dismiss_this_thread() = 0;  // takes that back

 private:
  friend class Access;
  virtual void open() = 0;
  virtual void close() = 0;
  // Checks that the range lies within the memory.
  virtual std::byte* data(Address address, Bytes bytes) const = 0;
};

// Where the kernels of a device are queued that computes by itself. Both are null where operations are
// functions of this program.
struct DeviceQueue {
  void* stream = nullptr;  // in terms of the device's own interface: a cudaStream_t
  // A kernel that meets impossible operands makes it a number other than 0; the stream then fails with
  // Error(kCorrupt). In memory that kernels and the host reach.
  std::uint32_t* fault = nullptr;
};

// The error of an operation that meets impossible operands, on any unit. Callers say where these are.
inline Error damaged_operands() {
  return Error(ErrorKind::kCorrupt, "exponents of packed weights in memory are no valid encoding by native")
      .fix("check the store with `sluice verify`, and the machine's memory");
}

// Pointers that it gives are valid while it lives, on the thread that has it and on those of the device's
// pool; where there is a queue, for its kernels alone, as long as the memory is there. Not copied, not kept.
class Access {
 public:
  explicit Access(Gate& gate, DeviceQueue queue = {}) : gate_(gate), queue_(queue) { gate_.open(); }
  ~Access() { gate_.close(); }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  // The bytes at an address of this memory. Our own bug if they do not lie within it.
  std::byte* data(Address address, Bytes bytes) const { return gate_.data(address, bytes); }
  const DeviceQueue& queue() const { return queue_; }

 private:
  Gate& gate_;
  const DeviceQueue queue_;
};

}  // namespace sluice::device
