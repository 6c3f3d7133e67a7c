// The right to read and write a unit's memory. Only its own threads have one, for as long as they work.
#pragma once

#include <cstddef>

#include "base/bytes.h"
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

// Pointers that it gives are valid while it lives, on the thread that has it and on those of the device's
// pool. Not copied, not kept.
class Access {
 public:
  explicit Access(Gate& gate) : gate_(gate) { gate_.open(); }
  ~Access() { gate_.close(); }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  // The bytes at an address of this memory. Our own bug if they do not lie within it.
  std::byte* data(Address address, Bytes bytes) const { return gate_.data(address, bytes); }

 private:
  Gate& gate_;
};

}  // namespace sluice::device
