#include "experts/cache/residency.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/splitmix64.h"

namespace sluice::experts {
namespace {

std::string name_of(ExpertId id) {
  return "expert " + std::to_string(id.layer) + "/" + std::to_string(id.index);
}

// One step of a 64-bit hash over state and value.
std::uint64_t mixed(std::uint64_t state, std::uint64_t value) {
  return splitmix64_mixed((state ^ value) + kSplitMix64Step);
}

std::uint64_t word(ExpertId id, Parts parts, std::uint64_t what) {
  return what << 40 | std::uint64_t{parts.bits()} << 32 | std::uint64_t{id.layer} << 16 | id.index;
}

}  // namespace

Residency::Residency(std::unique_ptr<Cache> cache, const ExpertSizes& sizes, Bytes capacity, Tier tier)
    : cache_(std::move(cache)), sizes_(sizes), capacity_(capacity) {
  outcome_.tier = tier;
}

const EventOutcome& Residency::on_event(std::span<const ExpertId> ids, std::span<const float> scores,
                                        std::span<const std::uint32_t> tokens, const SliceDemand& slices,
                                        const EventPlace& place, const TierExchange& exchange) {
  ids_.assign(ids.begin(), ids.end());
  std::sort(ids_.begin(), ids_.end());
  SLUICE_CHECK(std::adjacent_find(ids_.begin(), ids_.end()) == ids_.end(), "an id stands twice in one event");
  SLUICE_CHECK(tokens.empty() || tokens.size() == ids_.size());
  SLUICE_CHECK(slices.critical_tokens.empty() || slices.critical_tokens.size() == ids_.size());

  clear_outcome();
  if (!ids_.empty()) follow_prompts(slices);
  misses_.clear();
  pins_.current = critical_.current = events_ + 1;
  hits_.clear();
  for (ExpertId id : ids_) pins_.stamps.at(id) = pins_.current;
  sliced_ = !slices.ranked.empty();
  SLUICE_CHECK(!sliced_ || slices.ranked.size() == ids_.size());
  for (ExpertId id : slices.ranked) SLUICE_CHECK(pins_.pinned(id), name_of(id) + " is ranked and not used");
  for (ExpertId id : slices.prompt ? slices.ranked : slices.critical) {
    SLUICE_CHECK(pins_.pinned(id), name_of(id) + " is critical and not used");
    critical_.stamps.at(id) = critical_.current;
  }
  for (ExpertId id : ids_)
    ((sliced_ ? parts(id).has_all(asked(id)) : computable(id)) ? hits_ : misses_).push_back(id);
  for (ExpertId id : hits_) outcome_.hits.push_back({id, {}, parts(id)});
  for (ExpertId id : misses_) outcome_.misses.push_back({id, {}, parts(id)});
  const StepReport report{.event = events_,
                          .used = ids_,
                          .hits = hits_,
                          .misses = misses_,
                          .scores = scores,
                          .tokens = tokens,
                          .slices = slices,
                          .place = place};
  cache_->on_step(report);

  decision_.victims.clear();
  decision_.reduced.clear();
  decision_.placed.clear();
  decision_.fetched.clear();
  decision_.downgraded.clear();
  if (cache_->decide_event(report, sizes_, capacity_, decision_)) {
    SLUICE_CHECK(exchange.given.empty() && exchange.offered.empty(), cache_->name() + " cannot adopt");
    decide_whole_event();
  } else {
    give_up(exchange.given);
    decide_misses_one_by_one(exchange.given);
    adopt(exchange.offered);
    if (place.link_idle) admit_idle(report);
  }
  for (Admission& hit : outcome_.hits) complete(hit);
  for (Admission& miss : outcome_.misses) complete(miss);
  SLUICE_CHECK(used_ <= capacity_,
               std::to_string(used_) + " bytes in a cache of " + std::to_string(capacity_));
  ++events_;
  hash_outcome();
  return outcome_;
}

const EventOutcome& Residency::start() {
  SLUICE_CHECK(events_ == 0 && used_ == 0, "a cache starts once");
  clear_outcome();
  std::vector<Placed> first;
  cache_->start(sizes_, capacity_, first);
  for (const Placed& placed : first) {
    SLUICE_CHECK(is_legal(placed.parts) && !placed.parts.empty() && parts(placed.id).empty(),
                 name_of(placed.id) + " cannot be there at the start");
    resident_.at(placed.id) = placed.parts;
    used_ += sizes_.bytes(placed.id).of(placed.parts);
    outcome_.updates.push_back({placed.id, placed.parts});
  }
  SLUICE_CHECK(used_ <= capacity_, cache_->name() + " starts with more than its capacity");
  if (!first.empty()) hash_outcome();
  return outcome_;
}

void Residency::clear_outcome() {
  outcome_.hits.clear();
  outcome_.misses.clear();
  outcome_.evicted.clear();
  outcome_.reduced.clear();
  outcome_.updates.clear();
  outcome_.adopted.clear();
  outcome_.trimmed = outcome_.given = 0;
}

void Residency::end_sequence(SequenceId sequence) { std::erase(prompts_, sequence); }

void Residency::follow_prompts(const SliceDemand& slices) {
  const SequenceSpan whole{.kind = slices.prompt ? StepKind::kPrompt : StepKind::kDecode};
  const std::span<const SequenceSpan> spans = slices.spans.empty() ? std::span(&whole, 1) : slices.spans;
  const auto ends = [&](const SequenceSpan& span) {
    return span.kind == StepKind::kDecode &&
           (prompts_.empty() || std::ranges::find(prompts_, span.sequence) != prompts_.end());
  };
  if (in_prompt_ && std::ranges::any_of(spans, ends)) end_prompt();
  for (const SequenceSpan& span : spans) {
    if (span.kind != StepKind::kPrompt) continue;
    in_prompt_ = true;
    if (std::ranges::find(prompts_, span.sequence) == prompts_.end()) prompts_.push_back(span.sequence);
  }
}

void Residency::end_prompt() {
  in_prompt_ = false;
  prompts_.clear();
  decision_.victims.clear();
  cache_->end_prompt(decision_.victims);
  for (const Eviction& victim : decision_.victims) evict(victim);
  outcome_.trimmed = outcome_.evicted.size();
}

Parts Residency::asked(ExpertId id) const {
  return critical_.pinned(id) ? Part::kMsb | Part::kLsb : Parts(Part::kMsb);
}

void Residency::complete(Admission& admission) const {
  admission.parts = parts(admission.id);
  if (!sliced_) return;
  admission.asked = asked(admission.id);
  const bool skipped = std::ranges::find(decision_.downgraded, admission.id) != decision_.downgraded.end();
  SLUICE_CHECK(!skipped || (admission.asked.has(Part::kLsb) && !admission.before.has(Part::kLsb)),
               name_of(admission.id) + " is downgraded for nothing");
  const bool high = admission.asked.has(Part::kLsb)
                        ? !skipped
                        : admission.before.has(Part::kLsb) && admission.parts.has(Part::kLsb);
  admission.view = high ? Part::kMsb | Part::kLsb : Parts(Part::kMsb);
}

void Residency::decide_misses_one_by_one(std::span<const ExpertId> given) {
  for (ExpertId id : misses_) {
    const Parts old = parts(id),
                target = std::ranges::binary_search(given, id) ? Parts() : cache_->wanted(id);
    SLUICE_CHECK(is_legal(target), name_of(id));
    if (target == old) continue;
    if (target.empty()) {
      evict({id, old});
      continue;
    }
    if (make_room(sizes_.bytes(id).of(target), sizes_.bytes(id).of(old))) place({id, target});
  }
}

bool Residency::make_room(Bytes bytes, Bytes old) {
  const Bytes others = used_ - old;
  if (bytes > capacity_) return false;
  if (others <= capacity_ - bytes) return true;
  decision_.victims.clear();
  cache_->victims(others - (capacity_ - bytes), pins_, decision_.victims);
  if (decision_.victims.empty()) return false;
  for (const Eviction& victim : decision_.victims) {
    SLUICE_CHECK(!pins_.pinned(victim.id), name_of(victim.id) + " is pinned");
    evict(victim);
  }
  SLUICE_CHECK(used_ - old + bytes <= capacity_, cache_->name() + " freed too little");
  return true;
}

void Residency::give_up(std::span<const ExpertId> given) {
  for (const ExpertId id : given)
    if (const Parts old = parts(id); !old.empty()) evict({id, old});
  outcome_.given = outcome_.evicted.size() - outcome_.trimmed;
}

void Residency::adopt(std::span<const ExpertId> offered) {
  for (const ExpertId id : offered) {
    SLUICE_CHECK(!pins_.pinned(id) && parts(id).empty(), name_of(id) + " is offered and is here, or is used");
    const Parts target = cache_->wanted(id);
    if (target.empty() || !make_room(sizes_.bytes(id).of(target), 0)) continue;
    pins_.stamps.at(id) = pins_.current;
    place({id, target});
    outcome_.adopted.push_back({id, target});
  }
}

void Residency::decide_whole_event() {
  for (const Eviction& victim : decision_.victims) evict(victim);
  for (ExpertId id : decision_.reduced) reduce(id);
  for (const Placed& placed : decision_.placed) {
    SLUICE_CHECK(pins_.pinned(placed.id),
                 cache_->name() + " placed " + name_of(placed.id) + ", which was not used");
    place(placed);
  }
  for (const Placed& fetched : decision_.fetched) fetch(fetched);
}

void Residency::admit_idle(const StepReport& report) {
  decision_.victims.clear();
  cache_->admit_idle(report, sizes_, capacity_, decision_);
  for (const Eviction& victim : decision_.victims) {
    SLUICE_CHECK(!pins_.pinned(victim.id), name_of(victim.id) + " is pinned");
    evict(victim);
  }
  for (const Placed& fetched : decision_.fetched) fetch(fetched);
}

void Residency::fetch(const Placed& fetched) {
  const Parts before = parts(fetched.id);
  SLUICE_CHECK(!pins_.pinned(fetched.id),
               cache_->name() + " fetched " + name_of(fetched.id) + ", which is used: it must be placed");
  SLUICE_CHECK(fetched.parts.has_all(before) && fetched.parts != before,
               cache_->name() + " fetched " + name_of(fetched.id) + ", which gains nothing");
  place(fetched);
  outcome_.updates.push_back({fetched.id, fetched.parts, before});
}

void Residency::place(const Placed& placed) {
  SLUICE_CHECK(is_legal(placed.parts) && !placed.parts.empty(), name_of(placed.id));
  Parts& slot = resident_.at(placed.id);
  SLUICE_CHECK(slot != Part::kFull || !placed.parts.has(Part::kExp),
               name_of(placed.id) + " would be compressed again");
  const Bytes bytes = sizes_.bytes(placed.id).of(placed.parts);
  used_ = used_ - sizes_.bytes(placed.id).of(slot) + bytes;
  if (const Parts left = slot - placed.parts; !left.empty()) outcome_.evicted.push_back({placed.id, left});
  slot = placed.parts;
  cache_->on_insert(placed.id, placed.parts, bytes);
}

void Residency::evict(const Eviction& victim) {
  Parts& slot = resident_.at(victim.id);
  SLUICE_CHECK(!victim.parts.empty() && slot.has_all(victim.parts) && is_legal(slot - victim.parts),
               name_of(victim.id) + " does not hold what is evicted");
  slot = slot - victim.parts;
  used_ -= sizes_.bytes(victim.id).of(victim.parts);
  cache_->on_evict(victim.id, victim.parts);
  outcome_.evicted.push_back(victim);
}

void Residency::reduce(ExpertId id) {
  Parts& slot = resident_.at(id);
  SLUICE_CHECK(slot == Part::kFull && !pins_.pinned(id), name_of(id) + " cannot be reduced");
  const Bytes bytes = sizes_.bytes(id).of(Part::kSm);
  slot = Part::kSm;
  used_ = used_ - sizes_.bytes(id).of(Part::kFull) + bytes;
  cache_->on_evict(id, Part::kFull);
  cache_->on_insert(id, Part::kSm, bytes);
  outcome_.reduced.push_back(id);
}

Parts Residency::parts(ExpertId id) const {
  const Parts* slot = resident_.find(id);
  return slot == nullptr ? Parts() : *slot;
}

bool Residency::computable(ExpertId id) const { return is_computable(parts(id)); }

std::vector<Placed> Residency::resident() const {
  std::vector<Placed> all;
  resident_.for_each([&](ExpertId id, Parts parts) {
    if (!parts.empty()) all.push_back({id, parts});
  });
  return all;
}

void Residency::hash_outcome() {
  hash_ = mixed(hash_, events_);
  for (const Admission& hit : outcome_.hits) hash_ = mixed(hash_, word(hit.id, hit.parts, 1));
  for (const Admission& miss : outcome_.misses) hash_ = mixed(hash_, word(miss.id, miss.parts, 2));
  for (const std::vector<Admission>* used : {&outcome_.hits, &outcome_.misses})
    for (const Admission& one : *used)
      if (!one.view.empty()) hash_ = mixed(hash_, word(one.id, one.view, one.downgraded() ? 5 : 4));
  for (const Eviction& gone : outcome_.evicted) hash_ = mixed(hash_, word(gone.id, gone.parts, 3));
  for (ExpertId id : outcome_.reduced) hash_ = mixed(hash_, word(id, Part::kSm, 6));
  for (const Update& update : outcome_.updates) hash_ = mixed(hash_, word(update.id, update.parts, 7));
  for (const Placed& one : outcome_.adopted) hash_ = mixed(hash_, word(one.id, one.parts, 8));
}

}  // namespace sluice::experts
