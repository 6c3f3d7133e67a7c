// Experts that leave a device for the host's memory: returns. They go up the link behind all that a step
// waits for (device::Traffic::kUpdate). SPEC §10 (G12); docs/hybrid.md.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "device/device.h"
#include "experts/core/ids.h"
#include "fetch/device/device_buffers.h"
#include "fetch/device/device_view.h"
#include "fetch/memory/expert_store.h"

namespace sluice::fetch {

struct ReturnCounters {
  std::uint64_t begun = 0;
  std::uint64_t complete = 0;
  std::uint64_t late = 0;  // how many of these were waited for, because an event used them
  // Dropped: a copy failed, the host had no room in time, or it wanted the expert no longer. What the host
  // counts on and lacks is read from disk when it is used; no step fails because of that.
  std::uint64_t lost = 0;
};

// A return waits in its buffer until the host has room for it; once its copy is under way, the buffer is
// given back, and its next user waits for that copy. Meanwhile the host's buffers are those of an expert in
// stage kReturning, which the host's store leaves alone. Thread-compatible. References must outlive it.
class DeviceReturns {
 public:
  DeviceReturns(device::Device& device, ExpertStore& host, DeviceBuffers& buffers)
      : device_(device), host_(host), buffers_(buffers) {}
  ~DeviceReturns();  // ends what is under way

  struct Leaving {
    experts::ExpertId id;
    DeviceView view;
    std::uint32_t buffer = 0;
    device::Event ready;  // it is in the buffer
    device::Event idle;   // nobody uses the buffer any more; never with an error
  };
  // REQUIRES: the host expects it.
  void add(const Leaving& leaving) { waiting_.push_back(leaving); }
  bool waiting() const { return !waiting_.empty(); }
  void begin();       // those that the host has room for, in order
  void lose_first();  // its buffer is given back. REQUIRES: waiting()

  // Tells the host of those whose copies are done.
  void settle();
  // Becomes demand, and is waited for. give_up(): is dropped. Nothing, if the expert is not under way.
  void finish(experts::ExpertId id);
  void give_up(experts::ExpertId id);

  const ReturnCounters& counters() const { return counters_; }

 private:
  struct UnderWay {
    experts::ExpertId id;
    std::array<device::Ticket, 2> copies;  // copies of its regions
  };
  void end(const UnderWay& one);
  std::vector<UnderWay>::iterator find(experts::ExpertId id);

  device::Device& device_;
  ExpertStore& host_;
  DeviceBuffers& buffers_;
  std::vector<Leaving> waiting_;
  std::vector<UnderWay> under_way_;
  ReturnCounters counters_;
};

}  // namespace sluice::fetch
