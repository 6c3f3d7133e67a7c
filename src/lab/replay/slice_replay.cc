#include "lab/replay/slice_replay.h"

#include <array>

#include "base/error.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "experts/cache/residency.h"
#include "experts/combination.h"
#include "experts/policy_choice.h"
#include "experts/registry.h"
#include "lab/replay/decided_events.h"

namespace sluice::lab {
namespace {

using experts::Part;

constexpr experts::Named<experts::CachePolicy> kSliceCache = "slice-lru";
constexpr experts::Parts kBothSlices = Part::kMsb | Part::kLsb;

void check_slice_router(const trace::RoutingTrace& trace, const SliceReplaySettings& settings) {
  const std::array routers = {settings.router.router};
  check_replay_router(settings.router, *kSliceCache, trace);
  experts::check_combination({.family = experts::Family::kSliced,
                              .routers = routers,
                              .cache = kSliceCache,
                              .precision = settings.slices.precision.mode,
                              .constraint = settings.slices.limits.mode,
                              .slices = &settings.slices.cache});
}

void check(const trace::RoutingTrace& trace, const SliceReplaySettings& settings) {
  const trace::TraceHeader& header = trace.header();
  const bool sliced = header.sizes && header.layers > 0 && header.sizes->bytes({0, 0}).msb > 0;
  if (sliced && header.logits) {
    if (settings.router.routes()) check_slice_router(trace, settings);
    return settings.slices.precision.critical.validate(header.top_k);
  }
  throw Error(ErrorKind::kUsage, "slice-lru is replayed from a trace of a model in slices")
      .in(trace.path())
      .expected("what `sluice trace` records of a store that was packed with " + Setting::kSlices)
      .found(header.logits ? "whole experts" : "no router logits")
      .fix("choose another cache, or record such a run");
}

experts::CacheConfig cache_config(const SliceReplaySettings& settings) {
  experts::CacheConfig config;
  config.keep = kBothSlices;
  config.seed = settings.seed;
  config.slices = settings.slices.cache;
  return config;
}

experts::LayerPolicies policies_of(const trace::TraceHeader& header, const SliceReplaySettings& settings) {
  experts::ConstraintConfig limits = settings.slices.limits;
  experts::set_views(settings.slices.precision.mode, limits);
  return experts::make_policies(
      {.precision = settings.slices.precision,
       .limits = limits,
       .router = settings.router.routes() ? settings.router.router.row() : nullptr,
       .router_config = {.select = {.top_k = header.top_k}, .smoe = settings.router.smoe},
       .host = experts::HostCaches{.cache = *kSliceCache,
                                   .config = cache_config(settings),
                                   .count = settings.scope == Scope::kLayer ? header.layers : 1,
                                   .capacity = settings.capacity}},
      *header.sizes);
}

experts::DecisionSetting slices_setting(const SliceReplaySettings& settings, const std::string& played) {
  return {.cache = "slice-lru",
          .scope = settings.scope == Scope::kLayer ? "layer" : "global",
          .capacity = settings.capacity,
          .keep = kBothSlices,
          .seed = settings.seed,
          .slices = settings.slices,
          .routing = played};
}

// Bytes of the disk that the event reads.
Bytes bytes_read(const experts::EventOutcome& outcome, const trace::TraceSizes& sizes) {
  Bytes bytes = 0;
  for (const auto* used : {&outcome.hits, &outcome.misses})
    for (const experts::Admission& one : *used) {
      const experts::Parts read = one.to_read();
      if (read.has(Part::kMsb)) bytes += sizes.disk_bytes(one.id) - sizes.exp_disk_bytes(one.id);
      if (read.has(Part::kLsb)) bytes += sizes.exp_disk_bytes(one.id);
    }
  return bytes;
}

}  // namespace

SliceReplayResult replay_slices(trace::RoutingTrace& trace, const SliceReplaySettings& settings,
                                const std::function<void(std::string_view)>& log,
                                const std::function<bool()>& stop) {
  check(trace, settings);
  const trace::TraceHeader& header = trace.header();
  const trace::TraceSizes& sizes = *header.sizes;
  DecidedEvents events(header, policies_of(header, settings));
  SliceReplayResult result;
  std::string line;
  trace::TraceEvent event;
  bool more = trace.next(event);  // which reads what the run played
  if (log) log(experts::decision_heading(slices_setting(settings, trace.played())));
  for (std::uint64_t number = 0; more; ++number, more = trace.next(event)) {
    stop_if(stop, number);
    const experts::LayerDecision& decision = events.decide(event);
    const experts::EventOutcome& outcome = *decision.outcome;
    const auto count = [&](ReplayCounts& counts) {
      counts.accesses += decision.experts.size();
      counts.hits += outcome.hits.size();
    };
    count(result.total);
    if (event.phase == trace::TracePhase::kDecode) {
      count(result.decode);
      result.slices.add(outcome, sizes, Part::kMsb, kBothSlices);
    }
    result.bytes_read += bytes_read(outcome, sizes);
    if (log) {
      line.clear();
      experts::append_decision(line, number, event.layer, outcome);
      log(line);
    }
  }
  events.finish();
  result.account = events.decider().policies().constraint->account();
  result.routing = {events.decider().changes(), events.decider().decode_changes(), events.recorded_differs()};
  result.cut_off = trace.cut_off();
  result.played = trace.played();
  result.decision_hash = experts::decision_hash(events.decider().policies().residencies);
  if (log) log(experts::decision_ending(result.decision_hash));
  return result;
}

}  // namespace sluice::lab
