// What a GPU computes with, and its stand-in on this CPU.
#pragma once

#include <memory>

#include "base/bytes.h"
#include "device/device.h"
#include "device/memory.h"
#include "kernels/gpu/device_math.h"
#include "kernels/ops/unit_kernels.h"

namespace sluice::kernels {

// Bytes of the device's memory, and of the host's page-locked one, through which lists of operations go.
inline constexpr Bytes kGpuListBytes = 4 * kMiB;

// The kernels of a CUDA device; it must outlive them. Its memory holds kGpuListBytes. Error(kUnsupported)
// in a build without CUDA and, of kFast, for a GPU that has no units for BF16; Error(kBudget), (kIo).
std::unique_ptr<UnitKernels> make_gpu_kernels(device::Device& device, DeviceMath math = DeviceMath::kSame);

// The same with its memory alone, which must outlive them; of the device that is current on this thread.
std::unique_ptr<UnitKernels> make_gpu_kernels(device::Memory& memory, DeviceMath math = DeviceMath::kSame);

// The same kernels, run on this CPU in lockstep, for a device whose operations are functions of this program:
// for tests.
std::unique_ptr<UnitKernels> make_lockstep_kernels(DeviceMath math = DeviceMath::kSame);

}  // namespace sluice::kernels
