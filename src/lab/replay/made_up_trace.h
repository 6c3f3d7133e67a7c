// An invented trace for tests of replays. Header only; production code does not include it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "trace/routing_trace.h"

namespace sluice::lab {

// A trace that is generated while it is read: 3 layers of 12 experts, top 3, the lower ones hotter.
class MadeUpTrace final : public trace::RoutingTrace {
 public:
  // Every `prefill_every`-th step is a prefill, starting with the first; 0: no step is.
  MadeUpTrace(std::uint64_t seed, std::uint64_t steps, std::uint64_t prefill_every = 10)
      : RoutingTrace("made up"), random_(seed), steps_(steps), prefill_every_(prefill_every) {
    header_.layers = 3;
    header_.experts = 12;
    header_.top_k = 3;
    header_.sizes.emplace(3, 12);
    for (std::uint16_t layer = 0; layer < 3; ++layer)
      for (std::uint16_t e = 0; e < 12; ++e)
        header_.sizes->set({layer, e}, {.full = 10 + random_() % 7, .sm = 6, .exp = 2},
                           4096 * (1 + random_() % 3));
  }
  bool next(trace::TraceEvent& event) override {
    if (step_ == steps_) return false;
    const bool prefill = prefill_every_ > 0 && step_ % prefill_every_ == 0;
    const std::uint32_t tokens = prefill ? 4 : 1;
    choices_.clear();
    begin_ = {0};
    for (std::uint32_t t = 0; t < tokens; ++t) {
      std::set<std::uint16_t> chosen;
      while (chosen.size() < 3)
        chosen.insert(static_cast<std::uint16_t>(std::min(random_() % 12, random_() % 12)));
      for (const std::uint16_t e : chosen) choices_.push_back({.expert = e});
      begin_.push_back(static_cast<std::uint32_t>(choices_.size()));
    }
    event = {.step = step_,
             .layer = layer_,
             .phase = prefill ? trace::TracePhase::kPrefill : trace::TracePhase::kDecode,
             .tokens = tokens,
             .choices = choices_,
             .begin = begin_,
             .logits = {},
             .sequences = {},
             .token_ids = {}};
    if (++layer_ == 3) {
      layer_ = 0;
      ++step_;
    }
    return true;
  }

 private:
  std::mt19937_64 random_;
  std::uint64_t steps_, prefill_every_, step_ = 0;
  std::uint32_t layer_ = 0;
  std::vector<experts::Choice> choices_;
  std::vector<std::uint32_t> begin_;
};

}  // namespace sluice::lab
