// The device of an engine: made as its plan says, and its memory divided.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "engine/engine_hooks.h"
#include "engine/forward/unit/device_unit.h"
#include "engine/plan/device_memory_plan.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/unit_forecast.h"
#include "experts/layer_decider.h"
#include "experts/layer_policies.h"

namespace sluice::engine {

// The memory of an emulated device of which nothing is said: the smaller of 1 GiB and a quarter of what is
// free. It comes beside the budget of the host.
Bytes default_device_memory();

// Thread-compatible. What `parts` refers to must outlive it.
class EngineDevice {
 public:
  // `needs`: of the device's memory (device_needs); `fault`: as in EngineHooks. REQUIRES: plan.device.
  // Error(kBudget) naming the least memory of the device that would do, (kInvalid) for a popularity of
  // another shape, (kUsage), (kIo).
  EngineDevice(const EnginePlan& plan, const UnitParts& parts, const DeviceNeeds& needs, CopyFault fault);

  // Adds what decides about it to the host's policies, which have the costs. Where nobody has said what it is
  // to do, and it helps in no step, it is left alone: the host computes everything, and nothing stays there.
  // Call once, before begin().
  void put_policies(const PolicyPlan& plan, experts::Tiers tiers, experts::LayerPolicies& policies);
  bool rests() const { return rests_; }
  // No expert is copied to it, since it rests or no placement computes experts there.
  bool takes_none() const { return takes_none_; }
  UnitShape shape() const;
  DeviceUnit& unit() { return *unit_; }
  kernels::UnitKernels& kernels() { return *kernels_; }
  device::Device& device() { return *device_; }
  // Dense weights and the key/value cache are there.
  bool has_dense() const { return memory_.dense > 0; }
  // With all that its costs depend on.
  std::string name() const;
  // The run begins: what the device's caches begin with is read and copied. Neither this nor what has been
  // copied and computed to measure costs is counted. Error(kIo), (kCorrupt).
  void begin(experts::LayerDecider& decider, fetch::ExpertStore& host);

  const device::Device& device() const { return *device_; }
  const device::Accountant& accountant() const { return device_->memory().accountant(); }
  // Since begin().
  Bytes link_bytes(device::Traffic traffic) const;
  double link_busy_s() const;
  device::LaneCounters computed() const;
  device::LaneCounters host_computed() const;  // by the pace of the host; zeros without one
  // The largest share of a lane's busy time (computing, the host's, both ways of the link) by which its work
  // really took longer than the specification says.
  double overrun_share() const;
  const device::EmulatedSpec& spec() const { return spec_; }
  const DeviceMemoryPlan& memory() const { return memory_; }
  const SlotChoice& slot_form() const { return slot_form_; }
  // The expert has a slot, though its copy may be under way.
  bool holds(experts::ExpertId id) const { return unit_->store().stays(id); }
  const fetch::DeviceStoreCounters& copies() const { return unit_->store().counters(); }
  const fetch::ReturnCounters& returns() const { return unit_->store().returns(); }

 private:
  const device::EmulatedSpec spec_;
  const std::uint32_t layers_, experts_, top_k_, prefetch_size_;
  const std::uint32_t most_tokens_;
  const std::uint64_t seed_;
  const SlotChoice slot_form_;
  const std::vector<std::vector<double>> popularity_;
  std::unique_ptr<device::Device> device_;
  DeviceMemoryPlan memory_;
  std::unique_ptr<kernels::UnitKernels> kernels_;
  std::unique_ptr<DeviceUnit> unit_;
  bool rests_ = false, takes_none_ = false;
  device::LinkCounters link_at_start_;
  device::LaneCounters computed_at_start_, host_at_start_;
};

}  // namespace sluice::engine
