#include "flags/engine_flags.h"

#include <fmt/format.h>

#include <charconv>

#include "base/compared_bytes.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/setting.h"
#include "base/shown_text.h"
#include "base/stopwatch.h"
#include "device/emulated/emulated_spec.h"
#include "engine/engine.h"
#include "engine/plan/gate_residual.h"
#include "engine/plan/memory_plan.h"
#include "engine/run_report.h"
#include "experts/device_caches.h"
#include "experts/device_presets.h"
#include "experts/registry.h"
#include "flags/command_line.h"
#include "flags/number_range.h"
#include "flags/open_tokenizer.h"
#include "flags/slice_effects.h"
#include "flags/split_list.h"
#include "model/architecture.h"
#include "model/config.h"
#include "store/format.h"
#include "store/sidecar/sidecar.h"
#include "store/source/open_checkpoint.h"
#include "store/source/store_checkpoint.h"
#include "streams/interrupt.h"
#include "streams/played_routing.h"
#include "streams/standard_error.h"
#include "trace/choice_counts.h"
#include "trace/routing_script_reader.h"

namespace sluice::app {
namespace {

// Whether a running model can do what a policy does. Others must be told what replays alone know. A cache of
// the host is not told what is popular, and begins empty.
bool runs(const experts::CachePolicy& cache) {
  return !cache.oracle && experts::why_for_a_device(cache).empty();
}
bool runs(const experts::PrefetchPolicy& prefetch) {
  return prefetch.needs != experts::PrefetchNeeds::kTransitions;
}
bool runs(const experts::DevicePreset& preset) { return preset.missing.empty(); }

// The names of those policies of a table that `has` says true of.
template <class Policies, class Has>
std::string names_of(const Policies& policies, Has has) {
  std::string names;
  for (const auto& policy : policies)
    if (has(policy)) names += (names.empty() ? "" : ", ") + std::string(policy.name);
  return names;
}

template <class Policies>
std::string names_of(const Policies& policies) {
  return names_of(policies, [](const auto& policy) {
    if constexpr (requires { runs(policy); })
      return runs(policy);
    else
      return true;
  });
}

// A device holds whole experts, in one form.
std::string device_cache_names() {
  return names_of(experts::cache_policies(), [](const experts::CachePolicy& cache) {
    return !cache.oracle && !cache.pooled && !cache.sliced;
  });
}

void check_prefetch(const std::string& name) {
  const experts::PrefetchPolicy& prefetch = experts::find_prefetch(name);
  if (runs(prefetch)) return;
  throw Error(ErrorKind::kUsage,
              "this prefetch must know which experts follow which, which replays alone count")
      .in(Setting::kPrefetch)
      .expected("one of " + names_of(experts::prefetch_policies()))
      .found(name)
      .fix("name another, or replay a trace: sluice simulate " + Setting::kPrefetch + " " + name + " " +
           Setting::kRanksOf + " FILE");
}

// Checks names before anything is opened; the code that uses a name looks it up again.
void check_policies(const EngineFlags& flags) {
  if (!flags.preset.empty()) experts::host_preset(flags.preset);
  if (!flags.router.empty()) experts::find_router(flags.router);
  if (!flags.cache.empty()) check_cache(flags.cache, Setting::kCache, CacheUser::kModel);
  if (!flags.scheduler.empty()) experts::find_scheduler(flags.scheduler);
  if (!flags.prefetch.empty()) check_prefetch(flags.prefetch);
  if (!flags.placement.empty()) experts::find_placement(flags.placement);
  if (!flags.placement_prefill.empty())
    experts::find_placement(flags.placement_prefill, Setting::kPlacementPrefill);
  if (!flags.device_cache.empty()) check_cache(flags.device_cache, Setting::kDeviceCache, CacheUser::kModel);
}

DiskMethod parse_disk_method(const std::string& text) {
  if (text == "auto") return DiskMethod::kAuto;
  if (text == "io_uring") return DiskMethod::kIoUring;
  if (text == "pread") return DiskMethod::kPread;
  throw Error(ErrorKind::kUsage, "unknown disk method")
      .in(Setting::kDisk)
      .expected("auto, io_uring or pread")
      .found(text);
}

// A bare number, which counts experts in replays, is not taken for bytes; 0 is 0 in any unit.
Bytes parse_capacity(const std::string& text) {
  const bool bare = text.find_first_not_of("0123456789") == std::string::npos;
  if (bare && text.find_first_not_of('0') != std::string::npos)
    throw Error(ErrorKind::kUsage, "a size without its unit")
        .in(Setting::kCapacity)
        .expected("a size (4GiB, 21217280B)")
        .found(text);
  try {
    return parse_size(text, Setting::kCapacity);
  } catch (Error& error) {
    throw error.expected("a size (4GiB, 21217280B)");
  }
}

// Routing is played by one router, and that router plays nothing else.
void check_played(const EngineFlags& flags, const experts::RouterPolicy& router) {
  if (router.scripted && flags.routing.empty())
    throw Error(ErrorKind::kUsage, "the router recorded plays a routing trace, for benchmarks alone")
        .in(Setting::kRouter)
        .expected(Setting::kRouting + " FILE beside it, which run, trace and compare have")
        .found("none")
        .fix("name a trace, or use another router");
  const std::pair<Setting, const std::string&> needed[] = {{Setting::kRouting, flags.routing},
                                                           {Setting::kRoutingLayers, flags.routing_layers}};
  for (const auto& [setting, value] : needed)
    if (!router.scripted && !value.empty())
      throw Error(ErrorKind::kUsage, "this flag has no effect here")
          .in(setting)
          .expected(Setting::kRouter + " recorded")
          .found("router " + std::string(router.name))
          .fix("give what the flag needs, or leave " + setting + " out");
}

std::uint32_t parse_layer(const std::string& text) {
  std::uint32_t layer = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), layer);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(ErrorKind::kUsage, "this is not the number of a layer")
        .in(Setting::kRoutingLayers)
        .expected("numbers with commas between them, such as 1,6,11")
        .found("\"" + text + "\"");
  return layer;
}

std::size_t in_range(std::int64_t value, std::int64_t least, std::int64_t most, Setting setting) {
  if (value < least || value > most)
    throw Error(ErrorKind::kUsage, "value out of range")
        .in(setting)
        .expected(fmt::format("{} to {}", least, most))
        .found(std::to_string(value));
  return static_cast<std::size_t>(value);
}

}  // namespace

namespace {

const std::string kDeviceGroup = "Device";

void add_device_choice(Command& command, EngineFlags& flags, const std::string& does) {
  command
      .add_option(Setting::kDevice, &flags.device,
                  does +
                      ": emulated, which may be followed by :link=2GB/s,latency=20us,compute=60GB/s,… "
                      "(its seconds are no speed of the program), or none")
      ->group(kDeviceGroup)
      ->show_default();
  command
      .add_option(Setting::kLink, &flags.link,
                  "Its link carries no more than this each way (25GB/s), however fast it is")
      ->group(kDeviceGroup);
  command
      .add_option(Setting::kDenseOn, &flags.dense_on,
                  "Where dense weights and the key/value cache are, and attention is computed: host (the "
                  "default), device, or auto (the device if they fit there)")
      ->group(kDeviceGroup);
  command
      .add_option(
          Setting::kDeviceKeep, &flags.device_keep,
          "Experts stay on the device as: full; packed, two thirds of the memory and of each copy, for "
          "stores of codec native, and the host then keeps them so, too; auto, which is as the host "
          "keeps them")
      ->group(kDeviceGroup)
      ->show_default();
}

void add_device_flags(Command& command, EngineFlags& flags) {
  add_device_choice(command, flags, "Computes experts beside the host");
  command
      .add_option(Setting::kPlacementPrefill, &flags.placement_prefill,
                  Setting::kPlacement +
                      " of steps with tokens of prompts; default: as all steps, or as the preset has it "
                      "where " +
                      Setting::kPlacement + " is not given")
      ->group(kDeviceGroup);
  command
      .add_option(Setting::kDeviceMemory, &flags.device_memory,
                  "Budget of the device's own memory (8MiB), beside " + Setting::kMemory +
                      "; default: what its slots take, or the smaller of 1 GiB and a quarter of what is free")
      ->group(kDeviceGroup);
  command
      .add_option(Setting::kDeviceSlots, &flags.device_slots,
                  "Experts of each layer that stay on the device; default: as many as its memory holds")
      ->check(whole_number(Setting::kDeviceSlots, 0, 65535))
      ->group(kDeviceGroup);
  command
      .add_option(Setting::kDeviceCache, &flags.device_cache,
                  "Which experts stay there: " + device_cache_names() + "; default: workload-ema")
      ->group(kDeviceGroup);
  command
      .add_option(Setting::kRanksOf, &flags.ranks_of,
                  "Recorded routing of another text (sluice trace), which says the caches that keep popular "
                  "experts there how often each is used")
      ->group(kDeviceGroup);
  command
      .add_option(Setting::kTiers, &flags.tiers,
                  "An expert that stays on the device stays in the host's memory, too, as its cache says: "
                  "inclusive; or does not, and goes back there when it leaves the device: exclusive, which "
                  "reads less from disk; default: exclusive where the host's memory does not hold all "
                  "experts and its cache can take them back")
      ->group(kDeviceGroup);
  command
      .add_option(Setting::kPrefetchSize, &flags.prefetch_size,
                  "Experts of a layer that " + Setting::kPrefetch +
                      " copies there ahead, at most; default: 1 where a layer has 8, else 4")
      ->check(whole_number(Setting::kPrefetchSize, 0, 65535))
      ->group(kDeviceGroup);
}

void add_policy_flags(Command& command, EngineFlags& flags, const EngineHelp& help) {
  const std::string policies = "Policies", preset_rules = "; default: the preset's";
  command
      .add_option(Setting::kPreset, &flags.preset,
                  "Policies set together: " + names_of(experts::presets()) +
                      (help.devices ? "; with a device " + names_of(experts::device_presets()) : "") +
                      "; default: " + help.preset)
      ->group(policies);
  command
      .add_option(Setting::kRouter, &flags.router,
                  fmt::format("{} ({}){}",
                              names_of(experts::router_policies(),
                                       [&](const experts::RouterPolicy& router) {
                                         return help.plays_routing || !router.scripted;
                                       }),
                              help.router, preset_rules))
      ->group(policies);
  if (help.plays_routing) {
    command
        .add_option(Setting::kRouting, &flags.routing,
                    "What recorded plays: a trace of sluice trace, a .mrt or a .csv, fitted to the model")
        ->group(policies);
    command
        .add_option(Setting::kRoutingLayers, &flags.routing_layers,
                    "The trace's layer that recorded plays in each sparse layer, with commas between them; "
                    "default: the layers of the trace in turns")
        ->group(policies);
  }
  command.add_option(Setting::kCache, &flags.cache, names_of(experts::cache_policies()) + preset_rules)
      ->group(policies);
  command
      .add_option(Setting::kCacheScope, &flags.cache_scope,
                  "One cache for all layers or one a layer: global, layer")
      ->group(policies)
      ->show_default();
  command
      .add_option(Setting::kCapacity, &flags.capacity,
                  "Size of all caches together (4GiB), so that every start decides alike; default: what " +
                      Setting::kMemory + " leaves, which differs a little")
      ->group(policies);
  command
      .add_option(Setting::kScheduler, &flags.scheduler,
                  names_of(experts::scheduler_policies()) + preset_rules)
      ->group(policies);
  command
      .add_option(Setting::kPrefetch, &flags.prefetch,
                  names_of(experts::prefetch_policies()) + preset_rules +
                      ", of auto stream (none for slices whose router prefers what is in memory)")
      ->group(policies);
  command
      .add_option(Setting::kPlacement, &flags.placement,
                  names_of(experts::placement_policies()) + preset_rules)
      ->group(policies);
  command
      .add_option(Setting::kProfile, &flags.profile,
                  "Measured costs to plan with (sluice profile); default: the store's, or measured at the "
                  "start (a store without any keeps them)")
      ->group(policies);
  command
      .add_option(
          Setting::kResidual, &flags.residual,
          "What " + Setting::kPrefetch +
              " dali-residual adds to inputs of routers (sluice calibrate); default: the store's. auto "
              "prefetches so where that was found to be better than stream")
      ->group(policies);
  if (help.devices) add_device_flags(command, flags);
  add_computing_flags(command, flags.slices);
  add_slice_flags(command, flags.slices);
}

}  // namespace

void add_engine_flags(Command& command, EngineFlags& flags, const EngineHelp& help) {
  const std::string machine = "This machine";
  command.add_argument("MODEL", &flags.model, "Hugging Face directory or packed NAME.sluice store")
      ->required();
  add_common_flags(
      command, flags,
      {.memory = "Budget for everything (8GiB, 500MB); default: what is free, less max(512 MiB, 5 %)",
       .threads = "Compute threads; 0: all usable CPUs",
       .isa = "Instruction set: auto, scalar, avx2, avx512, avx512_vbmi2, avx512_bf16, amx, neon",
       .io = "How weights are read: direct, buffered, mmap",
       .seed = help.seed,
       .json = "Print one JSON object and nothing else",
       .quiet = "No progress and no statistics on standard error"});
  if (help.policies != PolicyFlags::kNone)
    command.add_option(Setting::kContext, &flags.context, help.context)
        ->check(whole_number(Setting::kContext, 1, std::uint64_t{1} << 31))
        ->group(machine);
  command.add_option(Setting::kDisk, &flags.disk, "Asynchronous reads by: auto, io_uring, pread")
      ->group(machine)
      ->show_default();
  command.add_option(Setting::kMath, &flags.math, "Arithmetic: auto (BF16 key/value cache) or f32")
      ->group(machine)
      ->show_default();
  command
      .add_option(Setting::kKv, &flags.kv,
                  "Key/value cache: bf16, f32, int8 (half of bf16, with rounding of its own), auto")
      ->group(machine)
      ->show_default();
  command.add_option(Setting::kChunk, &flags.chunk, "Most prompt tokens of one step")
      ->check(whole_number(Setting::kChunk, 1, 65536))
      ->group(machine)
      ->show_default();
  command
      .add_option(
          Setting::kKeep, &flags.keep,
          "Experts stay in memory as: full, or packed (smaller; of codec native computed with as "
          "they are, else decoded at each use); default: full, or packed where a device keeps them so")
      ->group(machine);
  command
      .add_option(
          Setting::kDense, &flags.dense,
          "Dense matrices of a store of codec native stay in memory as: words, packed (a third smaller, "
          "computed with as they are), auto")
      ->group(machine)
      ->show_default();
  if (help.policies != PolicyFlags::kNone)
    add_policy_flags(command, flags, help);
  else if (help.devices)
    add_device_choice(command, flags, "Also measures this device, at work beside the host");
}

void check_cache(const std::string& name, Setting setting, CacheUser user) {
  const bool on_device = setting == Setting::kDeviceCache;
  const auto why_not = [&](const experts::CachePolicy& cache) -> std::string_view {
    if (cache.oracle) return "this cache must know all requests beforehand";
    if (!on_device && user == CacheUser::kModel && !experts::why_for_a_device(cache).empty())
      return experts::why_for_a_device(cache);
    if (on_device && (cache.pooled || cache.sliced))
      return "a device's cache holds whole experts, neither pools nor slices";
    return "";
  };
  const std::string names =
      names_of(experts::cache_policies(), [&](const auto& cache) { return why_not(cache).empty(); });
  for (const experts::CachePolicy& policy : experts::cache_policies()) {
    if (policy.name != name) continue;
    if (why_not(policy).empty()) return;
    throw Error(ErrorKind::kUsage, why_not(policy))
        .in(setting)
        .expected("one of " + names)
        .found(name)
        .fix(on_device       ? "name another"
             : policy.oracle ? "ask `sluice lab evict` what it would do"
                             : "name another, or replay a trace: sluice simulate");
  }
  throw Error(ErrorKind::kUsage, "unknown name")
      .in(setting)
      .expected("one of " + names)
      .found("\"" + name + "\"");
}

EngineFlags reference_flags(const EngineFlags& flags, const std::string& path) {
  EngineFlags reference;
  static_cast<CommonFlags&>(reference) = flags;
  reference.model = path;
  reference.math = flags.math;
  reference.disk = flags.disk;
  reference.chunk = flags.chunk;
  reference.router = "exact";
  return reference;
}

namespace {

// The store's profile, if it has one. A profile that is damaged or cannot be read is a warning, since costs
// can be measured again. The manifest's damage is no warning: opening the store ends with that error.
std::optional<engine::Profile> kept_profile(const EngineFlags& flags) {
  try {
    const std::optional<Json> sidecar = store::read_sidecar(flags.model, "profile", "profile");
    if (sidecar) return engine::profile_from_json(*sidecar, flags.model + "/sidecar/profile.json");
  } catch (const Error& error) {
    const bool of_profile = !error.where().starts_with(flags.model + "/" + std::string(store::kManifestName));
    if (of_profile && !flags.quiet)
      print_warning("the store's profile is passed over, and measured again: {}", error.what());
  }
  return std::nullopt;
}

// As kept_profile().
std::shared_ptr<const engine::GateResidual> kept_residual(const EngineFlags& flags) {
  try {
    const auto tables = store::read_tables(flags.model, engine::kResidualSidecar, engine::kResidualTables);
    if (tables) return std::make_shared<engine::GateResidual>(engine::read_residual(*tables));
  } catch (const Error& error) {
    const bool of_residual =
        !error.where().starts_with(flags.model + "/" + std::string(store::kManifestName));
    if (of_residual && !flags.quiet) print_warning("the store's residual is passed over: {}", error.what());
  }
  return nullptr;
}

std::shared_ptr<const engine::GateResidual> residual_of_file(const std::string& path) {
  InputFile file = InputFile::open(path);
  try {
    return std::make_shared<engine::GateResidual>(
        engine::read_residual(store::TableSidecar::of_file(std::move(file))));
  } catch (Error& error) {
    throw error.fix("name a file that `sluice calibrate MODEL " + Setting::kResidual + "` wrote with " +
                    Setting::kOutput);
  }
}

void find_residual(const EngineFlags& flags, engine::EngineOptions& options) {
  if (!flags.residual.empty()) {
    options.residual_name = flags.residual;
    options.residual = residual_of_file(flags.residual);
  } else if (store::looks_like_store(flags.model)) {
    options.residual_name = flags.model + "/sidecar/residual.bin";
    options.residual = kept_residual(flags);
  }
}

// A residual that nothing follows is an error where the user named it, and forgotten where the store has it.
void check_residual(const EngineFlags& flags, const engine::PolicyPlan& chosen,
                    engine::EngineOptions& options) {
  const bool followed = flags.records_ahead || chosen.prefetch->needs == experts::PrefetchNeeds::kResidual;
  if (followed || !options.residual) return;
  const bool considered = flags.prefetch.empty() && chosen.prefetch->name == "stream";
  if (!flags.residual.empty() && !considered)
    throw Error(ErrorKind::kUsage, "this flag has no effect here")
        .in(Setting::kResidual)
        .expected(Setting::kPrefetch + " dali-residual")
        .found("prefetch " + std::string(chosen.prefetch->name))
        .fix("give what the flag needs, or leave " + Setting::kResidual + " out");
  options.residual = nullptr;
}

void find_popularity(const engine::PolicyPlan& chosen, UnusedRanks unused, engine::EngineOptions& options) {
  if (options.popularity_name.empty() || chosen.device_cache == nullptr) return;
  if (!chosen.device_cache->by_popularity && unused == UnusedRanks::kLeftOut) {
    options.popularity_name.clear();
    return;
  }
  if (!chosen.device_cache->by_popularity)
    throw Error(ErrorKind::kUsage, "this flag has no effect here")
        .in(Setting::kRanksOf)
        .expected("a cache of the device that keeps popular experts: " + Setting::kDeviceCache +
                  " static-popular")
        .found("the cache " + std::string(chosen.device_cache->name))
        .fix("give what the flag needs, or leave " + Setting::kRanksOf + " out");
  const std::unique_ptr<trace::RoutingTrace> trace = trace::open_trace(options.popularity_name);
  options.popularity = trace::choice_counts(*trace, interrupted);
  tell_played(options.popularity_name, trace->played());
}

// Beside a device this router's text follows from measured costs, so these must be those of every start.
void check_costs_are_kept(const EngineFlags& flags, const engine::EngineOptions& options) {
  if (flags.router != "smoe" || flags.device.empty() || flags.device == "none" || options.profile ||
      store::looks_like_store(flags.model))
    return;
  throw Error(ErrorKind::kUsage,
              "beside a device the router smoe chooses by what is there, which follows from measured costs; "
              "measured at each start, they would give another text each time")
      .in(Setting::kRouter)
      .expected("costs from a file: " + Setting::kProfile + " FILE")
      .found("none, and this model is no store, which keeps them")
      .fix("measure once: sluice profile MODEL " + Setting::kDevice + " SPEC " + Setting::kOutput + " FILE");
}

}  // namespace

engine::EngineOptions engine_options(const EngineFlags& flags, UnusedRanks unused_ranks) {
  check_policies(flags);
  engine::EngineOptions options;
  if (!flags.memory.empty()) options.memory = parse_size(flags.memory, Setting::kMemory);
  options.threads = static_cast<unsigned>(flags.threads);
  options.chunk = in_range(flags.chunk, 1, 65536, Setting::kChunk);
  options.isa = flags.isa;
  options.math = engine::parse_math(flags.math);
  options.kv = engine::parse_kv(flags.kv);
  options.preset = flags.preset;
  if (!flags.profile.empty()) {
    options.profile = engine::read_profile(flags.profile);
  } else if (store::looks_like_store(flags.model)) {
    options.profile = kept_profile(flags);
    options.profile_if_it_fits = options.profile.has_value();
  }
  check_costs_are_kept(flags, options);
  options.seed = flags.seed.value_or(0);
  options.router = flags.router;
  options.cache = flags.cache;
  options.cache_scope = engine::parse_cache_scope(flags.cache_scope);
  if (!flags.capacity.empty()) options.cache_bytes = parse_capacity(flags.capacity);
  if (!flags.keep.empty()) options.keep = engine::parse_keep(flags.keep);
  options.dense = engine::parse_dense(flags.dense);
  options.scheduler = flags.scheduler;
  options.prefetch = flags.prefetch;
  options.placement = flags.placement;
  options.placement_prefill = flags.placement_prefill;
  options.device = flags.device;
  options.device_cache = flags.device_cache;
  if (!flags.dense_on.empty()) options.dense_on = engine::parse_dense_on(flags.dense_on);
  options.device_keep = engine::parse_device_keep(flags.device_keep);
  if (!flags.tiers.empty()) options.tiers = experts::parse_tiers(flags.tiers);
  if (!flags.link.empty())
    options.link_bytes_per_s = device::parse_link_rate(flags.link, mark(Setting::kLink));
  if (!flags.device_memory.empty())
    options.device_memory = parse_size(flags.device_memory, mark(Setting::kDeviceMemory));
  if (flags.device_slots) options.device_slots = static_cast<std::uint32_t>(*flags.device_slots);
  if (flags.prefetch_size) options.prefetch_size = static_cast<std::uint32_t>(*flags.prefetch_size);
  find_residual(flags, options);
  set_slice_options(flags.slices, options);
  set_max_loss(flags.slices, flags.model, options);
  options.popularity_name = flags.ranks_of;
  const engine::PolicyPlan chosen = chosen_policies(options);
  find_popularity(chosen, unused_ranks, options);
  check_played(flags, *chosen.router);
  check_residual(flags, chosen, options);
  check_effects(flags.slices, options, chosen);
  if (options.cache_bytes && !chosen.cache->keeps)
    throw Error(ErrorKind::kUsage, "this cache keeps nothing")
        .in(Setting::kCapacity)
        .expected("a cache that keeps experts")
        .found("none")
        .fix("leave out " + Setting::kCapacity + ", or choose another " + Setting::kCache);
  options.fetch.io = fetch::parse_io_mode(flags.io);
  options.fetch.disk.method = parse_disk_method(flags.disk);
  return options;
}

void read_script(const EngineFlags& flags, const model::ModelConfig& config, engine::EngineOptions& options) {
  if (flags.routing.empty()) return;
  if (config.sparse_layers() == 0)
    throw Error(ErrorKind::kUsage, "this model has no routed experts")
        .in(Setting::kRouting)
        .fix("leave it out");
  std::vector<std::uint32_t> layers;
  if (!flags.routing_layers.empty())
    for (const std::string& text : split_list(flags.routing_layers, Setting::kRoutingLayers))
      layers.push_back(parse_layer(text));
  const std::unique_ptr<trace::RoutingTrace> trace = trace::open_trace(flags.routing);
  options.script =
      trace::read_routing_script(*trace,
                                 {config.sparse_layers(), static_cast<std::uint32_t>(config.moe.experts),
                                  static_cast<std::uint32_t>(config.moe.top_k)},
                                 layers, interrupted);
  if (trace->cut_off() && !flags.quiet)
    print_warning("{} was cut off; its last step is not played", shown_text(flags.routing));
}

void keep_profile(const EngineFlags& flags, const engine::Engine& engine) {
  const std::optional<engine::Profile>& used = engine.report().profile;
  const std::optional<engine::Profile>& given = engine.plan().profile;
  if (!used || !engine.checkpoint().packed()) return;
  // In a kept profile the costs of the device alone may be new.
  const bool has_new_device = given && engine.plan().profile_if_it_fits && given->model == used->model &&
                              given->machine == used->machine && given->device != used->device;
  if (given && !has_new_device) return;
  try {
    store::write_sidecar(flags.model, "profile", "profile", engine::to_json(*engine.report().profile));
  } catch (const Error& error) {
    const bool no_place = error.kind() == ErrorKind::kIo || error.kind() == ErrorKind::kNotFound ||
                          error.kind() == ErrorKind::kInvalid;  // a directory or a pipe has its name
    if (!no_place) throw;
  }
}

OpenModel open_model(const std::string& path, WithTokenizer with_tokenizer, const CommonFlags& flags) {
  OpenModel open;
  Stopwatch watch;
  open.checkpoint = store::open_checkpoint(path);
  open.model = model::describe_model(*open.checkpoint);
  open.open_s = watch.lap();
  if (with_tokenizer != WithTokenizer::kNo) open.tokenizer = tokenizer_of(*open.checkpoint, flags);
  if (with_tokenizer == WithTokenizer::kRequired && open.tokenizer == nullptr) throw no_tokenizer(path);
  open.tokenizer_s = watch.lap();
  return open;
}

std::size_t context_tokens(const EngineFlags& flags, const model::Model& model) {
  if (flags.context == 0) return model.config.max_positions;
  return in_range(flags.context, 1, model.config.max_positions, Setting::kContext);
}

std::vector<tokenizer::TokenId> encode_file(const tokenizer::Tokenizer& tokenizer, const std::string& text,
                                            const std::string& file, tokenizer::AddSpecial add_special,
                                            const CommonFlags& flags) {
  // Words, ranks and ids in progress take up to so many times the text.
  constexpr Bytes kTimes = 32;
  const Bytes budget =
      flags.memory.empty() ? engine::default_budget() : parse_size(flags.memory, Setting::kMemory);
  constexpr Bytes kSmall = 64 * kKiB;  // whether so little fits, the budget's own check says better
  if (text.size() > std::max(kSmall, budget / kTimes)) {
    const ComparedBytes sizes = compared_bytes(budget / kTimes, text.size());
    throw Error(ErrorKind::kBudget, "the text is too large to be tokenized inside the memory budget")
        .in(file)
        .expected(fmt::format("at most {} in a budget of {}", sizes.expected, format_bytes(budget)))
        .found(sizes.found)
        .fix("cut the text, or raise " + Setting::kMemory);
  }
  try {
    return tokenizer.encode(text, add_special);
  } catch (Error& error) {
    throw error.offset() ? error.in(file, *error.offset()) : error.in(file);
  }
}

std::vector<tokenizer::TokenId> parse_token_list(const std::string& text, Setting setting) {
  constexpr std::size_t kShownEntry = 20;  // characters
  std::vector<tokenizer::TokenId> tokens;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string entry = text.substr(begin, comma - begin);
    const char* const end = entry.data() + entry.size();
    tokenizer::TokenId token = 0;
    const auto [next, error] = std::from_chars(entry.data(), end, token);
    if (error != std::errc() || next != end)
      throw Error(ErrorKind::kUsage, fmt::format("entry {} of the list is {}", tokens.size() + 1,
                                                 entry.empty() ? "empty" : "not a token id"))
          .in(setting)
          .expected("numbers with commas between them, such as 1,2,3")
          .found(fmt::format("{} at character {}",
                             entry.empty() ? "nothing" : '"' + entry.substr(0, kShownEntry) + '"', begin + 1))
          .fix("correct the entry");
    tokens.push_back(token);
    begin = comma + 1;
  }
  return tokens;
}

}  // namespace sluice::app
