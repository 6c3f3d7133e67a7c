// What is allocated in an emulated device's arena.
#pragma once

#include <mutex>

#include "device/emulated/arena.h"
#include "device/first_fit.h"
#include "device/memory.h"

namespace sluice::device {

// Its budget is the arena, less what is no whole FirstFit::kAlignment. FirstFit says when blocks that the
// budget has room for are refused. Thread-safe.
class EmulatedMemory final : public Memory {
 public:
  EmulatedMemory(Bytes bytes, Guard guard);

  Arena& arena() { return arena_; }
  const Space& space() const override { return arena_; }
  Bytes cost(Bytes bytes) const override { return FirstFit::cost(bytes); }

 private:
  Address take(Account account, Bytes bytes) override;
  void give(Account account, Address address, Bytes bytes) override;

  Arena arena_;
  Accountant own_accountant_;
  std::mutex mutex_;  // protects ranges_
  FirstFit ranges_;
};

}  // namespace sluice::device
