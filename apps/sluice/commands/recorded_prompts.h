// The prompts of a recorded trace: who says which tokens are theirs, and how many there are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lab/replay/routed_steps.h"
#include "trace/routing_trace.h"

namespace sluice::app {

// Error(kUsage) if Setting::kPrefill is given for a trace that marks its prompts itself.
void check_prefill(const std::optional<std::uint64_t>& prefill, const trace::TraceHeader& header,
                   const std::string& path);

// Also where they follow each other without a decode step between them, unlike RoutedSteps::prompts.
std::uint64_t count_prompts(const lab::RoutedSteps& steps);

// "2 prompts of 500 tokens in all", "1 prompt of 1 token", "no prompt".
std::string prompts_text(const lab::RoutedSteps& steps);

}  // namespace sluice::app
