// Reads by a pool of threads that call pread.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>

#include "base/disk_segments.h"
#include "base/error.h"

namespace sluice {
namespace {

class PreadReader final : public DiskReader {
 public:
  explicit PreadReader(const DiskOptions& options) : ledger_(options.segment_bytes) {
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
      // Fewer threads read more slowly and just as well.
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

  void submit(const DiskRead& read) override {
    ledger_.begin(read, fresh_);
    if (fresh_.empty()) return;
    const std::size_t added = fresh_.size();
    {
      const std::lock_guard lock(mutex_);
      for (; !fresh_.empty(); fresh_.pop_front()) work_.push_back(fresh_.front());
    }
    if (added == 1) {
      work_ready_.notify_one();
    } else {
      work_ready_.notify_all();
    }
  }

  void wait(std::size_t min_completions, std::vector<DiskCompletion>& done) override {
    const std::size_t wanted = std::min(min_completions, ledger_.in_flight());
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        if (ledger_.completed() < wanted) result_ready_.wait(lock, [&] { return !results_.empty(); });
        taken_.swap(results_);
      }
      for (const Result& result : taken_) ledger_.segment_finished(result.segment, result.error);
      taken_.clear();
      if (ledger_.completed() >= wanted) break;
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
      while (state == SegmentState::kAgain) {
        const ssize_t n =
            ::pread(s.fd, s.dst + s.got, s.length - s.got, static_cast<off_t>(s.offset + s.got));
        state = advance(s, n >= 0 ? n : -std::int64_t{errno}, result.error);
      }
      {
        const std::lock_guard lock(mutex_);
        results_.push_back(result);
      }
      result_ready_.notify_one();
    }
  }

  DiskLedger ledger_;          // owner thread only
  Fifo<DiskSegment> fresh_;    // owner thread only: scratch of submit()
  std::vector<Result> taken_;  // owner thread only: scratch of wait()
  std::mutex mutex_;           // protects work_ and results_
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
