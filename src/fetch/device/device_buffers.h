// The memory that a device keeps experts in: buffers of one size, any of which holds any expert.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "device/device.h"

namespace sluice::fetch {

// The buffers of experts on a device. A buffer may be given back while the device still works with it: it is
// given back with an event, and the next user waits for that event. Thread-compatible.
class DeviceBuffers {
 public:
  // Allocates them: `slots` are charged to `experts`, `staging` to `staging`. Error(kBudget).
  DeviceBuffers(device::Memory& memory, std::uint32_t slots, std::uint32_t staging, Bytes bytes);

  struct Taken {
    std::uint32_t index = 0;
    device::Address address;
    device::Event idle;  // never with an error
  };
  Taken take();  // the one that was given back first. REQUIRES: any()
  void give(std::uint32_t index, const device::Event& idle);
  device::Address address(std::size_t index) const { return address_.at(index); }
  bool any() const { return !free_.empty(); }
  std::size_t free() const { return free_.size(); }
  std::size_t size() const { return idle_.size(); }
  Bytes bytes_each() const { return bytes_; }

 private:
  Bytes bytes_;
  device::Block slots_, staging_;
  std::vector<device::Address> address_;
  std::vector<device::Event> idle_;
  std::deque<std::uint32_t> free_;
};

}  // namespace sluice::fetch
