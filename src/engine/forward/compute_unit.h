// A unit that computes routed experts: the host, or a device beside it. A unit knows neither routing nor
// residency; MoeBlock gives each expert to the unit to which it was assigned, and sums the rows itself.
#pragma once

#include <cstddef>
#include <span>

#include "engine/forward/workspace.h"
#include "experts/core/ids.h"
#include "fetch/expert_view.h"
#include "kernels/products/input_form.h"

namespace sluice::engine {

// One expert for the tokens that chose it. Non-owning; the view is pinned while the work is under way.
struct ExpertWork {
  experts::ExpertId id;
  const fetch::ExpertView* view = nullptr;
  std::size_t rows = 0;              // tokens
  kernels::ArrangedInputs inputs{};  // (rows, ·) the tokens' rows in the forms of gate and up
  float* out = nullptr;              // (rows, d)
  // Biases, as in Mlp.
  std::span<const float> gate_bias = {}, up_bias = {}, down_bias = {};
};

// Thread-compatible.
class ComputeUnit {
 public:
  virtual ~ComputeUnit() = default;
  // Writes work.out. The rows of an expert depend on nothing but its work, so every unit that computes with
  // the same kernels gives the same bits. `w`: scratch. Error(kCorrupt) for impossible codes.
  virtual void compute(const ExpertWork& work, const Workspace& w) = 0;
};

}  // namespace sluice::engine
