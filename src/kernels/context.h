// What every kernel must know about the CPU and the threads it runs on.
#pragma once

#include "base/machine/cpu.h"

namespace sluice {
class ThreadPool;
}

namespace sluice::kernels {

// How products round activations, and in which order they add: results depend on nothing else.
enum class Products {
  kExact,  // activations unchanged, in the order of matmul.h
  kTiles,  // activations rounded to BF16, in the order of a matrix unit (tile_impl.h)
  kPairs,  // activations rounded to BF16, in the order of dot products of pairs (tile_impl.h)
};

// The form of activations that are multiplied with weights in codes (slices, dense matrices of 8 bits, and
// blocks); results depend on it, too.
enum class ActivationForm {
  kF32,   // unchanged
  kInt8,  // codes of 8 bits (activation_codes.h)
};

class Scratch;      // products/scratch.h
class FormatTable;  // products/format_kernels.h

// Passed by reference; the pool and the scratch must outlive every call. Kernels split work between threads
// by output rows only, so results do not depend on the number of threads.
struct Context {
  ThreadPool* pool = nullptr;
  Isa isa = Isa::kScalar;
  // Uses the instruction set's own instructions if it has them, else computes one number after the other.
  // Activations packed by one context may be used by another that agrees in both fields.
  Products products = Products::kExact;
  ActivationForm activations = ActivationForm::kF32;
  const Scratch* scratch = nullptr;  // what products need beside their operands; null: of each thread's own
  const FormatTable* formats = nullptr;  // for matrices in formats beyond those of this program; null: none
  bool rounds() const { return products != Products::kExact; }
};

// How an instruction set multiplies rounded activations; kExact: it has no instructions for them.
Products rounded_products(Isa isa);

}  // namespace sluice::kernels
