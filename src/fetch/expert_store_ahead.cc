// ExpertStore's read-ahead: a prefetch starts behind all demanded work, joins the event that uses it, and is
// dropped if no event does.
#include "base/error.h"
#include "fetch/expert_in_memory.h"
#include "fetch/expert_store.h"

namespace sluice::fetch {

using experts::Part;
using experts::Parts;

void ExpertStore::prefetch(std::span<const experts::PartRequest> requests) {
  ahead_.assign(requests.begin(), requests.end());
  next_ahead_ = 0;
  const auto mark = [&](bool wanted) {
    for (const experts::PartRequest& request : ahead_)
      active_[layer_begin_[request.id.layer] + request.id.index] = wanted;
  };
  mark(true);
  withdraw_unless(active_);
  mark(false);
  start_ahead();
}

void ExpertStore::start_ahead() {
  if (!waiting_.empty() || synchronous_) return;
  tasks_to_start_.clear();
  block_end_.clear();
  for (; next_ahead_ < ahead_.size(); ++next_ahead_) {
    const experts::PartRequest& request = ahead_[next_ahead_];
    Expert& it = expert(request.id);
    if (it.job || it.in_event) continue;
    if (sliced_ ? it.held.has_all(request.parts) : it.held.has(Part::kFull) || it.held == kPacked) continue;
    it.view = request.parts;
    it.job = make_job(it);
    it.packed = sliced_ || compute_packed_;
    it.target = it.held;
    const Bytes reads = reads_of(it);
    const bool room = fits(it) && pool_->in_use() + buffers_of(it) + largest_staging_ <= pool_->limit() &&
                      (page_cache_ == 0 || reading_ + reads + largest_read_ <= page_cache_);
    if (!room) {
      spare_jobs_.push_back(std::move(it.job));
      break;
    }
    take_buffers(it);
    running_.push_back(&it);
    for (std::uint16_t tensor = 0; tensor < it.layout.pieces.size(); ++tensor)
      tasks_to_start_.push_back({it.job.get(), tensor});
    block_end_.push_back(static_cast<std::uint32_t>(tasks_to_start_.size()));
  }
  if (!tasks_to_start_.empty()) executor_.start(tasks_to_start_, block_end_, Urgency::kPrefetch);
}

void ExpertStore::withdraw_unless(const std::vector<bool>& wanted) {
  for (Expert* it : running_)
    if (!it->in_event && !it->withdrawn && !wanted[layer_begin_[it->id.layer] + it->id.index]) withdraw(*it);
}

void ExpertStore::withdraw(Expert& it) {
  const FetchProgress progress = executor_.withdraw(*it.job);
  it.withdrawn = true;
  count_in_vain(progress);
}

void ExpertStore::count_in_vain(const FetchProgress& progress) {
  PrefetchCounters& count = counters_.prefetch;
  (progress.begun > 0 ? count.wasted : count.dropped) += 1;
  count.wasted_bytes += progress.begun;
  count.delay_bytes += progress.in_flight;
}

bool ExpertStore::attach(Expert& it, bool counted, EventReads& reads) {
  const experts::ExpertBytes bytes = sizes().bytes(it.id);
  // Gives up parts that would stay before others have made room for them; the next use reads them again. Also
  // gives up words if the pool has no room for them besides what is in use.
  const bool words_too = it.packed && it.target.has(Part::kFull);
  if (settled_ - bytes.of(it.settled) + bytes.of(it.target) > capacity_ ||
      (words_too && pool_->in_use() + it.layout.view_bytes > pool_->limit()))
    it.target = it.held - (it.held - it.target);
  if (it.packed && it.target.has(Part::kFull)) {
    it.full = pool_->take(it.layout.view_bytes);
    it.packed = false;
  }
  const FetchProgress progress = executor_.promote(*it.job, it.full.data());
  change_settled(it);
  if (progress.withdrawn) {  // it failed
    count_in_vain(progress);
    return false;
  }
  const Bytes rest = reads_of(it) - progress.begun;
  counters_.prefetch.used_bytes += progress.begun;
  (progress.complete ? counters_.prefetch.useful : counters_.prefetch.late) += 1;
  reads.prefetched += progress.complete && counted ? 1 : 0;
  reads.partial += !progress.complete && counted && !it.held.empty() ? 1 : 0;
  reads.experts += rest > 0 ? 1 : 0;
  reads.bytes += rest;
  return true;
}

void ExpertStore::take_back(Expert& it, Parts keep) {
  const FetchProgress progress = executor_.withdraw(*it.job);
  Parts use = it.held;
  if (progress.complete) use = use | (made_by(it) - (made_by(it) - keep));
  const experts::ExpertBytes bytes = sizes().bytes(it.id);
  if (settled_ - bytes.of(it.settled) + bytes.of(use) > capacity_) use = it.held;
  if (use != it.held) {
    counters_.prefetch.useful += 1;
    counters_.prefetch.used_bytes += progress.begun;
  } else {
    count_in_vain(progress);
  }
  executor_.reclaim(*it.job);
  it.target = use;
  change_settled(it);
  discard(it);
}

void ExpertStore::discard(Expert& it) {
  finish_job(it);
  settle(it);
}

}  // namespace sluice::fetch
