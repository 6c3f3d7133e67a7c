#include "device/cuda/mapped_pages.h"

#include <iterator>

#include "base/error.h"

namespace sluice::device {
namespace {

std::uint64_t value_of(const std::byte* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace

void MappedPages::add(std::byte* on_host, Bytes bytes, std::byte* on_device) {
  const std::lock_guard lock(mutex_);
  pages_[value_of(on_host)] = {bytes, on_device};
}

void MappedPages::remove(const std::byte* on_host) {
  const std::lock_guard lock(mutex_);
  pages_.erase(value_of(on_host));
}

std::byte* MappedPages::find_locked(std::uint64_t first, Bytes bytes) const {
  const auto behind = pages_.upper_bound(first);
  if (behind == pages_.begin()) return nullptr;
  const auto& [begin, pages] = *std::prev(behind);
  const Bytes offset = first - begin;
  return offset <= pages.bytes && bytes <= pages.bytes - offset ? pages.on_device + offset : nullptr;
}

std::optional<Address> MappedPages::find(std::span<const std::byte> host) const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t first = value_of(host.data());
  if (find_locked(first, host.size()) == nullptr) return std::nullopt;
  return Address{this, first};
}

std::byte* MappedPages::data(Address address, Bytes bytes) const {
  const std::lock_guard lock(mutex_);
  std::byte* const found = address.space == this ? find_locked(address.value, bytes) : nullptr;
  SLUICE_CHECK(found != nullptr, "not in pages of the host that the GPU reaches");
  return found;
}

}  // namespace sluice::device
