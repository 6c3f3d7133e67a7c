#include "fetch/device/device_buffers.h"

#include "base/error.h"

namespace sluice::fetch {
namespace {

constexpr Bytes kAlignment = 256;  // a device's

}  // namespace

DeviceBuffers::DeviceBuffers(device::Memory& memory, std::uint32_t slots, std::uint32_t staging, Bytes bytes)
    : bytes_(round_up(bytes, kAlignment)),
      slots_(memory.allocate(device::Account::kExperts, slots * bytes_)),
      staging_(memory.allocate(device::Account::kStaging, staging * bytes_)),
      idle_(slots + staging) {
  for (std::uint32_t i = 0; i < slots + staging; ++i) {
    address_.push_back(i < slots ? slots_.address() + i * bytes_ : staging_.address() + (i - slots) * bytes_);
    free_.push_back(i);
  }
}

DeviceBuffers::Taken DeviceBuffers::take() {
  SLUICE_CHECK(any(), "no buffer of the device is free");
  const std::uint32_t index = free_.front();
  free_.pop_front();
  return {index, address_[index], idle_[index]};
}

void DeviceBuffers::give(std::uint32_t index, const device::Event& idle) {
  idle_[index] = idle.settled();
  free_.push_back(index);
}

}  // namespace sluice::fetch
