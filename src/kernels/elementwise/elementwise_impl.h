// What each instruction set implements for elementwise.h: the operations with fused multiply-adds or sums in
// lanes. The other operations have the same bits in any compilation and are in elementwise.cc. Plain structs,
// for files compiled with other flags.
#pragma once

#include <cstddef>

namespace sluice::kernels {

struct ElementwiseKernels {
  void (*rms_norm_row)(const float* x, std::size_t cols, const float* w, float eps, float* y);
  void (*silu_mul)(const float* gate, const float* up, std::size_t n, float* out);
  void (*clamped_mul)(float limit, float alpha, const float* gate, const float* up, std::size_t n,
                      float* out);
  void (*clamped_mul_pairs)(float limit, float alpha, const float* pairs, std::size_t n, float* out);
  void (*add_scaled)(const float* x, float scale, std::size_t n, float* accumulator);
  void (*softmax_row)(float* x, std::size_t n);
  void (*exp)(const float* x, std::size_t n, float* out);
};

}  // namespace sluice::kernels
