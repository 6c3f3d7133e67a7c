#include "reproduce/token_routing.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/stop_request.h"

namespace sluice::reproduce {
TokenRouting::TokenRouting(std::uint32_t layers, std::uint32_t experts, std::uint32_t top_k)
    : layers_(layers), experts_(experts), top_k_(top_k) {
  SLUICE_CHECK(layers > 0 && top_k > 0 && top_k <= experts);
}

void TokenRouting::add_token(std::span<const std::uint16_t> ids) {
  SLUICE_CHECK(ids.size() == std::size_t{layers_} * top_k_);
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

void TokenRouting::append_step(std::span<const std::size_t> tokens, LayerRange range, trace::TracePhase phase,
                               lab::Requests& requests) const {
  SLUICE_CHECK(!tokens.empty() && range.first < range.last && range.last <= layers_);
  std::vector<std::uint32_t> count(experts_);
  std::vector<experts::ExpertId> ids;
  for (std::uint32_t layer = range.first; layer < range.last; ++layer) {
    ids.clear();
    for (const std::size_t token : tokens)
      for (const std::uint16_t expert : chosen(token, layer))
        if (count[expert]++ == 0) ids.push_back({static_cast<std::uint16_t>(layer), expert});
    requests.list.add_event(ids);
    for (const experts::ExpertId id : requests.list.event(requests.list.events() - 1))
      requests.tokens.push_back(std::exchange(count[id.index], 0));
    requests.events.push_back({requests.steps, layer, phase, static_cast<std::uint32_t>(tokens.size())});
  }
  requests.steps += 1;
  requests.prefill_steps += phase == trace::TracePhase::kPrefill;
  requests.trace_tokens += tokens.size();
}

TokenRouting read_token_routing(trace::RoutingTrace& trace, const std::function<bool()>& stop) {
  const trace::TraceHeader& header = trace.header();
  TokenRouting routing(header.layers, header.experts, header.top_k);
  const std::uint32_t k = header.top_k;
  std::vector<std::vector<std::uint16_t>> step;  // each token's: (L, k)
  trace::TraceEvent event;
  for (std::size_t number = 0; trace.next(event); ++number) {
    stop_if(stop, number);
    if (event.layer == 0) step.assign(event.tokens, {});
    if (event.tokens != step.size() || event.choices.size() != std::size_t{event.tokens} * k)
      throw Error(ErrorKind::kInvalid, "a token of the trace lacks experts in a layer")
          .in(trace.path())
          .expected(fmt::format("{} experts of each of {} tokens", k, step.size()))
          .found(fmt::format("{} of {} tokens in layer {}", event.choices.size(), event.tokens, event.layer))
          .fix("give a .mrt trace");
    for (std::uint32_t t = 0; t < event.tokens; ++t)
      for (std::uint32_t c = event.begin[t]; c < event.begin[t + 1]; ++c)
        step[t].push_back(event.choices[c].expert);
    if (event.layer + 1 < header.layers) continue;
    for (const std::vector<std::uint16_t>& ids : step) {
      if (ids.size() != std::size_t{header.layers} * k)
        throw Error(ErrorKind::kInvalid, "a token of the trace lacks experts in a layer")
            .in(trace.path())
            .fix("give a .mrt trace");
      routing.add_token(ids);
    }
  }
  return routing;
}

TokenRouting synthetic_routing(const lab::SyntheticRouting& settings, lab::RoutingFacts& facts) {
  TokenRouting routing(settings.layers, settings.experts, settings.top_k);
  lab::RoutingCounter counter(settings.layers, settings.experts, settings.top_k);
  lab::SyntheticTokens tokens(settings);
  std::vector<std::uint16_t> ids;
  while (tokens.next()) {
    if (tokens.begins_prompt()) counter.begin_sequence();
    ids.clear();
    for (std::uint32_t layer = 0; layer < settings.layers; ++layer) {
      const std::span<const std::uint16_t> chosen = tokens.chosen(layer);
      double mass = 0;
      for (const std::uint16_t expert : chosen) mass += tokens.score(layer, expert);
      counter.add(layer, chosen, mass);
      ids.insert(ids.end(), chosen.begin(), chosen.end());
    }
    routing.add_token(ids);
  }
  facts = counter.facts();
  return routing;
}

}  // namespace sluice::reproduce
