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

// The memory of a device of which nothing is said: what is free there, less max(512 MiB, 5 %); of one that is
// played the smaller of 1 GiB and a quarter of what is free here. It comes beside the budget of the host.
// Error(kBudget) if hardly any is free.
Bytes usual_device_memory(const device::DeviceFacts& facts);

// Thread-compatible. What `parts` refers to must outlive it.
class EngineDevice {
 public:
  // `facts`: of the plan's device; `needs`: of its memory (device_needs); `host`: whose buffers are copied.
  // REQUIRES: plan.device. Error(kBudget) naming the least memory of the device that would do, (kInvalid) for
  // a popularity of another shape, (kUsage), and those of making a device.
  EngineDevice(const EnginePlan& plan, const UnitParts& parts, const device::DeviceFacts& facts,
               const DeviceNeeds& needs, const EngineHooks& hooks, device::Accountant& host);

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
  // really took longer than the specification says; 0 of a device that is not played.
  double overrun_share() const;
  const device::DeviceSpec& spec() const { return spec_; }
  const device::DeviceFacts& facts() const { return facts_; }
  device::LockedPages locked() const { return host_.crossing().locked(); }  // the host's, for its copies
  // What of its memory is or was in use, with what its driver takes.
  Bytes used() const { return memory_.context + accountant().used(); }
  Bytes peak() const { return memory_.context + accountant().peak(); }
  // Times that this run measures with it mean something.
  bool has_valid_times() const;
  const DeviceMemoryPlan& memory() const { return memory_; }
  const SlotChoice& slot_form() const { return slot_form_; }
  // The expert has a slot, though its copy may be under way.
  bool holds(experts::ExpertId id) const { return unit_->store().stays(id); }
  const fetch::DeviceStoreCounters& copies() const { return unit_->store().counters(); }
  const fetch::ReturnCounters& returns() const { return unit_->store().returns(); }

 private:
  const device::DeviceSpec spec_;
  const device::DeviceFacts facts_;
  device::Accountant& host_;
  const std::uint32_t layers_, experts_, top_k_;
  const LackingExperts lacking_;
  const std::uint32_t prefetch_size_;
  const std::uint32_t most_tokens_;
  const std::uint64_t seed_;
  const DeviceMath math_;
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
