// What a model's MLPs do between their products, as kernels take it.
#pragma once

#include "kernels/ops/gating.h"
#include "model/config.h"

namespace sluice::engine {

kernels::Gating gating_of(const model::ActivationConfig& activation);

}  // namespace sluice::engine
