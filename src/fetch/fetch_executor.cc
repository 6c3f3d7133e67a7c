#include "fetch/fetch_executor.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::fetch {
namespace {

using Clock = std::chrono::steady_clock;
using Operation = FetchGraph::Operation;
using Kind = FetchGraph::Kind;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// The reader joins neighbours up to a segment.
bool is_one_request(const ExpertLayout& layout) {
  return layout.base.disk_bytes() + layout.rest.disk_bytes() <= kSegmentBytes;
}

}  // namespace

FetchExecutor::FetchExecutor(WeightFiles& files, ThreadPool& pool, Isa isa, const std::string& codec)
    : files_(files), pool_(pool), decoder_(files, isa, codec), io_thread_([this] { io_loop(); }) {
  pool_.set_background([this] { return run_one(); });
}

FetchExecutor::~FetchExecutor() {
  cancel();
  pool_.set_background({});
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  io_wakes_.notify_one();
  io_thread_.join();
}

void FetchExecutor::start(std::span<const FetchTask> tasks, std::span<const std::uint32_t> block_end,
                          Urgency urgency) {
  {
    const std::lock_guard lock(mutex_);
    for (const FetchTask& task : tasks) task.job->urgency_ = urgency;
    std::size_t begin = 0;
    for (const std::uint32_t end : block_end) {
      const auto block = tasks.subspan(begin, end - begin);
      begin = end;
      for (const FetchTask& task : block) add(task);
      // Where nothing is decoded ahead, an expert's bytes are read in file order, and those of the next
      // expert after them; so are experts that are one request to the device.
      for (const FetchTask& task : block) {
        const FetchRequest& request = task.job->request;
        if (request.view != nullptr && !is_one_request(*request.layout)) continue;
        for (const bool rest : {false, true})
          for (std::uint16_t p = 0; p < request.layout->pieces.size(); ++p) queue_reads({task.job, p}, rest);
      }
      for (const FetchTask& task : block) queue_reads(task, true);
      for (const FetchTask& task : block) queue_reads(task, false);
    }
    SLUICE_CHECK(begin == tasks.size(), "tasks outside of blocks");
    // Jobs that wait for nothing are available, or even complete, at once.
    for (const FetchTask& task : tasks) {
      if (task.tensor != 0) continue;
      task.job->graph_.settle(became_ready_);
      queue_ready(*task.job);
      if_complete(*task.job);
    }
    clock_demand();
    announce();
  }
  io_wakes_.notify_one();
}

void FetchExecutor::add(const FetchTask& task) {
  FetchJob& job = *task.job;
  if (job.graph_.empty()) {
    ++jobs_;
    job.graph_.begin(job.request);
  }
  job.graph_.add(task.tensor, next_turn_);
}

void FetchExecutor::queue_reads(const FetchTask& task, bool rest) {
  runs_.clear();
  task.job->graph_.name_reads(task.tensor, rest, runs_);
  for (const std::uint32_t run : runs_) reads_.add(*task.job, run);
}

void FetchExecutor::queue_ready(FetchJob& job) {
  for (const std::uint32_t op : became_ready_)
    ready_.push(job.urgency_, {job.graph_.operation(op).turn, &job, op});
  new_ready_ += became_ready_.size();
  became_ready_.clear();
}

FetchProgress FetchExecutor::progress(const FetchJob& job) {
  return {.begun = job.begun_,
          .in_flight = job.in_flight_,
          .complete = !job.withdrawn_ && job.graph_.complete(),
          .withdrawn = job.withdrawn_};
}

FetchProgress FetchExecutor::promote(FetchJob& job, std::byte* view) {
  FetchProgress before;
  {
    const std::lock_guard lock(mutex_);
    before = progress(job);
    if (job.urgency_ == Urgency::kDemand || job.withdrawn_) return before;
    reads_.promote(job);
    ready_.promote(job);
    const bool kept = std::erase(kept_, &job) + std::erase(complete_, &job) > 0;
    if (view != nullptr && job.request.view == nullptr) {
      job.request.view = view;
      job.graph_.add_words(next_turn_, became_ready_);
      queue_ready(job);
    } else if (kept) {
      complete_.push_back(&job);
    }
    clock_demand();
    announce();
  }
  io_wakes_.notify_one();
  return before;
}

FetchProgress FetchExecutor::withdraw(FetchJob& job) {
  const std::lock_guard lock(mutex_);
  const FetchProgress before = progress(job);
  if (!job.withdrawn_) give_up(job);
  return before;
}

void FetchExecutor::give_up(FetchJob& job) {
  SLUICE_CHECK(job.urgency_ != Urgency::kDemand);
  job.withdrawn_ = true;
  std::erase(kept_, &job);
  std::erase(complete_, &job);
  job.graph_.cancel_reads(reads_.withdraw(job));
  ready_.remove(job);
  job.graph_.give_up();
  if_complete(job);
}

void FetchExecutor::reclaim(FetchJob& job) {
  std::unique_lock lock(mutex_);
  SLUICE_CHECK(job.withdrawn_);
  owner_wakes_.wait(lock, [&] { return failure_ || std::erase(complete_, &job) > 0; });
  if (failure_) std::rethrow_exception(failure_);
  handed_back(job);
}

void FetchExecutor::if_complete(FetchJob& job) {
  if (!job.graph_.complete()) return;
  (job.withdrawn_ || job.urgency_ != Urgency::kPrefetch ? complete_ : kept_).push_back(&job);
}

void FetchExecutor::handed_back(FetchJob& job) {
  job.graph_.clear();
  --jobs_;
}

void FetchExecutor::clock_demand() {
  const bool pending = reads_.demand_pending();
  if (pending == demand_pending_) return;
  demand_pending_ = pending;
  const Clock::time_point now = Clock::now();
  if (pending)
    demand_since_ = now;
  else
    counters_.demand_s += seconds_between(demand_since_, now);
}

void FetchExecutor::announce() {
  pool_.wake_background(new_ready_);
  new_ready_ = 0;
  owner_wakes_.notify_one();
}

bool FetchExecutor::run_one() {
  std::unique_lock lock(mutex_);
  if (ready_.empty() || cancelled_ || failure_) return false;
  const ReadyQueue::Entry entry = ready_.take();
  FetchJob& job = *entry.job;
  const Operation op = job.graph_.take(entry.op);
  std::byte* const view = job.request.view;  // may be set meanwhile
  ++running_ops_;
  // Words that are there are merged at once, while the exponents are in the cache.
  const bool merge_too = op.kind == Kind::kDecode && job.graph_.base_is_ready(op.piece) && view != nullptr;
  lock.unlock();

  const Clock::time_point begin = Clock::now();
  Clock::time_point decoded = begin;
  std::exception_ptr failure;
  try {
    carry_out(job.request, op, view, merge_too, decoded);
  } catch (...) {
    failure = std::current_exception();
  }
  const Clock::time_point end = Clock::now();

  lock.lock();
  --running_ops_;
  counters_.decode_s += seconds_between(begin, end);
  if (timeline_ != nullptr) record(job, op, merge_too, begin, merge_too ? decoded : end, end);
  if (failure && job.urgency_ == Urgency::kDemand) {
    if (!failure_) failure_ = failure;
  } else {
    if (failure && !job.withdrawn_) give_up(job);
    if (job.withdrawn_)
      job.graph_.drop(entry.op);
    else
      job.graph_.finish(entry.op, merge_too, became_ready_);
    queue_ready(job);
    if_complete(job);
  }
  announce();
  return true;
}

void FetchExecutor::carry_out(const FetchRequest& request, const Operation& op, std::byte* view,
                              bool merge_too, Clock::time_point& decoded) const {
  const PiecePlace& piece = request.layout->pieces[op.piece];
  if (op.kind == Kind::kCheck) decoder_.check(piece, request.base);
  if (op.kind == Kind::kDecode) decoder_.decode(piece, piece.chunks[op.chunk], request.rest, view);
  if (merge_too) decoded = Clock::now();
  if (op.kind == Kind::kMerge && !piece.coded()) ChunkDecoder::copy(piece, request.base, view);
  if ((op.kind == Kind::kMerge && piece.coded()) || merge_too)
    decoder_.merge(piece, piece.chunks[op.chunk], request.base, request.rest, view);
}

void FetchExecutor::record(const FetchJob& job, const Operation& op, bool merge_too, Clock::time_point begin,
                           Clock::time_point decoded, Clock::time_point end) {
  const auto kind = op.kind == Kind::kCheck    ? TimelineEntry::Kind::kCheck
                    : op.kind == Kind::kDecode ? TimelineEntry::Kind::kDecode
                                               : TimelineEntry::Kind::kMerge;
  timeline_->add({kind, job.request.id, op.piece, op.chunk, 0, 0, begin, decoded});
  if (merge_too)
    timeline_->add({TimelineEntry::Kind::kMerge, job.request.id, op.piece, op.chunk, 0, 0, decoded, end});
}

FetchJob* FetchExecutor::poll() {
  const std::lock_guard lock(mutex_);
  if (failure_ || complete_.empty()) return nullptr;
  FetchJob* const job = complete_.front();
  complete_.erase(complete_.begin());
  handed_back(*job);
  return job;
}

FetchJob* FetchExecutor::next() {
  while (jobs_ > 0) {
    if (FetchJob* const job = poll()) return job;
    if (run_one()) continue;
    std::unique_lock lock(mutex_);
    const Clock::time_point begin = Clock::now();
    owner_wakes_.wait(lock, [&] { return failure_ || !complete_.empty() || !ready_.empty(); });
    counters_.wait_s += seconds_between(begin, Clock::now());
    if (failure_) std::rethrow_exception(failure_);
  }
  return nullptr;
}

void FetchExecutor::cancel() noexcept {
  std::unique_lock lock(mutex_);
  cancelled_ = true;
  reads_.forget_waiting();
  io_wakes_.notify_one();
  owner_wakes_.wait(lock, [&] { return running_ops_ == 0 && reads_.in_flight() == 0; });
  ready_.clear();
  complete_.clear();
  kept_.clear();
  clock_demand();
  new_ready_ = 0;
  failure_ = nullptr;
  cancelled_ = false;
  jobs_ = 0;
}

FetchCounters FetchExecutor::counters() const {
  const std::lock_guard lock(mutex_);
  FetchCounters counters = counters_;
  counters.prefetch_bytes = reads_.given().prefetch;
  counters.update_bytes = reads_.given().update;
  return counters;
}

FetchExecutor::Remembered FetchExecutor::remembered() const {
  const std::lock_guard lock(mutex_);
  return {ready_.size(), reads_.size()};
}

}  // namespace sluice::fetch
