// A link that copies memory in chunks, on threads of its own: who goes first, who waits and how fast. What
// moves the bytes is the unit's.
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
  double latency_s = 0;               // for each copy, before its first byte
  bool full_duplex = true;            // one lane a direction, else one for both
  Bytes chunk = kMiB;                 // at most Link::kMostChunk
  // Asked before each chunk: the number of the copy, in the order of calls from 0, and what has been moved.
  // Called on the link's threads. Empty: no faults.
  std::function<Fault(std::uint64_t copy, Bytes moved)> fault = {};
};

// A part of a copy. One of `from` and `to` is there: the other side is the unit's.
struct LinkChunk {
  bool back = false;  // from the unit
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  Address on_unit;
  Bytes bytes = 0;  // not 0
};

// What moves bytes between the host's memory and a unit's. Threads of the link call it, each for its own
// direction; the one thread of a half duplex link for both.
class Mover {
 public:
  virtual ~Mover() = default;
  // This many chunks of one thread may be under way at once.
  virtual std::size_t most_under_way() const = 0;
  virtual void admit_this_thread() = 0;  // is called first
  // Begins to move a chunk, or does it at once. Throws Error if nothing moves.
  virtual void start(const LinkChunk& chunk) = 0;
  // Returns, or throws Error, when nothing of the chunk moves any more; of those that were started in this
  // direction it is the first. Seconds that it was on the way, if the unit knows them.
  virtual std::optional<double> finish(bool back) = 0;
  // A mark of the device behind the chunk that was started last in this direction. Null: it has none.
  virtual std::shared_ptr<void> mark(bool /*back*/) { return nullptr; }
};

// Copies within this process, chunk by chunk.
class MemoryMover final : public Mover {
 public:
  explicit MemoryMover(Gate& gate) : gate_(gate) {}
  std::size_t most_under_way() const override { return 1; }
  void admit_this_thread() override { gate_.admit_this_thread(); }
  void start(const LinkChunk& chunk) override;
  std::optional<double> finish(bool) override { return std::nullopt; }

 private:
  Gate& gate_;
};

// Bytes of a chunk with which demand waits for about a millisecond at the most on a link so fast.
Bytes chunk_of(double bytes_per_s);

// References must outlive it.
class ChunkedLink final : public Link {
 public:
  ChunkedLink(LinkOptions options, std::unique_ptr<Mover> mover, Health& health, Clock& clock);
  ~ChunkedLink() override;

  Ticket copy(std::span<const std::byte> from, Address to, Traffic traffic, const Event& after) override;
  Ticket copy_back(Address from, std::span<std::byte> to, Traffic traffic, const Event& after) override;
  Progress promote(const Ticket& ticket) override;
  Progress withdraw(const Ticket& ticket) override;
  LinkCounters counters() const override;

 private:
  struct OneCopy;
  struct Piece;
  struct Lane;
  struct Core;  // what hooks of events may touch, even when the link has gone

  Ticket add(std::shared_ptr<OneCopy> copy, const Event& after);
  void close(const std::set<std::shared_ptr<OneCopy>>& copies, std::unique_lock<std::mutex>& lock);

  std::shared_ptr<Core> core_;  // shared with those hooks, which hold it only while they run
  std::vector<std::thread> threads_;
};

}  // namespace sluice::device
