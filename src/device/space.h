// Memories that addresses belong to: the process's own (HostSpace), and those of devices.
#pragma once

#include <cstddef>
#include <string_view>

#include "device/address.h"

namespace sluice::device {

// Immutable; thread-safe.
class Space {
 public:
  virtual ~Space() = default;
  virtual std::string_view name() const = 0;  // for messages
};

// The memory of this process.
class HostSpace final : public Space {
 public:
  std::string_view name() const override { return "host"; }
  // The address of a byte of ours; null gives the address of nothing.
  Address address(const std::byte* byte) const;
  // The byte at an address, null for the address of nothing. Our own bug if the address belongs to another
  // space, whose bytes only the code of its own unit can reach.
  const std::byte* pointer(Address address) const;
};

// Stateless.
const HostSpace& host_space();

}  // namespace sluice::device
