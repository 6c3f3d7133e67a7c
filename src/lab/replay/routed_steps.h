// Recorded routing as generations: prompts, and the decode steps behind each. Replays of slices walk it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experts/routing/router.h"
#include "trace/routing_trace.h"

namespace sluice::lab {

// What is recorded of the tokens of one sparse layer. Views.
struct RecordedEvent {
  std::span<const experts::Choice> choices;  // each token's, ascending by expert; weights as recorded
  std::span<const std::uint32_t> begin;      // (T + 1)
  std::span<const float> logits;             // (T, N), or empty

  std::uint32_t tokens() const { return static_cast<std::uint32_t>(begin.size()) - 1; }
  // What a router sees of it in a layer of `experts` experts. The scores (T, N) are those of the logits,
  // without them the weights of the chosen ones; they are put into `scores`, to which the view refers.
  experts::ScoresView seen(std::uint32_t layer, std::uint32_t experts,
                           std::span<const experts::SequenceSpan> spans, std::vector<float>& scores) const;
  // How many tokens the routing, before a router changed it, gives other experts than are recorded.
  std::uint32_t differing(const experts::Routing& routing) const;
};

// One sparse layer of a step.
struct RoutedLayer {
  std::vector<experts::Choice> choices;  // each token's, ascending by expert; weights as recorded
  std::vector<std::uint32_t> begin;      // (T + 1)
  std::vector<float> logits;             // (T, N), or empty
  // (T, N): the logits that one predictor said of this layer while the layer before it was computed; empty in
  // the first layer, and where there are none.
  std::vector<float> predicted = {};
  std::uint32_t tokens() const { return static_cast<std::uint32_t>(begin.size()) - 1; }
  RecordedEvent recorded() const { return {choices, begin, logits}; }
};

// Consecutive tokens of one sequence in a step, and the positions before them.
struct RoutedStretch {
  std::uint32_t tokens = 0, context = 0;
  experts::SequenceId sequence = 0;
};

struct RoutedStep {
  bool prompt = false;
  std::vector<RoutedStretch> sequences;
  std::vector<RoutedLayer> layers;  // (L); a layer that the step does not visit has no `begin`
  std::uint32_t tokens() const;
  // Whose tokens the tokens of a layer are, as policies see it; replaces `out`. A trace that does not know
  // the sequences may have other numbers of tokens in some layers than in the first.
  void describe_spans(std::uint32_t tokens, std::vector<experts::SequenceSpan>& out) const;
};

struct RoutedSteps {
  std::uint32_t layers = 0, experts = 0, top_k = 0;
  bool logits = false;  // all steps have logits
  // All layers behind the first have predicted logits, but for prompts that the predictor leaves out.
  bool predicted = false;
  std::vector<RoutedStep> steps;
  std::uint64_t prompts = 0;  // stretches of prompt steps
  std::uint64_t prompt_tokens = 0, decode_tokens = 0;
  bool cut_off = false;                   // the trace was cut off; its last step is left out
  std::string played = {}, devices = {};  // as RoutingTrace has them
};

// Whether the trace says which steps are of prompts (.mrt does not).
bool marks_prompts(const trace::TraceHeader& header);

struct RoutedStepsSettings {
  // For traces that do not mark prompts: this many tokens of each sequence are its prompt, which is one step.
  std::uint32_t prefill = 64;
  std::uint32_t most_tokens = UINT32_MAX;  // from each sequence of such a trace; the others are left out
  // The predictor whose logits are kept (TraceHeader::ahead); empty, or not recorded: none.
  std::string predictor = {};
  bool predicts_prompts = true;  // that one does
};

// Reads `trace` to its end; leaves out the last step of a trace that was cut off. Errors as
// RoutingTrace::next; Error(kInterrupted).
RoutedSteps read_routed_steps(trace::RoutingTrace& trace, const RoutedStepsSettings& settings = {},
                              const std::function<bool()>& stop = {});

}  // namespace sluice::lab
