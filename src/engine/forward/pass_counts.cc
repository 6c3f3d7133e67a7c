#include "engine/forward/pass_counts.h"

#include "fetch/memory/expert_store.h"

namespace sluice::engine {

void PassCounts::start(const fetch::ExpertStore& experts) {
  before_ = experts.counters();
  started_ = std::chrono::steady_clock::now();
}

void PassCounts::stop(const fetch::ExpertStore& experts) {
  const fetch::ExpertCounters after = experts.counters();
  sums_.prefetch_bytes += after.prefetch_bytes - before_.prefetch_bytes;
  sums_.prefetch_used += after.prefetch.used_bytes - before_.prefetch.used_bytes;
  sums_.prefetch_vain += after.prefetch.wasted_bytes - before_.prefetch.wasted_bytes;
  sums_.unchosen_bytes += after.prefetch.unchosen_bytes - before_.prefetch.unchosen_bytes;
  sums_.demand_s += after.demand_s - before_.demand_s;
  sums_.demand_arrived += after.demand_read - before_.demand_read;
  sums_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

void PassCounts::add_to(ExpertStatistics& count) const {
  count.prefetch_bytes += sums_.prefetch_bytes;
  count.prefetch_used += sums_.prefetch_used;
  count.prefetch_vain += sums_.prefetch_vain;
  count.unchosen_bytes += sums_.unchosen_bytes;
  count.demand_s += sums_.demand_s;
  count.demand_arrived += sums_.demand_arrived;
  count.seconds += sums_.seconds;
}

}  // namespace sluice::engine
