#include "engine/forward/unit/host_unit.h"

namespace sluice::engine {
namespace {

// The view that is meant; `low`: what a lone MSB slice stands for.
codec::MatrixRef meant(codec::MatrixRef matrix, codec::SliceView low) {
  if (matrix.view == codec::SliceView::kLow) matrix.view = low;
  return matrix;
}

}  // namespace

kernels::Mlp HostUnit::mlp_of(const ExpertWork& work) const {
  return {.gate = meant(work.view->gate, low_view_),
          .up = meant(work.view->up, low_view_),
          .down = meant(work.view->down, low_view_),
          .inputs = work.inputs,
          .out = work.out,
          .gate_bias = work.gate_bias,
          .up_bias = work.up_bias,
          .down_bias = work.down_bias,
          .gating = gating_};
}

void HostUnit::paced(std::span<const ExpertWork> works, FunctionRef<void()> compute) {
  if (pace_ == nullptr) return compute();
  weights_.clear();
  for (const ExpertWork& work : works)
    weights_.push_back({work.weights, static_cast<std::uint32_t>(work.rows)});
  pace_->run(weights_, compute);
}

void HostUnit::compute(const ExpertWork& work, const HostWorkspace& host) {
  paced({&work, 1}, [&] { kernels::mlp(kernels_, mlp_of(work), work.rows, host.mlp()); });
}

void HostUnit::compute_together(const kernels::Mlp* shared, std::span<const ExpertWork> works,
                                const HostWorkspace& host) {
  mlps_.clear();
  if (shared != nullptr) mlps_.push_back(*shared);
  for (const ExpertWork& work : works) mlps_.push_back(mlp_of(work));
  paced(works, [&] { kernels::mlps_together(kernels_, mlps_, host.mlp()); });
}

}  // namespace sluice::engine
