// The rates of this machine's memory and FMA units, with which kernels are compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/machine/cpu.h"

namespace sluice::bench {

// Reads all bytes once, from 8 places at a time that are `apart` bytes from each other. Looks at one word of
// each cache line, so that only memory limits the speed. The result keeps the compiler from removing the
// reads.
std::uint64_t read_streams(std::span<const std::byte> bytes, std::size_t apart);

// Floating-point operations of one call, and a sum that keeps the compiler from removing them; 0 for an
// instruction set whose peak is not measured.
double fma_peak_run(Isa isa, float* sum);

}  // namespace sluice::bench
