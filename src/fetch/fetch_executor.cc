#include "fetch/fetch_executor.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::fetch {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// Debug builds check resident bytes again whenever they make a view of them.
#ifdef NDEBUG
constexpr bool kCheckResident = false;
#else
constexpr bool kCheckResident = true;
#endif

// So many operations of jobs that were handed back may stay.
constexpr std::size_t kFewOperations = 256;

bool all_in(const std::vector<bool>& runs, ReadRegion::Range range) {
  for (std::uint32_t run = range.first; run < range.end; ++run)
    if (!runs[run]) return false;
  return true;
}

// Whether all planes of a piece that lie in `base` are there.
bool all_in(const std::vector<bool>& runs, const ExpertLayout& layout, const PiecePlace& piece) {
  return std::ranges::all_of(piece.base(), [&](const PlanePlace& plane) {
    return all_in(runs, layout.base.covering(plane.place, plane.bytes));
  });
}

bool needs_check(const FetchJob& job, const PiecePlace& piece) {
  return piece.needs_check() && (job.read_base || kCheckResident);
}

// The reader joins neighbours up to a segment.
bool is_one_request(const ExpertLayout& layout) {
  return layout.base.disk_bytes() + layout.rest.disk_bytes() <= kSegmentBytes;
}

// Operations of one piece are neighbours: the check and the decodes of all chunks, then the merges of all
// chunks. A whole piece of a split expert is merged (copied) as if it were one chunk.
std::size_t merges(const FetchJob& job, const PiecePlace& piece) {
  if (!job.layout->split || job.view == nullptr) return 0;
  return piece.coded() ? piece.chunks.size() : 1;
}

}  // namespace

void FetchJob::clear() {
  for (std::vector<bool>* flags : {&base_in, &rest_in, &base_ready, &queued}) flags->clear();
  first_op.clear();
  first_merge.clear();
  layout = nullptr;
  base = rest = view = nullptr;
  read_base = read_rest = withdrawn = false;
  reads_left = ops_left = reads_in_flight = 0;
  begun = in_flight = 0;
  urgency = Urgency::kDemand;
}

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
    for (const FetchTask& task : tasks) task.job->urgency = urgency;
    std::size_t begin = 0;
    for (const std::uint32_t end : block_end) {
      const auto block = tasks.subspan(begin, end - begin);
      begin = end;
      for (const FetchTask& task : block) add_ops(task);
      // Where nothing is decoded ahead, an expert's bytes are read in file order, and those of the next
      // expert after them; so are experts that are one request to the device.
      for (const FetchTask& task : block)
        if (task.job->view == nullptr || is_one_request(*task.job->layout)) queue_all_reads(*task.job);
      for (const FetchTask& task : block) queue_reads(task, true);
      for (const FetchTask& task : block) queue_reads(task, false);
    }
    SLUICE_CHECK(begin == tasks.size(), "tasks outside of blocks");
    // Jobs that wait for nothing are available, or even complete, at once.
    for (const FetchTask& task : tasks)
      if (task.tensor == 0) settle(*task.job);
    clock_demand();
    announce();
  }
  io_wakes_.notify_one();
}

// Calls work(index) for every operation of a job.
template <class Work>
void FetchExecutor::each_op(const FetchJob& job, Work work) {
  const auto each = [&](std::size_t first, std::size_t count) {
    for (std::size_t op = first; op < first + count; ++op) work(op);
  };
  for (std::size_t p = 0; p < job.first_op.size(); ++p) {
    each(job.first_op[p], 1 + job.layout->pieces[p].chunks.size());
    each(job.first_merge[p], merges(job, job.layout->pieces[p]));
  }
}

FetchProgress FetchExecutor::progress(const FetchJob& job) const {
  FetchProgress progress;
  progress.begun = job.begun;
  progress.in_flight = job.in_flight;
  progress.complete = !job.withdrawn && job.reads_left == 0 && job.ops_left == 0;
  progress.withdrawn = job.withdrawn;
  return progress;
}

FetchProgress FetchExecutor::promote(FetchJob& job, std::byte* view) {
  FetchProgress before;
  {
    const std::lock_guard lock(mutex_);
    before = progress(job);
    if (job.urgency == Urgency::kDemand || job.withdrawn) return before;
    job.urgency = Urgency::kDemand;
    std::erase_if(read_queue_.prefetch, [&](std::size_t index) {
      if (reads_[index].job != &job) return false;
      read_queue_.demand.push_back(index);
      return true;
    });
    in_flight_.prefetch -= job.reads_in_flight;
    in_flight_.demand += job.reads_in_flight;
    each_op(job, [&](std::size_t op) {
      if (ops_[op].state != OpState::kReady) return;
      --ready_.prefetch;
      ++ready_.demand;
      first_open_.demand = std::min(first_open_.demand, op);
    });
    const bool kept = std::erase(kept_, &job) > 0;
    if (view != nullptr && job.view == nullptr)
      make_words(job, view);
    else if (kept)
      complete_.push_back(&job);
    clock_demand();
    announce();
  }
  io_wakes_.notify_one();
  return before;
}

FetchProgress FetchExecutor::withdraw(FetchJob& job) {
  const std::lock_guard lock(mutex_);
  const FetchProgress before = progress(job);
  if (!job.withdrawn) give_up(job);
  return before;
}

void FetchExecutor::give_up(FetchJob& job) {
  SLUICE_CHECK(job.urgency == Urgency::kPrefetch);
  job.withdrawn = true;
  std::erase(kept_, &job);
  job.reads_left -= static_cast<std::uint32_t>(std::erase_if(read_queue_.prefetch, [&](std::size_t index) {
    if (reads_[index].job != &job) return false;
    free_reads_.push_back(index);
    return true;
  }));
  each_op(job, [&](std::size_t op) {
    OpState& state = ops_[op].state;
    if (state != OpState::kReady && state != OpState::kBlocked) return;
    ready_.prefetch -= state == OpState::kReady ? 1 : 0;
    state = OpState::kDone;
    --job.ops_left;
  });
  if_complete(job);
}

void FetchExecutor::reclaim(FetchJob& job) {
  std::unique_lock lock(mutex_);
  SLUICE_CHECK(job.withdrawn);
  owner_wakes_.wait(lock, [&] { return failure_ || std::erase(complete_, &job) > 0; });
  if (failure_) std::rethrow_exception(failure_);
  handed_back(job);
}

void FetchExecutor::if_complete(FetchJob& job) {
  if (job.reads_left != 0 || job.ops_left != 0) return;
  (job.withdrawn || job.urgency == Urgency::kDemand ? complete_ : kept_).push_back(&job);
}

void FetchExecutor::clock_demand() {
  const bool pending = !read_queue_.demand.empty() || in_flight_.demand > 0;
  if (pending == demand_pending_) return;
  demand_pending_ = pending;
  const Clock::time_point now = Clock::now();
  if (pending)
    demand_since_ = now;
  else
    counters_.demand_s += seconds_between(demand_since_, now);
}

void FetchExecutor::make_words(FetchJob& job, std::byte* view) {
  SLUICE_CHECK(job.layout->split);
  job.view = view;
  for (std::uint16_t p = 0; p < job.layout->pieces.size(); ++p) {
    add_merges(job, p);
    const std::size_t chunks = job.layout->pieces[p].chunks.size();
    for (std::size_t x = 0; x < merges(job, job.layout->pieces[p]); ++x)
      if (job.base_ready[p] && (x >= chunks || ops_[job.first_op[p] + 1 + x].state == OpState::kDone))
        make_ready(static_cast<std::uint32_t>(job.first_merge[p] + x));
  }
}

void FetchExecutor::add_ops(const FetchTask& task) {
  FetchJob& job = *task.job;
  const ExpertLayout& layout = *job.layout;
  if (job.first_op.empty()) {
    ++jobs_;
    job.first_op.assign(layout.pieces.size(), 0);
    job.first_merge.assign(layout.pieces.size(), 0);
    job.base_ready.assign(layout.pieces.size(), false);
    job.base_in.assign(layout.base.runs.size(), !job.read_base);
    job.rest_in.assign(layout.rest.runs.size(), !job.read_rest);
    job.queued.assign(layout.base.runs.size() + layout.rest.runs.size(), false);
    job.ops_left = 0;
    job.reads_left = 0;
  }
  const PiecePlace& piece = layout.pieces[task.tensor];
  job.first_op[task.tensor] = static_cast<std::uint32_t>(ops_.size());
  const auto add = [&](Kind kind, std::size_t chunk, OpState state) {
    ops_.push_back({&job, task.tensor, static_cast<std::uint16_t>(chunk), kind, state});
    job.ops_left += state == OpState::kDone ? 0 : 1;
  };
  add(Kind::kCheck, 0, needs_check(job, piece) ? OpState::kBlocked : OpState::kDone);
  // Resident parts were checked when they arrived; an LSB slice may not be needed at all.
  const bool decodes = job.rest != nullptr && (job.read_rest || job.view != nullptr || kCheckResident);
  for (std::size_t chunk = 0; chunk < piece.chunks.size(); ++chunk)
    add(Kind::kDecode, chunk, decodes ? OpState::kBlocked : OpState::kDone);
  add_merges(job, task.tensor);
}

void FetchExecutor::add_merges(FetchJob& job, std::uint16_t p) {
  job.first_merge[p] = static_cast<std::uint32_t>(ops_.size());
  const std::size_t count = merges(job, job.layout->pieces[p]);
  for (std::size_t chunk = 0; chunk < count; ++chunk)
    ops_.push_back({&job, p, static_cast<std::uint16_t>(chunk), Kind::kMerge, OpState::kBlocked});
  job.ops_left += static_cast<std::uint32_t>(count);
}

void FetchExecutor::queue_reads(const FetchTask& task, bool rest) {
  FetchJob& job = *task.job;
  if (!(rest ? job.read_rest : job.read_base)) return;
  const ExpertLayout& layout = *job.layout;
  const PiecePlace& piece = layout.pieces[task.tensor];
  const auto queue = [&](ReadRegion::Range range, std::size_t offset) {
    for (std::uint32_t run = range.first; run < range.end; ++run) {
      if (job.queued[offset + run]) continue;
      job.queued[offset + run] = true;
      ++job.reads_left;
      const std::size_t index = free_reads_.empty() ? reads_.size() : free_reads_.back();
      if (free_reads_.empty())
        reads_.emplace_back();
      else
        free_reads_.pop_back();
      reads_[index] = {&job, static_cast<std::uint32_t>(offset + run)};
      read_queue_[job.urgency].push_back(index);
    }
  };
  if (rest) {
    for (const codec::PlaneChunk& chunk : piece.chunks)
      queue(layout.rest.covering(chunk.place, chunk.bytes), layout.base.runs.size());
  } else {
    for (const PlanePlace& plane : piece.base()) queue(layout.base.covering(plane.place, plane.bytes), 0);
  }
}

void FetchExecutor::queue_all_reads(FetchJob& job) {
  for (const bool rest : {false, true})
    for (std::uint16_t p = 0; p < job.layout->pieces.size(); ++p) queue_reads({&job, p}, rest);
}

void FetchExecutor::settle(FetchJob& job) {
  const ExpertLayout& layout = *job.layout;
  for (std::size_t p = 0; p < layout.pieces.size(); ++p) {
    const PiecePlace& piece = layout.pieces[p];
    if (all_in(job.base_in, layout, piece)) {
      if (ops_[job.first_op[p]].state == OpState::kDone)
        base_is_ready(job, p);
      else
        make_ready(job.first_op[p]);
    }
    for (std::uint32_t x = 0; x < piece.chunks.size(); ++x) {
      const codec::PlaneChunk& chunk = piece.chunks[x];
      if (all_in(job.rest_in, layout.rest.covering(chunk.place, chunk.bytes)))
        make_ready(job.first_op[p] + 1 + x);
    }
  }
  if_complete(job);
}

void FetchExecutor::arrived(FetchJob& job, std::uint32_t run) {
  --job.reads_left;
  if (job.withdrawn) return if_complete(job);
  const ExpertLayout& layout = *job.layout;
  const bool of_base = run < job.base_in.size();
  if (!of_base) run -= static_cast<std::uint32_t>(job.base_in.size());
  const auto in = [run](ReadRegion::Range range) { return range.first <= run && run < range.end; };
  if (of_base) {
    job.base_in[run] = true;
    for (std::size_t p = 0; p < layout.pieces.size(); ++p) {
      const PiecePlace& piece = layout.pieces[p];
      const bool has_part = std::ranges::any_of(piece.base(), [&](const PlanePlace& plane) {
        return in(layout.base.covering(plane.place, plane.bytes));
      });
      if (!has_part || !all_in(job.base_in, layout, piece)) continue;
      if (ops_[job.first_op[p]].state == OpState::kBlocked)
        make_ready(job.first_op[p]);
      else
        base_is_ready(job, p);
    }
  } else {
    job.rest_in[run] = true;
    for (std::size_t p = 0; p < layout.pieces.size(); ++p) {
      for (std::uint32_t x = 0; x < layout.pieces[p].chunks.size(); ++x) {
        const codec::PlaneChunk& chunk = layout.pieces[p].chunks[x];
        const ReadRegion::Range range = layout.rest.covering(chunk.place, chunk.bytes);
        if (in(range) && all_in(job.rest_in, range)) make_ready(job.first_op[p] + 1 + x);
      }
    }
  }
  if_complete(job);
}

void FetchExecutor::base_is_ready(FetchJob& job, std::size_t p) {
  if (job.base_ready[p]) return;
  job.base_ready[p] = true;
  const PiecePlace& piece = job.layout->pieces[p];
  const std::uint32_t chunks = static_cast<std::uint32_t>(piece.chunks.size()), first = job.first_op[p] + 1;
  for (std::uint32_t x = 0; x < merges(job, piece); ++x)
    if (x >= chunks || ops_[first + x].state == OpState::kDone) make_ready(job.first_merge[p] + x);
}

void FetchExecutor::make_ready(std::uint32_t op) {
  if (ops_[op].state != OpState::kBlocked) return;
  ops_[op].state = OpState::kReady;
  const Urgency urgency = ops_[op].job->urgency;
  first_open_[urgency] = std::min<std::size_t>(first_open_[urgency], op);
  ++ready_[urgency];
  ++new_ready_;
}

void FetchExecutor::announce() {
  pool_.wake_background(new_ready_);
  new_ready_ = 0;
  owner_wakes_.notify_one();
}

void FetchExecutor::finish_op(std::uint32_t op) {
  ops_[op].state = OpState::kDone;
  FetchJob& job = *ops_[op].job;
  --job.ops_left;
  if_complete(job);
}

bool FetchExecutor::run_one() {
  std::unique_lock lock(mutex_);
  if (ready_.demand + ready_.prefetch == 0 || cancelled_ || failure_) return false;
  const Urgency urgency = ready_.demand > 0 ? Urgency::kDemand : Urgency::kPrefetch;
  std::size_t& first = first_open_[urgency];
  while (ops_[first].state != OpState::kReady || ops_[first].job->urgency != urgency) ++first;
  ops_[first].state = OpState::kTaken;
  const Op op = ops_[first];  // the vector may grow meanwhile, and the operation's place in it change
  FetchJob& job = *op.job;
  const PiecePlace& piece = job.layout->pieces[op.piece];
  std::byte* const view = job.view;  // may be set meanwhile
  --ready_[urgency];
  ++running_ops_;
  // Words that are there are merged at once, while the exponents are in the cache.
  const bool merge_too = op.kind == Kind::kDecode && job.base_ready[op.piece] && view != nullptr;
  lock.unlock();

  const Clock::time_point begin = Clock::now();
  Clock::time_point decoded = begin;
  std::exception_ptr failure;
  try {
    if (op.kind == Kind::kCheck) decoder_.check(piece, job.base);
    if (op.kind == Kind::kDecode) decoder_.decode(piece, piece.chunks[op.chunk], job.rest, view);
    if (merge_too) decoded = Clock::now();
    if (op.kind == Kind::kMerge && !piece.coded()) ChunkDecoder::copy(piece, job.base, view);
    if ((op.kind == Kind::kMerge && piece.coded()) || merge_too)
      decoder_.merge(piece, piece.chunks[op.chunk], job.base, job.rest, view);
  } catch (...) {
    failure = std::current_exception();
  }
  const Clock::time_point end = Clock::now();

  lock.lock();
  const std::uint32_t number = place_of(op);
  --running_ops_;
  counters_.decode_s += seconds_between(begin, end);
  if (timeline_ != nullptr) {
    const auto kind = op.kind == Kind::kCheck    ? TimelineEntry::Kind::kCheck
                      : op.kind == Kind::kDecode ? TimelineEntry::Kind::kDecode
                                                 : TimelineEntry::Kind::kMerge;
    timeline_->add({kind, job.id, op.piece, op.chunk, 0, 0, begin, merge_too ? decoded : end});
    if (merge_too)
      timeline_->add({TimelineEntry::Kind::kMerge, job.id, op.piece, op.chunk, 0, 0, decoded, end});
  }
  if (failure && job.urgency == Urgency::kPrefetch) {
    if (!job.withdrawn) give_up(job);
    finish_op(number);
  } else if (failure) {
    if (!failure_) failure_ = failure;
  } else if (job.withdrawn) {
    finish_op(number);
  } else {
    const std::uint32_t merge_op = job.first_merge[op.piece] + op.chunk;
    if (op.kind == Kind::kCheck) base_is_ready(job, op.piece);
    if (op.kind == Kind::kDecode && merge_too) finish_op(merge_op);
    const bool merge_next = op.kind == Kind::kDecode && !merge_too && job.view != nullptr;
    if (merge_next && job.base_ready[op.piece]) make_ready(merge_op);
    finish_op(number);
  }
  announce();
  return true;
}

FetchJob* FetchExecutor::poll() {
  const std::lock_guard lock(mutex_);
  if (failure_ || complete_.empty()) return nullptr;
  FetchJob* const job = complete_.front();
  complete_.erase(complete_.begin());
  handed_back(*job);
  return job;
}

void FetchExecutor::handed_back(FetchJob& job) {
  each_op(job, [&](std::size_t op) {
    ops_[op].job = nullptr;
    ++left_over_;
  });
  job.first_op.clear();
  job.first_merge.clear();
  if (--jobs_ == 0) {
    reads_.clear();
    free_reads_.clear();
  }
  if (jobs_ == 0 || left_over_ > std::max(kFewOperations, ops_.size() / 2)) forget_operations();
}

void FetchExecutor::forget_operations() {
  std::size_t kept = 0;
  Each<std::size_t> first = first_open_;
  for (std::size_t op = 0; op < ops_.size(); ++op) {
    if (op == first_open_.demand) first.demand = kept;
    if (op == first_open_.prefetch) first.prefetch = kept;
    FetchJob* const job = ops_[op].job;
    if (job == nullptr) continue;
    ops_[kept] = ops_[op];
    if (ops_[kept].kind == Kind::kCheck) job->first_op[ops_[kept].piece] = static_cast<std::uint32_t>(kept);
    if (ops_[kept].kind == Kind::kMerge && ops_[kept].chunk == 0)
      job->first_merge[ops_[kept].piece] = static_cast<std::uint32_t>(kept);
    ++kept;
  }
  first_open_.demand = std::min(first.demand, kept);
  first_open_.prefetch = std::min(first.prefetch, kept);
  ops_.resize(kept);
  left_over_ = 0;
}

std::uint32_t FetchExecutor::place_of(const Op& op) const {
  if (op.kind == Kind::kMerge) return op.job->first_merge[op.piece] + op.chunk;
  return op.job->first_op[op.piece] + (op.kind == Kind::kDecode ? 1u + op.chunk : 0u);
}

FetchExecutor::Remembered FetchExecutor::remembered() const {
  const std::lock_guard lock(mutex_);
  return {ops_.size(), reads_.size() - free_reads_.size()};
}

FetchJob* FetchExecutor::next() {
  while (jobs_ > 0) {
    if (FetchJob* const job = poll()) return job;
    if (run_one()) continue;
    std::unique_lock lock(mutex_);
    const Clock::time_point begin = Clock::now();
    owner_wakes_.wait(lock,
                      [&] { return failure_ || !complete_.empty() || ready_.demand + ready_.prefetch > 0; });
    counters_.wait_s += seconds_between(begin, Clock::now());
    if (failure_) std::rethrow_exception(failure_);
  }
  return nullptr;
}

void FetchExecutor::cancel() noexcept {
  std::unique_lock lock(mutex_);
  cancelled_ = true;
  read_queue_.demand.clear();
  read_queue_.prefetch.clear();
  io_wakes_.notify_one();
  owner_wakes_.wait(lock, [&] { return running_ops_ == 0 && in_flight_.demand + in_flight_.prefetch == 0; });
  ops_.clear();
  left_over_ = 0;
  reads_.clear();
  free_reads_.clear();
  complete_.clear();
  kept_.clear();
  clock_demand();
  first_open_ = ready_ = {};
  new_ready_ = 0;
  failure_ = nullptr;
  cancelled_ = false;
  jobs_ = 0;
}

FetchCounters FetchExecutor::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

const FileRun& FetchExecutor::run_of(const FetchJob& job, std::uint32_t run) const {
  const std::vector<FileRun>& base = job.layout->base.runs;
  return run < base.size() ? base[run] : job.layout->rest.runs[run - base.size()];
}

bool FetchExecutor::reads_wait() const {
  return !read_queue_.demand.empty() || (!read_queue_.prefetch.empty() && in_flight_.demand == 0 &&
                                         in_flight_.prefetch < kMostPrefetchReads);
}

void FetchExecutor::take_reads(std::vector<std::size_t>& indices) {
  if (failure_) {
    read_queue_.demand.clear();
    read_queue_.prefetch.clear();
  }
  const auto take = [&](Urgency urgency, std::size_t most) {
    std::vector<std::size_t>& queue = read_queue_[urgency];
    const std::size_t count = std::min(most, queue.size());
    for (std::size_t i = 0; i < count; ++i) {
      Read& read = reads_[queue[i]];
      read.submitted = Clock::now();
      const Bytes length = run_of(*read.job, read.run).length;
      read.job->begun += length;
      read.job->in_flight += length;
      read.job->reads_in_flight += 1;
      if (urgency == Urgency::kPrefetch) counters_.prefetch_bytes += length;
      indices.push_back(queue[i]);
    }
    queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(count));
    in_flight_[urgency] += count;
  };
  take(Urgency::kDemand, read_queue_.demand.size());
  if (in_flight_.demand == 0 && in_flight_.prefetch < kMostPrefetchReads)
    take(Urgency::kPrefetch, kMostPrefetchReads - in_flight_.prefetch);
}

// System calls run without the lock: workers and owner need it for every operation.
void FetchExecutor::io_loop() {
  struct Submission {
    const FileRun* run;
    std::byte* buffer;
    std::size_t index;
  };
  std::vector<std::size_t> taken;
  std::vector<Submission> submissions;
  std::vector<DiskCompletion> completions;
  std::vector<std::exception_ptr> failures;  // parallel to completions
  std::vector<const FileRun*> runs;          // by index, of reads in flight
  std::unique_lock lock(mutex_);
  for (;;) {
    io_wakes_.wait(lock,
                   [&] { return stopping_ || reads_wait() || in_flight_.demand + in_flight_.prefetch > 0; });
    if (stopping_) return;
    taken.clear();
    submissions.clear();
    take_reads(taken);
    for (const std::size_t index : taken) {
      const Read& read = reads_[index];
      const FetchJob& job = *read.job;
      submissions.push_back(
          {&run_of(job, read.run), read.run < job.base_in.size() ? job.base : job.rest, index});
    }
    lock.unlock();

    completions.clear();
    std::exception_ptr broken;  // the reader itself
    failures.clear();
    try {
      for (const Submission& one : submissions) {
        runs.resize(std::max(runs.size(), one.index + 1));
        runs[one.index] = one.run;
        files_.submit(*one.run, one.buffer, one.index);
      }
      files_.reader().wait(1, completions);
    } catch (...) {
      broken = std::current_exception();
      files_.give_up_reader();  // nothing writes to buffers any more
    }
    for (DiskCompletion& completion : completions) {
      std::exception_ptr& failure = failures.emplace_back();
      try {
        files_.check(*runs[completion.tag], completion);
      } catch (...) {
        failure = std::current_exception();
      }
    }

    lock.lock();
    if (broken && !failure_ && !cancelled_) failure_ = broken;
    for (std::size_t i = 0; i < completions.size(); ++i) {
      const DiskCompletion& completion = completions[i];
      const Read& read = reads_[completion.tag];
      const Urgency urgency = read.job->urgency;
      read.job->in_flight -= runs[completion.tag]->length;
      read.job->reads_in_flight -= 1;
      --in_flight_[urgency];
      if (urgency == Urgency::kDemand) counters_.demand_bytes += runs[completion.tag]->length;
      if (failures[i] && urgency == Urgency::kDemand && !failure_ && !cancelled_) failure_ = failures[i];
      if (cancelled_ || failure_) continue;
      if (failures[i] && !read.job->withdrawn) give_up(*read.job);
      if (timeline_ != nullptr)
        timeline_->add({TimelineEntry::Kind::kRead, read.job->id, 0, 0, runs[completion.tag]->length, 0,
                        read.submitted, Clock::now()});
      arrived(*read.job, read.run);
      free_reads_.push_back(completion.tag);
    }
    if (broken) in_flight_ = {};
    clock_demand();
    announce();
  }
}

}  // namespace sluice::fetch
