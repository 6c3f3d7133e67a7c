// Counts of one sequence, beside those of the engine (engine/watch/statistics.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "experts/core/step_kind.h"

namespace sluice::engine {

// A step that failed or was cancelled is not counted.
struct RequestStatistics {
  std::uint64_t prompt_tokens = 0, prompt_steps = 0;
  std::uint64_t decode_tokens = 0, decode_steps = 0;
  // Wall time of the steps that had tokens of the sequence. Sequences that share a step each have all of its
  // time.
  double prompt_s = 0, decode_s = 0;
  // Distinct (layer, expert) that the sequence's own tokens chose, summed over its steps; also of steps that
  // failed. The engine's accesses count an expert that several sequences of a step chose only once.
  std::uint64_t demand = 0;

  void add_step(experts::StepKind kind, std::size_t tokens, double seconds) {
    const bool prompt = kind == experts::StepKind::kPrompt;
    (prompt ? prompt_tokens : decode_tokens) += tokens;
    (prompt ? prompt_steps : decode_steps) += 1;
    (prompt ? prompt_s : decode_s) += seconds;
  }
};

}  // namespace sluice::engine
