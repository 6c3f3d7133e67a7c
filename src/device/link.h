// Copies between the host's memory and a unit's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "device/address.h"
#include "device/event.h"
#include "device/pacer.h"

namespace sluice::device {

// Why bytes cross, which says who goes first: demand and results, then prefetches, then updates. SPEC §5.1.
enum class Traffic : std::uint8_t {
  kDemand,    // a step waits for it: experts of the event, activations that go to the unit
  kResult,    // a step waits for it: rows that a unit has computed
  kPrefetch,  // for an event that may come
  kUpdate,    // what a cache brings in, or gives back, though no event uses it
};
inline constexpr std::size_t kTraffics = 4;
std::string_view traffic_name(Traffic traffic);  // "demand" "result" "prefetch" "update"

// A copy, as its link keeps it.
struct Copy {
  virtual ~Copy() = default;
  Event event;
};

// Names a copy. Plain value.
class Ticket {
 public:
  Ticket() = default;
  explicit Ticket(std::shared_ptr<Copy> copy) : copy_(std::move(copy)) {}
  explicit operator bool() const { return copy_ != nullptr; }
  // Is done when the link touches neither side any more. Carries Error(kIo) if the copy failed,
  // Error(kInterrupted) if it was withdrawn, and the error of the event that it was to wait for. A withdrawn
  // copy may be done before that event is.
  Event event() const { return copy_ != nullptr ? copy_->event : Event(); }
  const std::shared_ptr<Copy>& copy() const { return copy_; }  // for the link

 private:
  std::shared_ptr<Copy> copy_;  // shared with the link, which drops it when it is done
};

enum class CopyStage : std::uint8_t { kWaiting, kUnderWay, kDone };

// How far a copy has come.
struct Progress {
  CopyStage stage = CopyStage::kDone;
  Bytes moved = 0;  // those of a chunk that is being moved count
};

struct TrafficCounters {
  Bytes bytes = 0;              // moved, by the class that the copy had when they were
  std::uint64_t copies = 0;     // complete
  double busy_s = 0;            // as LaneCounters::busy_s
  std::uint64_t withdrawn = 0;  // before they were complete …
  Bytes withdrawn_bytes = 0;    // … and what had been moved of them
  std::uint64_t late = 0;       // became demand before they were complete
  std::uint64_t failed = 0;
};

struct LinkCounters {
  std::array<TrafficCounters, kTraffics> by_traffic;
  LaneCounters to_device, from_device;  // the same lane twice if the link is half duplex
  const TrafficCounters& operator[](Traffic traffic) const {
    return by_traffic[static_cast<std::size_t>(traffic)];
  }
};

// The link moves one chunk at a time: of the copies whose `after` is done, one of the first class, among
// equals the one that was asked for first, or became demand first. So demand overtakes a prefetch that has
// begun. A copy whose `after` is not done holds up none. No order is promised between copies but that of
// their events. Thread-safe; hooks of events may call it.
class Link {
 public:
  // The most bytes of one chunk.
  static constexpr Bytes kMostChunk = 4 * kMiB;

  virtual ~Link() = default;  // copies that are not complete carry Error(kInterrupted)
  // Both sides must live until the ticket's event is done, and be left alone until then.
  virtual Ticket copy(std::span<const std::byte> from, Address to, Traffic traffic,
                      const Event& after = {}) = 0;
  virtual Ticket copy_back(Address from, std::span<std::byte> to, Traffic traffic,
                           const Event& after = {}) = 0;
  // A prefetch or an update becomes demand, behind what is demand already. Says how far it had come.
  virtual Progress promote(const Ticket& ticket) = 0;
  // Nobody wants it any more. kWaiting: none of it will be moved. kUnderWay: a part of the target is
  // overwritten, and a chunk may be on its way until the event is done. kDone: too late.
  virtual Progress withdraw(const Ticket& ticket) = 0;
  virtual LinkCounters counters() const = 0;
};

}  // namespace sluice::device
