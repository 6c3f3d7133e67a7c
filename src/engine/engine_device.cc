#include "engine/engine_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/compared_bytes.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/machine/system_memory.h"
#include "base/setting.h"
#include "engine/forward/unit/make_unit_kernels.h"
#include "experts/device_start.h"
#include "experts/layer_decider.h"
#include "experts/named_policy.h"
#include "experts/policy_choice.h"

namespace sluice::engine {
namespace {

DeviceMemoryPlan plan_of(const DeviceChoice& choice, const device::DeviceFacts& facts,
                         const DeviceNeeds& needs) {
  const bool nothing_said = !choice.memory && !choice.slots;
  return plan_device_memory(nothing_said ? usual_device_memory(facts) : choice.memory, choice.slots, needs);
}

// Signals wait for what is under way, so nothing may take much longer than a person waits.
void check_speed(const device::DeviceSpec& spec, Bytes expert) {
  constexpr double kLongest = 10;
  const double copying = spec.least_copy_s(expert), computing = spec.least_compute_s(expert);
  if (std::max(copying, computing) <= kLongest) return;
  throw Error(ErrorKind::kUsage, "this device is too slow for the model's experts")
      .in(Setting::kDevice)
      .expected("at most " + format_duration(kLongest) + " to copy or to compute an expert of " +
                format_bytes(expert))
      .found(format_duration(copying) + " and " + format_duration(computing))
      .fix("give the device a faster link and faster compute, or a smaller dilate");
}

void check_popularity(const DeviceChoice& choice, std::size_t layers, std::size_t experts) {
  const std::size_t counted = choice.popularity.size();
  if (counted == 0 || (counted == layers && choice.popularity.front().size() == experts)) return;
  throw Error(ErrorKind::kInvalid, "the routing that says which experts are popular is of another model")
      .in(choice.popularity_name)
      .expected(fmt::format("{} sparse layers of {} experts", layers, experts))
      .found(fmt::format("{} of {}", counted, choice.popularity.front().size()))
      .fix("record that of this model: sluice trace MODEL");
}

device::LaneCounters since(device::LaneCounters now, const device::LaneCounters& start) {
  now.pieces -= start.pieces;
  now.busy_s -= start.busy_s;
  now.overruns -= start.overruns;
  now.overrun_s -= start.overrun_s;
  return now;
}

device::LaneCounters of_host(const device::Device& device) {
  const device::HostPace* const pace = device.host_pace();
  return pace != nullptr ? pace->counters() : device::LaneCounters{};
}

void bring(const experts::StartEvent& event, experts::LayerDecider& decider, fetch::ExpertStore& host,
           fetch::DeviceStore& device) {
  device.release_host(event.host, event.device);
  host.begin(decider.order(host.prepare(event.host, event.demand()).missing));
  device.begin(event.layer, event.device);
  for (;;) {
    device.release_pins();
    while (device.pins() > 0 && host.next_needs_pins()) device.wait_for_a_pin();
    std::optional<fetch::ExpertStore::Pin> pin = host.next();
    if (!pin) break;
    const experts::ExpertId id = pin->id();
    device.used(id, device.use(std::move(*pin)).ready);
  }
  device.finish_event();
}

// Carries out experts::start_events(): reads the experts, passes them through the host's staging, and returns
// when their copies are done: caches count on them from the first event on. `decider` orders the reads.
// REQUIRES: a device among its policies, and no event has begun. Error(kIo), (kCorrupt).
void bring_start(experts::LayerDecider& decider, fetch::ExpertStore& host, fetch::DeviceStore& device) {
  try {
    for (const experts::StartEvent& event : experts::start_events(decider))
      bring(event, decider, host, device);
  } catch (const Error&) {
    device.abandon_event();
    host.abandon_event();
    throw;
  }
}

}  // namespace

Bytes usual_device_memory(const device::DeviceFacts& facts) {
  if (!facts.free) return std::min<Bytes>(kGiB, free_memory(read_memory_limits()) / 4);
  constexpr Bytes kMargin = 512 * kMiB;
  const Bytes margin = std::max(kMargin, *facts.free / 20);
  if (*facts.free > margin) return *facts.free - margin;
  const ComparedBytes sizes = compared_bytes(margin, *facts.free);
  throw Error(ErrorKind::kBudget, "hardly any memory of the device is free")
      .in(Setting::kDeviceMemory)
      .expected("more than " + sizes.expected)
      .found(sizes.found)
      .fix("end what else uses the device, or give " + Setting::kDeviceMemory + " SIZE");
}

EngineDevice::EngineDevice(const EnginePlan& plan, const UnitParts& parts, const device::DeviceFacts& facts,
                           const DeviceNeeds& needs, const EngineHooks& hooks, device::Accountant& host)
    : spec_(plan.device.value().spec),
      facts_(facts),
      host_(host),
      layers_(static_cast<std::uint32_t>(parts.config.sparse_layers())),
      experts_(static_cast<std::uint32_t>(parts.config.moe.experts)),
      top_k_(static_cast<std::uint32_t>(parts.config.moe.top_k)),
      lacking_(plan.device->experts_lack),
      prefetch_size_(plan.device->prefetch_size),
      most_tokens_(static_cast<std::uint32_t>(parts.tokens)),
      seed_(plan.seed),
      math_(plan.device->math),
      slot_form_(plan.device->slot_form),
      popularity_(plan.device->popularity),
      memory_(plan_of(*plan.device, facts, needs)) {
  check_popularity(*plan.device, layers_, experts_);
  check_speed(spec_, parts.store.facts().largest_resident);
  device_ = hooks.devices.make(
      spec_, {.memory = memory_.budget - memory_.context, .host = &host, .fault = hooks.fault});
  kernels_ =
      hooks.kernels ? hooks.kernels(*device_) : make_unit_kernels(spec_, *device_, parts, plan.device->math);
  unit_ = std::make_unique<DeviceUnit>(*device_, *kernels_, parts,
                                       fetch::DeviceStoreOptions{.slots = memory_.slots * needs.layers,
                                                                 .staging = memory_.staging_slots,
                                                                 .packed = slot_form_.packed,
                                                                 .slot_slices = slot_form_.slices});
}

std::string EngineDevice::name() const {
  return device::to_text(spec_) + (facts_.hardware.empty() ? "" : ", " + facts_.hardware) +
         (has_dense() ? ", dense weights there" : "") + (math_ == DeviceMath::kFast ? ", fast math" : "");
}

void EngineDevice::begin(experts::LayerDecider& decider, fetch::ExpertStore& host) {
  bring_start(decider, host, unit_->store());
  link_at_start_ = device_->link().counters();
  computed_at_start_ = device_->computed();
  host_at_start_ = of_host(*device_);
}

device::LaneCounters EngineDevice::computed() const { return since(device_->computed(), computed_at_start_); }

device::LaneCounters EngineDevice::host_computed() const { return since(of_host(*device_), host_at_start_); }

double EngineDevice::overrun_share() const {
  if (!spec_.is_played()) return 0;
  const device::LinkCounters link = device_->link().counters();
  double share = 0;
  for (const device::LaneCounters& lane :
       {computed(), host_computed(), since(link.to_device, link_at_start_.to_device),
        since(link.from_device, link_at_start_.from_device)})
    if (lane.busy_s > 0) share = std::max(share, lane.overrun_s / lane.busy_s);
  return share;
}

bool EngineDevice::has_valid_times() const {
  constexpr double kMostOverruns = 0.01;
  return !spec_.is_unpaced() && overrun_share() <= kMostOverruns;
}

Bytes EngineDevice::link_bytes(device::Traffic traffic) const {
  return device_->link().counters()[traffic].bytes - link_at_start_[traffic].bytes;
}

double EngineDevice::link_busy_s() const {
  const auto busy = [](const device::LinkCounters& link) {
    return link.to_device.busy_s + link.from_device.busy_s;
  };
  return busy(device_->link().counters()) - busy(link_at_start_);
}

UnitShape EngineDevice::shape() const {
  return {.experts = experts_, .top_k = top_k_, .slots = memory_.slots, .buffers = memory_.staging_slots};
}

void EngineDevice::put_policies(const PolicyPlan& plan, experts::Tiers tiers,
                                experts::LayerPolicies& policies) {
  rests_ = plan.device_may_rest && device_helps_nowhere(policies.costs, shape(), most_tokens_);
  if (rests_) policies.placement = experts::Named<experts::PlacementPolicy>("cpu")->make();
  experts::WorkloadConfig rules = plan.device_cache_rules;
  rules.popularity = popularity_;
  takes_none_ = rests_ || !experts::takes_experts(*plan.placement, plan.prefill_placement, tiers);
  std::optional<experts::DeviceSlices> slices;
  if (policies.sliced()) slices = experts::device_slices(policies.precision.mode, slot_form_.slices);
  policies.device =
      experts::make_device_policies({.takes = !takes_none_,
                                     .caches = {.cache = plan.device_cache,
                                                .layers = layers_,
                                                .experts = experts_,
                                                .top_k = top_k_,
                                                .slots = memory_.slots,
                                                .seed = seed_,
                                                .workload = rules,
                                                .left_out = lacking_.layers},
                                     .slices = slices,
                                     .buffers = memory_.staging_slots,
                                     .prefill_placement = plan.prefill_placement,
                                     .prefill_from = plan.prefill_from,
                                     .prefetch = prefetch_size_ > 0 ? plan.prefetch : nullptr,
                                     .prefetch_config = {.seed = seed_, .alpha = plan.smoe.alpha},
                                     .prefetch_size = prefetch_size_,
                                     .guards_prefetch = experts::guards_prefetch(plan.device_preset),
                                     .tiers = tiers,
                                     .host_may_lack = true});
}

}  // namespace sluice::engine
