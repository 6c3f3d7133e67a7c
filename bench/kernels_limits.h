// What memory and the FMA units of this machine give: what kernels are held against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.h"

namespace sluice::bench {

// Moves all of it once, from 8 places at a time, which lie `apart` bytes from each other. One word of each
// cache line is looked at, so that nothing but memory limits the speed. The result keeps the compiler from
// leaving that out.
std::uint64_t read_streams(std::span<const std::byte> bytes, std::size_t apart);

// Floating-point operations of one call, and the sum that keeps the compiler from leaving it out; 0 for an
// instruction set whose peak is not measured.
double fma_peak_run(Isa isa, float* sum);

}  // namespace sluice::bench
