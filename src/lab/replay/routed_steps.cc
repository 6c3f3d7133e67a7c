#include "lab/replay/routed_steps.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/stop_request.h"
#include "kernels/elementwise/elementwise.h"

namespace sluice::lab {
namespace {

void append(const trace::TraceEvent& event, const std::string& predictor, RoutedLayer& layer) {
  if (layer.begin.empty()) layer.begin.assign(1, 0);
  const auto base = static_cast<std::uint32_t>(layer.choices.size());
  layer.choices.insert(layer.choices.end(), event.choices.begin(), event.choices.end());
  for (std::uint32_t t = 0; t < event.tokens; ++t) layer.begin.push_back(base + event.begin[t + 1]);
  layer.logits.insert(layer.logits.end(), event.logits.begin(), event.logits.end());
  for (const trace::PredictedLogits& one : event.ahead)
    if (one.predictor == predictor)
      layer.predicted.insert(layer.predicted.end(), one.logits.begin(), one.logits.end());
}

// Collects the layers of each step, and the steps of a prompt if the trace has its tokens one by one.
class Reader {
 public:
  Reader(const trace::TraceHeader& header, const RoutedStepsSettings& settings)
      : phases_(marks_prompts(header)), settings_(settings) {
    steps_.layers = header.layers;
    steps_.experts = header.experts;
    steps_.top_k = header.top_k;
    steps_.logits = header.logits;
    steps_.predicted = std::ranges::count(header.ahead, settings.predictor) > 0;
  }

  void add(const trace::TraceEvent& event) {
    if (!open_ || event.step != number_) begin_step(event);
    number_ = event.step;
    if (skipped_) return;
    RoutedLayer& layer = step_.layers[event.layer];
    append(event, settings_.predictor, layer);
    // Nothing is known of a layer without a record of that predictor.
    const bool left_out = step_.prompt && !settings_.predicts_prompts;
    if (event.layer > 0 && !left_out &&
        layer.predicted.size() != std::size_t{layer.tokens()} * steps_.experts)
      steps_.predicted = false;
  }

  RoutedSteps finish(const trace::RoutingTrace& trace) {
    if (!trace.cut_off()) end_step();
    steps_.cut_off = trace.cut_off();
    steps_.played = trace.played();
    steps_.devices = trace.devices();
    return std::move(steps_);
  }

 private:
  void begin_step(const trace::TraceEvent& event) {
    const trace::SequenceMark mark =
        event.sequences.empty() ? trace::SequenceMark{} : event.sequences.front();
    bool prompt = event.phase == trace::TracePhase::kPrefill;
    if (!phases_) {
      prompt = mark.position < settings_.prefill;
      skipped_ = mark.position >= settings_.most_tokens;
      if (open_ && prompt && !skipped_ && step_.prompt && mark.position > 0) {
        step_.sequences.front().tokens += 1;
        return;
      }
    }
    end_step();
    if (skipped_) return;
    open_ = true;
    step_.prompt = prompt;
    step_.layers.resize(steps_.layers);
    for (const trace::SequenceMark& one : event.sequences)
      step_.sequences.push_back({one.tokens, one.position, one.sequence});
    if (event.sequences.empty()) {  // sequences follow one another, each begins with its prompt
      if (prompt && !in_prompt_) {
        context_ = 0;
        ++sequence_;
      }
      step_.sequences.push_back({event.tokens, context_, sequence_});
      context_ += event.tokens;
    }
  }

  void end_step() {
    if (!open_) return;
    open_ = false;
    // Where every token is a step of its own, a prompt may follow a prompt.
    const bool begins = step_.prompt && (!in_prompt_ || !phases_);
    steps_.prompts += begins ? 1 : 0;
    in_prompt_ = step_.prompt;
    (step_.prompt ? steps_.prompt_tokens : steps_.decode_tokens) += step_.tokens();
    steps_.steps.push_back(std::move(step_));
    step_ = {};
  }

  const bool phases_;
  const RoutedStepsSettings settings_;
  RoutedSteps steps_;
  RoutedStep step_;
  std::uint64_t number_ = 0;  // index of the running step in the trace
  bool open_ = false, skipped_ = false, in_prompt_ = false;
  std::uint32_t context_ = 0;
  experts::SequenceId sequence_ = 0;
};

}  // namespace

experts::ScoresView RecordedEvent::seen(std::uint32_t layer, std::uint32_t experts,
                                        std::span<const experts::SequenceSpan> spans,
                                        std::vector<float>& scores) const {
  scores.assign(logits.begin(), logits.end());
  if (!logits.empty()) {
    kernels::softmax_rows({}, scores.data(), tokens(), experts);
  } else {
    scores.assign(std::size_t{tokens()} * experts, 0);
    for (std::uint32_t t = 0; t < tokens(); ++t)
      for (std::uint32_t c = begin[t]; c < begin[t + 1]; ++c)
        scores[std::size_t{t} * experts + choices[c].expert] = choices[c].weight;
  }
  return {.layer = layer,
          .experts = experts,
          .tokens = tokens(),
          .logits = logits,
          .scores = scores,
          .spans = spans};
}

std::uint32_t RecordedEvent::differing(const experts::Routing& routing) const {
  const bool unchanged = routing.exact_begin.empty();
  std::uint32_t count = 0;
  for (std::uint32_t t = 0; t < tokens(); ++t) {
    const auto recorded = choices.subspan(begin[t], begin[t + 1] - begin[t]);
    const bool same =
        unchanged ? std::ranges::equal(recorded, routing.token(t), {}, &experts::Choice::expert,
                                       &experts::Choice::expert)
                  : std::ranges::equal(recorded,
                                       std::span(routing.exact)
                                           .subspan(routing.exact_begin[t],
                                                    routing.exact_begin[t + 1] - routing.exact_begin[t]),
                                       {}, &experts::Choice::expert);
    count += same ? 0 : 1;
  }
  return count;
}

bool marks_prompts(const trace::TraceHeader& header) { return header.format != "mrt"; }

std::uint32_t RoutedStep::tokens() const {
  std::uint32_t sum = 0;
  for (const RoutedStretch& one : sequences) sum += one.tokens;
  return sum;
}

void RoutedStep::describe_spans(std::uint32_t tokens, std::vector<experts::SequenceSpan>& out) const {
  out.clear();
  std::uint32_t first = 0;
  for (std::size_t i = 0; i < sequences.size() && first < tokens; ++i) {
    const RoutedStretch& one = sequences[i];
    const bool last = i + 1 == sequences.size();
    if (one.tokens == 0 && !last) continue;
    out.push_back({.sequence = one.sequence,
                   .first_token = first,
                   .tokens = last ? tokens - first : std::min(one.tokens, tokens - first),
                   .kind = prompt ? experts::StepKind::kPrompt : experts::StepKind::kDecode,
                   .first_of_forward = trace::begins_forward(prompt, one.context)});
    first += out.back().tokens;
  }
}

RoutedSteps read_routed_steps(trace::RoutingTrace& trace, const RoutedStepsSettings& settings,
                              const std::function<bool()>& stop) {
  Reader reader(trace.header(), settings);
  trace::TraceEvent event;
  for (std::size_t number = 0; trace.next(event); ++number) {
    stop_if(stop, number);
    reader.add(event);
  }
  return reader.finish(trace);
}

}  // namespace sluice::lab
