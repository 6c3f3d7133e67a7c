#include "lab/replay/event_counts.h"

#include <algorithm>

namespace sluice::lab {

EventCounts::EventCounts(const trace::TraceSizes* sizes, std::uint64_t window)
    : sizes_(sizes), window_(window) {
  if (sizes != nullptr) result_.bytes_read = 0;
}

void EventCounts::add(std::uint64_t step, trace::TracePhase phase, std::uint64_t accesses,
                      const experts::EventOutcome& outcome, const experts::Residency& cache) {
  const auto count = [&](ReplayCounts& counts) {
    counts.accesses += accesses;
    counts.hits += outcome.hits.size();
  };
  count(result_.total);
  if (phase == trace::TracePhase::kDecode) count(result_.decode);
  // An expert may leave part by part.
  for (auto gone = outcome.evicted.begin(); gone != outcome.evicted.end(); ++gone) {
    const bool counted =
        std::any_of(outcome.evicted.begin(), gone, [&](const auto& other) { return other.id == gone->id; });
    result_.evictions += !counted && cache.parts(gone->id).empty();
  }
  for (const experts::Admission& miss : outcome.misses) {
    result_.partial += !miss.before.empty();
    if (sizes_ != nullptr) *result_.bytes_read += sizes_->missing_bytes(miss.id, miss.before);
  }
  if (window_ == 0) return;
  const std::uint64_t first = step / window_ * window_;
  if (result_.windows.empty() || result_.windows.back().first_step != first)
    result_.windows.push_back({first, 0, {}});
  result_.windows.back().steps = step - first + 1;
  count(result_.windows.back().counts);
}

}  // namespace sluice::lab
