// How many tokens were drafted, and how many of them came true. docs/drafts.md.
#pragma once

#include <cstdint>

namespace sluice::engine {

struct DraftCounts {
  std::uint64_t drafted = 0;   // tokens that a step computed before they were drawn
  std::uint64_t accepted = 0;  // how many of these were drawn then
  std::uint64_t passes = 0;    // steps of a sequence that had drafts

  void operator+=(const DraftCounts& more) {
    drafted += more.drafted;
    accepted += more.accepted;
    passes += more.passes;
  }
  bool operator==(const DraftCounts&) const = default;
};

}  // namespace sluice::engine
