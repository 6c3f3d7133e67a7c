#include "base/files/disk_segments.h"

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace sluice {
namespace {

// A device that answers EAGAIN for ever is broken; this many in a row take about a second on a real device.
constexpr unsigned kMaxRetries = 10'000;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

DiskSegment take_joined(Fifo<DiskSegment>& queue, Bytes most) {
  DiskSegment segment = queue.front();
  queue.pop_front();
  while (!queue.empty()) {
    const DiskSegment& next = queue.front();
    const bool neighbours = next.fd == segment.fd && next.offset == segment.offset + segment.length;
    const bool fresh = segment.fresh() && next.fresh();
    const bool inside = segment.needed == segment.length && segment.alignment == next.alignment;
    const bool fits = segment.length + next.length <= most &&
                      segment.part_count + next.part_count <= DiskSegment::kMostParts;
    if (!neighbours || !fresh || !inside || !fits) break;
    for (std::size_t part = 0; part < next.part_count; ++part)
      segment.parts[segment.part_count++] = next.parts[part];
    segment.length += next.length;
    segment.needed += next.needed;
    queue.pop_front();
  }
  return segment;
}

void take_apart(const DiskSegment& segment, std::vector<DiskSegment>& apart) {
  Bytes before = 0;
  for (std::size_t part = 0; part < segment.part_count; ++part) {
    DiskSegment& one = apart.emplace_back(segment);
    one.offset += before;
    one.length = segment.parts[part].length;
    one.needed = std::min(one.length, segment.needed - before);
    one.parts[0] = segment.parts[part];
    one.part_count = 1;
    one.got = 0;
    one.retries = 0;
    one.alone = true;
    before += one.length;
  }
}

unsigned memory_of(const DiskSegment& segment, DiskVectors& vectors) {
  unsigned count = 0;
  Bytes before = 0;
  for (std::size_t i = 0; i < segment.part_count; ++i) {
    const DiskSegment::Part& part = segment.parts[i];
    const Bytes skipped = std::min(segment.got - std::min(segment.got, before), part.length);
    before += part.length;
    if (skipped < part.length) vectors[count++] = {part.dst + skipped, part.length - skipped};
  }
  return count;
}

SegmentState advance(DiskSegment& segment, std::int64_t result, int& error) {
  error = 0;
  if (result < 0) {
    error = static_cast<int>(-result);
    if ((error == EINTR || error == EAGAIN) && ++segment.retries <= kMaxRetries) return SegmentState::kAgain;
    return SegmentState::kFailed;
  }
  const Bytes reached = std::min(segment.got + static_cast<Bytes>(result), segment.length);
  if (reached >= segment.needed) {
    segment.got = reached;
    return SegmentState::kDone;
  }
  // Short inside the file. The rest is requested from the last grid point that was reached; no progress means
  // that the file ends here.
  const Bytes next = round_down(reached, segment.alignment);
  if (next <= segment.got) {
    segment.got = reached;
    error = ENODATA;
    return SegmentState::kFailed;
  }
  segment.got = next;
  segment.retries = 0;
  return SegmentState::kAgain;
}

void DiskLedger::begin(const DiskRead& read, Fifo<DiskSegment>& queue) {
  SLUICE_CHECK(read.file != nullptr && read.file->fd() >= 0);
  SLUICE_CHECK(read.dst != nullptr || read.length == 0);
  SLUICE_CHECK(read.offset + read.length >= read.offset);
  const Bytes alignment = read.file->alignment();
  SLUICE_CHECK(read.offset % alignment == 0 && read.length % alignment == 0 &&
                   reinterpret_cast<std::uintptr_t>(read.dst) % alignment == 0,
               "offset " + std::to_string(read.offset) + ", length " + std::to_string(read.length) +
                   ", alignment " + std::to_string(alignment));

  ++counters_.reads;
  ++in_flight_;
  if (unfinished_++ == 0) busy_since_ = std::chrono::steady_clock::now();

  const Bytes size = read.file->size();
  const Bytes end = read.offset + read.length;
  if (end > size && end - size >= kBlockBytes) {
    finish({.tag = read.tag, .error = ENODATA, .bytes = 0});
    return;
  }
  const Bytes inside = std::min(read.length, size > read.offset ? size - read.offset : 0);
  if (inside == 0) {
    finish({.tag = read.tag, .error = 0, .bytes = 0});
    return;
  }

  std::size_t slot = reads_.size();
  if (free_slots_.empty()) {
    reads_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  reads_[slot] = {.completion = {.tag = read.tag, .error = 0, .bytes = 0}, .segments_left = 0};
  for (Bytes at = 0; at < inside; at += segment_bytes_) {
    DiskSegment segment;
    segment.fd = read.file->fd();
    segment.offset = read.offset + at;
    segment.length = std::min(segment_bytes_, read.length - at);
    segment.needed = std::min(segment.length, inside - at);
    segment.alignment = alignment;
    segment.parts[0] = {read.dst + at, segment.length, slot};
    segment.part_count = 1;
    queue.push_back(segment);
    ++reads_[slot].segments_left;
  }
}

void DiskLedger::segment_finished(const DiskSegment& segment, int error) {
  SLUICE_CHECK(error == 0 || segment.part_count == 1, "a joined request fails read by read");
  Bytes left = segment.got;
  for (std::size_t i = 0; i < segment.part_count; ++i) {
    const DiskSegment::Part& part = segment.parts[i];
    const Bytes got = std::min(left, part.length);
    left -= got;
    part_finished(part.read, got, error);
  }
}

void DiskLedger::part_finished(std::size_t slot, Bytes got, int error) {
  Read& read = reads_[slot];
  read.completion.bytes += got;
  counters_.bytes += got;
  if (read.completion.error == 0) read.completion.error = error;
  SLUICE_CHECK(read.segments_left > 0);
  if (--read.segments_left > 0) return;
  free_slots_.push_back(slot);
  finish(read.completion);
}

void DiskLedger::finish(const DiskCompletion& completion) {
  completed_.push_back(completion);
  if (--unfinished_ == 0) counters_.busy_s += seconds_since(busy_since_);
}

void DiskLedger::take_completed(std::vector<DiskCompletion>& done) {
  done.insert(done.end(), completed_.begin(), completed_.end());
  in_flight_ -= completed_.size();
  completed_.clear();
}

DiskCounters DiskLedger::counters() const {
  DiskCounters counters = counters_;
  if (unfinished_ > 0) counters.busy_s += seconds_since(busy_since_);
  return counters;
}

}  // namespace sluice
