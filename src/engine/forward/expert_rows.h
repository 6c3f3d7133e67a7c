// The tokens of one event, grouped by expert: every choice of a token has a row among those of its expert.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "experts/core/demand.h"
#include "experts/core/ids.h"
#include "experts/routing/router.h"

namespace sluice::engine {

// Rows are counted over all experts of the event, by ascending expert; those of one expert are in the
// order of tokens, but rows that are computed low are behind all others. Keeps its memory from event to
// event. Thread-compatible.
class ExpertRows {
 public:
  // `event`: the experts that `routing` chose, with their tokens, of a layer of `experts` experts.
  // `precisions`: the same choices, where each row has a precision of its own; null: an expert has one.
  void group(const experts::Routing& routing, const experts::Demand& event, std::size_t experts,
             const experts::Routing* precisions = nullptr);

  bool has(experts::ExpertId id) const { return slot_of_expert_[id.index] != kNone; }  // some token chose it
  // Its place among the experts of the event. REQUIRES: has(id)
  std::size_t slot(experts::ExpertId id) const { return slot_of_expert_[id.index]; }
  // REQUIRES: has(id)
  std::size_t first(experts::ExpertId id) const { return begin_[slot_of_expert_[id.index]]; }
  // The token of each row of the expert. REQUIRES: has(id)
  std::span<const std::uint32_t> tokens(experts::ExpertId id) const;
  // How many of them are computed low; 0 where an expert has one precision.
  std::size_t low_rows(experts::ExpertId id) const { return low_[slot_of_expert_[id.index]]; }
  // The row of a choice, an index in Routing::choices.
  std::size_t of_choice(std::size_t choice) const { return row_of_choice_[choice]; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::vector<std::uint32_t> slot_of_expert_;  // (N) index among the experts of the event
  std::vector<std::uint32_t> begin_;           // (event's experts + 1)
  std::vector<std::uint32_t> token_of_row_;    // (rows)
  std::vector<std::uint32_t> row_of_choice_;   // (choices)
  std::vector<std::uint32_t> next_row_;        // (event's experts) next free row while grouping …
  std::vector<std::uint32_t> next_low_;        // … and the next one that is computed low
  std::vector<std::uint32_t> low_;             // (event's experts) rows that are computed low
};

}  // namespace sluice::engine
