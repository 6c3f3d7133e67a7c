// The MLPs of a model: those of dense layers, shared experts and routed experts.
#pragma once

#include <cstddef>
#include <span>

#include "codec/matrix_format.h"
#include "engine/forward/workspace.h"
#include "kernels/context.h"
#include "kernels/products/input_form.h"

namespace sluice::engine {

// down(silu(gate·x) ⊙ up·x); without a gate (empty) down(relu(up·x)). Each matrix may have a format of its
// own. Non-owning.
struct Mlp {
  codec::MatrixRef gate, up, down;  // (width, d), (width, d), (d, width)
  // Its input x, (T, d), in the forms of gate and up.
  kernels::ArrangedInputs inputs{};
  float* out = nullptr;  // (T, d)
  // Biases, added to the products; empty: the MLP has none.
  std::span<const float> gate_bias = {}, up_bias = {}, down_bias = {};
};

// Scratch: w.gate, w.up and w.inner.
void compute(const kernels::Context& kernels, const Mlp& mlp, std::size_t tokens, const Workspace& w);

// Computes each MLP for one token, with the same bits as compute(), in two passes of the threads instead of
// three per MLP. At most the shared and top_k routed experts of the model for which `w` was laid out.
void compute_together(const kernels::Context& kernels, std::span<const Mlp> mlps, const Workspace& w);

}  // namespace sluice::engine
