#include "fetch/memory/expert_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/machine/thread_pool.h"
#include "fetch/fetch_executor.h"
#include "fetch/memory/ahead_queue.h"
#include "fetch/memory/expert_buffers.h"
#include "fetch/memory/expert_returns.h"
#include "fetch/memory/expert_table.h"
#include "fetch/weight_files.h"

namespace sluice::fetch {

using experts::Admission;
using experts::ExpertId;
using experts::Part;
using experts::Parts;

struct ExpertStore::Machinery {
  Machinery(const store::Checkpoint& checkpoint, const model::Model& model, WeightFiles& files,
            ThreadPool& pool, Isa isa, device::Accountant& accountant)
      : experts(checkpoint, model),
        buffers(experts, accountant),
        executor(files, pool, isa, checkpoint.codec()),
        ahead(experts, buffers, executor, spare_jobs),
        returns(experts, buffers) {}

  ExpertTable experts;
  ExpertBuffers buffers;
  SpareJobs spare_jobs;
  std::vector<FetchTask> tasks_to_start;  // scratch
  FetchExecutor executor;
  AheadQueue ahead;
  ExpertReturns returns;
};

ExpertStore::ExpertStore(const store::Checkpoint& checkpoint, const model::Model& model, WeightFiles& files,
                         ThreadPool& pool, Isa isa, device::Accountant& accountant)
    : files_(files),
      threads_(pool.threads()),
      machinery_(std::make_unique<Machinery>(checkpoint, model, files, pool, isa, accountant)),
      experts_(machinery_->experts),
      buffers_(machinery_->buffers),
      spare_jobs_(machinery_->spare_jobs),
      executor_(machinery_->executor),
      ahead_(machinery_->ahead),
      returns_(machinery_->returns),
      active_(experts_.size(), false) {}

ExpertStore::~ExpertStore() { abandon_event(); }

const experts::ExpertSizes& ExpertStore::sizes() const { return experts_; }
const ExpertFacts& ExpertStore::facts() const { return experts_.facts(); }
experts::ExpertCosts ExpertStore::assumed_costs() const { return experts_.assumed_costs(threads_); }
const PrefetchCounters& ExpertStore::prefetch_counters() const { return ahead_.counters(); }
const ExpertLayout& ExpertStore::layout(ExpertId id) const { return experts_[id].layout; }
void ExpertStore::record(Timeline* timeline) { executor_.record(timeline); }
bool ExpertStore::expects(ExpertId id) const { return returns_.expects(id); }
std::optional<ReturnPlace> ExpertStore::begin_return(ExpertId id, bool in_regions) {
  return returns_.begin(id, in_regions);
}
void ExpertStore::end_return(ExpertId id, bool complete) { returns_.end(id, complete); }

void ExpertStore::compute_packed(bool packed) {
  compute_packed_ = packed && facts().can_be_packed;
  ahead_.compute_packed(compute_packed_);
}

StagingNeeds ExpertStore::staging_needs() const {
  const Bytes pages = files_.uses_page_cache() ? facts().largest_read : 0;
  // The least is for an expert that becomes words: any expert may have to reach state F.
  return {facts().largest_buffers + pages,
          (compute_packed_ ? facts().largest_read : facts().largest_buffers) + pages};
}

void ExpertStore::configure(const ExpertStoreOptions& options) {
  const StagingNeeds needs = staging_needs();
  SLUICE_CHECK(options.staging >= needs.least, fmt::format("{} < {}", options.staging, needs.least));
  // Reads in flight also hold pages of ours in the page cache: a part of the staging is set aside for them.
  const bool pages = files_.uses_page_cache() && experts_.size() > 0;
  buffers_.configure(options.capacity, options.staging,
                     pages ? options.staging / needs.per_expert * facts().largest_read : 0);
  synchronous_ = options.synchronous;
}

Bytes ExpertStore::disk_bytes(ExpertId id) const {
  return layout(id).base.disk_bytes() + layout(id).rest.disk_bytes();
}

Parts ExpertStore::parts(ExpertId id) const { return experts_[id].held; }

ExpertCounters ExpertStore::counters() const {
  ExpertCounters counters = counters_;
  const FetchCounters fetch = executor_.counters();
  counters.prefetch = ahead_.counters();
  counters.wait_s = fetch.wait_s;
  counters.decode_s = fetch.decode_s;
  counters.prefetch_bytes = fetch.prefetch_bytes;
  counters.update_bytes = fetch.update_bytes;
  counters.demand_s = fetch.demand_s;
  counters.demand_read = fetch.demand_bytes;
  return counters;
}

void ExpertStore::prefetch(std::span<const experts::PartRequest> requests) {
  ahead_.name(requests);
  start_ahead();
}

void ExpertStore::start_ahead() {
  if (waiting_.empty() && missing_.empty() && !synchronous_) ahead_.start();
}

EventReads ExpertStore::prepare(const experts::EventOutcome& outcome, const experts::Demand& demand) {
  SLUICE_CHECK(buffers_.configured() && ready_.empty() && waiting_.empty() && to_hand_out_ == 0 && pins_ == 0,
               "an event is running");
  SLUICE_CHECK(outcome.tier == experts::Tier::kHost, "an outcome of another tier");
  ahead_.forget_names();
  ahead_.keep_only(demand.experts);
  while (const FetchJob* const withdrawn = executor_.poll()) ahead_.ended(experts_[withdrawn->request.id]);
  drop_evicted(outcome, demand);
  for (ExpertId id : outcome.reduced) {
    ExpertInMemory& expert = experts_[id];
    if (expert.job || expert.held != Parts(Part::kFull)) continue;  // an earlier error has left it out
    expert.target = Part::kSm;
    buffers_.count_target(expert);
    buffers_.settle(expert);
  }

  for (const experts::Update& update : outcome.updates) ahead_.add_update(update);
  returns_.expect(outcome.adopted);

  EventReads reads;
  missing_.clear();
  reads_.clear();
  for (std::size_t i = 0; i < demand.experts.size(); ++i)
    experts_[demand.experts[i]].tokens = demand.tokens.empty() ? 1 : demand.tokens[i];
  for (const Admission& hit : outcome.hits) use_and_note(hit, false, reads);
  for (const Admission& miss : outcome.misses) use_and_note(miss, true, reads);
  counters_.demand_reads += reads.experts;
  counters_.demand_bytes += reads.bytes;
  reads.missing = missing_;
  reads.by_expert = reads_;
  return reads;
}

void ExpertStore::drop_evicted(const experts::EventOutcome& outcome, const experts::Demand& demand) {
  for (ExpertId id : demand.experts) active_[experts_.index(id)] = true;
  // Parts that left when a prompt ended are gone when this event asks for them again.
  std::size_t left = 0;
  for (const experts::Eviction& eviction : outcome.evicted) {
    if (left++ >= outcome.trimmed && active_[experts_.index(eviction.id)]) continue;
    ExpertInMemory& expert = experts_[eviction.id];
    ahead_.forget_update(eviction.id);
    expert.target = (expert.job ? expert.target : expert.held) - eviction.parts;
    buffers_.count_target(expert);
    if (expert.job)
      buffers_.lend_to_job(expert, eviction.parts);
    else
      buffers_.drop(expert, eviction.parts);
  }
  for (ExpertId id : demand.experts) active_[experts_.index(id)] = false;
}

void ExpertStore::use_and_note(const Admission& admission, bool miss, EventReads& reads) {
  const auto needed = [&] { return reads.bytes + ahead_.counters().used_bytes; };
  const Bytes before = needed();
  use(admission, miss, reads);
  if (const Bytes bytes = needed() - before; bytes != 0) reads_.push_back({admission.id, bytes});
}

void ExpertStore::use(const Admission& admission, bool miss, EventReads& reads) {
  ExpertInMemory& expert = experts_[admission.id];
  const experts::PartRules& rules = *expert.layout.rules;
  SLUICE_CHECK(rules.named_parts == admission.view.has_all(rules.least),
               "a use names the parts that it computes with, if it may do with fewer");
  const bool counted = miss && expert.tokens > 0;
  ++to_hand_out_;
  if (ahead_.join(expert, admission, counted, reads)) {
    running_.push_back(&expert);
    return;
  }
  expert.target = admission.parts;
  expert.view = admission.view;
  expert.choose_form(compute_packed_, expert.target);
  if (expert.is_complete()) {
    if (expert.target.empty()) buffers_.count_target(expert);  // it only waits to be used
    expert.enter(ExpertStage::kReady);
    ready_.push_back(&expert);
    return;
  }
  expert.make_job(spare_jobs_);
  expert.enter(ExpertStage::kWaiting);
  if (const Bytes bytes = expert.job_reads(); bytes > 0) {
    reads.experts += 1;
    reads.partial += counted && !expert.held.empty() ? 1 : 0;
    reads.bytes += bytes;
    reads.unchosen += expert.tokens == 0 ? bytes : 0;
  }
  missing_.push_back(
      {expert.id, expert.held, static_cast<std::uint16_t>(expert.layout.pieces.size()), expert.tokens});
}

void ExpertStore::begin(const experts::ReadOrder& order) {
  order_ = order;
  // Experts start in the order of their first appearance.
  for (const std::uint32_t position : order_.schedule.order) {
    ExpertInMemory& expert = experts_[order_.tasks[position].expert];
    if (std::ranges::find(waiting_, &expert) != waiting_.end()) continue;
    SLUICE_CHECK(expert.is_in(ExpertStage::kWaiting), "an expert is ordered that is not missing");
    waiting_.push_back(&expert);
  }
  SLUICE_CHECK(waiting_.size() == missing_.size(), "the order leaves out an expert that is missing");
  missing_.clear();
  if (!waiting_.empty()) pump();
}

void ExpertStore::pump() {
  if (waiting_.empty()) return start_ahead();
  if (synchronous_ && (!running_.empty() || pins_ > 0)) return;
  const std::size_t started = take_first();
  if (started == 0) return;
  start_first(started);
  start_ahead();
}

std::size_t ExpertStore::take_first() {
  std::size_t started = 0;
  const std::size_t most = synchronous_ ? 1 : waiting_.size();
  while (started < most && buffers_.fits(*waiting_[started])) buffers_.take(*waiting_[started++]);
  if (started > 0) return started;
  // Others will give back buffers.
  if (!running_.empty() || ahead_.under_way() || !ready_.empty() || pins_ > 0) return 0;
  const auto other =
      std::ranges::find_if(waiting_, [&](const ExpertInMemory* expert) { return buffers_.fits(*expert); });
  SLUICE_CHECK(other != waiting_.end(), "no expert fits, though none is under way");
  std::rotate(waiting_.begin(), other, other + 1);
  buffers_.take(*waiting_.front());
  return 1;
}

void ExpertStore::start_first(std::size_t count) {
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<FetchTask>& tasks = machinery_->tasks_to_start;
  tasks.clear();
  block_end_.clear();
  std::uint32_t position = 0;
  for (const std::uint32_t block : order_.schedule.block_end) {
    for (; position < block; ++position) {
      const experts::Task& task = order_.tasks[order_.schedule.order[position]];
      ExpertInMemory& expert = experts_[task.expert];
      if (std::find(waiting_.begin(), end, &expert) != end) tasks.push_back({expert.job.get(), task.tensor});
    }
    if (!tasks.empty() && (block_end_.empty() || tasks.size() > block_end_.back()))
      block_end_.push_back(static_cast<std::uint32_t>(tasks.size()));
  }
  for (auto expert = waiting_.begin(); expert != end; ++expert) (*expert)->enter(ExpertStage::kFetching);
  running_.insert(running_.end(), waiting_.begin(), end);
  waiting_.erase(waiting_.begin(), end);
  executor_.start(tasks, block_end_);
}

void ExpertStore::abandon_event() noexcept {
  SLUICE_CHECK(pins_ == 0, "an event ends while somebody reads its experts");
  executor_.cancel();
  ahead_.abandon();
  for (ExpertInMemory& expert : experts_) {
    if (expert.is_in(ExpertStage::kResting) || expert.is_in(ExpertStage::kReturning)) continue;
    buffers_.abandon(expert);
    expert.enter(ExpertStage::kResting);
  }
  buffers_.abandon_reads();
  running_.clear();
  waiting_.clear();
  missing_.clear();
  ready_.clear();
  to_hand_out_ = 0;
}

}  // namespace sluice::fetch
