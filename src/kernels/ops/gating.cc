#include "kernels/ops/gating.h"

#include <array>
#include <string>

#include "base/error.h"

namespace sluice::kernels {
namespace {

float* silu_of(const Context& ctx, const Gating&, std::size_t n, float* gate, float* up) {
  silu_mul(ctx, gate, up, n, up);
  return up;
}

float* relu_of(const Context& ctx, const Gating&, std::size_t n, float*, float* up) {
  relu(ctx, n, up);
  return up;
}

float* clamped_of(const Context& ctx, const Gating& gating, std::size_t n, float* gate, float* up) {
  clamped_mul(ctx, gating.clamped, gate, up, n, up);
  return up;
}

float* clamped_of_pairs(const Context& ctx, const Gating& gating, std::size_t n, float* gate, float* up) {
  clamped_mul_pairs(ctx, gating.clamped, up, n, gate);
  return gate;
}

constexpr std::array<GatingRow, kGatingForms> kRows = {{
    {GatingForm::kSilu, true, 1, true, silu_of},
    {GatingForm::kRelu, false, 1, false, relu_of},
    {GatingForm::kClamped, true, 1, false, clamped_of},
    {GatingForm::kClampedPairs, false, 2, false, clamped_of_pairs},
}};

}  // namespace

const GatingRow& gating_row(GatingForm form) {
  const auto at = static_cast<std::size_t>(form);
  SLUICE_CHECK(at < kRows.size() && kRows[at].form == form, std::to_string(at));
  return kRows[at];
}

}  // namespace sluice::kernels
