#include "fetch/memory/ahead_queue.h"

#include <utility>

#include "base/error.h"

namespace sluice::fetch {

using experts::Part;
using experts::Parts;

void AheadQueue::name(std::span<const experts::PartRequest> requests) {
  names_.assign(requests.begin(), requests.end());
  next_ = 0;
  for (const experts::PartRequest& request : names_) {
    SLUICE_CHECK(request.tier == experts::Tier::kHost, "a request for another tier");
    wanted_[experts_.index(request.id)] = true;
  }
  withdraw_unless_wanted();
  for (const experts::PartRequest& request : names_) wanted_[experts_.index(request.id)] = false;
}

void AheadQueue::forget_names() {
  names_.clear();
  next_ = 0;
}

void AheadQueue::keep_only(std::span<const experts::ExpertId> ids) {
  for (const experts::ExpertId id : ids) wanted_[experts_.index(id)] = true;
  withdraw_unless_wanted();
  for (const experts::ExpertId id : ids) wanted_[experts_.index(id)] = false;
}

bool AheadQueue::is_there(const experts::PartRequest& request) const {
  const ExpertInMemory& expert = experts_[request.id];
  return expert.held.has(Part::kFull) || expert.held.has_all(expert.layout.rules->needed(request.parts));
}

bool AheadQueue::begin(ExpertInMemory& expert, ExpertStage stage) {
  expert.make_job(jobs_);
  if (!buffers_.fits_ahead(expert)) {
    jobs_.give(std::move(expert.job));
    return false;
  }
  buffers_.take(expert);
  expert.enter(stage);
  under_way_.push_back(&expert);
  for (std::uint16_t tensor = 0; tensor < expert.layout.pieces.size(); ++tensor)
    tasks_.push_back({expert.job.get(), tensor});
  block_end_.push_back(static_cast<std::uint32_t>(tasks_.size()));
  return true;
}

void AheadQueue::start() {
  tasks_.clear();
  block_end_.clear();
  for (; next_ < names_.size(); ++next_) {
    const experts::PartRequest& request = names_[next_];
    ExpertInMemory& expert = experts_[request.id];
    if (!expert.is_in(ExpertStage::kResting) || is_there(request)) continue;
    expert.view = request.parts;
    expert.choose_form(compute_packed_, expert.held);
    expert.target = expert.held;
    if (!begin(expert, ExpertStage::kAhead)) break;
  }
  if (!tasks_.empty()) executor_.start(tasks_, block_end_, Urgency::kPrefetch);
  if (!updates_.empty()) start_updates();
}

void AheadQueue::add_update(const experts::Update& update) {
  forget_update(update.id);
  updates_.push_back(update);
}

void AheadQueue::forget_update(experts::ExpertId id) {
  std::erase_if(updates_, [&](const experts::Update& update) { return update.id == id; });
}

void AheadQueue::start_updates() {
  tasks_.clear();
  block_end_.clear();
  bool room = true;
  std::erase_if(updates_, [&](const experts::Update& update) {
    ExpertInMemory& expert = experts_[update.id];
    if (!room || !expert.is_in(ExpertStage::kResting)) return false;
    if (expert.held.has_all(update.parts)) return true;
    expert.view = update.parts;
    expert.choose_form(compute_packed_, update.parts);
    expert.target = update.parts;
    room = begin(expert, ExpertStage::kUpdating);
    if (!room) expert.target = expert.held;
    return room;
  });
  if (!tasks_.empty()) executor_.start(tasks_, block_end_, Urgency::kUpdate);
}

void AheadQueue::withdraw_unless_wanted() {
  for (ExpertInMemory* expert : under_way_)
    if (expert->is_in(ExpertStage::kAhead) && !wanted_[experts_.index(expert->id)]) withdraw(*expert);
}

void AheadQueue::withdraw(ExpertInMemory& expert) {
  const FetchProgress progress = executor_.withdraw(*expert.job);
  expert.enter(ExpertStage::kWithdrawn);
  count_in_vain(progress);
}

void AheadQueue::count_in_vain(const FetchProgress& progress) {
  (progress.begun > 0 ? counters_.wasted : counters_.dropped) += 1;
  counters_.wasted_bytes += progress.begun;
  counters_.delay_bytes += progress.in_flight;
}

bool AheadQueue::join(ExpertInMemory& expert, const experts::Admission& admission, bool counted,
                      EventReads& reads) {
  forget_update(expert.id);
  if (expert.is_in(ExpertStage::kWithdrawn)) reclaim(expert);
  if (expert.is_in(ExpertStage::kResting)) return false;
  if (!(expert.held | expert.made()).has_all(admission.view)) {
    take_back(expert, admission.parts);  // it makes fewer parts than are needed
    return false;
  }
  expert.target = admission.parts;
  expert.view = admission.view;
  if (promote(expert, counted, reads)) {
    std::erase(under_way_, &expert);
    expert.enter(ExpertStage::kFetching);
    return true;
  }
  expert.enter(ExpertStage::kWithdrawn);  // it failed
  expert.target = expert.held;
  reclaim(expert);
  return false;
}

bool AheadQueue::promote(ExpertInMemory& expert, bool counted, EventReads& reads) {
  // Gives up parts that would stay before others have made room for them; the next use reads them again. Also
  // gives up words if the pool has no room for them besides what is in use.
  const bool words_too = expert.from_planes && expert.target.has(Part::kFull);
  if (!buffers_.may_stay(expert, expert.target) || (words_too && !buffers_.has_room_for_words(expert)))
    expert.target = expert.held - (expert.held - expert.target);
  if (expert.from_planes && expert.target.has(Part::kFull)) buffers_.take_words(expert);
  const bool prefetch = expert.is_in(ExpertStage::kAhead);
  const FetchProgress progress = executor_.promote(*expert.job, expert.full.data());
  buffers_.count_target(expert);
  if (progress.withdrawn) {
    if (prefetch) count_in_vain(progress);
    return false;
  }
  const Bytes rest = expert.job_reads() - progress.begun;
  if (prefetch) {
    counters_.used_bytes += progress.begun;
    counters_.unchosen_bytes += expert.tokens == 0 ? progress.begun : 0;
    (progress.complete ? counters_.useful : counters_.late) += 1;
  }
  reads.prefetched += progress.complete && counted ? 1 : 0;
  reads.partial += !progress.complete && counted && !expert.held.empty() ? 1 : 0;
  reads.experts += rest > 0 ? 1 : 0;
  reads.bytes += rest;
  reads.unchosen += expert.tokens == 0 ? rest : 0;
  return true;
}

void AheadQueue::take_back(ExpertInMemory& expert, Parts keep) {
  const bool prefetch = expert.is_in(ExpertStage::kAhead);
  const FetchProgress progress = executor_.withdraw(*expert.job);
  expert.enter(ExpertStage::kWithdrawn);
  Parts use = expert.held;
  if (progress.complete) use = use | (expert.made() - (expert.made() - keep));
  if (!buffers_.may_stay(expert, use)) use = expert.held;
  if (prefetch && use != expert.held) {
    counters_.useful += 1;
    counters_.used_bytes += progress.begun;
  } else if (prefetch) {
    count_in_vain(progress);
  }
  executor_.reclaim(*expert.job);
  expert.target = use;
  buffers_.count_target(expert);
  ended(expert);
}

void AheadQueue::reclaim(ExpertInMemory& expert) {
  executor_.reclaim(*expert.job);
  ended(expert);
}

void AheadQueue::ended(ExpertInMemory& expert) {
  if (expert.is_in(ExpertStage::kUpdating) && expert.job->given_up()) {
    expert.target = expert.held - (expert.held - expert.target);
    buffers_.count_target(expert);
  }
  buffers_.job_ended(expert);
  std::erase(under_way_, &expert);
  jobs_.give(std::move(expert.job));
  expert.enter(ExpertStage::kResting);
  buffers_.settle(expert);
}

void AheadQueue::abandon() {
  for (const ExpertInMemory* expert : under_way_)
    if (expert->is_in(ExpertStage::kAhead)) count_in_vain({.begun = expert->job->begun()});
  under_way_.clear();
  updates_.clear();
}

}  // namespace sluice::fetch
