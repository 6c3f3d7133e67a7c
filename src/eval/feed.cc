#include "eval/feed.h"

#include <algorithm>

#include "engine/engine.h"
#include "engine/session/sequence.h"
#include "engine/session/step.h"

namespace sluice::eval {

void feed(engine::Engine& engine, engine::Sequence& sequence, std::span<const tokenizer::TokenId> tokens,
          std::size_t prompt, const engine::LogitSink& sink) {
  const std::size_t at = sequence.length(), together = std::min(tokens.size(), prompt > at ? prompt - at : 0);
  if (together > 0) engine.prefill(sequence, tokens.first(together), sink);
  for (std::size_t t = together; t < tokens.size(); ++t)
    engine.decode(sequence, tokens[t],
                  {[&](std::size_t) { return sink.wants(t); },
                   [&](std::size_t, std::span<const float> logits) { sink.take(t, logits); }});
}

}  // namespace sluice::eval
