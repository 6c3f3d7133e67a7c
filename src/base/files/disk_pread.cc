// Reads by a pool of threads that call preadv.
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/files/disk_segments.h"

namespace sluice {
namespace {

class PreadReader final : public DiskReader {
 public:
  explicit PreadReader(const DiskOptions& options)
      : segment_bytes_(options.segment_bytes), ledger_(options.segment_bytes) {
    const unsigned count = std::min(options.pread_threads, options.queue_depth);
    try {
      for (unsigned i = 0; i < count; ++i) {
        threads_.emplace_back([this](const std::stop_token& stop) { serve(stop); });
      }
    } catch (const std::system_error& e) {
      if (threads_.empty()) {
        throw Error(ErrorKind::kIo, "the system refused to start a thread for reading")
            .found(e.what())
            .fix("raise the limit of processes (ulimit -u), or end other programs");
      }
      // Fewer threads only read more slowly.
    }
  }

  ~PreadReader() override {
    {
      const std::lock_guard lock(mutex_);
      work_.clear();
    }
    for (std::jthread& thread : threads_) thread.request_stop();
    threads_.clear();  // joins: reads that have started end before the members below go
  }

  void submit(const DiskRead& read) override { ledger_.begin(read, fresh_); }

  void wait(std::size_t min_completions, std::vector<DiskCompletion>& done) override {
    const std::size_t wanted = std::min(min_completions, ledger_.in_flight());
    for (;;) {
      start();
      {
        std::unique_lock lock(mutex_);
        if (ledger_.completed() < wanted) result_ready_.wait(lock, [&] { return !results_.empty(); });
        taken_.swap(results_);
      }
      for (const Result& result : taken_) came_back(result);
      taken_.clear();
      if (fresh_.empty() && ledger_.completed() >= wanted) break;
    }
    ledger_.take_completed(done);
  }

  std::size_t in_flight() const override { return ledger_.in_flight(); }
  DiskCounters counters() const override { return ledger_.counters(); }
  std::string name() const override { return "pread"; }

 private:
  struct Result {
    DiskSegment segment;
    int error = 0;
  };

  // Hands the submitted reads to the threads.
  void start() {
    std::size_t added = 0;
    {
      const std::lock_guard lock(mutex_);
      for (; !fresh_.empty(); ++added) {
        work_.push_back(take_joined(fresh_, segment_bytes_));
        ledger_.request_started();
      }
    }
    if (added == 1) work_ready_.notify_one();
    if (added > 1) work_ready_.notify_all();
  }

  void came_back(const Result& result) {
    if (result.error == 0 || result.segment.part_count == 1)
      return ledger_.segment_finished(result.segment, result.error);
    apart_.clear();
    take_apart(result.segment, apart_);
    for (const DiskSegment& one : apart_) fresh_.push_back(one);
  }

  void serve(const std::stop_token& stop) {
    for (;;) {
      Result result;
      {
        std::unique_lock lock(mutex_);
        if (!work_ready_.wait(lock, stop, [&] { return !work_.empty(); })) return;
        result.segment = work_.front();
        work_.pop_front();
      }
      DiskSegment& s = result.segment;
      SegmentState state = SegmentState::kAgain;
      DiskVectors vectors;
      while (state == SegmentState::kAgain) {
        const unsigned count = memory_of(s, vectors);
        const ssize_t n =
            ::preadv(s.fd, vectors.data(), static_cast<int>(count), static_cast<off_t>(s.offset + s.got));
        state = advance(s, n >= 0 ? n : -std::int64_t{errno}, result.error);
      }
      {
        const std::lock_guard lock(mutex_);
        results_.push_back(result);
      }
      result_ready_.notify_one();
    }
  }

  // Owner thread only.
  const Bytes segment_bytes_;
  DiskLedger ledger_;
  Fifo<DiskSegment> fresh_;         // submitted, not yet handed to the threads
  std::vector<Result> taken_;       // scratch of wait()
  std::vector<DiskSegment> apart_;  // scratch of came_back()

  std::mutex mutex_;  // protects work_ and results_
  std::condition_variable_any work_ready_;
  std::condition_variable result_ready_;
  Fifo<DiskSegment> work_;
  std::vector<Result> results_;
  std::vector<std::jthread> threads_;  // last: stopped before the members that they use
};

}  // namespace

std::unique_ptr<DiskReader> make_pread_reader(const DiskOptions& options) {
  return std::make_unique<PreadReader>(options);
}

}  // namespace sluice
