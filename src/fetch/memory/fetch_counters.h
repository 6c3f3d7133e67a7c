// What fetching counts: docs/counters.md.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "experts/core/ids.h"
#include "experts/schedule/read_order.h"

namespace sluice::fetch {

// What one expert of an event needs of the disk.
struct ExpertRead {
  experts::ExpertId id;
  Bytes bytes = 0;  // asked for now, or begun by a prefetch
};

// The reads that one event asks of the disk.
struct EventReads {
  // The experts whose work must be started; those that a prefetch has begun are on their way already. Valid
  // until ExpertStore::begin().
  std::span<const experts::MissingExpert> missing = {};
  std::span<const ExpertRead> by_expert = {};  // those with any bytes; valid as long
  // Bytes of all reads, without reads that a prefetch has begun.
  Bytes bytes = 0;
  Bytes unchosen = 0;         // those of experts that no token uses
  std::uint64_t experts = 0;  // that need a read
  // Misses that some token uses (a whole layer may be fetched for a few of its experts):
  std::uint64_t partial = 0;  // need a read, but some part was resident
  // They would need a read, but a prefetch has made all of it.
  std::uint64_t prefetched = 0;
};

// What happened to experts that were read ahead (SPEC §2.3).
struct PrefetchCounters {
  std::uint64_t useful = 0;   // complete when they were needed
  std::uint64_t late = 0;     // needed earlier: the rest is read on demand
  std::uint64_t wasted = 0;   // begun, but not needed
  std::uint64_t dropped = 0;  // not begun when it became clear that they are not needed
  Bytes used_bytes = 0;       // in memory, or on their way, when they were needed
  Bytes unchosen_bytes = 0;   // part of used_bytes: needed as part of a whole layer, but no token uses them
  Bytes wasted_bytes = 0;
  Bytes delay_bytes = 0;  // part of wasted_bytes: still on their way when they were given up
};

struct ExpertCounters {
  std::uint64_t demand_reads = 0;  // experts read, wholly or in part
  Bytes demand_bytes = 0;          // bytes asked of the disk for them (whole blocks)
  Bytes prefetch_bytes = 0;        // bytes asked of the disk for prefetches
  Bytes update_bytes = 0;          // bytes asked of the disk for experts that a cache brought in unused
  PrefetchCounters prefetch;
  double demand_s = 0;    // time in which demanded reads were queued or in flight
  Bytes demand_read = 0;  // bytes that arrived in that time
  double wait_s = 0;      // time in which next() had nothing to hand out and nothing to decode
  double decode_s = 0;    // sum over threads of checksums, decoding, merging
};

}  // namespace sluice::fetch
