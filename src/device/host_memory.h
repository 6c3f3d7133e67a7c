// The process's memory as that of a unit.
#pragma once

#include <map>
#include <mutex>

#include "device/access.h"
#include "device/host_buffer.h"
#include "device/memory.h"

namespace sluice::device {

// Whole pages (HostBuffer). Everybody may read it, so its gate is always open. Thread-safe.
class HostMemory final : public Memory, public Gate {
 public:
  explicit HostMemory(Accountant& accountant) : Memory(accountant) {}

  const Space& space() const override;
  Bytes cost(Bytes bytes) const override;
  void admit_this_thread() override {}
  void dismiss_this_thread() override {}

 private:
  Address take(Account account, Bytes bytes) override;
  void give(Account account, Address address, Bytes bytes) override;
  void open() override {}
  void close() override {}
  std::byte* data(Address address, Bytes bytes) const override;

  mutable std::mutex mutex_;                    // protects blocks_
  std::map<std::uint64_t, HostBuffer> blocks_;  // by address
};

}  // namespace sluice::device
