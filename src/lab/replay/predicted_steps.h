// Recorded routing together with what a predictor says of each next layer, for prefetches to a device. SPEC
// §3.4; docs/replay.md.
#pragma once

#include <functional>
#include <string>

#include "experts/prefetch/expert_transitions.h"
#include "experts/prefetch/prefetch.h"
#include "lab/replay/routed_steps.h"

namespace sluice::lab {

// Reads `path` with the predictions of `kind` (kNone: without any). Those of kResidual are made of recorded
// raw ones where they are not recorded themselves, with what the routing of another text says (`other`: its
// path, or empty). Error(kUsage) that says what is missing; otherwise errors as read_routed_steps.
RoutedSteps read_predicted_steps(const std::string& path, experts::PredictorKind kind,
                                 RoutedStepsSettings settings, const std::string& other,
                                 const std::function<bool()>& stop = {});

// Which expert followed which, of every token of a text.
experts::ExpertTransitions count_transitions(const RoutedSteps& text);

}  // namespace sluice::lab
