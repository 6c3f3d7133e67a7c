// The device of a plan is opened: it says what it has, and each operation that a run may give it is tried.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "device/choice/make_device.h"
#include "engine/plan/engine_plan.h"
#include "kernels/check/unit_check.h"
#include "kernels/ops/unit_kernels.h"

namespace sluice::engine {

// What a device computes with.
using KernelMaker = std::function<std::unique_ptr<kernels::UnitKernels>(device::Device& device)>;

// Tries a device that is not played; `kernels` empty: those of a GPU. Errors of making a device.
kernels::UnitCheck check_device(const device::DeviceSpec& spec, const device::DeviceMaker& devices,
                                const KernelMaker& kernels, const kernels::UnitWork& work);

// All that a GPU has kernels for.
kernels::UnitWork all_gpu_work();

// A plan to run by, and what its device is.
struct SettledPlan {
  EnginePlan plan;
  device::DeviceFacts device = {};  // blank without a device
};

// The plan as asked for, with what its device does not compute as the host does left to the host. Errors of
// device_facts() and of making a device. A plan without a device comes back as it is.
SettledPlan settled_plan(const store::Checkpoint& checkpoint, const model::Model& model,
                         const device::DeviceMaker& devices, const KernelMaker& kernels, EnginePlan asked);

// For the user: what the host does instead of the device, and why. Empty: nothing.
std::string device_warning(const EnginePlan& plan);

}  // namespace sluice::engine
