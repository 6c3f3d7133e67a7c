// The choices of one item as one static batch of a Batcher: their common front goes through the model once,
// and what follows it in one pass.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "eval/tasks/choice_request.h"

namespace sluice::engine {
class Engine;
}

namespace sluice::eval {

// The log-likelihood of each request's answer. Calls `go_on` at every scored position: Error(kInterrupted)
// when it returns false. Errors as Engine::step.
std::vector<double> batched_log_likelihoods(engine::Engine& engine, std::span<const ChoiceRequest> requests,
                                            const std::function<bool()>& go_on);

}  // namespace sluice::eval
