// The experts that the host computes: the kernels of this process, on the caller's thread and the pool.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "codec/slices/sliced_matrix.h"
#include "device/host_pace.h"
#include "engine/forward/unit/compute_unit.h"
#include "kernels/context.h"
#include "kernels/ops/mlp.h"

namespace sluice::engine {

// Thread-compatible. `kernels` must outlive it.
class HostUnit {
 public:
  // `low_view`: the view that a lone MSB slice stands for.
  HostUnit(const kernels::Context& kernels, codec::SliceView low_view, const kernels::Gating& gating)
      : kernels_(kernels), low_view_(low_view), gating_(gating) {}

  // `pace` says how long routed experts shall take here; it must outlive this. Null, as at first: nobody
  // slows them down.
  void pace_by(device::HostPace* pace) { pace_ = pace; }

  // Writes work.out. `host`: scratch. Error(kCorrupt) for impossible codes.
  void compute(const ExpertWork& work, const HostWorkspace& host);
  // For one token: all these experts and the shared ones (null: none) at once, with the same bits.
  void compute_together(const kernels::Mlp* shared, std::span<const ExpertWork> works,
                        const HostWorkspace& host);

 private:
  kernels::Mlp mlp_of(const ExpertWork& work) const;
  void paced(std::span<const ExpertWork> works, FunctionRef<void()> compute);

  const kernels::Context& kernels_;
  const codec::SliceView low_view_;
  const kernels::Gating gating_;
  device::HostPace* pace_ = nullptr;
  std::vector<kernels::Mlp> mlps_;  // that are computed together
  std::vector<device::WeightUse> weights_;
};

}  // namespace sluice::engine
