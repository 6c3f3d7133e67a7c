// Which instruction set to trust: one whose kernels all give the scalar path's bits.
#pragma once

#include <string>

#include "base/machine/cpu.h"

namespace sluice::kernels {

// The instruction set to use: `wanted` if every kernel's result on a small tile equals the scalar path bit
// for bit, else the next lower set for which this holds. Stepping down writes one line to `warning`.
Isa self_check(Isa wanted, std::string* warning);

}  // namespace sluice::kernels
