// What options say of a device beside the host, checked: a part of resolve().
#pragma once

#include <cstdint>
#include <optional>

#include "engine/plan/engine_plan.h"

namespace sluice::engine {

// Empty: there is none. Error(kUsage), also for settings of a device that is not there.
std::optional<DeviceChoice> device_of(const EngineOptions& options, const ModelFacts& facts);

// Whether slots hold experts packed; then the host must keep them so, too, since nothing is packed again once
// it is words. Error(kUsage) if that was asked for and cannot be.
SlotChoice choose_slots(const EngineOptions& options, const ModelFacts& facts);

// The same for experts in slices: slots have room for what decode steps compute with.
SlotChoice choose_slice_slots(const EngineOptions& options, experts::PrecisionMode precision);

// Where a device has bits of its own, runs must divide experts alike. Error(kUsage).
void check_device_math(const EngineOptions& options, const PolicyPlan& policies);

// Where the device has no good kernels for any expert: none is computed or kept there. REQUIRES: plan.device.
void leave_experts_to_host(EnginePlan& plan);

// Threads that compute on this machine, of so many CPUs. Beside a GPU two are left to the threads of its
// stream and its link, where there are eight or more: else these wait for a slice while experts are
// computed.
unsigned compute_threads(const EnginePlan& plan, unsigned cpus);

// Experts of a layer that are copied ahead; 0 where nothing is prefetched. Error(kUsage).
std::uint32_t prefetch_size_of(const EngineOptions& options, const PolicyPlan& policies,
                               const ModelFacts& facts);

}  // namespace sluice::engine
