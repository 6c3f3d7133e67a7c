// FetchExecutor's I/O thread: gives reads to the disk and takes what has arrived.
#include <algorithm>

#include "fetch/fetch_executor.h"

namespace sluice::fetch {

struct FetchExecutor::Io {
  struct Submission {
    const FileRun* run;
    std::byte* buffer;
    ReadQueue::Tag tag;
  };
  std::vector<ReadQueue::Tag> taken;
  std::vector<Submission> submissions;
  std::vector<const FileRun*> runs;  // by tag, of reads in flight
  std::vector<DiskCompletion> completions;
  std::vector<std::exception_ptr> failures;  // parallel to completions
  std::exception_ptr broken;                 // the reader itself
};

// System calls run without the lock: workers and owner need it for every operation.
void FetchExecutor::io_loop() {
  Io io;
  std::unique_lock lock(mutex_);
  for (;;) {
    io_wakes_.wait(lock, [&] { return stopping_ || reads_.may_take() || reads_.in_flight() > 0; });
    if (stopping_) return;
    if (failure_) reads_.forget_waiting();
    io.taken.clear();
    reads_.take(io.taken);
    take_reads(io);
    lock.unlock();
    carry_out_reads(io);
    lock.lock();
    take_completions(io);
    clock_demand();
    announce();
  }
}

void FetchExecutor::take_reads(Io& io) const {
  io.submissions.clear();
  for (const ReadQueue::Tag tag : io.taken) {
    const ReadQueue::Read& read = reads_.in_flight(tag);
    const FetchRequest& request = read.job->request;
    io.submissions.push_back(
        {&request.file_run(read.run), request.is_of_base(read.run) ? request.base : request.rest, tag});
  }
}

void FetchExecutor::carry_out_reads(Io& io) {
  io.completions.clear();
  io.failures.clear();
  io.broken = nullptr;
  try {
    for (const Io::Submission& one : io.submissions) {
      io.runs.resize(std::max(io.runs.size(), one.tag + 1));
      io.runs[one.tag] = one.run;
      files_.submit(*one.run, one.buffer, one.tag);
    }
    files_.reader().wait(1, io.completions);
  } catch (...) {
    io.broken = std::current_exception();
    files_.give_up_reader();  // nothing writes to buffers any more
  }
  for (DiskCompletion& completion : io.completions) {
    std::exception_ptr& failure = io.failures.emplace_back();
    try {
      files_.check(*io.runs[completion.tag], completion);
    } catch (...) {
      failure = std::current_exception();
    }
  }
}

void FetchExecutor::take_completions(Io& io) {
  if (io.broken && !failure_ && !cancelled_) failure_ = io.broken;
  for (std::size_t i = 0; i < io.completions.size(); ++i) {
    const ReadQueue::Read read = reads_.land(io.completions[i].tag);
    FetchJob& job = *read.job;
    const Bytes length = job.request.file_run(read.run).length;
    const bool demanded = job.urgency_ == Urgency::kDemand;
    if (demanded) counters_.demand_bytes += length;
    if (io.failures[i] && demanded && !failure_ && !cancelled_) failure_ = io.failures[i];
    if (cancelled_ || failure_) continue;
    if (io.failures[i] && !job.withdrawn_) give_up(job);
    if (timeline_ != nullptr)
      timeline_->add({TimelineEntry::Kind::kRead, job.request.id, 0, 0, length, 0, read.submitted,
                      std::chrono::steady_clock::now()});
    if (job.withdrawn_)
      job.graph_.read_ended();
    else
      job.graph_.arrived(read.run, became_ready_);
    queue_ready(job);
    if_complete(job);
  }
  if (io.broken) reads_.forget_in_flight();
}

}  // namespace sluice::fetch
