// What several tests compute: prompts of some sequences, then decode steps of all of them together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/json/json.h"
#include "engine/engine.h"
#include "engine/session/sequence.h"
#include "engine/session/step.h"

namespace sluice::engine {

// Options of an engine that computes them.
inline EngineOptions engine_options(std::size_t sequences, Math math) {
  EngineOptions options;
  options.memory = 256 * kMiB;
  options.threads = 2;
  options.math = math;
  options.positions = 96;
  options.encoder_positions = 64;
  options.chunk = 5;
  options.sequences = sequences;
  options.fetch.io = fetch::IoMode::kBuffered;
  return options;
}

struct SharedSteps {
  std::size_t sequences = 1;
  std::function<void()> prefilled = nullptr;  // called between prompts and decode steps
  // Called with the error of a step: throws it, or returns, and the step is computed again. Null: throws.
  std::function<void(const Error&)> failed = nullptr;
};

// All logits. `golden`: of the engine's model; its tokens are the text.
inline std::vector<float> logits_of(Engine& engine, const Json& golden, const SharedSteps& how) {
  std::vector<float> logits;
  const LogitSink sink{
      [](std::size_t) { return true; },
      [&](std::size_t, std::span<const float> row) { logits.insert(logits.end(), row.begin(), row.end()); }};
  using Tokens = std::vector<tokenizer::TokenId>;
  const auto tokens = golden.at("tokens").get<Tokens>();
  std::vector<std::unique_ptr<Sequence>> all;
  for (std::size_t s = 0; s < how.sequences; ++s) {
    all.push_back(engine.new_sequence());
    if (golden.contains("encoder_tokens"))
      engine.encode(*all.back(), golden.at("encoder_tokens").get<Tokens>());
    engine.prefill(*all.back(), std::span(tokens).first(std::min<std::size_t>(tokens.size(), 7 + s)), sink);
  }
  if (how.prefilled) how.prefilled();
  for (std::size_t i = 0; i < 4; ++i) {
    Tokens next;
    std::vector<SequenceSpan> spans;
    for (std::size_t s = 0; s < how.sequences; ++s) {
      next.push_back(tokens[(i + s) % tokens.size()]);
      spans.push_back({all[s].get(), s, 1, StepKind::kDecode});
    }
    const std::size_t before = logits.size();
    for (bool done = false; !done;) try {
        engine.step({next, spans}, sink);
        done = true;
      } catch (const Error& error) {
        if (!how.failed) throw;
        how.failed(error);
        logits.resize(before);
      }
  }
  return logits;
}

}  // namespace sluice::engine
