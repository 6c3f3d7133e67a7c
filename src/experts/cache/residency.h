// Logical residency: what a cache of a given size holds after each event, in decision order, never by arrival
// time. The engine, the simulator and `sluice lab evict` all drive this one class, so that they decide alike.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "experts/cache/cache.h"
#include "experts/core/expert_table.h"
#include "experts/core/residency_view.h"

namespace sluice::experts {

// A used expert: its resident parts before and after the event.
struct Admission {
  ExpertId id;
  Parts parts;  // after use; empty: streamed (used and dropped)
  Parts before = {};
  // For slices, where the event came with a SliceDemand; else empty. `asked`: the parts that were asked for,
  // MSB or MSB + LSB. `view`: the parts that the expert is computed with; MSB is the view `low`, MSB + LSB
  // the view `high`.
  Parts asked = {}, view = {};

  Parts to_read() const { return view - before; }  // for slices
  // Its LSB was asked for and is not used.
  bool downgraded() const { return !(asked - view).empty(); }
};

// An expert that gains parts though the event does not use it.
struct Update {
  ExpertId id;
  Parts parts;  // after the event
  Parts before = {};
};

// What an event moves between this tier and another one that excludes it: an expert is kept in one of them.
// Non-owning.
struct TierExchange {
  // Ascending; the other tier keeps them from now on. Used by the event or not: nothing of them stays
  // here.
  std::span<const ExpertId> given = {};
  // The other tier has dropped these, in this order. They come in if the cache wants them and finds room.
  // The event uses none, and nothing of them is here.
  std::span<const ExpertId> offered = {};
};

// The outcome of one event in one tier, in order of decision.
struct EventOutcome {
  Tier tier = Tier::kHost;
  std::vector<Admission> hits;    // ascending: all asked parts were resident
  std::vector<Admission> misses;  // ascending: some asked part was not resident
  // Parts of any expert that were resident before the event and are not after it
  std::vector<Eviction> evicted;
  // Experts outside the event that went from state F to S. Their planes of sign and mantissa are taken out of
  // the words, and the words leave.
  std::vector<ExpertId> reduced;
  // Experts outside the event that the cache brings in. Nobody waits for them: their bytes come when links
  // are idle, or when an event uses them.
  std::vector<Update> updates;
  // Experts that came in from the other tier: their bytes are brought from there, not read.
  std::vector<Placed> adopted;
  // The first `trimmed` entries of `evicted` left when a prompt ended, before hits and misses were fixed: the
  // `before` of a used expert is without them. The next `given` entries left for the other tier.
  std::size_t trimmed = 0, given = 0;
};

// Event-atomic replay of one cache (LAB.md). Hits and misses are fixed against the residents before the
// event; then hits are refreshed and misses inserted in ascending id. A victim is never one of the event's
// ids. If room cannot be made for a miss, nothing is evicted for it, and the miss is streamed. (A cache that
// decides on whole events may also drop the event's own ids, change the parts of its hits, and bring in
// experts that the event does not use.) An expert whose resident parts make no view is a miss. Capacity is in
// bytes. Once every expert has been seen, events allocate nothing. Thread-compatible.
//
// Slices: the event says what it asks for (SliceDemand); an expert is a hit if all of that is resident. A
// resident LSB that was not asked for is used, unless it leaves in the same event (SPEC §4.3). The first
// decoded token of a sequence ends its prompt, and all prompts that were read since the last end: parts that
// the cache then drops come first in `evicted`. Events of other sequences in between do not end it.
//
// Tiers that exclude each other: experts are given up before misses come in, and the cache is not asked about
// them; offered ones come in behind the misses, as if they had been used. None of them is a victim in this
// event. The cache must be one that adopts (CachePolicy::adopts).
class Residency final : public ResidencyView {
 public:
  // `sizes` must outlive this.
  Residency(std::unique_ptr<Cache> cache, const ExpertSizes& sizes, Bytes capacity, Tier tier = Tier::kHost);

  // ids: distinct, any order. `scores`, `tokens` and `slices` as in StepReport (tokens and critical_tokens
  // parallel to ids in ascending order). The outcome is valid until the next call. Without ids, the event's
  // index advances, and the cache is told.
  const EventOutcome& on_event(std::span<const ExpertId> ids, std::span<const float> scores = {},
                               std::span<const std::uint32_t> tokens = {}, const SliceDemand& slices = {},
                               const EventPlace& place = {}, const TierExchange& exchange = {});

  // Takes in what the cache begins with; these are the updates of the outcome. REQUIRES: no event so far.
  const EventOutcome& start();

  // The sequence has ended. If only its prompt was being read, the next decoded token of any ends that.
  void end_sequence(SequenceId sequence);

  Parts parts(ExpertId id) const override;  // resident now
  Tier tier() const override { return outcome_.tier; }
  bool computable(ExpertId id) const;  // parts(id) make a view without a read: F, C (or MSB)
  Bytes used() const { return used_; }
  Bytes capacity() const { return capacity_; }
  std::vector<Placed> resident() const;  // ascending id
  const Cache& cache() const { return *cache_; }
  std::uint64_t events() const { return events_; }
  // Hash of all outcomes so far: equal logs have equal hashes (SPEC I6).
  std::uint64_t decision_hash() const { return hash_; }

 private:
  // Pins the running event's experts, which are stamped with its number.
  class EventPins final : public PinnedView {
   public:
    bool pinned(ExpertId id) const override {
      const std::uint64_t* stamp = stamps.find(id);
      return stamp != nullptr && *stamp == current;
    }
    ExpertTable<std::uint64_t> stamps;
    std::uint64_t current = 0;  // 1-based, so that 0 is "never"
  };

  void clear_outcome();
  void follow_prompts(const SliceDemand& slices);
  void end_prompt();
  Parts asked(ExpertId id) const;  // for slices
  void complete(Admission& admission) const;
  void give_up(std::span<const ExpertId> given);
  void adopt(std::span<const ExpertId> offered);
  void decide_misses_one_by_one(std::span<const ExpertId> given);
  // Drops victims of the cache until `bytes` more fit than the tier has without `old`; false, and nothing is
  // dropped, if they cannot.
  bool make_room(Bytes bytes, Bytes old);
  void decide_whole_event();
  void admit_idle(const StepReport& report);
  void place(const Placed& placed);
  void fetch(const Placed& fetched);
  void evict(const Eviction& victim);
  void reduce(ExpertId id);
  void hash_outcome();

  std::unique_ptr<Cache> cache_;
  const ExpertSizes& sizes_;
  Bytes capacity_, used_ = 0;
  std::uint64_t events_ = 0, hash_ = 0;
  ExpertTable<Parts> resident_;
  EventPins pins_;
  EventPins critical_;  // stamps the experts of which the event asks more than the MSB
  bool sliced_ = false;
  bool in_prompt_ = false;           // a prompt was read, and has not ended
  std::vector<SequenceId> prompts_;  // the sequences whose prompts those were
  EventOutcome outcome_;
  std::vector<ExpertId> ids_, hits_, misses_;  // experts of the running event, ascending
  EventDecision decision_;
};

}  // namespace sluice::experts
