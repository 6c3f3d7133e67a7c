// What every kernel needs to know about where it runs.
#pragma once

#include <string>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace sluice::kernels {

// What products multiply weights with, and the order in which they add: results depend on nothing else.
enum class Products {
  kExact,  // activations as they are, in the order of matmul.h
  kTiles,  // rounded to BF16, in the order of a matrix unit (tile_impl.h)
  kPairs,  // rounded to BF16, in the order of dot products of pairs (tile_impl.h)
};

// What weights in codes (slices, and dense matrices of 8 bits) are multiplied with; results depend on it,
// too.
enum class ActivationForm {
  kF32,   // activations as they are
  kInt8,  // codes of 8 bits (activation_codes.h)
};

class Scratch;  // scratch.h

// Passed by reference; the pool and the scratch must outlive every call. Kernels split work between threads
// by output rows only, so results do not depend on the number of threads.
struct Context {
  ThreadPool* pool = nullptr;
  Isa isa = Isa::kScalar;
  // By the instructions for it if the instruction set has them, else one number after the other. Activations
  // packed by a context are for contexts that agree with it in both.
  Products products = Products::kExact;
  ActivationForm activations = ActivationForm::kF32;
  const Scratch* scratch = nullptr;  // what products need beside their operands; null: of each thread's own
  bool rounds() const { return products != Products::kExact; }
};

// How an instruction set multiplies rounded activations; kExact: it has no instructions for that.
Products rounded_products(Isa isa);

// The instruction set to use: `wanted` if every kernel's result on a small tile equals the scalar path bit
// for bit, else the next lower one that does. `warning` receives one line when it steps down.
Isa self_check(Isa wanted, std::string* warning);

}  // namespace sluice::kernels
