// Cache policies: which experts' parts stay in memory after use, and which leave. SPEC §1.7, §5.1; LAB.md
// `evict`.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "experts/core/ids.h"
#include "experts/core/sequence_span.h"

namespace sluice::experts {

constexpr Bytes kAnyBytes = std::numeric_limits<Bytes>::max();

// What an event asks of experts that are kept in slices (SPEC §4.3); empty for the other families. The event
// asks for the MSB of every expert and for the LSB of the critical experts; a prompt asks for the LSB of
// every expert. All tokens of an event share an expert's view, so an event that has prompt tokens beside
// decoded ones is a prompt's event.
struct SliceDemand {
  std::span<const ExpertId> ranked = {};    // all experts of the event, best score first (ties: lower id)
  std::span<const ExpertId> critical = {};  // some of them, in any order
  // The event belongs to a prompt: all experts are computed at high precision, and `critical` is ignored.
  // critical_tokens says for how many tokens an expert is critical, parallel to StepReport::used; it may be
  // empty.
  bool prompt = false;
  std::span<const std::uint32_t> critical_tokens = {};
  Bytes lsb_allowance = kAnyBytes;  // bytes that LsbMiss::kFetchIfBudget may read
  // Whose event it is; empty: one sequence's, 0, all of whose tokens are a prompt's or decoded, as `prompt`
  // says.
  std::span<const SequenceSpan> spans = {};
};

// What an event is part of.
struct EventPlace {
  std::uint32_t layer = 0;
  StepKind step = StepKind::kDecode;  // the whole step's
  bool begins_prompt = false;         // the step has the first tokens of a prompt
  // (N): how many tokens of the step chose each expert of the layer, wherever it is computed; empty: unknown.
  std::span<const std::uint32_t> layer_tokens = {};
  std::uint32_t tokens = 0;  // tokens of the whole step; 0: unknown
  // For a device: all that was sent there before the event has arrived.
  bool link_idle = false;
};

// The experts that one layer of one step used: an event. Ids are distinct and ascending. Fixed before
// anything moves. For a device: the experts that are computed there.
struct StepReport {
  std::uint64_t event = 0;         // index of the event in this cache's time
  std::span<const ExpertId> used;  // hits and misses together
  std::span<const ExpertId> hits;
  std::span<const ExpertId> misses;
  std::span<const float> scores;          // mean router score of all N experts of the layer; may be empty
  std::span<const std::uint32_t> tokens;  // tokens per used expert, parallel to `used`; may be empty
  SliceDemand slices = {};
  EventPlace place = {};
};

struct Eviction {
  ExpertId id;
  Parts parts;  // what leaves
};

// Experts that may not be victims now: those of the running event, and those in use or in flight.
class PinnedView {
 public:
  virtual ~PinnedView() = default;
  virtual bool pinned(ExpertId id) const = 0;
};

// An expert and the parts of it that are resident.
struct Placed {
  ExpertId id;
  Parts parts;
};

// The verdict on a whole event (Cache::decide_event). Victims leave first, then the reduced, the placed and
// the fetched experts change.
struct EventDecision {
  std::vector<Eviction> victims;  // in order; may be experts of the event itself, which is over by then
  // Experts outside the event that go from state F to S; their words leave.
  std::vector<ExpertId> reduced;
  // Experts of the event that gain parts, ascending, with all parts that they then hold.
  std::vector<Placed> placed;
  // Experts outside the event that gain parts though no token uses them (a swap of DALI's window, a
  // prefetch of SMoE that enters the cache), in order, with all parts that they then hold.
  std::vector<Placed> fetched;
  // For slices: experts whose LSB is asked for, is not resident, and is not to be read.
  std::vector<ExpertId> downgraded;
};

// One policy. Pure and deterministic: no clock, no randomness except the seed of its config. Residency
// (residency.h) drives it, in this order for each event: on_step; then, unless decide_event decides, for each
// miss in ascending order: wanted, victims (if room is needed), on_evict for each victim, on_insert. The
// experts of the running event stay pinned until the next on_step. Thread-compatible.
class Cache {
 public:
  virtual ~Cache() = default;
  virtual void on_step(const StepReport& report) = 0;  // refreshes hits, counts the event
  virtual Parts wanted(ExpertId id) const = 0;         // parts of a used expert to keep; empty: use and drop
  // Appends victims, in order of eviction, that free at least `need` bytes; appends nothing if they cannot
  // free so many.
  virtual void victims(Bytes need, const PinnedView& pinned, std::vector<Eviction>& out) = 0;
  // on_insert: `id` now holds `parts`, `bytes` in all. on_evict: `parts` of `id` have left.
  virtual void on_insert(ExpertId id, Parts parts, Bytes bytes) = 0;
  virtual void on_evict(ExpertId id, Parts parts) = 0;
  // What is resident before the first event, for policies that begin so: appends it. on_insert is not called.
  virtual void start(const ExpertSizes& /*sizes*/, Bytes /*capacity*/, std::vector<Placed>& /*out*/) {}
  // For policies that judge a whole event at once instead of miss by miss: fills `out` (empty on entry) and
  // returns true. on_evict and on_insert follow as usual.
  virtual bool decide_event(const StepReport& /*report*/, const ExpertSizes& /*sizes*/, Bytes /*capacity*/,
                            EventDecision& /*out*/) {
    return false;
  }
  // For policies that are asked miss by miss, where EventPlace::link_idle: appends experts of the layer that
  // the event does not use to `fetched`, and those that make room for them to `victims`. They are updates
  // (EventOutcome).
  virtual void admit_idle(const StepReport& /*report*/, const ExpertSizes& /*sizes*/, Bytes /*capacity*/,
                          EventDecision& /*out*/) {}
  // The prompt (events whose SliceDemand::prompt is set) is over: appends the parts that must not outlive it.
  // on_evict follows as usual. Between a prompt's events there may have been events of sequences that were
  // decoded meanwhile.
  virtual void end_prompt(std::vector<Eviction>& /*out*/) {}
  virtual std::string name() const = 0;
};

}  // namespace sluice::experts
