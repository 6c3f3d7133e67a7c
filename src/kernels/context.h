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
};

// The instruction set to use: `wanted` if every kernel's result on a small tile equals the scalar path bit
// for bit, else the next lower one that does. `warning` receives one line when it steps down.
Isa self_check(Isa wanted, std::string* warning);

}  // namespace sluice::kernels
