// Slice-LRU: experts in two slices, MSB and LSB, each kind with its own queue; LSBs leave first. SliceMoE's
// dynamic bit-sliced caching, used in decode steps. SPEC §4.3. cache_slice_lru.cc makes a Cache of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/cache/cache.h"
#include "experts/cache/recency_list.h"
#include "experts/cache/slice_rules.h"
#include "experts/core/expert_table.h"

namespace sluice::experts {

struct Slice {
  ExpertId id;
  Part part;  // kMsb or kLsb
  bool operator==(const Slice&) const = default;
};

// An LSB is resident only if its MSB is. O(experts of the event + evictions) an event. Thread-compatible.
class SliceLru {
 public:
  enum class Fate : std::uint8_t {
    kHit,     // was resident
    kMiss,    // read, and resident from now on
    kStream,  // read and used, but there was no room to keep it
    kSkip,    // an LSB that is not read
  };
  struct Request {
    ExpertId id;
    Part part;
    Fate fate;
  };

  explicit SliceLru(const SliceLruRules& rules);  // REQUIRES: valid rules

  // Replaces all residents by these, least recently used first. REQUIRES: each expert of `lsb` is in `msb`.
  void start(std::span<const ExpertId> msb, std::span<const ExpertId> lsb, const ExpertSizes& sizes);

  // One event. `ranked`: distinct, best score first; `critical` ⊆ ranked. REQUIRES: holds at most `capacity`.
  void on_event(std::span<const ExpertId> ranked, std::span<const ExpertId> critical,
                const ExpertSizes& sizes, Bytes capacity, Bytes lsb_allowance = kAnyBytes);

  // For the last event, in the order of decision: MSBs by score, then LSBs by score; then the slices that
  // left. No slice leaves in the event that uses it.
  std::span<const Request> requests() const { return requests_; }
  std::span<const Slice> evicted() const { return evicted_; }

  Parts parts(ExpertId id) const;
  std::vector<ExpertId> msb() const { return msb_.order(); }  // least recently used first
  std::vector<ExpertId> lsb() const { return lsb_.order(); }

 private:
  // The state of an expert in the running event; stale unless `event` is the running event.
  struct Mark {
    std::uint64_t ranked = 0, critical = 0;
    bool msb_hit = false, lsb_hit = false;
  };

  bool make_room_for_msb(Bytes bytes, const ExpertSizes& sizes, Bytes capacity);
  bool make_room_for_lsb(Bytes bytes, const ExpertSizes& sizes, Bytes capacity);
  void evict_lsb(ExpertId id, const ExpertSizes& sizes);
  Bytes used() const { return msb_bytes_ + lsb_bytes_; }

  SliceLruRules rules_;
  // During an event its hits wait outside their queue until their turn, so that the first in a queue may
  // always leave.
  RecencyList msb_, lsb_;
  Bytes msb_bytes_ = 0, lsb_bytes_ = 0;  // bytes of all residents
  Bytes held_msb_ = 0, held_lsb_ = 0;    // bytes that the running event's requests hold of these
  std::size_t idle_lsbs_ = 0;            // LSBs that the running event did not request
  std::uint64_t event_ = 0;
  ExpertTable<Mark> marks_;
  std::vector<Request> requests_;
  std::vector<Slice> evicted_;
};

}  // namespace sluice::experts
