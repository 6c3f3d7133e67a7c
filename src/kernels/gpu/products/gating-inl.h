// What stands between the products of an MLP (ops/gating.h), on a GPU.
#pragma once

#include "kernels/gpu/lanes-inl.h"
#include "kernels/gpu/products/product_items.h"

namespace sluice::kernels::gpu {

// silu_mul().
template <class Warp>
SLUICE_GPU typename Warp::Float silu_product(const Warp& warp, typename Warp::Float gate,
                                             typename Warp::Float up) {
  using Float = typename Warp::Float;
  return gate / (Float(1.0f) + exp(warp, Float(0.0f) - gate)) * up;
}

// clamped_mul().
template <class Warp>
SLUICE_GPU typename Warp::Float clamped_product(const Warp& warp, float limit, float alpha,
                                                typename Warp::Float gate, typename Warp::Float up) {
  using Float = typename Warp::Float;
  const Float g = warp.min(Float(limit), gate), u = warp.max(Float(-limit), warp.min(Float(limit), up));
  return (u + Float(1.0f)) * (g / (Float(1.0f) + exp(warp, Float(0.0f) - Float(alpha) * g)));
}

// The number that `form` makes of the sums of both sides.
template <class Warp>
SLUICE_GPU typename Warp::Float gated(const Warp& warp, const ProductItem& item, typename Warp::Float a,
                                      typename Warp::Float b) {
  using Float = typename Warp::Float;
  if (item.form == ProductForm::kSilu) return silu_product(warp, a, b);
  if (item.form == ProductForm::kClamped) return clamped_product(warp, item.limit, item.alpha, a, b);
  if (item.form == ProductForm::kRelu) return warp.select(a < Float(0.0f), Float(0.0f), a);
  return a;
}

}  // namespace sluice::kernels::gpu
