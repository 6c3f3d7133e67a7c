// What one request took and cost.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/draft/draft_counts.h"

namespace sluice::engine {

// Milliseconds of the monotonic clock.
struct RequestStatistics {
  std::size_t prompt = 0, cached = 0, generated = 0;  // tokens; cached: of the prompt, found
  double queue_ms = 0;                                // from submission until its prompt is begun
  double prompt_ms = 0;                               // from there to the first token
  double generated_ms = 0;                            // from the first token to the last
  double stalled_ms = 0;                              // without room; contained in the two
  std::uint64_t passes = 0, companions = 0;  // passes that fed it; sequences of these, itself included
  std::uint64_t accesses = 0, hits = 0, misses = 0;  // experts of its passes' events
  std::uint64_t demand = 0;                          // its own distinct experts, summed over events
  // Its share: a read, on demand or ahead, counts in equal parts for those whose tokens use the expert;
  // for all of the pass where no token does. What was read ahead in vain is nobody's.
  double bytes_read = 0;
  DraftCounts drafts;
};

}  // namespace sluice::engine
