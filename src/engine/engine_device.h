// The device of an engine: made as its plan says, its memory divided, its costs measured.
#pragma once

#include <cstdint>
#include <memory>

#include "device/device.h"
#include "engine/forward/unit/device_unit.h"
#include "engine/plan/device_memory_plan.h"
#include "engine/plan/engine_plan.h"
#include "experts/layer_policies.h"

namespace sluice::engine {

// The memory of an emulated device of which nothing is said: the smaller of 1 GiB and a quarter of what is
// free. It comes beside the budget of the host.
Bytes default_device_memory();

// Thread-compatible. What `parts` refers to must outlive it.
class EngineDevice {
 public:
  // REQUIRES: plan.device. `staging`: of the host, for one expert while costs are measured. Error(kBudget)
  // naming the least memory of the device that would do, (kUsage), (kIo).
  EngineDevice(const EnginePlan& plan, const UnitParts& parts, device::Accountant& host);

  // Its caches, one for each sparse layer. `sizes` must outlive them.
  experts::DevicePolicies make_policies(const PolicyPlan& policies, const experts::ExpertSizes& sizes) const;
  ComputeUnit& unit() { return *unit_; }

  const device::Device& device() const { return *device_; }
  const device::Accountant& accountant() const { return device_->memory().accountant(); }
  // Without what was copied while costs were measured.
  Bytes link_bytes(device::Traffic traffic) const;
  double link_busy_s() const;
  const device::EmulatedSpec& spec() const { return spec_; }
  const DeviceMemoryPlan& memory() const { return memory_; }
  const experts::DeviceCosts& costs() const { return costs_; }
  const fetch::DeviceStoreCounters& copies() const { return unit_->store().counters(); }

 private:
  const device::EmulatedSpec spec_;
  const std::uint32_t layers_, top_k_, prefetch_size_;
  const std::uint64_t seed_;
  const Bytes expert_bytes_;
  std::unique_ptr<device::Device> device_;
  DeviceMemoryPlan memory_;
  std::unique_ptr<DeviceUnit> unit_;
  experts::DeviceCosts costs_;
  device::LinkCounters at_start_;
};

}  // namespace sluice::engine
