// Experts that are read while no event waits for them, behind all demanded work. Prefetches are read ahead of
// the event that may use them: they join it, and are dropped if no event comes. Updates were brought in by a
// cache and stay. SPEC §2.3, §5.1. Only for ExpertStore's own files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "experts/cache/residency.h"
#include "experts/prefetch/prefetch.h"
#include "fetch/fetch_executor.h"
#include "fetch/memory/expert_buffers.h"
#include "fetch/memory/expert_table.h"
#include "fetch/memory/fetch_counters.h"

namespace sluice::fetch {

// Every expert in stage kAhead, kUpdating or kWithdrawn is its. Thread-compatible. References must outlive
// it.
class AheadQueue {
 public:
  AheadQueue(ExpertTable& experts, ExpertBuffers& buffers, FetchExecutor& executor, SpareJobs& jobs)
      : experts_(experts),
        buffers_(buffers),
        executor_(executor),
        jobs_(jobs),
        wanted_(experts.size(), false) {}

  // As ExpertStore::compute_packed: what is read ahead is made to be computed with in its stored form.
  void compute_packed(bool packed) { compute_packed_ = packed; }
  // Names what to read ahead, most useful first, in place of earlier names; what was begun and is not named
  // again is withdrawn.
  void name(std::span<const experts::PartRequest> requests);
  void forget_names();
  // This expert is to hold these parts, which residency counts already.
  void add_update(const experts::Update& update);
  void forget_update(experts::ExpertId id);  // if it has not begun: an event decides about the expert now
  // Starts what fits of what is named, then of updates. Call while no demanded expert waits to start.
  void start();
  // The next event uses these experts: withdraws all others.
  void keep_only(std::span<const experts::ExpertId> ids);

  // The running event uses this expert. True: what was under way has become demand, and the expert is
  // kFetching. False: nothing is under way, or not any more, and the expert is kResting; what has arrived and
  // is to stay is kept. `counted`: a miss that some token uses. Throws as FetchExecutor::next.
  bool join(ExpertInMemory& expert, const experts::Admission& admission, bool counted, EventReads& reads);
  // The executor has handed back an expert that is not of the event: a withdrawn one, whose buffers go, or an
  // update, which stays.
  void ended(ExpertInMemory& expert);
  // The executor has forgotten all its jobs.
  void abandon();

  bool under_way() const { return !under_way_.empty(); }
  const PrefetchCounters& counters() const { return counters_; }

 private:
  bool is_there(const experts::PartRequest& request) const;
  // Begins the expert's work if there is room; false: there is none.
  bool begin(ExpertInMemory& expert, ExpertStage stage);
  void start_updates();
  void withdraw(ExpertInMemory& expert);
  void withdraw_unless_wanted();
  void reclaim(ExpertInMemory& expert);  // waits for a withdrawn expert
  bool promote(ExpertInMemory& expert, bool counted, EventReads& reads);
  void take_back(ExpertInMemory& expert, experts::Parts keep);
  void count_in_vain(const FetchProgress& progress);  // a prefetch that is not used, once

  ExpertTable& experts_;
  ExpertBuffers& buffers_;
  FetchExecutor& executor_;
  SpareJobs& jobs_;
  bool compute_packed_ = false;
  std::vector<experts::PartRequest> names_;
  std::size_t next_ = 0;                  // index into names_: those before it were started, or need nothing
  std::vector<experts::Update> updates_;  // not begun, in order
  std::vector<ExpertInMemory*> under_way_;  // in the order in which they started
  std::vector<bool> wanted_;                // scratch, by ExpertTable::index
  std::vector<FetchTask> tasks_;            // scratch
  std::vector<std::uint32_t> block_end_;    // scratch
  PrefetchCounters counters_;
};

}  // namespace sluice::fetch
