// What the packed store must know about a model: which pieces belong to which expert, which rows of the input
// embedding are read separately (none if the output head is the same tensor), and which tensors are never
// rounded.
#pragma once

#include "model/architecture.h"
#include "store/pack/pack.h"

namespace sluice::model {

store::PackPlan pack_plan(const Model& model);

}  // namespace sluice::model
