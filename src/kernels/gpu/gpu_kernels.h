// What a GPU computes with, and its stand-in on this CPU.
#pragma once

#include <cstddef>
#include <memory>

#include "base/bytes.h"
#include "device/device.h"
#include "device/memory.h"
#include "kernels/gpu/gpu_kernel_options.h"
#include "kernels/ops/unit_kernels.h"

namespace sluice::kernels {

// Bytes of the device's memory, and of the host's page-locked one, through which lists of operations go.
inline constexpr Bytes kGpuListBytes = 4 * kMiB;

// Products of packed matrices with so many tokens make BF16 words of them first, where kernels have room for
// these: with fewer, each tile of tokens decodes the matrix again.
inline constexpr std::size_t kRecoverTokens = 16;
// What these words take of the room, each matrix by itself.
constexpr Bytes recovered_bytes(std::size_t rows, std::size_t columns) {
  return round_up(2 * Bytes{rows} * columns, 256);
}

// The kernels of a CUDA device; it must outlive them. Its memory holds kGpuListBytes, and its room in
// another block. Error(kUnsupported) in a build without CUDA and, of kFast, for a GPU that has no units for
// BF16; Error(kBudget), (kIo).
std::unique_ptr<UnitKernels> make_gpu_kernels(device::Device& device, const GpuKernelOptions& options);

// The same with its memory alone, which must outlive them; of the device that is current on this thread.
std::unique_ptr<UnitKernels> make_gpu_kernels(device::Memory& memory, const GpuKernelOptions& options);

// The same kernels, run on this CPU in lockstep, for a device whose operations are functions of this program:
// for tests.
std::unique_ptr<UnitKernels> make_lockstep_kernels(const GpuKernelOptions& options = {});

}  // namespace sluice::kernels
