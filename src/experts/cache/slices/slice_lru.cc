#include "experts/cache/slices/slice_lru.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::experts {

SliceLru::SliceLru(const SliceLruRules& rules) : rules_(rules) {}

void SliceLru::start(std::span<const ExpertId> msb, std::span<const ExpertId> lsb, const ExpertSizes& sizes) {
  msb_.clear();
  lsb_.clear();
  msb_bytes_ = lsb_bytes_ = 0;
  for (ExpertId id : msb) {
    msb_.push_most_recent(id);
    msb_bytes_ += sizes.bytes(id).msb;
  }
  for (ExpertId id : lsb) {
    SLUICE_CHECK(msb_.has(id));
    lsb_.push_most_recent(id);
    lsb_bytes_ += sizes.bytes(id).lsb;
  }
}

void SliceLru::on_event(std::span<const ExpertId> ranked, std::span<const ExpertId> critical,
                        const ExpertSizes& sizes, Bytes capacity, Bytes lsb_allowance) {
  ++event_;
  requests_.clear();
  evicted_.clear();
  held_msb_ = held_lsb_ = 0;
  for (ExpertId id : critical) marks_.at(id).critical = event_;
  for (ExpertId id : ranked) {
    Mark& mark = marks_.at(id);
    SLUICE_CHECK(mark.ranked != event_, "an id stands twice in one event");
    mark.ranked = event_;
    const ExpertBytes bytes = sizes.bytes(id);
    mark.msb_hit = msb_.has(id);
    if (mark.msb_hit) {
      msb_.remove(id);
      held_msb_ += bytes.msb;
    }
    mark.lsb_hit = mark.critical == event_ && lsb_.has(id);
    if (mark.lsb_hit) {
      lsb_.remove(id);
      held_lsb_ += bytes.lsb;
    }
  }
  for (ExpertId id : critical) SLUICE_CHECK(marks_.find(id)->ranked == event_, "critical and not ranked");
  idle_lsbs_ = lsb_.size();

  for (ExpertId id : ranked) {
    Fate fate = Fate::kHit;
    if (!marks_.find(id)->msb_hit) {
      const Bytes bytes = sizes.bytes(id).msb;
      fate = make_room_for_msb(bytes, sizes, capacity) ? Fate::kMiss : Fate::kStream;
      if (fate == Fate::kMiss) {
        msb_bytes_ += bytes;
        held_msb_ += bytes;
      }
    }
    if (fate != Fate::kStream) msb_.push_most_recent(id);
    requests_.push_back({id, Part::kMsb, fate});
  }
  for (ExpertId id : ranked) {
    const Mark& mark = *marks_.find(id);
    if (mark.critical != event_) continue;
    Fate fate = Fate::kHit;
    if (!mark.lsb_hit) {
      const Bytes bytes = sizes.bytes(id).lsb;
      const bool skip = rules_.lsb_miss == LsbMiss::kSkip ||
                        (rules_.lsb_miss == LsbMiss::kFetchIfBudget && bytes > lsb_allowance);
      if (skip) {
        requests_.push_back({id, Part::kLsb, Fate::kSkip});
        continue;
      }
      if (lsb_allowance != kAnyBytes) lsb_allowance -= std::min(bytes, lsb_allowance);
      fate = msb_.has(id) && make_room_for_lsb(bytes, sizes, capacity) ? Fate::kMiss : Fate::kStream;
      if (fate == Fate::kMiss) {
        lsb_bytes_ += bytes;
        held_lsb_ += bytes;
      }
    }
    if (fate != Fate::kStream) lsb_.push_most_recent(id);
    requests_.push_back({id, Part::kLsb, fate});
  }
}

Parts SliceLru::parts(ExpertId id) const {
  if (!msb_.has(id)) return {};
  return lsb_.has(id) ? Part::kMsb | Part::kLsb : Parts(Part::kMsb);
}

// Only the slices that the event uses must stay; the reserve for LSBs does not limit MSBs.
bool SliceLru::make_room_for_msb(Bytes bytes, const ExpertSizes& sizes, Bytes capacity) {
  const auto reserve = static_cast<Bytes>(rules_.lsb_reserve * static_cast<double>(capacity));
  const Bytes most_msb = capacity - std::min(reserve, capacity);
  if (held_msb_ + bytes > most_msb || held_msb_ + held_lsb_ + bytes > capacity) return false;
  while (used() + bytes > capacity || msb_bytes_ + bytes > most_msb) {
    if (used() + bytes > capacity && idle_lsbs_ > 0 && (reserve == 0 || lsb_bytes_ > reserve)) {
      evict_lsb(lsb_.least_recent(), sizes);
      continue;
    }
    const ExpertId victim = msb_.least_recent();
    SLUICE_CHECK(marks_.find(victim) == nullptr || marks_.find(victim)->ranked != event_);
    if (lsb_.has(victim)) evict_lsb(victim, sizes);
    msb_.remove(victim);
    msb_bytes_ -= sizes.bytes(victim).msb;
    evicted_.push_back({victim, Part::kMsb});
  }
  return true;
}

bool SliceLru::make_room_for_lsb(Bytes bytes, const ExpertSizes& sizes, Bytes capacity) {
  if (msb_bytes_ + held_lsb_ + bytes > capacity) return false;
  while (used() + bytes > capacity) {
    SLUICE_CHECK(idle_lsbs_ > 0);
    evict_lsb(lsb_.least_recent(), sizes);
  }
  return true;
}

void SliceLru::evict_lsb(ExpertId id, const ExpertSizes& sizes) {
  lsb_.remove(id);
  lsb_bytes_ -= sizes.bytes(id).lsb;
  --idle_lsbs_;
  evicted_.push_back({id, Part::kLsb});
}

}  // namespace sluice::experts
