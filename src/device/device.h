// A unit that computes: its memory, its streams, and the link to it. Its storage may be apart from ours: only
// what crosses the link is there, and what it reads in place. docs/architecture.md, "Layers".
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/machine/thread_pool.h"
#include "device/host_pace.h"
#include "device/link.h"
#include "device/memory.h"
#include "device/pacer.h"
#include "device/stream.h"

namespace sluice::device {

// Owns all its parts. Blocks and tickets must be gone, and signals that its copies wait for must be done or
// gone, before it is.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;  // "host" "emulated" "cuda"
  virtual Memory& memory() = 0;
  virtual Stream& compute() = 0;  // what a step waits for
  virtual Stream& predict() = 0;  // predictions for later layers, beside it
  virtual Link& link() = 0;
  // The device's own threads, for products. Only operations of its streams may use it; of two streams, one
  // operation runs at a time.
  virtual ThreadPool& pool() = 0;
  virtual LaneCounters computed() const = 0;  // by both streams
  // How long the host's experts shall take beside this device; the code that computes them asks. Null if
  // nothing slows the host down.
  virtual HostPace* host_pace() const { return nullptr; }
  virtual std::optional<Error> lost() const = 0;
  // Where operations of the device read these bytes of the host's memory themselves, without a copy. None
  // unless the device does that and the bytes lie in one buffer whose pages are locked for it (page_lock.h).
  // The address holds as long as the buffer does, which must be there, and left alone, until all that reads
  // it is done. It is read from alone: never the target of a copy, and in no block. Thread-safe.
  virtual std::optional<Address> in_place(std::span<const std::byte> /*host*/) const { return std::nullopt; }
};

// The process's own memory as a unit: nothing is paced, and addresses are of host_space(). Copies and
// operations are real, and on threads of their own. For tests of what uses units. `accountant` must outlive
// it.
std::unique_ptr<Device> make_host_device(Accountant& accountant, unsigned threads = 1);

}  // namespace sluice::device
