// Experts in memory: which parts of each are resident, which are on their way, and pins that keep views alive
// while kernels compute with them. Carries out the decisions of experts::LayerDecider and makes none itself.
// SPEC §1.3, §1.7.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/machine/cpu.h"
#include "device/accountant.h"
#include "experts/cache/residency.h"
#include "experts/core/demand.h"
#include "experts/core/ids.h"
#include "experts/prefetch/prefetch.h"
#include "experts/schedule/expert_costs.h"
#include "experts/schedule/read_order.h"
#include "fetch/expert_view.h"
#include "fetch/memory/expert_facts.h"
#include "fetch/memory/fetch_counters.h"
#include "fetch/memory/return_place.h"

namespace sluice {
class ThreadPool;
namespace model {
struct Model;
}
}  // namespace sluice

namespace sluice::fetch {

class AheadQueue;  // these, and ExpertInMemory, are only for the store's own files
class ExpertBuffers;
class ExpertReturns;
class ExpertTable;
class FetchExecutor;
class SpareJobs;
class Timeline;     // fetch/timeline.h
class WeightFiles;  // fetch/weight_files.h
struct ExpertInMemory;

struct ExpertStoreOptions {
  Bytes capacity = 0;  // bytes of resident experts, in any state
  Bytes staging = 0;   // bytes of experts on their way, in buffers that are not kept afterwards
  // Reads one expert at a time, and none while another one is computed with.
  bool synchronous = false;
};

// Thread-compatible: one thread begins events and takes pins. All references must outlive this.
//
// Memory. Resident parts and experts on their way share one pool of capacity + staging bytes. The buffers of
// an expert on its way are charged as staging; those that stay are moved to `experts` when its pin goes. An
// expert of the view `packed` has no buffer for words. An expert starts when its buffers fit and when, after
// all started work is done, resident parts will be within the capacity. If the first in line must wait for
// others to shrink and no other is under way, an expert that will shrink goes first. There is always one,
// because what stays after the event fits in the capacity, and StagingNeeds::least is enough for it.
class ExpertStore {
 public:
  class Pin;

  ExpertStore(const store::Checkpoint& checkpoint, const model::Model& model, WeightFiles& files,
              ThreadPool& pool, Isa isa, device::Accountant& accountant);
  ~ExpertStore();  // waits for reads in flight

  // Sizes as residency counts them: those that are charged, so that logical and physical bytes agree.
  const experts::ExpertSizes& sizes() const;
  const ExpertFacts& facts() const;
  // Call before configure(). Experts that will not stay in state F are computed with in their stored form, in
  // the view `packed`, as soon as their parts are in memory and checked.
  void compute_packed(bool packed);
  StagingNeeds staging_needs() const;
  // Call once, before the first event.
  void configure(const ExpertStoreOptions& options);
  // Costs that hold until some are measured.
  experts::ExpertCosts assumed_costs() const;

  // An event has two calls. No event may be running.
  //
  // prepare() drops evicted parts, gives prefetches that the event uses to it, and says what else must be
  // read or decoded. `demand` names the experts of `outcome`, with their tokens. The parts physically in
  // memory decide what is missing, so an expert that an earlier error left out is simply read again. For
  // slices the outcome names the views (Admission::view): `low` needs no LSB slice. Updates are read while no
  // demanded read is under way, and stay; until they are there, parts() lacks them. Error(kIo) if the reader
  // broke under a prefetch of one of these experts; abandon_event() must follow.
  //
  // begin() starts that work, in the order that it is given: `order` names each tensor of each missing expert
  // once, and is empty if none is missing.
  EventReads prepare(const experts::EventOutcome& outcome, const experts::Demand& demand);
  void begin(const experts::ReadOrder& order);
  // The next expert of the event whose view is ready: experts in state F first, then in order of completion.
  // Decodes or waits if necessary. Empty when every expert of the event has been handed out. After an
  // Error(kIo) or (kCorrupt) the event is over; its experts keep the parts that were resident before, and the
  // next event may begin. Where pins are held, as copies to a device hold them, the event is over once they
  // have gone and abandon_event() has been called.
  std::optional<Pin> next();
  // The next expert that needs no read, while there is one. Other pins may be held.
  std::optional<Pin> next_resident();
  // Error(kCorrupt) naming file and bytes if the view is `packed` and its codes are impossible: kernels find
  // such codes but do not know where they came from.
  void check_codes(const Pin& pin) const;
  // The same for an expert whose codes are in memory and that no work is under way for; else does nothing.
  void check_codes(experts::ExpertId id) const;
  // Ends a running event early, like an error. No pin may be held. Does nothing if no event is running.
  void abandon_event() noexcept;

  // Whether next() can go on only when a pin has gone: nothing is ready or under way, and what waits has no
  // room. A caller that keeps several pins asks this first.
  bool next_needs_pins();
  // The words, or the parts, of an expert that is wholly in memory and that no running event uses; none of
  // any other. For slices the MSB is enough. They stay until prepare() of an event whose outcome names the
  // expert.
  std::optional<PlacedExpert> resident(experts::ExpertId id) const;

  // Experts that come back from a device (EventOutcome::adopted): the store reads none of them. Behind
  // prepare() of the event that adopts it, while expects() says so, begin_return() makes room for one: for
  // its words, or in regions, as the device has it. None: there is no room now, or expects() says no. Until
  // end_return() somebody writes there, and no event may name the expert; then it is resident, or, unless
  // it is complete, is read when it is used.
  bool expects(experts::ExpertId id) const;
  std::optional<ReturnPlace> begin_return(experts::ExpertId id, bool in_regions);
  void end_return(experts::ExpertId id, bool complete);

  // Names the parts that the next event may need, most useful first, in place of earlier names. They are read
  // once all reads of the running event have started and while no demanded read is under way, as far as
  // staging allows besides one demanded expert. This is only read-ahead: parts that the next event does not
  // use are thrown away, and what is resident does not change. For slices the requests say which parts are
  // read; for other experts all missing parts are read.
  void prefetch(std::span<const experts::PartRequest> requests);

  experts::Parts parts(experts::ExpertId id) const;  // physical: in memory now
  ExpertCounters counters() const;
  const PrefetchCounters& prefetch_counters() const;
  Bytes disk_bytes(experts::ExpertId id) const;  // bytes that reading the whole expert asks of the disk
  const ExpertLayout& layout(experts::ExpertId id) const;
  // Records every operation (null: stops). Not during an event.
  void record(Timeline* timeline);

 private:
  void drop_evicted(const experts::EventOutcome& outcome, const experts::Demand& demand);
  void use(const experts::Admission& admission, bool miss, EventReads& reads);
  void use_and_note(const experts::Admission& admission, bool miss, EventReads& reads);
  void pump();               // starts all work that fits
  void start_ahead();        // if no demanded expert waits to start
  std::size_t take_first();  // buffers for those of waiting_ that start now; their number
  void start_first(std::size_t count);
  Pin pin(ExpertInMemory& expert);
  void unpin(ExpertInMemory& expert);
  PlacedExpert place_of(const ExpertInMemory& expert) const;

  WeightFiles& files_;
  const unsigned threads_;
  struct Machinery;  // owns what the next references name
  const std::unique_ptr<Machinery> machinery_;
  ExpertTable& experts_;
  ExpertBuffers& buffers_;
  SpareJobs& spare_jobs_;
  FetchExecutor& executor_;
  AheadQueue& ahead_;
  ExpertReturns& returns_;
  bool compute_packed_ = false, synchronous_ = false;
  // State of the running event.
  std::vector<ExpertInMemory*> ready_;           // in stage kReady
  std::vector<ExpertInMemory*> waiting_;         // in stage kWaiting, in the order of their first tensors
  std::vector<ExpertInMemory*> running_;         // in stage kFetching, or kInUse with a job
  std::vector<experts::MissingExpert> missing_;  // as prepare() found them …
  std::vector<ExpertRead> reads_;                // … and what they need
  experts::ReadOrder order_;
  std::vector<bool> active_;              // scratch, by ExpertTable::index
  std::vector<std::uint32_t> block_end_;  // scratch
  std::size_t to_hand_out_ = 0;           // in the running event
  std::size_t pins_ = 0;
  ExpertCounters counters_;
};

// Keeps one view alive. Move-only; the destructor unpins. Must not outlive the store.
class ExpertStore::Pin {
 public:
  Pin(Pin&& other) noexcept;
  Pin& operator=(Pin&& other) noexcept;
  ~Pin();
  experts::ExpertId id() const { return id_; }
  const ExpertView& view() const { return view_; }
  const PlacedExpert& place() const { return place_; }

 private:
  friend class ExpertStore;
  Pin(ExpertStore* store, ExpertInMemory* expert, experts::ExpertId id, const PlacedExpert& place)
      : store_(store), expert_(expert), id_(id), place_(place), view_(place.view()) {}
  ExpertStore* store_ = nullptr;
  ExpertInMemory* expert_ = nullptr;
  experts::ExpertId id_;
  PlacedExpert place_;
  ExpertView view_;
};

}  // namespace sluice::fetch
