// A unit that computes routed experts beside the host. A unit knows no routing; MoeBlock gives it the experts
// that were assigned to it, goes on with the host's, and sums all rows itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/forward/common/workspace.h"
#include "experts/cache/residency.h"
#include "experts/core/ids.h"
#include "experts/device_plan.h"
#include "experts/prefetch/prefetch.h"
#include "fetch/expert_view.h"
#include "fetch/memory/expert_store.h"
#include "kernels/products/input_form.h"

namespace sluice::engine {

// One expert for the tokens that chose it. Non-owning; the view is pinned while the work is under way.
struct ExpertWork {
  experts::ExpertId id;
  const fetch::ExpertView* view = nullptr;  // on the host; null: the unit has the expert
  Bytes weights = 0;                        // that the view reads; 0: unknown
  std::size_t rows = 0;                     // tokens
  // (rows, ·) the tokens' rows in the forms of gate and up; a unit that gathers takes those of the event.
  kernels::ArrangedInputs inputs{};
  float* out = nullptr;       // (rows, d) on the host …
  std::size_t first_row = 0;  // … and the first of them among the rows of the event
  // Biases, as in Mlp.
  std::span<const float> gate_bias = {}, up_bias = {}, down_bias = {};
  std::span<const std::uint32_t> tokens = {};  // (rows) of the event
};

// What an event gives a unit; valid until finish_event() or abandon_event().
struct UnitEvent {
  std::uint32_t layer = 0;  // sparse
  const experts::DevicePlan& plan;
  std::size_t tokens = 0;
  kernels::ArrangedInputs inputs{};  // (tokens, ·) in the forms that experts read; the host's
};

// Thread-compatible. Calls come in this order for each event:
//
//   release_host        before the host's store prepares the event
//   begin_event
//     compute, take     for each expert of the plan, in its order where the host's bytes allow
//     launch            behind those that it has
//     finish, prefetch  at most once each
//   finish_event, or abandon_event after an error
class ComputeUnit {
 public:
  virtual ~ComputeUnit() = default;
  virtual void release_host(const experts::EventOutcome& /*host*/, const experts::DevicePlan& /*plan*/) {}
  virtual void begin_event(const UnitEvent& /*event*/) {}
  // Whether it computes this expert of the plan without bytes of the host's; also before begin_event().
  virtual bool has(const experts::DeviceUse& /*use*/) const { return false; }
  // Whether it takes the rows of work.tokens out of the event's inputs itself.
  virtual bool gathers() const { return false; }
  // Writes work.out, by the end of finish_event(). The rows of an expert depend on nothing but its work, so
  // every unit that computes with the same kernels gives the same bits. The pin is of work.view, and is kept
  // as long as it is needed. `host`: scratch. Error(kCorrupt) for impossible codes, here or in
  // finish_event().
  virtual void compute(const ExpertWork& work, std::optional<fetch::ExpertStore::Pin> pin,
                       const HostWorkspace& host) = 0;
  // What compute() was given and the unit has held back begins: experts that need nothing more, all at once.
  virtual void launch() {}
  // Waits until the rows of the first `count` computed experts of the event are in place.
  virtual void finish(std::size_t /*count*/) {}
  // The host's pin of an expert that was computed without it: kept if a copy still reads what it pins.
  virtual void take(fetch::ExpertStore::Pin /*pin*/) {}
  // Experts that the next event may need, most useful first, in place of those of the event before: to be
  // copied while the unit's link is idle, as far as the host has them. Changes no result.
  virtual void prefetch(std::span<const experts::PartRequest> /*requests*/) {}
  // Lets go of pins that are not needed any more; waits until one has gone if the host's store needs that.
  virtual void release_pins(fetch::ExpertStore& /*store*/) {}
  virtual void finish_event() {}
  virtual void abandon_event() noexcept {}  // all pins have gone when it returns
};

}  // namespace sluice::engine
