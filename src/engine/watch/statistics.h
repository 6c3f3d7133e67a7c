// Counts of a run, taken while it runs. Names are those of reports, in text and in JSON. How routers have
// changed the model's routing is counted where they are asked: LayerDecider::changes().
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "engine/session/step.h"
#include "experts/routing/miss_account.h"

namespace sluice::engine {

// An access is one distinct (layer, expert) of a step; a hit needs no demand read (docs/counters.md).
struct ExpertStatistics {
  std::uint64_t accesses = 0, hits = 0, misses = 0, partial = 0;
  Bytes bytes_read = 0;      // on demand
  Bytes prefetch_bytes = 0;  // read ahead; of these …
  Bytes prefetch_used = 0;   // … what was needed then, and
  Bytes prefetch_vain = 0;   // what was not. A step that failed is in none of the three.
  // Part of bytes_read and prefetch_used: experts that no token chose, where whole layers are read.
  Bytes unchosen_bytes = 0;
  double demand_s = 0;       // time in which demanded reads were queued or in flight …
  Bytes demand_arrived = 0;  // … and bytes that arrived in that time
  // Accesses by the state in which the expert was found: F, C, S, E, M. Zeros for slices, which `slices`
  // counts.
  std::array<std::uint64_t, 5> found{};
  experts::MissAccount slices;  // for experts in slices; otherwise empty
  double device_wait_s = 0;     // the host has nothing left to compute in an event, and waits for a device
  double policy_s = 0;          // time to decide: residency, the order of reads, prefetching; of this …
  double predict_s = 0;         // … the time to predict the scores of next layers
  double moe_s = 0;             // from a layer's router scores to the sum of its experts
  std::uint64_t steps = 0, tokens = 0;
  double seconds = 0;  // wall time of the forward steps

  // All that was read is useful or wasted: read() == useful_bytes() + wasted_bytes().
  Bytes read() const { return bytes_read + prefetch_bytes; }
  Bytes useful_bytes() const { return bytes_read + prefetch_used - unchosen_bytes; }
  Bytes wasted_bytes() const { return prefetch_vain + unchosen_bytes; }
};

struct Statistics {
  ExpertStatistics prefill, decode;
  // For experts in slices, without prompts: tokens (a token counts once in each sparse layer), and the sum of
  // the shares of their weights that were computed at low precision.
  std::uint64_t low_tokens = 0;
  double low_share = 0;
  // Orders of reads that were made, and the time that they took.
  std::uint64_t plans = 0;
  double plan_s = 0;
  // Events for which nothing was read ahead, because read-ahead had cost more than it saved.
  std::uint64_t prefetch_paused = 0;

  ExpertStatistics& of(StepKind kind) { return kind == StepKind::kPrompt ? prefill : decode; }
  ExpertStatistics total() const;
};

}  // namespace sluice::engine
