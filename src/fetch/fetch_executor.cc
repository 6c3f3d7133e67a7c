#include "fetch/fetch_executor.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::fetch {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// Debug builds check resident bytes again whenever a view is made of them.
#ifdef NDEBUG
constexpr bool kCheckResident = false;
#else
constexpr bool kCheckResident = true;
#endif

bool all_in(const std::vector<bool>& runs, Region::Range range) {
  for (std::uint32_t run = range.first; run < range.end; ++run)
    if (!runs[run]) return false;
  return true;
}

bool needs_check(const FetchJob& job, const PiecePlace& piece) {
  return piece.xxh3.has_value() && (job.read_words || kCheckResident);
}

// Operations of one piece stand one after the other: the check and decodes of all chunks, then merges of all
// chunks. A whole piece of a split expert is merged (copied) as if it were one chunk.
std::size_t merges(const FetchJob& job, const PiecePlace& piece) {
  if (!job.layout->split || job.view == nullptr) return 0;
  return piece.split ? piece.chunks.size() : 1;
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
    for (const FetchTask& task : tasks) task.job->urgency = urgency;
    std::size_t begin = 0;
    for (const std::uint32_t end : block_end) {
      const auto block = tasks.subspan(begin, end - begin);
      begin = end;
      for (const FetchTask& task : block) add_ops(task);
      // Where nothing is decoded ahead, an expert's bytes come in the order in which they lie in the file,
      // and those of the next expert after them.
      for (const FetchTask& task : block)
        if (task.job->view == nullptr) queue_all_reads(*task.job);
      for (const FetchTask& task : block) queue_reads(task, true);
      for (const FetchTask& task : block) queue_reads(task, false);
    }
    SLUICE_CHECK(begin == tasks.size(), "tasks outside of blocks");
    // Jobs of which nothing must be awaited are available, or even complete, at once.
    for (const FetchTask& task : tasks)
      if (task.tensor == 0) settle(*task.job);
    announce();
  }
  io_wakes_.notify_one();
}

void FetchExecutor::promote(FetchJob& job, std::byte* view) {
  {
    const std::lock_guard lock(mutex_);
    if (job.urgency == Urgency::kDemand) return;
    job.urgency = Urgency::kDemand;
    std::erase_if(read_queue_.prefetch, [&](std::size_t index) {
      if (reads_[index].job != &job) return false;
      read_queue_.demand.push_back(index);
      return true;
    });
    for (const Read& read : reads_)
      if (read.job == &job && read.in_flight) {
        --in_flight_.prefetch;
        ++in_flight_.demand;
      }
    for (std::size_t p = 0; p < job.first_op.size(); ++p) {
      const PiecePlace& piece = job.layout->pieces[p];
      const auto take_up = [&](std::size_t first, std::size_t count) {
        for (std::size_t op = first; op < first + count; ++op) {
          if (ops_[op].state != OpState::kReady) continue;
          --ready_.prefetch;
          ++ready_.demand;
          first_open_.demand = std::min(first_open_.demand, op);
        }
      };
      take_up(job.first_op[p], 1 + piece.chunks.size());
      take_up(job.first_merge[p], merges(job, piece));
    }
    if (view != nullptr && job.view == nullptr) make_words(job, view);
    announce();
  }
  io_wakes_.notify_one();
}

void FetchExecutor::make_words(FetchJob& job, std::byte* view) {
  SLUICE_CHECK(job.layout->split);
  job.view = view;
  if (job.ops_left == 0 && job.reads_left == 0) std::erase(complete_, &job);
  for (std::uint16_t p = 0; p < job.layout->pieces.size(); ++p) {
    add_merges(job, p);
    const std::size_t chunks = job.layout->pieces[p].chunks.size();
    for (std::size_t x = 0; x < merges(job, job.layout->pieces[p]); ++x)
      if (job.words_ready[p] && (x >= chunks || ops_[job.first_op[p] + 1 + x].state == OpState::kDone))
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
    job.words_ready.assign(layout.pieces.size(), false);
    job.words_in.assign(layout.words.runs.size(), !job.read_words);
    job.exponents_in.assign(layout.exponents.runs.size(), !job.read_exponents);
    job.queued.assign(layout.words.runs.size() + layout.exponents.runs.size(), false);
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
  // Exponents that are there already were checked when they came.
  const bool decodes = job.read_exponents || job.view != nullptr || kCheckResident;
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

void FetchExecutor::queue_reads(const FetchTask& task, bool exponents) {
  FetchJob& job = *task.job;
  if (!(exponents ? job.read_exponents : job.read_words)) return;
  const ExpertLayout& layout = *job.layout;
  const PiecePlace& piece = layout.pieces[task.tensor];
  const auto queue = [&](Region::Range range, std::size_t offset) {
    for (std::uint32_t run = range.first; run < range.end; ++run) {
      if (job.queued[offset + run]) continue;
      job.queued[offset + run] = true;
      ++job.reads_left;
      read_queue_[job.urgency].push_back(reads_.size());
      reads_.push_back({&job, static_cast<std::uint32_t>(offset + run)});
    }
  };
  if (exponents) {
    for (const ChunkPlace& chunk : piece.chunks)
      queue(layout.exponents.covering(chunk.place, chunk.stored_bytes), layout.words.runs.size());
  } else {
    queue(layout.words.covering(piece.place, stored_bytes(piece)), 0);
  }
}

void FetchExecutor::queue_all_reads(FetchJob& job) {
  for (const bool exponents : {false, true})
    for (std::uint16_t p = 0; p < job.layout->pieces.size(); ++p) queue_reads({&job, p}, exponents);
}

void FetchExecutor::settle(FetchJob& job) {
  const ExpertLayout& layout = *job.layout;
  for (std::size_t p = 0; p < layout.pieces.size(); ++p) {
    const PiecePlace& piece = layout.pieces[p];
    if (all_in(job.words_in, layout.words.covering(piece.place, stored_bytes(piece)))) {
      if (ops_[job.first_op[p]].state == OpState::kDone)
        words_are_ready(job, p);
      else
        make_ready(job.first_op[p]);
    }
    for (std::uint32_t x = 0; x < piece.chunks.size(); ++x) {
      const ChunkPlace& chunk = piece.chunks[x];
      if (all_in(job.exponents_in, layout.exponents.covering(chunk.place, chunk.stored_bytes)))
        make_ready(job.first_op[p] + 1 + x);
    }
  }
  if (job.ops_left == 0 && job.reads_left == 0) complete_.push_back(&job);
}

void FetchExecutor::arrived(FetchJob& job, std::uint32_t run) {
  const ExpertLayout& layout = *job.layout;
  const bool of_words = run < job.words_in.size();
  if (!of_words) run -= static_cast<std::uint32_t>(job.words_in.size());
  const auto in = [run](Region::Range range) { return range.first <= run && run < range.end; };
  if (of_words) {
    job.words_in[run] = true;
    for (std::size_t p = 0; p < layout.pieces.size(); ++p) {
      const PiecePlace& piece = layout.pieces[p];
      const Region::Range range = layout.words.covering(piece.place, stored_bytes(piece));
      if (!in(range) || !all_in(job.words_in, range)) continue;
      if (ops_[job.first_op[p]].state == OpState::kBlocked)
        make_ready(job.first_op[p]);
      else
        words_are_ready(job, p);
    }
  } else {
    job.exponents_in[run] = true;
    for (std::size_t p = 0; p < layout.pieces.size(); ++p) {
      for (std::uint32_t x = 0; x < layout.pieces[p].chunks.size(); ++x) {
        const ChunkPlace& chunk = layout.pieces[p].chunks[x];
        const Region::Range range = layout.exponents.covering(chunk.place, chunk.stored_bytes);
        if (in(range) && all_in(job.exponents_in, range)) make_ready(job.first_op[p] + 1 + x);
      }
    }
  }
  if (--job.reads_left == 0 && job.ops_left == 0) complete_.push_back(&job);
}

void FetchExecutor::words_are_ready(FetchJob& job, std::size_t p) {
  if (job.words_ready[p]) return;
  job.words_ready[p] = true;
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

void FetchExecutor::finish_op(Op& op) {
  op.state = OpState::kDone;
  FetchJob& job = *op.job;
  if (--job.ops_left == 0 && job.reads_left == 0) complete_.push_back(&job);
}

bool FetchExecutor::run_one() {
  std::unique_lock lock(mutex_);
  if (ready_.demand + ready_.prefetch == 0 || cancelled_ || failure_) return false;
  const Urgency urgency = ready_.demand > 0 ? Urgency::kDemand : Urgency::kPrefetch;
  std::size_t& first = first_open_[urgency];
  while (ops_[first].state != OpState::kReady || ops_[first].job->urgency != urgency) ++first;
  Op& op = ops_[first];  // of a deque that only grows while operations run
  FetchJob& job = *op.job;
  const PiecePlace& piece = job.layout->pieces[op.piece];
  std::byte* const view = job.view;  // may be set meanwhile
  op.state = OpState::kTaken;
  --ready_[urgency];
  ++running_ops_;
  // Words that are there are merged at once, while the exponents are in the cache.
  const bool merge_too = op.kind == Kind::kDecode && job.words_ready[op.piece] && view != nullptr;
  lock.unlock();

  const Clock::time_point begin = Clock::now();
  Clock::time_point decoded = begin;
  std::exception_ptr failure;
  try {
    if (op.kind == Kind::kCheck) decoder_.check(piece, job.words);
    if (op.kind == Kind::kDecode) decoder_.decode(piece, piece.chunks[op.chunk], job.exponents, view);
    if (merge_too) decoded = Clock::now();
    if (op.kind == Kind::kMerge && !piece.split) ChunkDecoder::copy(piece, job.words, view);
    if ((op.kind == Kind::kMerge && piece.split) || merge_too)
      decoder_.merge(piece, piece.chunks[op.chunk], job.words, job.exponents, view);
  } catch (...) {
    failure = std::current_exception();
  }
  const Clock::time_point end = Clock::now();

  lock.lock();
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
  if (failure) {
    if (!failure_) failure_ = failure;
  } else {
    const std::uint32_t merge_op = job.first_merge[op.piece] + op.chunk;
    if (op.kind == Kind::kCheck) words_are_ready(job, op.piece);
    if (op.kind == Kind::kDecode && merge_too) finish_op(ops_[merge_op]);
    const bool merge_next = op.kind == Kind::kDecode && !merge_too && job.view != nullptr;
    if (merge_next && job.words_ready[op.piece]) make_ready(merge_op);
    finish_op(op);
  }
  announce();
  return true;
}

FetchJob* FetchExecutor::poll() {
  const std::lock_guard lock(mutex_);
  if (failure_ || complete_.empty()) return nullptr;
  FetchJob* const job = complete_.front();
  complete_.pop_front();
  if (--jobs_ == 0) {
    ops_.clear();
    reads_.clear();
    first_open_ = {};
  }
  return job;
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
  read_queue_ = {};
  io_wakes_.notify_one();
  owner_wakes_.wait(lock, [&] { return running_ops_ == 0 && in_flight_.demand + in_flight_.prefetch == 0; });
  ops_.clear();
  reads_.clear();
  complete_.clear();
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
  const std::vector<FileRun>& words = job.layout->words.runs;
  return run < words.size() ? words[run] : job.layout->exponents.runs[run - words.size()];
}

bool FetchExecutor::reads_wait() const {
  return !read_queue_.demand.empty() || (!read_queue_.prefetch.empty() && in_flight_.demand == 0 &&
                                         in_flight_.prefetch < kMostPrefetchReads);
}

void FetchExecutor::take_reads(std::vector<std::size_t>& indices) {
  if (failure_) read_queue_ = {};
  while (reads_wait()) {
    const Urgency urgency = read_queue_.demand.empty() ? Urgency::kPrefetch : Urgency::kDemand;
    const std::size_t index = read_queue_[urgency].front();
    read_queue_[urgency].pop_front();
    reads_[index].in_flight = true;
    reads_[index].submitted = Clock::now();
    ++in_flight_[urgency];
    indices.push_back(index);
  }
}

// System calls are made without the lock: workers and owner need it for every operation.
void FetchExecutor::io_loop() {
  struct Submission {
    const FileRun* run;
    std::byte* buffer;
    std::size_t index;
  };
  std::vector<std::size_t> taken;
  std::vector<Submission> submissions;
  std::vector<DiskCompletion> completions;
  std::vector<const FileRun*> runs;  // by index, of reads in flight
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
          {&run_of(job, read.run), read.run < job.words_in.size() ? job.words : job.exponents, index});
    }
    lock.unlock();

    completions.clear();
    std::exception_ptr broken, failure;  // of the reader itself; of one read
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
      try {
        files_.check(*runs[completion.tag], completion);
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    }

    lock.lock();
    if (broken) failure = broken;
    if (failure && !failure_ && !cancelled_) failure_ = failure;
    for (const DiskCompletion& completion : completions) {
      Read& read = reads_[completion.tag];
      read.in_flight = false;
      --in_flight_[read.job->urgency];
      if (cancelled_ || failure_) continue;
      if (timeline_ != nullptr)
        timeline_->add({TimelineEntry::Kind::kRead, read.job->id, 0, 0, runs[completion.tag]->length, 0,
                        read.submitted, Clock::now()});
      arrived(*read.job, read.run);
    }
    if (broken) {
      for (Read& read : reads_) read.in_flight = false;
      in_flight_ = {};
    }
    announce();
  }
}

}  // namespace sluice::fetch
