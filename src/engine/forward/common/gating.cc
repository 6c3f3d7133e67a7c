#include "engine/forward/common/gating.h"

#include <string>

#include "base/error.h"

namespace sluice::engine {

kernels::Gating gating_of(const model::ActivationConfig& activation) {
  using kernels::GatingForm;
  using model::Activation;
  const kernels::ClampedGate clamped{activation.limit, activation.alpha};
  switch (activation.kind) {
    case Activation::kSwiGlu:
      return {GatingForm::kSilu};
    case Activation::kRelu:
      return {GatingForm::kRelu};
    case Activation::kClampedSwiGlu:
      return {GatingForm::kClamped, clamped};
    case Activation::kClampedSwiGluPairs:
      return {GatingForm::kClampedPairs, clamped};
  }
  SLUICE_CHECK(false, std::to_string(static_cast<int>(activation.kind)));
  return {};
}

}  // namespace sluice::engine
