// The MLPs of a model: those of dense layers, shared experts and routed experts.
#pragma once

#include <cstddef>
#include <span>

#include "codec/matrix_format.h"
#include "kernels/context.h"
#include "kernels/ops/gating.h"
#include "kernels/products/input_form.h"

namespace sluice::kernels {

// down of what `gating` makes of gate·x and up·x. Each matrix may have a format of its own. Non-owning.
struct Mlp {
  // (width, d), (width · GatingRow::up_rows, d), (d, width). gate: empty where the form has none.
  codec::MatrixRef gate, up, down;
  // Its input x, (T, d), in the forms of gate and up.
  ArrangedInputs inputs{};
  float* out = nullptr;  // (T, d)
  // Biases, added to the products; empty: the MLP has none.
  std::span<const float> gate_bias = {}, up_bias = {}, down_bias = {};
  Gating gating = {};
};

// Room for what is between the products, of all MLPs that are computed together. Non-owning.
struct MlpScratch {
  float* gate = nullptr;   // (T, width)
  float* up = nullptr;     // (T, width · GatingRow::up_rows)
  float* inner = nullptr;  // (T, ·) in the form that `down` reads
};

void mlp(const Context& ctx, const Mlp& mlp, std::size_t tokens, const MlpScratch& scratch);

// Computes each MLP for one token, with the same bits as mlp(), in two passes of the threads instead of three
// per MLP.
void mlps_together(const Context& ctx, std::span<const Mlp> mlps, const MlpScratch& scratch);

}  // namespace sluice::kernels
