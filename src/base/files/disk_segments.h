// What every DiskReader shares: reads are cut into segments, neighbours are joined, segments make progress,
// and a read completes with its last segment. Internal to base/files/disk*.cc.
#pragma once

#include <sys/uio.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/fifo.h"
#include "base/files/disk.h"

namespace sluice {

// One request to the device: the bytes [offset + got, offset + length) of a file are still wanted.
struct DiskSegment {
  static constexpr std::size_t kMostParts = 8;
  struct Part {
    std::byte* dst = nullptr;
    Bytes length = 0;
    std::size_t read = 0;  // slot of the read it belongs to, in DiskLedger
  };
  int fd = -1;
  Bytes offset = 0;
  Bytes length = 0;
  Bytes needed = 0;                    // how much of `length` lies inside the file; the rest is rounding
  Bytes alignment = 1;                 // a request continues on this grid
  std::array<Part, kMostParts> parts;  // parts of `length`, in order; only the last may reach past the file
  std::size_t part_count = 0;
  Bytes got = 0;
  unsigned retries = 0;  // EINTR and EAGAIN since the last progress
  bool alone = false;    // the segment was part of a request that failed: never joined again
  bool fresh() const { return got == 0 && retries == 0 && !alone; }
};

// Takes the first segment of `queue`, which must not be empty, and the segments behind it that continue where
// it ends, up to `most` bytes in all.
DiskSegment take_joined(Fifo<DiskSegment>& queue, Bytes most);

// Splits a joined segment into the segments it was made of, with nothing read yet, so that each is tried
// alone after a failure.
void take_apart(const DiskSegment& segment, std::vector<DiskSegment>& apart);

// The buffers of the bytes that are still wanted. Array and buffers must stay in place while the segment
// lives.
using DiskVectors = std::array<iovec, DiskSegment::kMostParts>;
unsigned memory_of(const DiskSegment& segment, DiskVectors& vectors);

enum class SegmentState { kDone, kAgain, kFailed };

// Takes the result of pread or of an io_uring read at `offset + got` (bytes, 0 at the end of the file, or
// −errno). kAgain: issue the rest again. kFailed: `error` is the errno.
SegmentState advance(DiskSegment& segment, std::int64_t result, int& error);

// Reads between submit() and wait(). Owner thread only.
class DiskLedger {
 public:
  explicit DiskLedger(Bytes segment_bytes) : segment_bytes_(segment_bytes) {}

  // Appends the segments of `read` to `queue`. A read of no bytes, or of no bytes inside the file, completes
  // at once.
  void begin(const DiskRead& read, Fifo<DiskSegment>& queue);
  void request_started() { ++counters_.requests; }
  void segment_finished(const DiskSegment& segment, int error);
  std::size_t completed() const { return completed_.size(); }
  void take_completed(std::vector<DiskCompletion>& done);
  std::size_t in_flight() const { return in_flight_; }  // begun and not taken
  DiskCounters counters() const;

 private:
  struct Read {
    DiskCompletion completion;
    std::size_t segments_left = 0;
  };
  void part_finished(std::size_t slot, Bytes got, int error);
  void finish(const DiskCompletion& completion);

  const Bytes segment_bytes_;
  std::vector<Read> reads_;
  std::vector<std::size_t> free_slots_;
  std::vector<DiskCompletion> completed_;
  std::size_t in_flight_ = 0;
  std::size_t unfinished_ = 0;  // begun and not completed: the disk is busy while there are any
  std::chrono::steady_clock::time_point busy_since_;
  DiskCounters counters_;
};

std::unique_ptr<DiskReader> make_uring_reader(
    const DiskOptions& options);  // null where the kernel forbids io_uring
std::unique_ptr<DiskReader> make_pread_reader(const DiskOptions& options);

}  // namespace sluice
