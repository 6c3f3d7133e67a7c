// Logical residency: what a cache of a given size holds after each event, in decision order, never by arrival
// time. The engine, the simulator and `sluice lab evict` all drive this one object, so that they decide
// alike.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "experts/cache.h"
#include "experts/expert_table.h"
#include "experts/residency_view.h"

namespace sluice::experts {

// A used expert: what of it is resident before and after the event.
struct Admission {
  ExpertId id;
  Parts parts;  // after use; empty: streamed (used and dropped)
  Parts before = {};
  // Of slices, where the event came with a SliceDemand; else empty. What was asked for, MSB or MSB + LSB, and
  // what it is computed with: MSB is the view `low`, MSB + LSB `high`.
  Parts asked = {}, view = {};

  Parts to_read() const { return view - before; }              // of slices
  bool downgraded() const { return !(asked - view).empty(); }  // its LSB was asked for, and is done without
};

// The outcome of one event, in order of decision.
struct EventOutcome {
  std::vector<Admission> hits;    // ascending: all that was asked for was there
  std::vector<Admission> misses;  // ascending: something was not
  std::vector<Eviction> evicted;  // parts resident before the event and not after it, of any expert
  // Not of the event: were in state F, and are in S. The planes of sign and mantissa are taken out of the
  // words, which leave.
  std::vector<ExpertId> reduced;
  // The first so many of `evicted` left as a prompt ended, before hits and misses were fixed: a used expert's
  // `before` is without them.
  std::size_t trimmed = 0;
};

// Event-atomic replay of one cache (LAB.md): hits and misses are fixed against what was resident before the
// event; then hits are refreshed and misses inserted in ascending id; a victim is never one of the event's
// ids; if room cannot be made for a miss, nothing is evicted for it and it is streamed. (A cache that decides
// on whole events may also drop the event's own ids, and change the parts of its hits.) An expert of which a
// part is resident but no view can be made is a miss. Capacity is in bytes. Once every expert has been seen,
// events allocate nothing. Thread-compatible.
//
// Slices: the event says what it asks for (SliceDemand); an expert is a hit if all of that is resident. An
// LSB that is there and was not asked for is computed with, unless it leaves in the same event (SPEC §4.3).
// The first event behind a prompt ends it: what the cache drops then stands first among `evicted`.
class Residency final : public ResidencyView {
 public:
  // `sizes` must outlive this.
  Residency(std::unique_ptr<Cache> cache, const ExpertSizes& sizes, Bytes capacity);

  // ids: distinct, any order. `scores`, `tokens` and `slices` as in StepReport (tokens and critical_tokens
  // parallel to ids in ascending order). The outcome lasts until the next call. No ids: only the event's
  // index moves on.
  const EventOutcome& on_event(std::span<const ExpertId> ids, std::span<const float> scores = {},
                               std::span<const std::uint32_t> tokens = {}, const SliceDemand& slices = {});

  Parts parts(ExpertId id) const override;  // what is resident now
  bool computable(ExpertId id) const;       // a view can be made without a read: F, C (or MSB)
  Bytes used() const { return used_; }
  Bytes capacity() const { return capacity_; }
  std::vector<Placed> resident() const;  // ascending id
  const Cache& cache() const { return *cache_; }
  std::uint64_t events() const { return events_; }
  std::uint64_t decision_hash() const {
    return hash_;
  }  // of all outcomes so far: equal logs, equal hashes (SPEC I6)

 private:
  // Pins the running event's experts: those stamped with its number.
  class EventPins final : public PinnedView {
   public:
    bool pinned(ExpertId id) const override {
      const std::uint64_t* stamp = stamps.find(id);
      return stamp != nullptr && *stamp == current;
    }
    ExpertTable<std::uint64_t> stamps;
    std::uint64_t current = 0;  // 1-based, so that 0 is "never"
  };

  void end_prompt();
  Parts asked(ExpertId id) const;  // of slices
  void complete(Admission& admission) const;
  void decide_misses_one_by_one();
  void decide_whole_event();
  void place(const Placed& placed);
  void evict(const Eviction& victim);
  void reduce(ExpertId id);
  void hash_outcome();

  std::unique_ptr<Cache> cache_;
  const ExpertSizes& sizes_;
  Bytes capacity_, used_ = 0;
  std::uint64_t events_ = 0, hash_ = 0;
  ExpertTable<Parts> resident_;
  EventPins pins_;
  EventPins critical_;  // stamps those that the event asks more than the MSB of
  bool sliced_ = false, in_prompt_ = false;
  EventOutcome outcome_;
  std::vector<ExpertId> ids_, hits_, misses_;  // of the running event, ascending
  EventDecision decision_;
};

}  // namespace sluice::experts
