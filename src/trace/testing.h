// Helpers for tests and fuzz targets of traces. Header only; production code does not include it.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "trace/routing_trace.h"

namespace sluice::trace {

inline std::unique_ptr<RoutingTrace> open_text(std::string_view bytes) {
  return open_trace(bytes_in_memory(std::as_bytes(std::span(bytes.data(), bytes.size())), "input"));
}

// One event that owns its data.
struct OwnedEvent {
  std::uint64_t step = 0;
  std::uint32_t layer = 0, tokens = 0;
  TracePhase phase = TracePhase::kPrefill;
  std::vector<std::vector<std::pair<std::uint16_t, float>>> choices;  // by token
  std::vector<float> logits;
  std::vector<SequenceMark> sequences;
  std::vector<std::int32_t> token_ids;
  std::vector<std::pair<std::string, std::vector<float>>> ahead = {};  // by predictor
  std::vector<float> gate_inputs = {};
  bool operator==(const OwnedEvent&) const = default;
};

// Checks the promises that a reader makes for every event.
inline OwnedEvent checked_event(const TraceHeader& header, const TraceEvent& event) {
  SLUICE_CHECK(event.layer < header.layers);
  SLUICE_CHECK(event.begin.size() == event.tokens + std::size_t{1} && event.begin.front() == 0);
  SLUICE_CHECK(event.begin.back() == event.choices.size());
  SLUICE_CHECK(event.logits.size() == (header.logits ? std::size_t{event.tokens} * header.experts : 0));
  SLUICE_CHECK(event.token_ids.empty() || event.token_ids.size() == event.tokens);
  OwnedEvent owned{event.step, event.layer, event.tokens, event.phase, {}, {}, {}, {}, {}, {}};
  for (std::uint32_t t = 0; t < event.tokens; ++t) {
    SLUICE_CHECK(event.begin[t] <= event.begin[t + 1] && event.begin[t + 1] - event.begin[t] <= header.top_k);
    std::vector<std::pair<std::uint16_t, float>>& token = owned.choices.emplace_back();
    for (std::uint32_t c = event.begin[t]; c < event.begin[t + 1]; ++c) {
      const experts::Choice& choice = event.choices[c];
      SLUICE_CHECK(choice.expert < header.experts && std::isfinite(choice.weight));
      SLUICE_CHECK(token.empty() || token.back().first < choice.expert);
      token.emplace_back(choice.expert, choice.weight);
    }
  }
  for (const float logit : event.logits) SLUICE_CHECK(std::isfinite(logit));
  std::size_t next = 0;  // among the header's predictors
  for (const PredictedLogits& predicted : event.ahead) {
    while (next < header.ahead.size() && header.ahead[next] != predicted.predictor) ++next;
    SLUICE_CHECK(event.layer > 0 && next++ < header.ahead.size());
    SLUICE_CHECK(predicted.logits.size() == std::size_t{event.tokens} * header.experts);
    for (const float logit : predicted.logits) SLUICE_CHECK(std::isfinite(logit));
    owned.ahead.emplace_back(predicted.predictor,
                             std::vector(predicted.logits.begin(), predicted.logits.end()));
  }
  SLUICE_CHECK(event.gate_inputs.size() == std::size_t{event.tokens} * header.gate_inputs);
  for (const float input : event.gate_inputs) SLUICE_CHECK(std::isfinite(input));
  owned.gate_inputs.assign(event.gate_inputs.begin(), event.gate_inputs.end());
  std::uint64_t covered = 0;
  for (const SequenceMark& mark : event.sequences) covered += mark.tokens;
  SLUICE_CHECK(event.sequences.empty() || covered == event.tokens);
  owned.logits.assign(event.logits.begin(), event.logits.end());
  owned.sequences.assign(event.sequences.begin(), event.sequences.end());
  owned.token_ids.assign(event.token_ids.begin(), event.token_ids.end());
  return owned;
}

inline std::vector<OwnedEvent> all_events(RoutingTrace& trace) {
  std::vector<OwnedEvent> events;
  TraceEvent event;
  while (trace.next(event)) events.push_back(checked_event(trace.header(), event));
  return events;
}

}  // namespace sluice::trace
