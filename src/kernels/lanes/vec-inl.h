// The lanes that the algorithms of this folder, written once over the Vec of an instruction set, share.
//
// A file x_ISA.cc includes vec_ISA-inl.h, then the -inl.h files of its algorithms. Everything lies in the
// unnamed namespace of that file, and nothing of the standard library with a body is used there: an inline
// function compiled with -mavx512f under a name shared with other files could be picked by the linker for a
// machine without AVX-512.
//
// A vec_ISA-inl.h offers Vec (16 lanes) with zero set1 load store add sub mul div fma and
//   max(a, b)              a > b ? a : b, min(a, b) a < b ? a : b: the second operand when one is NaN
//   sum_tree, max_tree     the tree of matmul.h; sum_tree4: four at once
//   mul_pow2(p, t, magic)  p · 2^n, n = bits(t) − bits(magic); two multiplications, the last one rounds
//   even_lanes, odd_lanes  of the 32 numbers of two Vec
//   Bf16, F16, F32, I8     element types in memory: in_order(p) 16 numbers; even(p), odd(p) 16 of 32 each
//   kRows …                register tile sizes
#pragma once

#include <cstddef>

#include "base/dtype.h"

namespace sluice::kernels {
namespace {

// How far to prefetch where short rows are far apart (the heads of a cache), in bytes actually used: hardware
// prefetchers do not follow there, and DRAM latency × bandwidth of one core is about 2 KiB.
inline constexpr std::size_t kAheadBytes = 8192;

// Loads n < 16 numbers, then `fill`. Copies, so that nothing behind p[n − 1] is read.
inline Vec load_first(const float* p, std::size_t n, float fill) {
  float lanes[16];
  for (std::size_t l = 0; l < 16; ++l) lanes[l] = l < n ? p[l] : fill;
  return load(lanes);
}

inline void store_first(float* p, std::size_t n, Vec a) {
  float lanes[16];
  store(lanes, a);
  __builtin_memcpy(p, lanes, n * sizeof(float));
}

// The first n < 32 elements of a half block, then zeros, in memory that may be read as a whole.
template <class Row>
struct HalfBlock {
  alignas(64) std::byte bytes[32 * Row::kBytes];
  HalfBlock(const std::byte* p, std::size_t n) {
    __builtin_memset(bytes, 0, sizeof(bytes));
    if (n != 0) __builtin_memcpy(bytes, p, n * Row::kBytes);
  }
};

// Calls f(element type). The dispatch has checked that the dtype is one of the three.
template <class F>
inline void with_element_type(DType dtype, const F& f) {
  if (dtype == DType::kBF16) return f(Bf16{});
  if (dtype == DType::kF16) return f(F16{});
  f(F32{});
}

}  // namespace
}  // namespace sluice::kernels
