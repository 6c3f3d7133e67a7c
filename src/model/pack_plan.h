// What the packed store must know about a model: which pieces belong to which expert, which rows of the input
// embedding are read separately (none if the output head is the same tensor, or they are no words), and which
// tensors are never rounded.
#pragma once

#include "store/checkpoint.h"
#include "store/pack/pack.h"

namespace sluice::model {

store::PackPlan pack_plan(const store::Checkpoint& checkpoint);

}  // namespace sluice::model
