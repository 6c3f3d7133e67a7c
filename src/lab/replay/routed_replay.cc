#include "lab/replay/routed_replay.h"

#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "experts/decision_log.h"
#include "experts/device_caches.h"
#include "experts/policy_choice.h"
#include "lab/replay/decided_events.h"
#include "lab/replay/event_counts.h"
#include "lab/replay/replayed_caches.h"

namespace sluice::lab {
namespace {

experts::LayerPolicies host_policies(const trace::TraceHeader& header, const experts::ExpertSizes& sizes,
                                     const ReplaySettings& settings, const ReplayRouter& router) {
  experts::CacheConfig config = config_of(settings);
  config.workload.top_k = header.top_k;
  return experts::make_policies(
      {.router = router.routes() ? router.router.row() : nullptr,
       .router_config = {.select = {.top_k = header.top_k}, .smoe = router.smoe},
       .host = experts::HostCaches{.cache = *settings.cache,
                                   .config = config,
                                   .count = settings.scope == Scope::kLayer ? header.layers : 1,
                                   .capacity = settings.capacity}},
      sizes);
}

}  // namespace

void check_replay_router(const ReplayRouter& router, const experts::CachePolicy& cache,
                         const trace::RoutingTrace& trace) {
  router.smoe.validate();
  if (router.routes() && router.router->rules != experts::RouterRules::kSmoe)
    throw Error(ErrorKind::kUsage,
                "a replay of caches takes the routing as it was recorded, or routes by smoe")
        .in(Setting::kRouter)
        .expected("exact or smoe")
        .found(router.router.name())
        .fix("name one of these, or replay on a machine (" + Setting::kMachine + ")");
  if (cache.oracle)
    throw Error(ErrorKind::kUsage, "which experts a cache is asked for depends on what it holds")
        .in(Setting::kCache)
        .expected("a cache that does not know the future")
        .found(std::string(cache.name))
        .fix("name another, or leave " + Setting::kRouter + " out");
  if (trace.header().logits) return;
  const bool routes = router.routes();
  throw Error(ErrorKind::kUsage,
              routes
                  ? "this router looks at the scores of experts that were not chosen, and the trace has none"
                  : "this cache goes by the router's scores, and the trace has none")
      .in(routes ? Setting::kRouter : Setting::kCache)
      .expected("a trace with router logits, as sluice trace writes it")
      .found(routes ? router.router.name() : std::string(cache.name))
      .fix(routes ? "record one with sluice trace, or use the router exact"
                  : "record one with sluice trace, or name another cache");
}

RoutedReplayResult replay_routed(trace::RoutingTrace& trace, const trace::TraceSizes* sizes,
                                 const ReplaySettings& settings, const ReplayRouter& router,
                                 const std::function<void(std::string_view)>& log,
                                 const std::function<bool()>& stop) {
  const trace::TraceHeader& header = trace.header();
  check_replay_router(router, *settings.cache, trace);
  experts::check_host_cache(*settings.cache);
  check_caches(settings, header.layers, sizes);
  const experts::EqualSizes one_each = experts_counted();
  const experts::ExpertSizes& held =
      settings.unit == CapacityUnit::kBytes ? static_cast<const experts::ExpertSizes&>(*sizes) : one_each;
  DecidedEvents events(header, host_policies(header, held, settings, router));
  EventCounts counts(sizes, settings.window);
  std::string line;
  trace::TraceEvent event;
  bool more = trace.next(event);  // which reads what the run played
  if (log) log(experts::decision_heading(decision_setting(settings, trace.played())));
  for (std::uint64_t number = 0; more; ++number, more = trace.next(event)) {
    stop_if(stop, number);
    const experts::LayerDecision& decision = events.decide(event);
    counts.add(event.step, event.phase, decision.experts.size(), *decision.outcome,
               events.decider().policies().residency(event.layer));
    if (!log) continue;
    line.clear();
    experts::append_decision(line, number, event.layer, decision);
    log(line);
  }
  events.finish();
  const experts::LayerDecider& decider = events.decider();
  RoutedReplayResult result{counts.result(),
                            {decider.changes(), decider.decode_changes(), events.recorded_differs()}};
  result.caches.decision_hash = experts::decision_hash(decider.policies().residencies);
  if (log) log(experts::decision_ending(result.caches.decision_hash));
  return result;
}

}  // namespace sluice::lab
