// Whether tokens that one step computes together get the logits that they get one by one.
#pragma once

#include <string>

#include "engine/plan/policy_plan.h"
#include "model/config.h"

namespace sluice::engine {

// Why drafts would change an answer, or find no room: "with the router smoe". Empty: they do not.
std::string why_no_drafts(const PolicyPlan& policies, const model::ModelConfig& config);

}  // namespace sluice::engine
