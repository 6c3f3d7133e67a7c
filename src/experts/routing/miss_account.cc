#include "experts/routing/miss_account.h"

namespace sluice::experts {

void MissAccount::add(const EventOutcome& outcome, const ExpertSizes& sizes, Parts low, Parts high) {
  for (const std::vector<Admission>* used : {&outcome.hits, &outcome.misses}) {
    for (const Admission& one : *used) {
      const ExpertBytes bytes = sizes.bytes(one.id);
      requested += static_cast<double>(bytes.of(high));
      if (one.view.empty()) {  // not in slices: all of the expert is read, or nothing
        missed += used == &outcome.misses ? static_cast<double>(bytes.of(low)) : 0;
        continue;
      }
      missed += static_cast<double>(bytes.of(one.to_read()));
      ++msb_requests;
      msb_misses += one.to_read().has(Part::kMsb) ? 1 : 0;
      if (!one.asked.has(Part::kLsb)) continue;
      ++lsb_requests;
      lsb_misses += one.to_read().has(Part::kLsb) ? 1 : 0;
      downgrades += one.downgraded() ? 1 : 0;
    }
  }
}

MissAccount& MissAccount::operator+=(const MissAccount& other) {
  missed += other.missed;
  requested += other.requested;
  msb_requests += other.msb_requests;
  msb_misses += other.msb_misses;
  lsb_requests += other.lsb_requests;
  lsb_misses += other.lsb_misses;
  downgrades += other.downgrades;
  return *this;
}

}  // namespace sluice::experts
