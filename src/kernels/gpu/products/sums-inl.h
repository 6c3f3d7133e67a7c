// The sixteen lanes of a sum, L of them in each of 16/L neighbouring lanes of a warp.
#pragma once

#include "kernels/gpu/warp.h"

namespace sluice::kernels::gpu {

// The tree of matmul.h: l += l+8, l += l+4, l += l+2, l += l+1. Lane j of a group has the lanes L·j … of the
// sum; all lanes of the group get the sum.
template <int L, class Warp>
SLUICE_GPU typename Warp::Float sum_lanes(const Warp& warp, const typename Warp::Float (&lanes)[L]) {
  typename Warp::Float v[L];
  SLUICE_GPU_UNROLL
  for (int i = 0; i < L; ++i) v[i] = lanes[i];
  SLUICE_GPU_UNROLL
  for (int step = 8; step >= L; step /= 2) {
    SLUICE_GPU_UNROLL
    for (int i = 0; i < L; ++i) v[i] = v[i] + warp.shuffle_xor(v[i], static_cast<std::uint32_t>(step / L));
  }
  if constexpr (L >= 4) {
    v[0] = v[0] + v[2];
    v[1] = v[1] + v[3];
  }
  if constexpr (L >= 2) v[0] = v[0] + v[1];
  return v[0];
}

}  // namespace sluice::kernels::gpu
