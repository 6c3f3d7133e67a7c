#include "lab/replay/replay.h"

#include <memory>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "experts/cache/residency.h"
#include "experts/core/equal_sizes.h"
#include "experts/decision_log.h"
#include "experts/device_caches.h"
#include "experts/layer_decider.h"
#include "experts/registry.h"
#include "lab/replay/event_counts.h"
#include "lab/replay/replayed_caches.h"

namespace sluice::lab {
namespace {

using experts::ExpertId;

void check_scores(const experts::CachePolicy& policy) {
  if (policy.scores == experts::CacheScores::kNone) return;
  throw Error(ErrorKind::kUsage,
              "this cache goes by the router's scores, and this replay reads choices alone")
      .in(Setting::kCache)
      .expected("a cache that goes by choices")
      .found(std::string(policy.name))
      .fix("replay it over a trace with router logits, as sluice trace writes it");
}

// Requests do not say whose their tokens are.
void begin_step(experts::LayerDecider& decider, const Requests::Event& first) {
  const bool prompt = first.phase == trace::TracePhase::kPrefill;
  const experts::SequenceSpan span{.tokens = first.tokens,
                                   .kind = prompt ? experts::StepKind::kPrompt : experts::StepKind::kDecode};
  decider.begin_step({&span, 1});
}

}  // namespace

Requests read_requests(trace::RoutingTrace& trace, const std::function<bool()>& stop) {
  Requests requests;
  requests.experts = trace.header().experts;
  std::vector<std::uint32_t> count(requests.experts);
  std::vector<ExpertId> ids;
  trace::TraceEvent event;
  std::size_t number = 0;
  while (trace.next(event)) {
    stop_if(stop, number++);
    ids.clear();
    for (const experts::Choice& choice : event.choices)
      if (count[choice.expert]++ == 0)
        ids.push_back({static_cast<std::uint16_t>(event.layer), choice.expert});
    requests.list.add_event(ids);
    for (const ExpertId id : requests.list.event(requests.list.events() - 1)) {
      requests.tokens.push_back(count[id.index]);
      count[id.index] = 0;
    }
    if (requests.events.empty() || requests.events.back().step != event.step) {
      ++requests.steps;
      requests.prefill_steps += event.phase == trace::TracePhase::kPrefill;
      requests.trace_tokens += event.tokens;
    }
    requests.events.push_back({event.step, event.layer, event.phase, event.tokens});
  }
  requests.cut_off = trace.cut_off();
  requests.played = trace.played();
  return requests;
}

ReplayResult replay(const Requests& requests, std::uint32_t layers, const trace::TraceSizes* sizes,
                    const ReplaySettings& settings, const std::function<void(std::string_view)>& log,
                    const std::function<bool()>& stop) {
  const experts::CachePolicy& policy = *settings.cache;
  experts::check_host_cache(policy);
  check_scores(policy);
  check_caches(settings, layers, sizes);
  const experts::EqualSizes one_each = experts_counted();
  const experts::ExpertSizes& held =
      settings.unit == CapacityUnit::kBytes ? static_cast<const experts::ExpertSizes&>(*sizes) : one_each;

  const bool by_layer = settings.scope == Scope::kLayer;
  std::vector<experts::RequestList> futures(by_layer && policy.oracle ? layers : 0);
  if (!futures.empty())
    for (std::size_t e = 0; e < requests.events.size(); ++e)
      futures[requests.events[e].layer].add_event(requests.list.event(e));
  std::vector<std::unique_ptr<experts::Residency>> caches;
  for (std::uint32_t i = 0; i < (by_layer ? layers : 1); ++i) {
    experts::CacheConfig config = config_of(settings);
    if (policy.oracle) config.future = futures.empty() ? &requests.list : &futures[i];
    caches.push_back(
        std::make_unique<experts::Residency>(experts::make_cache(policy, config), held, settings.capacity));
  }

  experts::LayerPolicies policies;
  policies.residencies = std::move(caches);
  experts::LayerDecider decider(std::move(policies), {.layers = layers});
  EventCounts counts(sizes, settings.window);
  std::string line;
  if (log) log(experts::decision_heading(decision_setting(settings, requests.played)));
  for (std::size_t e = 0; e < requests.events.size(); ++e) {
    stop_if(stop, e);
    const Requests::Event& event = requests.events[e];
    const std::span<const ExpertId> ids = requests.list.event(e);
    if (e == 0 || event.step != requests.events[e - 1].step || event.phase != requests.events[e - 1].phase)
      begin_step(decider, event);
    decider.follow(event.layer, {ids, std::span(requests.tokens).subspan(requests.list.begin(e), ids.size())},
                   {.experts = requests.experts, .tokens = event.tokens});
    const experts::EventOutcome& outcome = *decider.decide().outcome;
    counts.add(event.step, event.phase, ids.size(), outcome, decider.policies().residency(event.layer));
    if (log) {
      line.clear();
      experts::append_decision(line, e, event.layer, outcome);
      log(line);
    }
  }
  ReplayResult result = counts.result();
  result.decision_hash = experts::decision_hash(decider.policies().residencies);
  if (log) log(experts::decision_ending(result.decision_hash));
  return result;
}

}  // namespace sluice::lab
