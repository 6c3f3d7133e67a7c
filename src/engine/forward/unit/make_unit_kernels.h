// The kernels of a device, by what it is.
#pragma once

#include <memory>

#include "device/choice/device_spec.h"
#include "device/device.h"
#include "engine/plan/unit_parts.h"
#include "kernels/ops/device_math.h"
#include "kernels/ops/unit_kernels.h"

namespace sluice::engine {

// For products of `parts`. `spec`: of the device. The device and what `parts` refers to must outlive them.
// Error(kBudget), and those of make_gpu_kernels().
std::unique_ptr<kernels::UnitKernels> make_unit_kernels(const device::DeviceSpec& spec,
                                                        device::Device& device, const UnitParts& parts,
                                                        kernels::DeviceMath math);

// Bytes of the device's memory that they take: one block, or of a GPU two, in whole alignments.
Bytes unit_kernel_bytes(const device::DeviceSpec& spec, const UnitParts& parts);

}  // namespace sluice::engine
