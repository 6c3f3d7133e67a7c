#include "engine/batch/pass_account.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {

void PassAccount::begin(std::vector<RequestStatistics*> statistics, EventAccount* beside) {
  beside_ = beside;
  statistics_ = std::move(statistics);
  used_.resize(statistics_.size());
}

void PassAccount::on_event(const Step& step, const EventCosts& costs) {
  all_.clear();
  for (RequestStatistics* const one : statistics_) {
    if (one == nullptr) continue;
    all_.push_back(one);
    one->accesses += costs.accesses;
    one->hits += costs.hits;
    one->misses += costs.misses;
  }
  count_demand(step, costs);
  share_reads(costs.reads);
  if (beside_ != nullptr) beside_->on_event(step, costs);
}

void PassAccount::count_demand(const Step& step, const EventCosts& costs) {
  for (std::size_t s = 0; s < statistics_.size(); ++s) {
    if (statistics_[s] == nullptr) continue;
    const SequenceSpan& span = step.spans[s];
    std::vector<std::uint16_t>& used = used_[s];
    used.clear();
    for (std::size_t t = span.first_token; t < span.first_token + span.tokens; ++t)
      for (const experts::Choice& choice : costs.routing.token(static_cast<std::uint32_t>(t)))
        used.push_back(choice.expert);
    std::ranges::sort(used);
    const auto doubles = std::ranges::unique(used);
    used.erase(doubles.begin(), doubles.end());
    statistics_[s]->demand += used.size();
  }
}

void PassAccount::share_reads(std::span<const fetch::ExpertRead> reads) {
  for (const fetch::ExpertRead& read : reads) {
    sharers_.clear();
    for (std::size_t s = 0; s < statistics_.size(); ++s)
      if (statistics_[s] != nullptr &&
          std::ranges::binary_search(used_[s], static_cast<std::uint16_t>(read.id.index)))
        sharers_.push_back(statistics_[s]);
    // A whole layer may be read for some of its experts; and who needed it may have left.
    const std::vector<RequestStatistics*>& payers = sharers_.empty() ? all_ : sharers_;
    for (RequestStatistics* const one : payers)
      one->bytes_read += static_cast<double>(read.bytes) / static_cast<double>(payers.size());
  }
}

}  // namespace sluice::engine
