#include "experts/placement/beam_split.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace sluice::experts {

// The words of the candidate's device set, `place` included if it joins.
std::uint64_t BeamSplit::word_of(const Candidate& candidate, std::uint32_t place, std::size_t word) const {
  const std::uint64_t kept = sets_[candidate.parent * words_ + word];
  return candidate.joins && place / 64 == word ? kept | std::uint64_t{1} << place % 64 : kept;
}

bool BeamSplit::precedes(const Candidate& a, const Candidate& b, std::uint32_t place) const {
  if (a.times.makespan() != b.times.makespan()) return a.times.makespan() < b.times.makespan();
  const double sum_a = a.times.device + a.times.host, sum_b = b.times.device + b.times.host;
  if (sum_a != sum_b) return sum_a < sum_b;
  for (std::size_t word = 0; word < words_; ++word) {
    const std::uint64_t set_a = word_of(a, place, word), set_b = word_of(b, place, word);
    if (set_a == set_b) continue;
    // The sets are equal below the lowest differing place, which one of them has. The other set comes first
    // if it ends there, else later.
    const std::uint64_t lowest = std::uint64_t{1} << std::countr_zero(set_a ^ set_b);
    const bool a_has_it = (set_a & lowest) != 0;
    bool other_ends = (a_has_it ? set_b : set_a) < lowest;
    for (std::size_t above = word + 1; above < words_ && other_ends; ++above)
      other_ends = word_of(a_has_it ? b : a, place, above) == 0;
    return a_has_it != other_ends;
  }
  return false;
}

SplitTimes BeamSplit::split(const SplitCosts& costs, std::span<std::uint8_t> on_device) {
  SLUICE_CHECK(width_ > 0);
  check_sizes(costs, on_device);
  rank_by_gap(costs, order_);
  words_ = (costs.size() + 63) / 64;
  states_.assign(1, {.times = {}, .slots = SlotCount(costs)});
  sets_.assign(words_, 0);
  for (const auto& [gap, i] : order_) {
    candidates_.clear();
    for (std::uint32_t s = 0; s < states_.size(); ++s) {
      const auto& [times, slots] = states_[s];
      candidates_.push_back({{times.device, times.host + costs.host[i]}, s, false});
      if (slots.admits(i)) candidates_.push_back({{times.device + costs.device[i], times.host}, s, true});
    }
    const std::size_t kept = std::min<std::size_t>(width_, candidates_.size());
    std::ranges::partial_sort(
        candidates_, candidates_.begin() + static_cast<std::ptrdiff_t>(kept),
        [&, place = i](const Candidate& a, const Candidate& b) { return precedes(a, b, place); });
    next_states_.clear();
    next_sets_.clear();
    for (const Candidate& candidate : std::span(candidates_).first(kept)) {
      next_states_.push_back({.times = candidate.times, .slots = states_[candidate.parent].slots});
      if (candidate.joins) next_states_.back().slots.take(i);
      for (std::size_t word = 0; word < words_; ++word) next_sets_.push_back(word_of(candidate, i, word));
    }
    states_.swap(next_states_);
    sets_.swap(next_sets_);
  }
  for (std::size_t i = 0; i < on_device.size(); ++i)
    on_device[i] = static_cast<std::uint8_t>(sets_[i / 64] >> i % 64 & 1);
  return states_.front().times;
}

}  // namespace sluice::experts
