// The place of bytes in a memory that need not be the process's own.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace sluice::device {

class Space;  // space.h

// No pointer: only the space that an address belongs to can turn it into something to read from. Plain value;
// the space and the bytes must outlive its uses.
struct Address {
  const Space* space = nullptr;  // null: the address of nothing
  std::uint64_t value = 0;       // in terms of the space
  explicit operator bool() const { return space != nullptr; }
  Address operator+(Bytes bytes) const { return {space, value + bytes}; }
  bool operator==(const Address&) const = default;
};

}  // namespace sluice::device
