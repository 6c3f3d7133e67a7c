// What is allocated in an emulated device's arena.
#pragma once

#include "device/emulated/arena.h"
#include "device/range_memory.h"

namespace sluice::device {

// Thread-safe.
class EmulatedMemory final : public RangeMemory {
 public:
  EmulatedMemory(Bytes bytes, Guard guard)
      : RangeMemory("the emulated device", bytes), arena_(whole(bytes), guard) {}

  Arena& arena() { return arena_; }
  const Space& space() const override { return arena_; }

 private:
  Address at(Bytes offset) const override { return arena_.address(offset); }
  Bytes offset_of(Address address) const override { return arena_.offset(address); }

  Arena arena_;
};

}  // namespace sluice::device
