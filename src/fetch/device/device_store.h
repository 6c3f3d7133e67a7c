// Experts on a device: which of them have a buffer there, what is on the link, and what may be overwritten.
// Carries out the plans of experts/device_plan.h and makes none itself. SPEC §3.2, §3.5, §3.6, §5.3.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "device/device.h"
#include "experts/cache/residency.h"
#include "experts/device_plan.h"
#include "experts/prefetch/prefetch.h"
#include "fetch/device/device_buffers.h"
#include "fetch/device/device_pins.h"
#include "fetch/device/device_returns.h"
#include "fetch/device/device_view.h"
#include "fetch/device/expert_on_device.h"
#include "fetch/memory/expert_store.h"

namespace sluice::fetch {

struct DeviceStoreOptions {
  std::uint32_t slots = 0;    // the most experts that stay, over all layers
  std::uint32_t staging = 2;  // buffers beside them, ≥ 2: one is copied into while another is computed with
  bool packed = false;        // no buffer has room for words: the host's store keeps all experts packed
  // Experts in slices: what a slot has room for, MSB or MSB and LSB; staging has room for both.
  experts::Parts slot_slices = experts::Part::kMsb | experts::Part::kLsb;
};

// Bytes of the device's buffers, before they are rounded up to whole blocks.
struct DeviceBufferBytes {
  Bytes expert = 0;  // for slices the MSB
  Bytes lsb = 0;     // for slices, else 0
};

struct DeviceStoreCounters {
  std::uint64_t hits = 0;      // used experts that were there, or on their way
  std::uint64_t loads = 0;     // copied for an event, and stayed
  std::uint64_t streamed = 0;  // copied for an event, and dropped
  std::uint64_t in_place = 0;  // read for an event where the host has them: nothing was copied
  std::uint64_t missing =
      0;  // how many of these three the plan counted on, but a copy had failed or been given up
  std::uint64_t updates = 0;           // copies begun for the cache alone
  std::uint64_t prefetches = 0;        // copies begun for an event that may come …
  std::uint64_t useful = 0, late = 0;  // … were complete, or under way, when they were needed …
  std::uint64_t wasted = 0;            // … or were not needed
  std::uint64_t updates_given_up = 0;  // the host dropped the expert before it was copied
  std::uint64_t updates_late = 0;      // the host gave the expert up, and its copy was waited for
};

// Bytes come from the host's memory alone: from pins of its store, and of what stays there.
//
// In place. Where the device reads the host's memory itself (device::Device::in_place), an expert takes no
// buffer if the device has nothing of it, it does not stay, and it does not go back to the host: its launch
// reads what the pin holds, and the pin is kept until that is over. All else is copied.
//
// Buffers. A slot is any buffer: an expert that stays keeps the one that it came in. slots + staging buffers
// are enough if the cache behind the plans keeps at most `slots` experts. A buffer is overwritten only when
// all copies into it and all launches that read it are done; nobody waits for that but the link.
//
// Slices. MSB and LSB have buffers of their own, so each is copied when a use needs it. Where slots have room
// for the MSB alone, an LSB goes when its launch is queued. An expert is computed in the view that the plan
// says, whatever else is there.
//
// Where tiers exclude each other, the host's store expects some of the experts that leave: they go up the
// link (device_returns.h) before their buffers go to others. An expert that the host gives up is there by the
// modelled clock: if its copy really takes longer, it is waited for.
//
// Residency is logical, copies fail and are given up: an expert that the plan counts on and that is not there
// is copied again. Only the plan's layer and what stays is remembered between events.
//
// Thread-compatible, beside the host's store, on the same thread. References must outlive it.
class DeviceStore {
 public:
  // Allocates the buffers. Error(kBudget) if the device's memory is too small.
  DeviceStore(device::Device& device, ExpertStore& host, const DeviceStoreOptions& options);
  ~DeviceStore();  // waits for copies in flight
  // What buffers take. `packed`: as in the options.
  static DeviceBufferBytes buffer_bytes(const ExpertStore& host, bool packed);

  // An event: its calls come in this order.
  //
  // Before ExpertStore::prepare(): copies from and to host memory that the outcome changes, or `plan` needs
  // ended, end or are given up. abandon_event() may follow at once.
  void release_host(const experts::EventOutcome& host, const experts::DevicePlan& plan);
  // Experts leave, updates are noted, prefetches for this layer that are not used are dropped, and those that
  // are used become demand.
  void begin(std::uint32_t layer, const experts::DevicePlan& plan);
  // Whether the expert needs no pin of the host's: all that the use needs is there, or a copy is under way.
  bool has(const experts::DeviceUse& use) const;
  // What a launch reads, once `ready` is done.
  struct Use {
    DeviceView view;
    bool low = false;  // slices: without the lower bits
    device::Event ready;
    Bytes bytes() const { return view.first_bytes + (low ? 0 : view.rest_bytes); }  // that it reads
  };
  Use use(experts::ExpertId id);  // REQUIRES: has() of its use in the plan
  // Begins the copy, if one is needed, and keeps the pin for as long; where an expert is read in place,
  // until the launch is over that used() names.
  Use use(ExpertStore::Pin pin);
  void keep_if_copied(ExpertStore::Pin pin);  // the pin of an expert that was used without it
  // A launch that reads the expert has been queued; `done` follows it. Call once for each expert of the plan.
  void used(experts::ExpertId id, const device::Event& done);
  // All launches are queued, and their errors known: pins go, as their copies are done; updates begin. Throws
  // the error of a copy if has() said that its expert is on its way, and nobody could compute it.
  void finish_event();
  // After an error, instead: demanded copies are given up, pins go, and experts of which a copy has failed
  // leave. Waits for chunks in flight.
  void abandon_event() noexcept;

  // Pins that copies and queued launches still need. They go in these calls and, where the host takes experts
  // back, in use().
  std::size_t pins() const { return pins_.size(); }
  void release_pins() { pins_.release(); }         // those whose copies, or launches, are done
  void wait_for_a_pin() { pins_.wait_for_one(); }  // REQUIRES: pins() > 0

  // Between begin() and the next: experts that an event may use, most useful first, in place of earlier
  // ones. A copy begins for those that the host has in memory, as far as staging allows beside two demanded
  // experts; what is not named again is given up. For slices the requests say which.
  void prefetch(std::span<const experts::PartRequest> requests);

  // Whether an expert that does not stay is read here, where the host has it.
  bool reads_in_place(const PlacedExpert& place) const { return in_place(place).has_value(); }
  // The first or second place where some expert will be, for measurements. REQUIRES: no event has begun.
  DeviceView spare_view(std::size_t which, const PlacedExpert& place) const;
  device::Address spare_buffer(std::size_t which) const { return buffers_.address(which); }
  bool stays(experts::ExpertId id) const;  // has a buffer of its own beyond the event
  const DeviceStoreCounters& counters() const { return counters_; }
  const ReturnCounters& returns() const { return returns_.counters(); }
  std::uint32_t slots() const { return slots_; }

 private:
  using Expert = ExpertOnDevice;
  using Experts = std::map<experts::ExpertId, Expert>;  // those that are not absent

  bool in_slices() const { return host_.facts().sliced; }
  bool is_low(experts::Parts view) const { return in_slices() && !view.has(experts::Part::kLsb); }
  PlacedExpert needed_of(const PlacedExpert& place, experts::Parts view) const;
  // None: it must be copied.
  std::optional<DeviceView> in_place(const PlacedExpert& place) const;
  // Takes the pin if it gives a use.
  std::optional<Use> use_in_place(ExpertStore::Pin& pin);
  Expert& copy(experts::ExpertId id, const PlacedExpert& place, device::Traffic traffic, DeviceStage stage);
  void copy_lsb(Expert& expert, const PlacedExpert& place, device::Traffic traffic);
  void copy_missing(const PlacedExpert& place, experts::ExpertId id);  // what a use in the plan needs
  // What the host has of it in memory; for slices these. None: not all of it.
  std::optional<PlacedExpert> on_host(experts::ExpertId id, experts::Parts slices) const;
  void trim(Expert& expert);  // its LSB goes if it stays and its slot has no room for it
  void give_buffers(const Expert& expert);
  void withdraw(const Expert& expert);
  void make_room();                                  // a buffer, if none is free
  Experts::iterator drop(Experts::iterator expert);  // its buffer is idle when all that uses it is done
  void leave(Experts::iterator expert);              // drops it, or gives it back to the host
  void finish_update(experts::ExpertId id);          // that the host gives up
  Use use_of(Expert& expert, experts::Parts slices) const;
  void begin_updates();
  void forget_update(experts::ExpertId id);
  void end_returns();  // begins those of the running event, and gives up the rest

  device::Device& device_;
  ExpertStore& host_;
  const std::uint32_t slots_, staging_;
  const experts::Parts slot_slices_;
  DeviceBuffers buffers_, lsb_buffers_;
  Experts experts_;
  struct EventUse {
    bool stays = false, computed = false;
    experts::Parts view;
    std::optional<Error> lost;  // why its copy failed after the plan, and the host, had counted on it
    device::Event copied;       // for one that was computed: all that its launch waits for
  };
  std::map<experts::ExpertId, EventUse> uses_;  // the running event's
  std::vector<experts::DeviceUpdate> updates_;  // not begun, in order
  std::vector<experts::ExpertId> leaving_;      // by the plan of release_host(), until begin()
  DevicePins pins_;
  DeviceReturns returns_;
  DeviceStoreCounters counters_;
};

}  // namespace sluice::fetch
