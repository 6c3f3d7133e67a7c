// `sluice simulate`: what any cache would have done with recorded routing.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/unfinished_file.h"
#include "base/json/json.h"
#include "base/setting.h"
#include "base/text_table.h"
#include "command.h"
#include "commands/hybrid/hybrid_replay.h"
#include "commands/machine_replay.h"
#include "commands/timed_replay.h"
#include "engine/plan/policy_plan.h"
#include "experts/device_caches.h"
#include "experts/registry.h"
#include "flags/common_flags.h"
#include "flags/number_range.h"
#include "flags/output_path.h"
#include "flags/policy_names.h"
#include "flags/pool_slots.h"
#include "flags/room.h"
#include "flags/slice_effects.h"
#include "flags/slice_flags.h"
#include "flags/split_list.h"
#include "lab/machine/hybrid_machine.h"
#include "lab/replay/replay.h"
#include "lab/replay/routed_replay.h"
#include "lab/replay/slice_replay.h"
#include "streams/played_routing.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace simulate_command {

using Clock = std::chrono::steady_clock;

struct Options {
  CommonFlags common;
  std::string trace, caches, capacities, scope, keep = "full", expert_bytes, decisions, pools;
  experts::PoolRules rules;
  TimedFlags timed;
  SliceFlags slices;
  MachineFlags machine;
  HybridFlags hybrid;
  std::uint64_t window = 0;
};

struct Row {
  lab::ReplaySettings settings;
  std::string capacity;  // as typed
  lab::ReplayRouter router = {};
  lab::ReplayResult result = {};
  lab::ReplayRouting routing = {};
  double seconds = 0;
};

std::uint64_t seed_of(const Options& options) { return options.common.seed.value_or(0); }

bool is_for_a_device(const experts::CachePolicy& policy) {
  return !experts::why_for_a_device(policy).empty();
}

// The router that replays of caches are asked for.
lab::ReplayRouter router_of(const Options& options) {
  lab::ReplayRouter router;
  if (!options.machine.router.empty()) router.router = find_router_for(false, options.machine.router);
  engine::EngineOptions chosen;
  set_slice_options(options.slices, chosen);
  router.smoe = chosen.smoe;
  return router;
}

std::vector<std::string> cache_names(const std::string& list, bool routed) {
  std::vector<std::string> names;
  if (list == "all") {
    for (const experts::CachePolicy& policy : experts::cache_policies())
      if (!policy.pooled && !policy.sliced && policy.scores == experts::CacheScores::kNone &&
          !is_for_a_device(policy) && !(routed && policy.oracle))
        names.emplace_back(policy.name);
    return names;
  }
  names = split_list(list, Setting::kCache);
  for (const std::string& name : names) experts::check_host_cache(experts::find_cache(name));
  return names;
}

// "100" means experts, "4GiB" bytes.
void parse_capacity(const std::string& text, lab::ReplaySettings& settings) {
  const Room room = parse_room(text);
  settings.capacity = room.amount;
  settings.unit = room.bytes ? lab::CapacityUnit::kBytes : lab::CapacityUnit::kExperts;
}

// Where no capacity is given, a cache with pools has room for its slots.
void fill_slots(const Options& options, lab::ReplaySettings& settings) {
  if (!settings.cache->pooled || options.pools.empty()) return;
  settings.pools = parse_pool_slots(options.pools);
  settings.rules = options.rules;
}

// As `run` has it.
Json routing_json(const lab::ReplayRouter& router, const lab::ReplayRouting& routing) {
  Json json = {{"router", router.router.name()},
               {"lossy", router.routes()},
               {"tokens", routing.all.tokens},
               {"decode_tokens", routing.decode.tokens},
               {"changed_tokens", routing.all.changed_tokens},
               {"substituted", routing.all.substituted},
               {"mass_lost", routing.all.mass_lost},
               {"recorded_differs", routing.recorded_differs}};
  if (!router.routes()) return json;
  json["alpha"] = router.smoe.alpha;
  json["calibrated"] = false;  // nobody has measured what alpha costs this model
  return json;
}

// It counts decoded tokens alone, since prompts are routed exactly.
std::string loss_text(const lab::ReplayRouter& router, const lab::ReplayRouting& routing) {
  const experts::RoutingChanges& decode = routing.decode;
  const double tokens = static_cast<double>(std::max<std::uint64_t>(decode.tokens, 1));
  return fmt::format(
      "{} is lossy: alpha {:.4g} (uncalibrated); while decoding, {:.1f} % of tokens' sets changed, {} "
      "experts "
      "substituted, {:.2f} % of all scores lost",
      router.router.name(), router.smoe.alpha, 100 * static_cast<double>(decode.changed_tokens) / tokens,
      decode.substituted, 100 * decode.mass_lost / tokens);
}

// A trace does not say by which rule its model limits a token's selection.
void warn_of_own_rule(const Options& options, std::uint64_t differs) {
  if (differs == 0 || options.common.quiet) return;
  print_warning(
      "{} recorded choices of a prompt's token in a layer are not the best of their logits: the model "
      "limits its selection by a rule that {} does not say, and a run with {} smoe decides otherwise than "
      "this replay",
      differs, options.trace, flag(Setting::kRouter));
}

Json result_json(const Row& row) {
  const lab::ReplayResult& result = row.result;
  Json json = {{"cache", row.settings.cache.name()},
               {"scope", row.settings.scope == lab::Scope::kLayer ? "layer" : "global"},
               {"capacity", row.settings.capacity},
               {"capacity_unit", row.settings.unit == lab::CapacityUnit::kBytes ? "bytes" : "experts"},
               {"accesses", result.total.accesses},
               {"hits", result.total.hits},
               {"misses", result.total.misses()},
               {"partial", result.partial},
               {"hit_rate", result.total.hit_rate()},
               {"decode_hit_rate", result.decode.hit_rate()},
               {"evictions", result.evictions},
               {"decisions", fmt::format("{:016x}", result.decision_hash)},
               {"seconds", row.seconds}};
  if (const auto& slots = row.settings.pools)
    json["pools"] = {{"slots", {slots->f, slots->c, slots->s, slots->e}},
                     {"delta", row.settings.rules.delta},
                     {"demote", experts::demotion_name(row.settings.rules.demotion)},
                     {"half_life", row.settings.rules.half_life}};
  if (result.bytes_read) json["bytes_read"] = *result.bytes_read;
  if (row.router.routes()) json["routing"] = routing_json(row.router, row.routing);
  if (row.settings.window > 0) {
    json["windows"] = Json::array();
    for (const lab::ReplayWindow& window : result.windows)
      json["windows"].push_back({{"first_step", window.first_step},
                                 {"steps", window.steps},
                                 {"accesses", window.counts.accesses},
                                 {"hits", window.counts.hits},
                                 {"hit_rate", window.counts.hit_rate()}});
  }
  return json;
}

Json trace_json(const trace::RoutingTrace& trace, const lab::Requests& requests) {
  const trace::TraceHeader& header = trace.header();
  Json json = {{"trace", trace.path()},
               {"format", header.format},
               {"architecture", header.architecture},
               {"layers", header.layers},
               {"experts", header.experts},
               {"top_k", header.top_k},
               {"steps", requests.steps},
               {"prefill_steps", requests.prefill_steps},
               {"cut_off", requests.cut_off}};
  add_played(json, requests.played);
  return json;
}

void print_table(const trace::RoutingTrace& trace, const lab::Requests& requests,
                 const std::vector<Row>& rows) {
  const trace::TraceHeader& header = trace.header();
  const std::size_t columns = terminal_columns(STDOUT_FILENO);
  print_wrapped(fmt::format("{}: {}{}{}, {} sparse layers of {} experts, top {}", trace.path(), header.format,
                            header.architecture.empty() ? "" : " of ", header.architecture, header.layers,
                            header.experts, header.top_k));
  print_wrapped(fmt::format("{} steps, {} of them prefill; {} events, {} accesses; one cache {}",
                            requests.steps, requests.prefill_steps, requests.list.events(),
                            requests.list.accesses(),
                            rows[0].settings.scope == lab::Scope::kLayer ? "a layer" : "for all layers"));
  print_played(requests.played);
  const bool sizes = rows[0].result.bytes_read.has_value();
  std::vector<std::vector<std::string>> table = {
      {"cache", "capacity", "hit %", "decode %", "hits", "misses", "evictions"}};
  if (sizes) table[0].push_back("read");
  const bool routed = rows[0].router.routes();
  if (routed) table[0].insert(table[0].end(), {"replaced %", "lost %"});
  for (const Row& row : rows) {
    const lab::ReplayResult& result = row.result;
    table.push_back(
        {std::string(row.settings.cache.name()), row.capacity,
         fmt::format("{:.3f}", 100 * result.total.hit_rate()),
         result.decode.accesses == 0 ? "-" : fmt::format("{:.3f}", 100 * result.decode.hit_rate()),
         std::to_string(result.total.hits), std::to_string(result.total.misses()),
         std::to_string(result.evictions)});
    if (sizes) table.back().push_back(format_bytes(*result.bytes_read));
    if (!routed) continue;
    const experts::RoutingChanges& decode = row.routing.decode;
    table.back().push_back(fmt::format("{:.2f}", 100 * (1 - decode.agreement())));
    table.back().push_back(fmt::format(
        "{:.2f}", 100 * decode.mass_lost / static_cast<double>(std::max<std::uint64_t>(decode.tokens, 1))));
  }
  print_output("\n{}", text_table(table, terminal_columns(STDOUT_FILENO, kAnyColumns)));
  if (routed)
    print_wrapped(fmt::format(
        "smoe is lossy: alpha {:.4g} (uncalibrated), and the text of such a run is not the model's own. "
        "While "
        "decoding, replaced: of the experts that the model's own router would choose, those that were not "
        "used; lost: their share of all scores.",
        rows[0].router.smoe.alpha));
  constexpr std::size_t kBeforeBar = 33;
  const std::size_t most = std::min<std::size_t>(50, columns - std::min(columns - 1, kBeforeBar));
  for (const Row& row : rows) {
    if (row.settings.window == 0) continue;
    print_output("\n{} {}: hit % by steps\n", row.settings.cache.name(), row.capacity);
    for (const lab::ReplayWindow& window : row.result.windows) {
      const double rate = window.counts.hit_rate();
      print_output("  {:>8} … {:<8} {:>8.3f}  {}\n", window.first_step, window.first_step + window.steps - 1,
                   100 * rate,
                   std::string(static_cast<std::size_t>(std::lround(rate * static_cast<double>(most))), '#'));
    }
  }
}

// Checks the flags of replays of whole experts, by that router.
void check_whole(const SliceFlags& flags, const lab::ReplayRouter& router = {}) {
  engine::EngineOptions chosen;
  set_slice_options(flags, chosen);
  if (!flags.precision.empty())
    throw Error(ErrorKind::kUsage, "only experts in slices have two precisions")
        .in(Setting::kPrecision)
        .expected(Setting::kCache + " slice-lru, or " + Setting::kMachine)
        .found(flags.precision)
        .fix("give what the flag needs, or leave " + Setting::kPrecision + " out");
  engine::EngineOptions replayed;  // whatever the flags say
  replayed.router = router.router;
  replayed.cache = "lru";
  check_effects(flags, chosen, engine::choose_policies(replayed));
}

// For a replay with a device: the rules of experts in slices, where the flags name a precision; else refuses
// the flags of slices.
void set_slices(const SliceFlags& flags, HybridRequest& request) {
  if (flags.precision.empty()) return check_whole(flags);
  engine::EngineOptions chosen;
  set_slice_options(flags, chosen);
  chosen.router = "exact";
  chosen.cache = request.host.cache;
  const engine::PolicyPlan plan = engine::choose_policies(chosen);
  check_effects(flags, chosen, plan);
  request.slices = {plan.precision, plan.slices, plan.limits};
}

// The rules of the router smoe, and which flags give them; and those of slices.
void set_rules(const SliceFlags& flags, HybridRequest& request) {
  engine::EngineOptions chosen;
  set_slice_options(flags, chosen);
  request.smoe = chosen.smoe;
  for (const auto& [setting, typed] : {std::pair(Setting::kAlpha, &flags.alpha),
                                       {Setting::kMerge, &flags.merge},
                                       {Setting::kRenorm, &flags.renorm},
                                       {Setting::kResident, &flags.resident}})
    if (!typed->empty()) request.smoe_flags.push_back(setting);
  SliceFlags others = flags;
  others.alpha = others.merge = others.renorm = others.resident = "";
  set_slices(others, request);
}

// Replays slice-lru over a recorded run of a model in slices.
void run_slices(const Options& options) {
  lab::ReplaySettings capacity;
  parse_capacity(options.capacities, capacity);
  if (capacity.unit != lab::CapacityUnit::kBytes)
    throw Error(ErrorKind::kUsage, "a cache of slices takes its capacity in bytes")
        .in(Setting::kCapacity)
        .expected("a size (4GiB)")
        .found(options.capacities)
        .fix("give one size");
  engine::EngineOptions chosen;
  set_slice_options(options.slices, chosen);
  if (chosen.precision == experts::PrecisionMode::kFull)
    throw Error(ErrorKind::kUsage, "a replay of slices needs a precision")
        .in(Setting::kPrecision)
        .expected("high, low or dbsc")
        .found("none")
        .fix("give " + Setting::kPrecision + " dbsc, or as the model was run");
  // Where the recorded choices stay, a limit serves only the account.
  const lab::ReplayRouter router = router_of(options);
  chosen.router = router.router;
  chosen.cache = "slice-lru";
  const engine::PolicyPlan plan = engine::choose_policies(chosen);
  check_effects(options.slices, chosen, plan);
  lab::SliceReplaySettings settings;
  settings.scope = options.scope == "layer" ? lab::Scope::kLayer : lab::Scope::kGlobal;
  settings.capacity = capacity.capacity;
  settings.seed = seed_of(options);
  settings.slices = {plan.precision, plan.slices, plan.limits};
  settings.router = router;
  if (!options.decisions.empty()) check_new_file(options.decisions);

  const std::unique_ptr<trace::RoutingTrace> trace = trace::open_trace(options.trace);
  std::optional<OutputFile> log;
  std::optional<UnfinishedFile> unfinished;
  check_output();
  const lab::SliceReplayResult result = lab::replay_slices(
      *trace, settings,
      options.decisions.empty() ? std::function<void(std::string_view)>()
                                : [&](std::string_view line) {
                                    if (!log) {
                                      log = OutputFile::create(options.decisions);
                                      unfinished.emplace(options.decisions);
                                    }
                                    log->write(line);
                                  },
      interrupted_or_unread);
  if (log) {
    log->close();
    unfinished->keep();
  }
  if (result.cut_off && !options.common.quiet)
    print_warning("{} was cut off; its last record is left out", options.trace);
  warn_of_own_rule(options, result.routing.recorded_differs);
  const experts::MissAccount& slices = result.slices;
  if (options.common.json) {
    Json json = {{"trace", options.trace},
                 {"cache", "slice-lru"},
                 {"scope", settings.scope == lab::Scope::kLayer ? "layer" : "global"},
                 {"capacity", settings.capacity},
                 {"accesses", result.total.accesses},
                 {"hits", result.total.hits},
                 {"misses", result.total.misses()},
                 {"decode_hit_rate", result.decode.hit_rate()},
                 {"bytes_read", result.bytes_read},
                 {"slices",
                  {{"hbn_miss_rate", result.account.rate()},
                   {"msb_misses", slices.msb_misses},
                   {"msb_hits", slices.msb_requests - slices.msb_misses},
                   {"lsb_misses", slices.lsb_misses},
                   {"lsb_hits", slices.lsb_requests - slices.lsb_misses - slices.downgrades},
                   {"downgrades", slices.downgrades}}},
                 {"decisions", fmt::format("{:016x}", result.decision_hash)}};
    if (router.routes()) json["routing"] = routing_json(router, result.routing);
    add_played(json, result.played);
    std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
    return;
  }
  print_wrapped(fmt::format("{}: slice-lru of {}, one cache {}", options.trace,
                            format_bytes(settings.capacity),
                            settings.scope == lab::Scope::kLayer ? "a layer" : "for all layers"));
  print_played(result.played);
  print_wrapped(fmt::format("{} accesses, {} hits ({:.3f} % of decode steps'), {} read",
                            result.total.accesses, result.total.hits, 100 * result.decode.hit_rate(),
                            format_bytes(result.bytes_read)));
  print_wrapped(fmt::format(
      "decode steps: {} of {} MSB slices missing, {} of {} LSB slices, {} downgrades; {:.2f} % of bytes",
      slices.msb_misses, slices.msb_requests, slices.lsb_misses, slices.lsb_requests, slices.downgrades,
      100 * result.account.rate()));
  if (router.routes()) print_wrapped(loss_text(router, result.routing));
}

// False for the name of no router, too.
bool routes_beside_device(std::string_view router) {
  return std::ranges::any_of(experts::router_policies(), [&](const experts::RouterPolicy& policy) {
    return policy.name == router && (!policy.lossy || policy.rules == experts::RouterRules::kSmoe);
  });
}

// Whether the flags ask for a host and a device; then nothing else may be asked for.
bool is_hybrid(const Options& options) {
  const std::string first = options.machine.machine.substr(0, options.machine.machine.find(','));
  if (!options.hybrid.asked() && !lab::is_hybrid_machine(first)) return false;
  if (first.empty())
    throw Error(ErrorKind::kUsage, "a replay with a device needs a machine")
        .in(Setting::kMachine)
        .expected("a name such as dali-3090, or a JSON file: a machine, or a profile with a device")
        .found("none")
        .fix("add " + Setting::kMachine + " dali-3090");
  if (!options.timed.profile.empty() || !options.timed.memories.empty() || !options.machine.slices.empty() ||
      !options.machine.shape.empty())
    throw Error(ErrorKind::kUsage,
                "a replay with a device takes its costs from the machine, and sizes from the trace")
        .in(Setting::kMachine)
        .expected("what `sluice simulate " + Setting::kHelp +
                  "` lists under \"Host and device\", and the host's cache")
        .found("flags of another kind of replay")
        .fix("leave out " + Setting::kProfile + ", " + Setting::kMemoryExperts + ", " + Setting::kSlices +
             " and " + Setting::kShape);
  if (!options.machine.router.empty() && !routes_beside_device(options.machine.router))
    throw Error(ErrorKind::kUsage,
                "a replay with a device takes the routing as it was recorded, or routes by smoe")
        .in(Setting::kRouter)
        .expected("exact or smoe")
        .found(options.machine.router)
        .fix("name one of these, or leave " + Setting::kRouter + " out");
  return true;
}

// For a replay that takes no recorded ranks.
Error ranks_without_effect(std::string_view replay) {
  return Error(ErrorKind::kUsage, "this flag has no effect here")
      .in(Setting::kRanksOf)
      .expected("a timed replay (" + Setting::kProfile + ", " + Setting::kPreset + " and " +
                Setting::kMemoryExperts + "), or one with a device (" + Setting::kMachine + " and " +
                Setting::kDeviceSlots + ")")
      .found(replay)
      .fix("give what the flag needs, or leave " + Setting::kRanksOf + " out");
}

// The flag by which the user asks for a timed replay.
Setting asks_for_times(const TimedFlags& flags) {
  return !flags.profile.empty()   ? Setting::kProfile
         : !flags.presets.empty() ? Setting::kPreset
                                  : Setting::kMemoryExperts;
}

// Refuses what a timed replay does not take, naming the flag that makes the replay a timed one.
void check_timed(const Options& options) {
  const TimedFlags& timed = options.timed;
  const bool has_caches = !options.caches.empty() || !options.capacities.empty() || !options.pools.empty() ||
                          !options.decisions.empty();
  if (timed.profile.empty() && timed.presets.empty() && timed.memories.empty())
    throw ranks_without_effect(has_caches ? "a replay of caches" : "none of these");
  if (has_caches)
    throw Error(ErrorKind::kUsage,
                "a timed replay takes " + Setting::kPreset + " and " + Setting::kMemoryExperts)
        .in(asks_for_times(timed))
        .expected("a timed replay alone")
        .found("flags of a replay of caches, too")
        .fix("leave out " + Setting::kCache + ", " + Setting::kCapacity + ", " + Setting::kPools + " and " +
             Setting::kDecisions);
}

// A router may also be that of a replay of caches.
bool asks_for_a_machine(const Options& options) {
  MachineFlags flags = options.machine;
  const bool of_caches = !options.caches.empty() && (!options.capacities.empty() || !options.pools.empty());
  if (of_caches && options.timed.memories.empty()) flags.router.clear();
  return flags.asked();
}

// Replays that need the logits of all experts.
bool needs_scores(const Row& row) {
  return row.router.routes() || row.settings.cache->scores != experts::CacheScores::kNone;
}

void run(const Options& options) {
  if (is_hybrid(options)) {
    HybridRequest request{{options.caches, options.capacities, options.scope, options.keep, options.pools},
                          options.trace,
                          options.machine.machine,
                          options.timed.presets,
                          options.decisions,
                          options.timed.ranks_of,
                          options.machine.prefill,
                          seed_of(options),
                          options.common.json,
                          options.common.quiet,
                          options.machine.router};
    set_rules(options.slices, request);
    return hybrid_replay(request, options.hybrid);
  }
  if (asks_for_a_machine(options)) {
    if (!options.capacities.empty() || !options.pools.empty() || !options.timed.profile.empty() ||
        options.scope == "layer")
      throw Error(ErrorKind::kUsage,
                  "a replay on a modelled machine has one cache of " + Setting::kMemoryExperts)
          .in(Setting::kMachine)
          .expected(Setting::kMemoryExperts + " and none of the other sizes")
          .found("flags of another kind of replay")
          .fix("leave out " + Setting::kCapacity + ", " + Setting::kScope + ", " + Setting::kPools + " and " +
               Setting::kProfile);
    if (!options.timed.ranks_of.empty()) throw ranks_without_effect("a replay on a machine without a device");
    return machine_replay({options.trace, options.caches, options.timed.presets, options.timed.memories,
                           options.decisions, seed_of(options), options.common.json, options.common.quiet},
                          options.machine, options.slices);
  }
  const lab::ReplayRouter router = router_of(options);
  const std::vector<std::string> caches =
      options.caches.empty() ? std::vector<std::string>() : cache_names(options.caches, router.routes());
  const bool by_slices =
      std::ranges::any_of(caches, [](const auto& name) { return experts::find_cache(name).sliced; });
  if (!by_slices) check_whole(options.slices, router);
  if (options.machine.prefill)
    throw Error(ErrorKind::kUsage,
                "only a replay on a machine or with a device asks which tokens are prompts")
        .in(Setting::kPrefill)
        .expected(Setting::kMachine + " or " + Setting::kDeviceSlots)
        .found("neither")
        .fix("leave " + Setting::kPrefill + " out, or name a machine");
  if (options.timed.asked()) {
    check_timed(options);
    return timed_replay({options.trace, options.scope.empty() ? "global" : options.scope, seed_of(options),
                         options.common.json, options.common.quiet, options.rules},
                        options.timed);
  }
  if (options.caches.empty())
    throw Error(ErrorKind::kUsage, "nothing to replay the trace through")
        .in(Setting::kCache)
        .expected(Setting::kCache + " and " + Setting::kCapacity + "; or " + Setting::kProfile + ", " +
                  Setting::kPreset + " and " + Setting::kMemoryExperts)
        .found("neither")
        .fix("name a cache and its capacity: " + Setting::kCache + " lru " + Setting::kCapacity + " 64");
  if (by_slices) {
    if (caches.size() > 1)
      throw Error(ErrorKind::kUsage, "slices and whole experts are not replayed together")
          .in(Setting::kCache)
          .expected("slice-lru alone")
          .found(options.caches)
          .fix("replay them one after the other");
    return run_slices(options);
  }
  const bool pooled =
      std::ranges::all_of(caches, [](const auto& name) { return experts::find_cache(name).pooled; });
  if (!options.pools.empty() &&
      std::ranges::none_of(caches, [](const auto& name) { return experts::find_cache(name).pooled; }))
    throw Error(ErrorKind::kUsage, "none of these caches has pools")
        .in(Setting::kPools)
        .expected(Setting::kCache + " zip-pools")
        .found(options.caches)
        .fix("name that cache, or leave " + Setting::kPools + " out");
  const bool by_slots = options.capacities.empty() && pooled && !options.pools.empty();
  if (options.capacities.empty() && !by_slots)
    throw Error(ErrorKind::kUsage, "the caches have no capacity")
        .in(Setting::kCapacity)
        .expected(pooled ? "experts (64), a size (4GiB), or " + Setting::kPools + " alone"
                         : "experts (64) or a size (4GiB)")
        .found("none")
        .fix("give " + Setting::kCapacity);
  const std::vector<std::string> capacities =
      by_slots ? std::vector<std::string>{"-"} : split_list(options.capacities, Setting::kCapacity);
  std::vector<Row> rows;
  for (const std::string& capacity : capacities)
    for (const std::string& cache : caches) {
      Row row;
      row.capacity = capacity;
      row.router = router;
      row.settings.cache = cache;
      row.settings.scope = options.scope != "global" ? lab::Scope::kLayer : lab::Scope::kGlobal;
      row.settings.keep = options.keep == "full" ? experts::Parts(experts::Part::kFull)
                                                 : experts::Part::kSm | experts::Part::kExp;
      row.settings.seed = seed_of(options);
      row.settings.window = options.window;
      if (!by_slots) parse_capacity(capacity, row.settings);
      fill_slots(options, row.settings);
      rows.push_back(std::move(row));
    }
  if (!options.decisions.empty() && rows.size() != 1)
    throw Error(ErrorKind::kUsage, "one log holds the decisions of one cache of one capacity")
        .in(Setting::kDecisions)
        .expected("one replay")
        .found(std::to_string(rows.size()))
        .fix("name one cache and one capacity, or leave " + Setting::kDecisions + " out");
  if (!options.decisions.empty()) check_new_file(options.decisions);
  const Bytes expert_bytes =
      options.expert_bytes.empty() ? 0 : parse_size(options.expert_bytes, Setting::kExpertBytes);

  const std::unique_ptr<trace::RoutingTrace> trace = trace::open_trace(options.trace);
  for (const Row& row : rows)
    if (needs_scores(row)) lab::check_replay_router(row.router, *row.settings.cache, *trace);
  check_output();
  const lab::Requests requests = lab::read_requests(*trace, interrupted_or_unread);
  const trace::TraceHeader& header = trace->header();
  std::optional<trace::TraceSizes> sizes = header.sizes;
  if (!options.expert_bytes.empty()) {
    sizes.emplace(header.layers, header.experts, options.trace);
    for (std::uint32_t layer = 0; layer < header.layers; ++layer)
      for (std::uint32_t e = 0; e < header.experts; ++e)
        sizes->set({static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)}, {.full = expert_bytes},
                   expert_bytes);
  }
  if (by_slots)
    for (Row& row : rows) {
      const experts::PoolSlots& slots = *row.settings.pools;
      row.settings.capacity = (std::uint64_t{slots.f} + slots.c + slots.s + slots.e) *
                              (row.settings.scope == lab::Scope::kLayer ? 1 : header.layers);
      row.capacity = std::to_string(row.settings.capacity);
    }
  if (requests.cut_off && !options.common.quiet)
    print_warning("{} was cut off; its last record is left out", options.trace);

  std::optional<OutputFile> log;
  std::optional<UnfinishedFile> unfinished;
  if (!options.decisions.empty()) {
    log = OutputFile::create(options.decisions);
    unfinished.emplace(options.decisions);
  }
  std::string buffered;
  for (Row& row : rows) {
    const Clock::time_point start = Clock::now();
    const std::function<void(std::string_view)> write =
        log ? std::function<void(std::string_view)>([&](std::string_view line) {
          buffered += line;
          if (buffered.size() < 64 * kKiB) return;
          log->write(buffered);
          buffered.clear();
        })
            : nullptr;
    const trace::TraceSizes* const known = sizes ? &*sizes : nullptr;
    if (needs_scores(row)) {
      const std::unique_ptr<trace::RoutingTrace> again = trace::open_trace(options.trace);
      lab::RoutedReplayResult routed =
          lab::replay_routed(*again, known, row.settings, row.router, write, interrupted_or_unread);
      row.result = std::move(routed.caches);
      row.routing = routed.routing;
    } else {
      row.result = lab::replay(requests, header.layers, known, row.settings, write, interrupted_or_unread);
    }
    row.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  }
  if (log) {
    log->write(buffered);
    log->close();
    unfinished->keep();
  }

  warn_of_own_rule(options, rows[0].routing.recorded_differs);
  if (!options.common.json) return print_table(*trace, requests, rows);
  Json json = trace_json(*trace, requests);
  if (rows.size() == 1) {
    json.update(result_json(rows[0]));
  } else {
    json["results"] = Json::array();
    for (const Row& row : rows) json["results"].push_back(result_json(row));
  }
  std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace simulate_command
}  // namespace

void add_simulate(Command& app) {
  using namespace simulate_command;
  auto options = std::make_shared<Options>();
  Command* command = app.add_command("simulate", "Replay recorded routing through any cache");
  std::string names;
  for (const experts::CachePolicy& policy : experts::cache_policies())
    if (!is_for_a_device(policy)) names += std::string(policy.name) + ", ";
  command
      ->add_option(Setting::kTrace, &options->trace,
                   "File of `sluice trace`, .mrt or .csv; each also as .zst")
      ->required();
  command->add_option(Setting::kCache, &options->caches,
                      names + "several with commas between them, or all (of whole experts, without pools)");
  command->add_option(Setting::kCapacity, &options->capacities,
                      "Room of each cache: experts (64) or a size (4GiB); several with commas between them");
  command
      ->add_option(
          Setting::kScope, &options->scope,
          "One cache a layer, or one for all: layer (the default), global (the default of timed replays)")
      ->one_of({"layer", "global"});
  command->add_option(Setting::kKeep, &options->keep, "Experts stay in memory as: full, packed")
      ->one_of({"full", "packed"})
      ->show_default();
  command->add_option(Setting::kExpertBytes, &options->expert_bytes,
                      "Size of every expert, where the trace does not say it or says another");
  command->add_option(Setting::kWindow, &options->window, "Also report the hit rate of every so many steps")
      ->check(whole_number(Setting::kWindow, 1, std::uint64_t{1} << 31));
  command->add_option(
      Setting::kDecisions, &options->decisions,
      "Write every decision to this new file, as `sluice run " + Setting::kDecisions + "` does");
  add_common_flags(*command, options->common,
                   {.seed = "For caches that draw (marking); default: 0",
                    .json = "Print one JSON object and nothing else",
                    .quiet = "No warnings on standard error"});
  const std::string pools = "Pools (zip-pools, and presets with pools)";
  command
      ->add_option(
          Setting::kPools, &options->pools,
          "Slots of each layer, F,C,S,E: experts in full, compressed, as sign+mantissa, as exponents")
      ->group(pools);
  command->add_option(Setting::kDelta, &options->rules.delta, "Experts that a rank may be beyond its pool")
      ->check(whole_number(Setting::kDelta, 0, 1 << 20))
      ->group(pools)
      ->show_default();
  command
      ->add_option(
          Setting::kDemote,
          [options](const std::string& name) { options->rules.demotion = *experts::find_demotion(name); },
          "Experts without room in their pool: none (they leave), room (those of C stay as S or E where "
          "there is room), rank (they go on to the next pool, and colder ones make room; the default)")
      ->one_of({"none", "room", "rank"})
      ->group(pools);
  command
      ->add_option(Setting::kHalfLife, &options->rules.half_life,
                   "Steps in which counts halve; 0: they never do")
      ->group(pools)
      ->show_default();
  add_timed_flags(*command, options->timed);
  add_slice_flags(*command, options->slices);
  add_machine_flags(*command, options->machine);
  add_hybrid_flags(*command, options->hybrid);
  command->footer(
      "Examples:\n"
      "  sluice simulate --trace fable.trace --cache all --capacity 8\n"
      "  sluice simulate --trace qwen.route.csv.zst --cache lru,lfu,belady --capacity 1GiB,2GiB,4GiB --scope "
      "global\n"
      "  sluice simulate --trace fable.trace --cache zip-pools --pools 3,4,2,1\n"
      "  sluice simulate --trace fable.trace --cache lru,score-window --capacity 10MiB --scope global "
      "--router "
      "smoe --alpha 0.25\n"
      "  sluice simulate --trace fable.trace --profile here.json --preset zipmoe,z-C,z-basic-lru "
      "--memory-experts "
      "10MiB,20MiB\n"
      "  sluice simulate --trace dsv2lite.summary612.mrt.zst --machine slicemoe --slices "
      "8/4,4/2 --memory-experts 1.8GB,2.4GB --prefill 500\n"
      "  sluice simulate --trace dsv2lite.summary612.mrt.zst --machine dali-3090 --preset "
      "dali,gpu-lru --prefetch none --device-slots 16,32\n"
      "Those traces are in tests/data/routing of the source. " +
      Setting::kBatch + " takes as many sequences as the trace has: that one has 1.");
  command->callback([options] { run(*options); });
}

}  // namespace sluice::app
