// A unit's memory that is one range of addresses, divided among blocks.
#pragma once

#include <mutex>
#include <string_view>

#include "device/first_fit.h"
#include "device/memory.h"

namespace sluice::device {

// Its budget is the range, less what is no whole FirstFit::kAlignment. FirstFit says when blocks that the
// budget has room for are refused. Thread-safe.
class RangeMemory : public Memory {
 public:
  Bytes cost(Bytes bytes) const override { return FirstFit::cost(bytes); }

 protected:
  static constexpr Bytes whole(Bytes bytes) { return round_down(bytes, FirstFit::kAlignment); }

  // `unit`: for messages, "the emulated device".
  RangeMemory(std::string_view unit, Bytes bytes);

 private:
  virtual Address at(Bytes offset) const = 0;
  virtual Bytes offset_of(Address address) const = 0;  // REQUIRES: an address of this memory
  Address take(Account account, Bytes bytes) override;
  void give(Account account, Address address, Bytes bytes) override;

  const std::string_view unit_;
  Accountant own_accountant_;
  std::mutex mutex_;  // protects ranges_
  FirstFit ranges_;
};

}  // namespace sluice::device
