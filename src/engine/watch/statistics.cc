#include "engine/watch/statistics.h"

namespace sluice::engine {

ExpertStatistics Statistics::total() const {
  ExpertStatistics sum = prefill;
  sum.accesses += decode.accesses;
  sum.hits += decode.hits;
  sum.misses += decode.misses;
  sum.partial += decode.partial;
  sum.bytes_read += decode.bytes_read;
  sum.unchosen_bytes += decode.unchosen_bytes;
  sum.prefetch_bytes += decode.prefetch_bytes;
  sum.prefetch_used += decode.prefetch_used;
  sum.prefetch_vain += decode.prefetch_vain;
  sum.policy_s += decode.policy_s;
  sum.predict_s += decode.predict_s;
  sum.moe_s += decode.moe_s;
  sum.demand_s += decode.demand_s;
  sum.device_wait_s += decode.device_wait_s;
  sum.demand_arrived += decode.demand_arrived;
  sum.slices += decode.slices;
  sum.steps += decode.steps;
  sum.tokens += decode.tokens;
  sum.seconds += decode.seconds;
  for (std::size_t i = 0; i < sum.found.size(); ++i) sum.found[i] += decode.found[i];
  return sum;
}

}  // namespace sluice::engine
