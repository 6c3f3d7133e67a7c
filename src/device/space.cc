#include "device/space.h"

#include <cstdint>
#include <string>

#include "base/error.h"

namespace sluice::device {

Address HostSpace::address(const std::byte* byte) const {
  if (byte == nullptr) return {};
  return {this, reinterpret_cast<std::uintptr_t>(byte)};
}

const std::byte* HostSpace::pointer(Address address) const {
  if (!address) return nullptr;
  SLUICE_CHECK(address.space == this, std::string(address.space->name()));
  return reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(address.value));
}

const HostSpace& host_space() {
  static const HostSpace space;
  return space;
}

}  // namespace sluice::device
