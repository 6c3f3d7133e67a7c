#include "engine/forward/expert_rows.h"

namespace sluice::engine {

void ExpertRows::group(const experts::Routing& routing, const experts::Demand& event, std::size_t experts,
                       const experts::Routing* precisions) {
  slot_of_expert_.assign(experts, kNone);
  begin_.assign(1, 0);
  for (std::size_t slot = 0; slot < event.experts.size(); ++slot) {
    slot_of_expert_[event.experts[slot].index] = static_cast<std::uint32_t>(slot);
    begin_.push_back(begin_.back() + event.tokens[slot]);
  }
  token_of_row_.resize(routing.choices.size());
  row_of_choice_.resize(routing.choices.size());
  next_row_.assign(begin_.begin(), begin_.end() - 1);
  const auto is_low = [&](std::uint32_t choice) {
    return precisions != nullptr && precisions->choices[choice].precision == experts::Precision::kLow;
  };
  low_.assign(event.experts.size(), 0);
  for (std::uint32_t c = 0; precisions != nullptr && c < routing.choices.size(); ++c)
    if (is_low(c)) ++low_[slot_of_expert_[routing.choices[c].expert]];
  next_low_.resize(low_.size());
  for (std::size_t slot = 0; slot < low_.size(); ++slot) next_low_[slot] = begin_[slot + 1] - low_[slot];
  for (std::uint32_t t = 0; t + 1 < routing.begin.size(); ++t)
    for (std::uint32_t c = routing.begin[t]; c < routing.begin[t + 1]; ++c) {
      std::vector<std::uint32_t>& next = is_low(c) ? next_low_ : next_row_;
      const std::uint32_t row = next[slot_of_expert_[routing.choices[c].expert]]++;
      token_of_row_[row] = t;
      row_of_choice_[c] = row;
    }
}

std::span<const std::uint32_t> ExpertRows::tokens(experts::ExpertId id) const {
  const std::uint32_t slot = slot_of_expert_[id.index];
  return std::span(token_of_row_).subspan(begin_[slot], begin_[slot + 1] - begin_[slot]);
}

}  // namespace sluice::engine
