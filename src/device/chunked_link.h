// A link that copies memory in chunks, on threads of its own: the link of every unit whose memory this
// program can reach.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "device/access.h"
#include "device/health.h"
#include "device/link.h"

namespace sluice::device {

// What a test wants to happen to a copy.
enum class Fault : std::uint8_t {
  kNone,
  kCopyFails,     // it carries Error(kIo)
  kDeviceIsLost,  // nothing works any more
};

struct LinkOptions {
  std::optional<double> bytes_per_s;  // each way; none: as fast as it goes
  double latency_s = 0;               // of each copy, before its first byte
  bool full_duplex = true;            // one lane a direction, else one for both
  Bytes chunk = Link::kMostChunk;
  // Asked before each chunk: the number of the copy, in the order of calls from 0, and what has been moved.
  // Called on the link's threads. Empty: no faults.
  std::function<Fault(std::uint64_t copy, Bytes moved)> fault = {};
};

// References must outlive it.
class ChunkedLink final : public Link {
 public:
  ChunkedLink(LinkOptions options, Gate& gate, Health& health, Clock& clock);
  ~ChunkedLink() override;

  Ticket copy(std::span<const std::byte> from, Address to, Traffic traffic, const Event& after) override;
  Ticket copy_back(Address from, std::span<std::byte> to, Traffic traffic, const Event& after) override;
  Progress promote(const Ticket& ticket) override;
  Progress withdraw(const Ticket& ticket) override;
  LinkCounters counters() const override;

 private:
  struct OneCopy;
  struct Lane;
  struct Core;  // what hooks of events may touch, even when the link has gone

  Ticket add(std::shared_ptr<OneCopy> copy, const Event& after);

  std::shared_ptr<Core> core_;  // shared with those hooks, which hold it only while they run
  std::vector<std::thread> threads_;
};

}  // namespace sluice::device
