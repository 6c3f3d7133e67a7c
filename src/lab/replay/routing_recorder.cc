#include "lab/replay/routing_recorder.h"

#include "base/error.h"
#include "engine/session/sequence.h"

namespace sluice::lab {

RoutingRecorder::RoutingRecorder(const model::ModelConfig& config, std::string_view predictor)
    : predictor_(predictor) {
  steps_.layers = config.sparse_layers();
  steps_.experts = static_cast<std::uint32_t>(config.moe.experts);
  steps_.top_k = static_cast<std::uint32_t>(config.moe.top_k);
  steps_.logits = true;
  steps_.predicted = !predictor.empty();
}

void RoutingRecorder::on_step(const engine::Step& step) {
  RoutedStep& one = steps_.steps.emplace_back();
  one.prompt = step.kind() == engine::StepKind::kPrompt;
  one.layers.resize(steps_.layers);
  for (const engine::SequenceSpan& span : step.spans)
    one.sequences.push_back({static_cast<std::uint32_t>(span.tokens),
                             static_cast<std::uint32_t>(span.sequence->length()), span.sequence->id()});
  if (one.prompt) {
    steps_.prompts += one.sequences.size();
    steps_.prompt_tokens += step.tokens.size();
  } else {
    steps_.decode_tokens += step.tokens.size();
  }
}

void RoutingRecorder::on_resume(const engine::Step&) {
  throw Error(ErrorKind::kUnsupported, "a step that was suspended for another step cannot be recorded");
}

void RoutingRecorder::on_routing(const experts::ScoresView& scores, const experts::Routing& routing) {
  RoutedLayer& layer = steps_.steps.back().layers[scores.layer];
  layer.choices = routing.choices;
  layer.begin = routing.begin;
  layer.logits.assign(scores.logits.begin(), scores.logits.end());
}

void RoutingRecorder::on_ahead(std::string_view predictor, const experts::ScoresView& next) {
  if (predictor == predictor_)
    steps_.steps.back().layers[next.layer].predicted.assign(next.logits.begin(), next.logits.end());
}

}  // namespace sluice::lab
