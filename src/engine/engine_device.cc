#include "engine/engine_device.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/machine/system_memory.h"
#include "device/emulated/emulated_device.h"
#include "device/first_fit.h"
#include "experts/cache/cache_policies.h"
#include "experts/registry.h"

namespace sluice::engine {
namespace {

DeviceNeeds needs_of(const DeviceChoice& choice, const UnitParts& parts) {
  ThreadPool like_the_devices(choice.spec.threads);
  return {.activations = device::FirstFit::cost(DeviceUnit::activation_bytes(like_the_devices, parts)),
          .expert = device::FirstFit::cost(fetch::DeviceStore::buffer_bytes(parts.store)),
          .prefetch = choice.prefetch_size,
          .layers = static_cast<std::uint32_t>(parts.config.sparse_layers()),
          .layer_experts = static_cast<std::uint32_t>(parts.config.moe.experts)};
}

DeviceMemoryPlan plan_of(const DeviceChoice& choice, const UnitParts& parts) {
  const bool nothing_said = !choice.memory && !choice.slots;
  return plan_device_memory(nothing_said ? default_device_memory() : choice.memory, choice.slots,
                            needs_of(choice, parts));
}

}  // namespace

Bytes default_device_memory() { return std::min<Bytes>(kGiB, free_memory(read_memory_limits()) / 4); }

EngineDevice::EngineDevice(const EnginePlan& plan, const UnitParts& parts, device::Accountant& host)
    : spec_(plan.device.value().spec),
      layers_(static_cast<std::uint32_t>(parts.config.sparse_layers())),
      top_k_(static_cast<std::uint32_t>(parts.config.moe.top_k)),
      prefetch_size_(plan.device->prefetch_size),
      seed_(plan.seed),
      expert_bytes_(parts.store.bytes_per_expert()),
      memory_(plan_of(*plan.device, parts)) {
  device::EmulatedOptions options;
  options.spec = spec_;
  options.memory = memory_.budget;
  device_ = device::make_emulated_device(std::move(options));
  unit_ = std::make_unique<DeviceUnit>(
      *device_, parts, fetch::DeviceStoreOptions{memory_.slots * layers_, memory_.staging_slots});
  costs_ = unit_->measure(host);
  at_start_ = device_->link().counters();
}

Bytes EngineDevice::link_bytes(device::Traffic traffic) const {
  return device_->link().counters()[traffic].bytes - at_start_[traffic].bytes;
}

double EngineDevice::link_busy_s() const {
  const auto busy = [](const device::LinkCounters& link) {
    return link.to_device.busy_s + link.from_device.busy_s;
  };
  return busy(device_->link().counters()) - busy(at_start_);
}

experts::DevicePolicies EngineDevice::make_policies(const PolicyPlan& policies,
                                                    const experts::ExpertSizes& sizes) const {
  experts::CacheConfig config;
  config.seed = seed_;
  config.workload.top_k = top_k_;
  experts::DevicePolicies made;
  made.buffers = memory_.staging_slots;
  made.host_may_lack = true;
  if (prefetch_size_ > 0) made.prefetch = policies.prefetch->make({.seed = seed_});
  made.prefetch_size = prefetch_size_;
  for (std::uint32_t layer = 0; layer < layers_; ++layer)
    made.residencies.push_back(
        std::make_unique<experts::Residency>(experts::make_cache(policies.device_cache->name, config), sizes,
                                             memory_.slots * expert_bytes_, experts::Tier::kDevice));
  return made;
}

}  // namespace sluice::engine
