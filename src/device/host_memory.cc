#include "device/host_memory.h"

#include <unistd.h>

#include <iterator>

#include "base/error.h"
#include "device/space.h"

namespace sluice::device {

const Space& HostMemory::space() const { return host_space(); }

Bytes HostMemory::cost(Bytes bytes) const {
  return round_up(bytes, static_cast<Bytes>(::sysconf(_SC_PAGESIZE)));
}

Address HostMemory::take(Account account, Bytes bytes) {
  HostBuffer buffer(accountant(), account, bytes);
  const Address address = host_space().address(buffer.data());
  const std::lock_guard lock(mutex_);
  blocks_.emplace(address.value, std::move(buffer));
  return address;
}

void HostMemory::give(Account, Address address, Bytes) {
  const std::lock_guard lock(mutex_);
  SLUICE_CHECK(blocks_.erase(address.value) == 1);
}

std::byte* HostMemory::data(Address address, Bytes bytes) const {
  SLUICE_CHECK(address.space == &host_space());
  const std::lock_guard lock(mutex_);
  const auto after = blocks_.upper_bound(address.value);
  SLUICE_CHECK(after != blocks_.begin());
  const HostBuffer& block = std::prev(after)->second;
  const Bytes at = address.value - std::prev(after)->first;
  SLUICE_CHECK(at <= block.size() && bytes <= block.size() - at);
  return block.data() + at;
}

}  // namespace sluice::device
