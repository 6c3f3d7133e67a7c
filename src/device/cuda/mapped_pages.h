// Locked pages of the host's memory that kernels of a GPU read where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "device/space.h"

namespace sluice::device {

// The space of their addresses, each of which has the value of the host's pointer. Thread-safe.
class MappedPages final : public Space {
 public:
  std::string_view name() const override { return "host, for cuda"; }
  // Pages that were locked together, and where the GPU finds the first of them.
  void add(std::byte* on_host, Bytes bytes, std::byte* on_device);
  void remove(const std::byte* on_host);  // as they were added; nothing if they were not
  // None unless all of these bytes lie in pages that were added together.
  std::optional<Address> find(std::span<const std::byte> host) const;
  // The GPU's pointer to as many bytes. Our own bug if they do not lie in pages that were added together.
  std::byte* data(Address address, Bytes bytes) const;

 private:
  struct Pages {
    Bytes bytes = 0;
    std::byte* on_device = nullptr;
  };
  std::byte* find_locked(std::uint64_t first, Bytes bytes) const;  // null: there are none

  mutable std::mutex mutex_;              // protects pages_
  std::map<std::uint64_t, Pages> pages_;  // by the host's pointer
};

}  // namespace sluice::device
