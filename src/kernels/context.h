// What every kernel needs to know about where it runs.
#pragma once

#include <string>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace sluice::kernels {

// Passed by reference; the pool must outlive every call. Kernels split work between threads by output rows
// only, so results do not depend on the number of threads.
struct Context {
  ThreadPool* pool = nullptr;
  Isa isa = Isa::kScalar;
  // Products round activations to BF16, and are computed by the matrix unit of the instruction set, or one
  // number after the other where it has none: tile_impl.h says in which order. Activations packed by a
  // context are for contexts that agree with it in this.
  bool tiles = false;
};

// Whether an instruction set has a matrix unit.
bool has_tiles(Isa isa);

// The instruction set to use: `wanted` if every kernel's result on a small tile equals the scalar path bit
// for bit, else the next lower one that does. `warning` receives one line when it steps down.
Isa self_check(Isa wanted, std::string* warning);

}  // namespace sluice::kernels
