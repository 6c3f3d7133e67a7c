// Reads by io_uring: one ring, one thread.
#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/disk_segments.h"

namespace sluice {
namespace {

class UringReader final : public DiskReader {
 public:
  // Takes over `ring`, which must be initialised and must not move.
  UringReader(const DiskOptions& options, std::unique_ptr<io_uring> ring)
      : ring_(std::move(ring)),
        segment_bytes_(options.segment_bytes),
        slots_(options.queue_depth),
        vectors_(options.queue_depth),
        ledger_(options.segment_bytes) {
    for (std::size_t i = slots_.size(); i-- > 0;) free_.push_back(i);
  }

  ~UringReader() override {
    queue_.clear();
    stopping_ = true;
    while (free_.size() < slots_.size()) {
      if (!flush_and_wait(1)) break;  // the ring is broken: closing it cancels
      reap();
    }
    io_uring_queue_exit(ring_.get());
  }

  void submit(const DiskRead& read) override { ledger_.begin(read, queue_); }

  void wait(std::size_t min_completions, std::vector<DiskCompletion>& done) override {
    const std::size_t wanted = std::min(min_completions, ledger_.in_flight());
    reap();
    start();
    flush_and_wait_or_throw(0);
    while (ledger_.completed() < wanted) {
      flush_and_wait_or_throw(1);
      reap();
      start();
    }
    flush_and_wait_or_throw(0);
    ledger_.take_completed(done);
  }

  std::size_t in_flight() const override { return ledger_.in_flight(); }
  DiskCounters counters() const override { return ledger_.counters(); }
  std::string name() const override { return "io_uring"; }

 private:
  // Fills the submission queue from queue_, in order, while slots are free.
  void start() {
    while (!queue_.empty() && !free_.empty()) {
      io_uring_sqe* sqe = io_uring_get_sqe(ring_.get());
      if (sqe == nullptr) return;  // the queue is full; the kernel has not taken its entries yet
      const std::size_t slot = free_.back();
      free_.pop_back();
      prepare(sqe, slot, take_joined(queue_, segment_bytes_));
    }
  }

  void prepare(io_uring_sqe* sqe, std::size_t slot, const DiskSegment& segment) {
    slots_[slot] = segment;
    if (segment.got == 0 && segment.retries == 0) ledger_.request_started();
    DiskVectors& vectors = vectors_[slot];
    const unsigned count = memory_of(segment, vectors);
    const Bytes offset = segment.offset + segment.got;
    if (count == 1) {
      const unsigned length = static_cast<unsigned>(vectors[0].iov_len);
      io_uring_prep_read(sqe, segment.fd, vectors[0].iov_base, length, offset);
    } else {
      io_uring_prep_readv(sqe, segment.fd, vectors.data(), count, offset);
    }
    io_uring_sqe_set_data64(sqe, slot);
  }

  // Gives prepared requests to the kernel and waits for `completions`. False if the ring no longer works.
  bool flush_and_wait(unsigned completions) {
    for (;;) {
      if (completions == 0 && io_uring_sq_ready(ring_.get()) == 0) return true;
      const int result = io_uring_submit_and_wait(ring_.get(), completions);
      if (result >= 0) return true;
      error_ = -result;
      if (error_ == EINTR) continue;
      // EAGAIN, EBUSY: the kernel has no room until completions are taken; the caller reaps and tries again.
      if (error_ != EAGAIN && error_ != EBUSY) return false;
      if (io_uring_cq_ready(ring_.get()) > 0) return true;
      if (completions == 0) return true;
      const std::size_t taken = slots_.size() - free_.size() - io_uring_sq_ready(ring_.get());
      if (taken == 0) {  // no request can complete: only time gives the kernel its memory back
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      io_uring_cqe* cqe = nullptr;
      const int waited = io_uring_wait_cqe(ring_.get(), &cqe);
      if (waited == 0) return true;
      if (waited != -EINTR && waited != -EAGAIN) return false;
    }
  }

  void flush_and_wait_or_throw(unsigned completions) {
    if (!flush_and_wait(completions)) throw io_error("io_uring_enter", "io_uring", error_);
  }

  void reap() {
    io_uring_cqe* cqe = nullptr;
    while (io_uring_peek_cqe(ring_.get(), &cqe) == 0) {
      const std::size_t slot = io_uring_cqe_get_data64(cqe);
      const std::int64_t result = cqe->res;
      io_uring_cqe_seen(ring_.get(), cqe);
      free_.push_back(slot);
      if (!stopping_) came_back(slots_[slot], result);
    }
  }

  // The rest of a started segment goes before segments that have not started.
  void came_back(DiskSegment& segment, std::int64_t result) {
    int error = 0;
    const SegmentState state = advance(segment, result, error);
    if (state == SegmentState::kAgain) {
      queue_.push_front(segment);
    } else if (state == SegmentState::kFailed && segment.part_count > 1) {
      apart_.clear();
      take_apart(segment, apart_);
      for (std::size_t i = apart_.size(); i-- > 0;) queue_.push_front(apart_[i]);
    } else {
      ledger_.segment_finished(segment, error);
    }
  }

  std::unique_ptr<io_uring> ring_;
  const Bytes segment_bytes_;
  std::vector<DiskSegment> slots_;    // by user_data; at most queue_depth are with the kernel
  std::vector<DiskVectors> vectors_;  // one for each of slots_
  std::vector<std::size_t> free_;
  Fifo<DiskSegment> queue_;
  std::vector<DiskSegment> apart_;  // scratch of came_back()
  DiskLedger ledger_;
  int error_ = 0;
  bool stopping_ = false;
};

// A ring can be set up and still be useless: kernels before Linux 5.6 lack IORING_OP_READ (its vectored form
// is older), and filters may forbid io_uring_enter.
bool works(io_uring* ring) {
  io_uring_probe* probe = io_uring_get_probe_ring(ring);
  const bool can_read = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_READ) != 0;
  io_uring_free_probe(probe);
  if (!can_read) return false;
  io_uring_sqe* sqe = io_uring_get_sqe(ring);
  if (sqe == nullptr) return false;
  io_uring_prep_nop(sqe);
  io_uring_cqe* cqe = nullptr;
  if (io_uring_submit(ring) != 1 || io_uring_wait_cqe(ring, &cqe) != 0) return false;
  const bool ok = cqe->res == 0;
  io_uring_cqe_seen(ring, cqe);
  return ok;
}

}  // namespace

std::unique_ptr<DiskReader> make_uring_reader(const DiskOptions& options) {
  auto ring = std::make_unique<io_uring>();
  // ENOSYS: no such call; EPERM: kernel.io_uring_disabled or a seccomp filter; ENOMEM: RLIMIT_MEMLOCK before
  // Linux 5.12.
  if (io_uring_queue_init(options.queue_depth, ring.get(), 0) != 0) return nullptr;
  if (!works(ring.get())) {
    io_uring_queue_exit(ring.get());
    return nullptr;
  }
  return std::make_unique<UringReader>(options, std::move(ring));
}

}  // namespace sluice
