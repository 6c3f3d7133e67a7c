// Experts in memory: which parts of each are resident, which are on their way, and pins that keep views alive
// while kernels compute with them. Carries out the decisions of experts::Residency and makes none itself.
// SPEC §1.3, §1.7.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/accountant.h"
#include "device/host_buffer.h"
#include "experts/cache/residency.h"
#include "experts/core/ids.h"
#include "experts/placement/placement.h"
#include "experts/prefetch/prefetch.h"
#include "experts/schedule/scheduler.h"
#include "fetch/expert_layout.h"
#include "fetch/expert_view.h"
#include "fetch/fetch_executor.h"
#include "fetch/weight_files.h"
#include "model/architecture.h"

namespace sluice::fetch {

struct ExpertStoreOptions {
  Bytes capacity = 0;  // bytes of resident experts, in any state
  Bytes staging = 0;   // bytes of experts on their way, in buffers that are not kept afterwards
  // Reads one expert at a time, and none while another one is computed with.
  bool synchronous = false;
};

// Times that schedulers plan with, all in one unit (SPEC §1.3).
struct ExpertCosts {
  experts::ScheduleCosts fetch;
  double run = 0, run_per_token = 0;  // computing one expert: run + tokens · run_per_token
};

// The reads that one event asks of the disk.
struct EventReads {
  // Bytes of all reads, without reads that a prefetch has begun.
  Bytes bytes = 0;
  std::uint64_t experts = 0;  // that need a read
  // Misses that some token uses (a whole layer may be fetched for a few of its experts):
  std::uint64_t partial = 0;  // need a read, but some part was resident
  // They would need a read, but a prefetch has made all of it.
  std::uint64_t prefetched = 0;
};

// What happened to experts that were read ahead (SPEC §2.3).
struct PrefetchCounters {
  std::uint64_t useful = 0;   // complete when they were needed
  std::uint64_t late = 0;     // needed earlier: the rest is read on demand
  std::uint64_t wasted = 0;   // begun, but not needed
  std::uint64_t dropped = 0;  // not begun when it became clear that they are not needed
  Bytes used_bytes = 0;       // in memory, or on their way, when they were needed
  Bytes wasted_bytes = 0;
  Bytes delay_bytes = 0;  // part of wasted_bytes: still on their way when they were given up
};

struct ExpertCounters {
  std::uint64_t demand_reads = 0;  // experts read, wholly or in part
  Bytes demand_bytes = 0;          // bytes asked of the disk for them (whole blocks)
  Bytes prefetch_bytes = 0;        // bytes asked of the disk for prefetches
  PrefetchCounters prefetch;
  double demand_s = 0;    // time in which demanded reads were queued or in flight
  Bytes demand_read = 0;  // bytes that arrived in that time
  double wait_s = 0;      // time in which next() had nothing to hand out and nothing to decode
  double decode_s = 0;    // sum over threads of checksums, decoding, merging
  double plan_s = 0;      // time in the scheduler
  std::uint64_t plans = 0;
};

// Thread-compatible: one thread begins events and takes pins. All references must outlive this.
//
// Memory. Resident parts and experts on their way share one pool of capacity + staging bytes. The buffers of
// an expert on its way are charged as staging; those that stay are moved to `experts` when its pin goes. An
// expert of the view `packed` has no buffer for words. An expert starts when its buffers fit and when, after
// all started work is done, resident parts will be within the capacity. If the first in line must wait for
// others to shrink and no other is under way, an expert that will shrink goes first. There is always one,
// because what stays after the event fits in the capacity, and least_staging() is enough for it.
class ExpertStore {
 public:
  class Pin;

  ExpertStore(const store::Checkpoint& checkpoint, const model::Model& model, WeightFiles& files,
              ThreadPool& pool, Isa isa, device::Accountant& accountant);
  ~ExpertStore();  // waits for reads in flight

  // Sizes as residency counts them: those that are charged, so that logical and physical bytes agree.
  const experts::ExpertSizes& sizes() const;
  // Every expert is stored as sm and exp, so states C, S and E exist.
  bool split() const { return all_split_; }
  bool sliced() const { return sliced_; }                // every expert is stored as msb and lsb
  bool can_be_packed() const { return can_be_packed_; }  // all are in tiles with their matrices' own columns
  // The formats that experts' matrices have in views, each once.
  std::span<const codec::MatrixFormat* const> formats() const { return formats_; }
  // Call before configure(). Experts that will not stay in state F are computed with in their stored form, in
  // the view `packed`, as soon as their parts are in memory and checked.
  void compute_packed(bool packed) { compute_packed_ = packed && can_be_packed_; }
  Bytes least_staging() const;       // for one expert of any kind on its way
  Bytes bytes_per_expert() const;    // largest resident size (state F, or both slices)
  Bytes staging_per_expert() const;  // the most staging that one more expert on its way takes
  // Call once, before the first event.
  void configure(const ExpertStoreOptions& options);
  void set_costs(const ExpertCosts& costs) { costs_ = costs; }
  const ExpertCosts& costs() const { return costs_; }

  // Starts one event: drops evicted parts, and starts reading and decoding in the order that `scheduler`
  // gives. No event may be running. `demand` names the experts of `outcome`, with their tokens. The parts
  // physically in memory decide what is read, so an expert that an earlier error left out is simply read
  // again. For slices the outcome names the views (Admission::view): `low` needs no LSB slice. Error(kIo) if
  // the reader broke under a prefetch of one of these experts; abandon_event() must follow.
  EventReads begin(const experts::EventOutcome& outcome, const experts::Demand& demand,
                   experts::Scheduler& scheduler);
  // The next expert of the event whose view is ready: experts in state F first, then in order of completion.
  // Decodes or waits if necessary. Empty when every expert of the event has been handed out. After an
  // Error(kIo) or (kCorrupt) the event is over; its experts keep the parts that were resident before, and the
  // next event may begin. No pin may be held.
  std::optional<Pin> next();
  // The next expert that needs no read, while there is one. Other pins may be held.
  std::optional<Pin> next_resident();
  // Error(kCorrupt) naming file and bytes if the view is `packed` and its codes are impossible: kernels find
  // such codes but do not know where they came from.
  void check_codes(const Pin& pin) const;
  // Ends a running event early, like an error. No pin may be held. Does nothing if no event is running.
  void abandon_event() noexcept;

  // Names the parts that the next event may need, most useful first, in place of earlier names. They are read
  // once all reads of the running event have started and while no demanded read is under way, as far as
  // staging allows besides one demanded expert. This is only read-ahead: parts that the next event does not
  // use are thrown away, and what is resident does not change. For slices the requests say which parts are
  // read; for other experts all missing parts are read.
  void prefetch(std::span<const experts::PartRequest> requests);

  experts::Parts parts(experts::ExpertId id) const;  // physical: in memory now
  // Not for slices.
  experts::State state(experts::ExpertId id) const { return experts::state_of(parts(id)); }
  ExpertCounters counters() const;
  const PrefetchCounters& prefetch_counters() const { return counters_.prefetch; }
  Bytes resident_bytes() const;                  // of all parts
  Bytes disk_bytes(experts::ExpertId id) const;  // bytes that reading the whole expert asks of the disk
  const ExpertLayout& layout(experts::ExpertId id) const;
  // Records every operation (null: stops). Not during an event.
  void record(Timeline* timeline) { executor_.record(timeline); }

 private:
  struct Expert;
  class Sizes;
  Expert& expert(experts::ExpertId id);
  const Expert& expert(experts::ExpertId id) const;
  void drop(Expert& expert, experts::Parts parts);
  void pump();  // starts all work that fits
  std::unique_ptr<FetchJob> make_job(const Expert& expert);
  void finish_job(Expert& expert);
  void change_settled(Expert& expert);  // to the parts that will stay of it
  Bytes buffers_of(const Expert& expert) const;
  Bytes reads_of(const Expert& expert) const;
  bool fits(const Expert& expert) const;
  void take_buffers(Expert& expert);
  void settle(Expert& expert);                         // after use: keeps the parts of its target
  experts::Parts made_by(const Expert& expert) const;  // parts that its job makes
  Pin pin(Expert& expert);
  void unpin(Expert& expert);
  ExpertView view_of(const Expert& expert) const;
  // Read-ahead: expert_store_ahead.cc.
  void start_ahead();                                            // what fits of what prefetch() named
  bool attach(Expert& expert, bool counted, EventReads& reads);  // a prefetch to the event that uses it
  void withdraw(Expert& expert);                                 // a prefetch that nobody uses
  void withdraw_unless(const std::vector<bool>& wanted);         // prefetches of others, by index of experts_
  void discard(Expert& expert);                                  // what was withdrawn
  void count_in_vain(const FetchProgress& progress);             // of a prefetch that is not used, once
  // A prefetch of fewer slices than are needed. What of it is there and to be kept is kept.
  void take_back(Expert& expert, experts::Parts keep);

  WeightFiles& files_;
  device::Accountant& accountant_;
  std::vector<Expert> experts_;
  std::vector<std::uint32_t> layer_begin_;  // experts_ index of the first expert of each sparse layer
  std::unique_ptr<Sizes> sizes_;
  std::vector<const codec::MatrixFormat*> formats_;
  Bytes largest_read_ = 0, largest_view_ = 0, largest_staging_ = 0;
  bool all_split_ = true, can_be_packed_ = true, sliced_ = false;
  bool compute_packed_ = false;
  ExpertCosts costs_;
  std::optional<device::BufferPool> pool_;
  Bytes capacity_ = 0;
  bool synchronous_ = false;
  Bytes settled_ = 0;                   // resident bytes once all that has started is done
  Bytes page_cache_ = 0, reading_ = 0;  // staging set aside for pages of reads; bytes of running jobs' reads
  // State of the running event.
  std::vector<Expert*> ready_;    // can be computed with at once, not yet handed out
  std::vector<Expert*> waiting_;  // not started, in the schedule's order
  std::vector<Expert*> running_;  // started and not settled
  std::vector<experts::Task> tasks_;
  experts::Schedule schedule_;
  std::vector<bool> active_;                 // by index of experts_
  std::vector<experts::PartRequest> ahead_;  // named by prefetch()
  std::size_t next_ahead_ = 0;               // of ahead_
  std::vector<std::unique_ptr<FetchJob>> spare_jobs_;
  std::vector<FetchTask> tasks_to_start_;
  std::vector<std::uint32_t> block_end_;
  std::vector<std::byte> extract_scratch_;  // for extract_planes
  std::size_t to_hand_out_ = 0;             // in the running event
  std::size_t pins_ = 0;
  ExpertCounters counters_;
  FetchExecutor executor_;
};

// Keeps one view alive. Move-only; the destructor unpins. Must not outlive the store.
class ExpertStore::Pin {
 public:
  Pin(Pin&& other) noexcept;
  Pin& operator=(Pin&& other) noexcept;
  ~Pin();
  experts::ExpertId id() const { return id_; }
  const ExpertView& view() const { return view_; }

 private:
  friend class ExpertStore;
  Pin(ExpertStore* store, Expert* expert, experts::ExpertId id, ExpertView view)
      : store_(store), expert_(expert), id_(id), view_(view) {}
  ExpertStore* store_ = nullptr;
  Expert* expert_ = nullptr;
  experts::ExpertId id_;
  ExpertView view_;
};

}  // namespace sluice::fetch
