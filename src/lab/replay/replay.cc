#include "lab/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "experts/cache/residency.h"
#include "experts/core/equal_sizes.h"
#include "experts/decision_log.h"
#include "experts/device_caches.h"
#include "experts/registry.h"

namespace sluice::lab {
namespace {

using experts::ExpertId;

void check_sizes(const trace::TraceSizes* sizes, const ReplaySettings& settings) {
  if (settings.unit != CapacityUnit::kBytes) return;
  if (sizes == nullptr)
    throw Error(ErrorKind::kUsage, "the trace does not say how large its experts are")
        .in(Setting::kCapacity)
        .expected("a number of experts")
        .found("a size")
        .fix("give a number without a unit, or " + Setting::kExpertBytes);
  for (std::uint32_t layer = 0; layer < sizes->layers(); ++layer)
    for (std::uint32_t e = 0; e < sizes->experts(); ++e)
      if (sizes->bytes({static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)})
              .of(settings.keep) == 0)
        throw Error(ErrorKind::kUsage, "the model of this trace does not store experts in these parts")
            .in(Setting::kKeep)
            .expected("parts that the trace has sizes of")
            .found(std::string(experts::parts_name(settings.keep)))
            .fix("keep them in full");
}

void check_scores(const experts::CachePolicy& policy) {
  if (policy.scores == experts::CacheScores::kNone) return;
  throw Error(ErrorKind::kUsage,
              "this cache goes by the router's scores, and this replay reads choices alone")
      .in(Setting::kCache)
      .expected("a cache that goes by choices")
      .found(std::string(policy.name))
      .fix("replay both tiers: " + Setting::kMachine + " with " + Setting::kDeviceCache + " " +
           std::string(policy.name));
}

void check_pools(const experts::CachePolicy& policy, std::uint32_t layers, const trace::TraceSizes* sizes,
                 const ReplaySettings& settings) {
  if (policy.pooled != settings.pools.has_value())
    throw Error(ErrorKind::kUsage,
                policy.pooled ? "a cache with pools must be told their slots" : "this cache has no pools")
        .in(Setting::kPools)
        .expected(policy.pooled ? Setting::kPools + " F,C,S,E" : "the cache zip-pools")
        .found(settings.cache.name())
        .fix(policy.pooled ? "give the slots of a layer as F,C,S,E; `sluice plan` chooses them"
                           : "leave " + Setting::kPools + " out");
  if (!settings.pools) return;
  const experts::PoolSlots& slots = *settings.pools;
  if (settings.unit == CapacityUnit::kExperts) {
    const std::uint64_t in_all = (std::uint64_t{slots.f} + slots.c + slots.s + slots.e) *
                                 (settings.scope == Scope::kLayer ? 1 : layers);
    if (in_all > settings.capacity)
      throw Error(ErrorKind::kBudget, "the slots of zip-pools do not fit its cache")
          .in(Setting::kPools)
          .expected(fmt::format("at most {} experts", settings.capacity))
          .found(fmt::format("{} slots in all", in_all))
          .fix("give fewer slots, or a larger " + Setting::kCapacity);
    return;
  }
  if (slots.c + slots.s + slots.e > 0 && sizes->layers() > 0 && sizes->bytes({0, 0}).exp == 0)
    throw Error(ErrorKind::kUsage, "the experts of this trace are stored whole")
        .in(Setting::kPools)
        .expected("slots of F only")
        .found(experts::slots_text(slots))
        .fix("give " + Setting::kPools + " F,0,0,0, or a trace of a packed store");
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
  check_sizes(sizes, settings);
  // Every expert counts 1, whatever its state. By bytes an expert in state E would count 0, which is why
  // check_pools counts slots.
  const experts::EqualSizes one_each({.full = 1, .sm = 1, .exp = 0});
  const experts::ExpertSizes& held =
      settings.unit == CapacityUnit::kBytes ? static_cast<const experts::ExpertSizes&>(*sizes) : one_each;
  const experts::CachePolicy& policy = *settings.cache;
  experts::check_host_cache(policy);
  check_scores(policy);
  check_pools(policy, layers, sizes, settings);

  const bool by_layer = settings.scope == Scope::kLayer;
  std::vector<experts::RequestList> futures(by_layer && policy.oracle ? layers : 0);
  if (!futures.empty())
    for (std::size_t e = 0; e < requests.events.size(); ++e)
      futures[requests.events[e].layer].add_event(requests.list.event(e));
  std::vector<std::unique_ptr<experts::Residency>> caches;
  for (std::uint32_t i = 0; i < (by_layer ? layers : 1); ++i) {
    experts::CacheConfig config;
    config.keep = settings.keep;
    config.seed = settings.seed;
    if (settings.pools) config.pools = {.slots = {*settings.pools}, .rules = settings.rules};
    if (policy.oracle) config.future = futures.empty() ? &requests.list : &futures[i];
    caches.push_back(
        std::make_unique<experts::Residency>(experts::make_cache(policy, config), held, settings.capacity));
  }

  ReplayResult result;
  Bytes bytes_read = 0;
  std::string line;
  std::vector<std::uint32_t> layer_tokens;
  if (log)
    log(experts::decision_heading({.cache = std::string(policy.name),
                                   .scope = by_layer ? "layer" : "global",
                                   .capacity = settings.capacity,
                                   .keep = settings.keep,
                                   .seed = settings.seed,
                                   .pools = settings.pools,
                                   .rules = settings.rules,
                                   .routing = requests.played}));
  for (std::size_t e = 0; e < requests.events.size(); ++e) {
    stop_if(stop, e);
    const Requests::Event& event = requests.events[e];
    const std::span<const ExpertId> ids = requests.list.event(e);
    experts::Residency& cache = *caches[by_layer ? event.layer : 0];
    const auto tokens = std::span(requests.tokens).subspan(requests.list.begin(e), ids.size());
    layer_tokens.assign(requests.experts, 0);
    for (std::size_t i = 0; i < ids.size(); ++i) layer_tokens[ids[i].index] = tokens[i];
    const bool prompt = event.phase == trace::TracePhase::kPrefill;
    const experts::EventOutcome& outcome =
        cache.on_event(ids, {}, tokens, {},
                       {.layer = event.layer,
                        .step = prompt ? experts::StepKind::kPrompt : experts::StepKind::kDecode,
                        .layer_tokens = layer_tokens,
                        .tokens = event.tokens});
    const auto count = [&](ReplayCounts& counts) {
      counts.accesses += ids.size();
      counts.hits += outcome.hits.size();
    };
    count(result.total);
    if (event.phase == trace::TracePhase::kDecode) count(result.decode);
    // An expert may leave part by part.
    for (auto gone = outcome.evicted.begin(); gone != outcome.evicted.end(); ++gone) {
      const bool counted =
          std::any_of(outcome.evicted.begin(), gone, [&](const auto& other) { return other.id == gone->id; });
      result.evictions += !counted && cache.parts(gone->id).empty();
    }
    if (sizes != nullptr)
      for (const experts::Admission& miss : outcome.misses)
        bytes_read += sizes->missing_bytes(miss.id, miss.before);
    for (const experts::Admission& miss : outcome.misses) result.partial += !miss.before.empty();
    if (settings.window > 0) {
      const std::uint64_t first = event.step / settings.window * settings.window;
      if (result.windows.empty() || result.windows.back().first_step != first)
        result.windows.push_back({first, 0, {}});
      result.windows.back().steps = event.step - first + 1;
      count(result.windows.back().counts);
    }
    if (log) {
      line.clear();
      experts::append_decision(line, e, event.layer, outcome);
      log(line);
    }
  }
  result.decision_hash = experts::decision_hash(caches);
  if (log) log(experts::decision_ending(result.decision_hash));
  if (sizes != nullptr) result.bytes_read = bytes_read;
  return result;
}

}  // namespace sluice::lab
