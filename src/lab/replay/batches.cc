#include "lab/replay/batches.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::lab {
namespace {

// The steps of one sequence, in order.
struct Sequence {
  std::vector<const RoutedStep*> steps;
  std::size_t next = 0;
};

std::vector<Sequence> sequences_of(const RoutedSteps& steps) {
  std::vector<Sequence> all;
  const RoutedStep* last = nullptr;
  for (const RoutedStep& step : steps.steps) {
    SLUICE_CHECK(step.sequences.size() == 1, "a step of several sequences cannot join a batch");
    if (last == nullptr || last->sequences[0].sequence != step.sequences[0].sequence) all.emplace_back();
    all.back().steps.push_back(&step);
    last = &step;
  }
  return all;
}

void append(const RoutedStep& from, RoutedStep& to) {
  to.sequences.insert(to.sequences.end(), from.sequences.begin(), from.sequences.end());
  to.layers.resize(from.layers.size());
  for (std::size_t l = 0; l < from.layers.size(); ++l) {
    const RoutedLayer& one = from.layers[l];
    RoutedLayer& all = to.layers[l];
    if (one.begin.empty()) continue;
    if (all.begin.empty()) all.begin.assign(1, 0);
    const auto base = static_cast<std::uint32_t>(all.choices.size());
    all.choices.insert(all.choices.end(), one.choices.begin(), one.choices.end());
    for (std::size_t t = 1; t < one.begin.size(); ++t) all.begin.push_back(base + one.begin[t]);
    all.logits.insert(all.logits.end(), one.logits.begin(), one.logits.end());
    all.predicted.insert(all.predicted.end(), one.predicted.begin(), one.predicted.end());
  }
}

}  // namespace

std::uint32_t largest_batch(const RoutedSteps& steps) {
  const auto decodes = [](const Sequence& one) {
    return !std::ranges::all_of(one.steps, [](const RoutedStep* step) { return step->prompt; });
  };
  return static_cast<std::uint32_t>(std::ranges::count_if(sequences_of(steps), decodes));
}

RoutedSteps batched(const RoutedSteps& steps, std::uint32_t batch) {
  SLUICE_CHECK(batch > 0);
  std::vector<Sequence> waiting = sequences_of(steps);
  RoutedSteps out = {.layers = steps.layers,
                     .experts = steps.experts,
                     .top_k = steps.top_k,
                     .logits = steps.logits,
                     .predicted = steps.predicted,
                     .steps = {},
                     .cut_off = steps.cut_off,
                     .played = steps.played,
                     .devices = steps.devices};
  std::vector<Sequence*> running;
  std::size_t next = 0;
  // Its prompt is computed, and it has something to decode.
  const auto join = [&]() -> Sequence* {
    while (next < waiting.size()) {
      Sequence& one = waiting[next++];
      for (; one.next < one.steps.size() && one.steps[one.next]->prompt; ++one.next) {
        if (one.next == 0) out.prompts += 1;
        out.prompt_tokens += one.steps[one.next]->tokens();
        out.steps.push_back(*one.steps[one.next]);
      }
      if (one.next < one.steps.size()) return &one;
    }
    return nullptr;
  };
  while (running.size() < batch) {
    Sequence* const one = join();
    if (one == nullptr) return out;
    running.push_back(one);
  }
  for (;;) {
    RoutedStep step;
    for (Sequence* one : running) append(*one->steps[one->next++], step);
    out.decode_tokens += step.tokens();
    out.steps.push_back(std::move(step));
    for (Sequence*& one : running) {
      if (one->next < one->steps.size()) continue;
      one = join();
      if (one == nullptr) return out;
    }
  }
}

}  // namespace sluice::lab
