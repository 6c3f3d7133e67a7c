// Slice-LRU: experts in two slices, MSB and LSB, each kind with a queue of its own; LSBs leave first. What
// SliceMoE decodes with (dynamic bit-sliced caching). SPEC §4.3. cache_slice_lru.cc makes a Cache of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/cache.h"
#include "experts/expert_table.h"
#include "experts/recency_list.h"

namespace sluice::experts {

enum class LsbMiss : std::uint8_t {
  kFetch,          // always read
  kSkip,           // never read: computed at low precision
  kFetchIfBudget,  // read as far as SliceDemand::lsb_allowance goes
};

struct SliceLruRules {
  LsbMiss lsb_miss = LsbMiss::kFetchIfBudget;
  // Of the capacity: what MSBs leave to LSBs. Only LSBs beyond it are evicted to make room for an MSB.
  double lsb_reserve = 0;

  void validate() const;  // Error(kUsage)
};

struct Slice {
  ExpertId id;
  Part part;  // kMsb or kLsb
  bool operator==(const Slice&) const = default;
};

// An LSB is resident only if its MSB is. O(experts of the event + evictions) an event. Thread-compatible.
class SliceLru {
 public:
  enum class Fate : std::uint8_t {
    kHit,     // was there
    kMiss,    // read, and there from now on
    kStream,  // read and used; there was no room for it
    kSkip,    // of an LSB: not read
  };
  struct Request {
    ExpertId id;
    Part part;
    Fate fate;
  };

  explicit SliceLru(const SliceLruRules& rules);  // valid ones

  // Holds these from now on, least recently used first, and nothing else. REQUIRES: each of `lsb` is in
  // `msb`.
  void start(std::span<const ExpertId> msb, std::span<const ExpertId> lsb, const ExpertSizes& sizes);

  // One event. `ranked`: distinct, best score first; `critical` ⊆ ranked. REQUIRES: holds at most `capacity`.
  void on_event(std::span<const ExpertId> ranked, std::span<const ExpertId> critical,
                const ExpertSizes& sizes, Bytes capacity, Bytes lsb_allowance = kAnyBytes);

  // Of the last event, in the order of decision: MSBs by score, then LSBs by score; slices that left. None
  // leaves in the event that uses it.
  std::span<const Request> requests() const { return requests_; }
  std::span<const Slice> evicted() const { return evicted_; }

  Parts parts(ExpertId id) const;
  std::vector<ExpertId> msb() const { return msb_.order(); }  // least recently used first
  std::vector<ExpertId> lsb() const { return lsb_.order(); }

 private:
  // What the running event knows of an expert; of older ones if `event` is.
  struct Mark {
    std::uint64_t ranked = 0, critical = 0;
    bool msb_hit = false, lsb_hit = false;
  };

  bool make_room_for_msb(Bytes bytes, const ExpertSizes& sizes, Bytes capacity);
  bool make_room_for_lsb(Bytes bytes, const ExpertSizes& sizes, Bytes capacity);
  void evict_lsb(ExpertId id, const ExpertSizes& sizes);
  Bytes used() const { return msb_bytes_ + lsb_bytes_; }

  SliceLruRules rules_;
  // During an event the hits of the event wait outside their queue until it is their turn, so that whoever
  // stands first in a queue may leave.
  RecencyList msb_, lsb_;
  Bytes msb_bytes_ = 0, lsb_bytes_ = 0;  // of all that is resident
  Bytes held_msb_ = 0, held_lsb_ = 0;    // of these: of the running event's requests
  std::size_t idle_lsbs_ = 0;            // LSBs that the running event did not request
  std::uint64_t event_ = 0;
  ExpertTable<Mark> marks_;
  std::vector<Request> requests_;
  std::vector<Slice> evicted_;
};

}  // namespace sluice::experts
