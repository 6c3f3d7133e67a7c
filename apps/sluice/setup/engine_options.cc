#include "setup/engine_options.h"

#include <memory>

#include "base/error.h"
#include "base/files/file.h"
#include "base/setting.h"
#include "base/unknown_name.h"
#include "device/choice/make_device.h"
#include "engine/plan/policy_plan.h"
#include "engine/plan/settled_device.h"
#include "experts/registry.h"
#include "flags/device_cache_flags.h"
#include "flags/number_range.h"
#include "flags/policy_names.h"
#include "flags/routing_flags.h"
#include "flags/slice_effects.h"
#include "setup/kept_measurements.h"
#include "store/source/store_checkpoint.h"
#include "streams/interrupt.h"
#include "streams/played_routing.h"
#include "trace/choice_counts.h"

namespace sluice::app {
namespace {

DiskMethod parse_disk_method(const std::string& text) {
  if (text == "auto") return DiskMethod::kAuto;
  if (text == "io_uring") return DiskMethod::kIoUring;
  if (text == "pread") return DiskMethod::kPread;
  throw unknown_name(Setting::kDisk, text, {"auto", "io_uring", "pread"}, "unknown disk method");
}

// A bare number, which counts experts in replays, is not taken for bytes; 0 is 0 in any unit.
Bytes parse_capacity(const std::string& text) {
  const bool bare = text.find_first_not_of("0123456789") == std::string::npos;
  if (bare && text.find_first_not_of('0') != std::string::npos)
    throw Error(ErrorKind::kUsage, "a size without its unit")
        .in(Setting::kCapacity)
        .expected("a size (4GiB, 21217280B)")
        .found(text)
        .fix("add the unit, B for bytes");
  try {
    return parse_size(text, Setting::kCapacity);
  } catch (Error& error) {
    throw error.expected("a size (4GiB, 21217280B)");
  }
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
bool lacks_kept_costs(const EngineFlags& flags, const engine::PolicyPlan& chosen,
                      const engine::EngineOptions& options) {
  const bool by_costs = chosen.router->rules == experts::RouterRules::kSmoe;
  return by_costs && options.has_device() && !options.profile && !store::looks_like_store(flags.model);
}

Error no_kept_costs(const EngineFlags& flags) {
  return Error(ErrorKind::kUsage,
               "beside a device the router smoe chooses by what is there, which follows from measured costs; "
               "measured at each start, they would give another text each time")
      .in(flags.router.empty() ? Setting::kPreset : Setting::kRouter)
      .expected("costs from a file: " + Setting::kProfile + " FILE")
      .found("none, and this model is no store, which keeps them")
      .fix("measure once: sluice profile MODEL " + Setting::kDevice + " SPEC " + Setting::kOutput + " FILE");
}

// A GPU that is named must be there, before anything is read.
void check_device_is_there(const engine::EngineOptions& options) {
  if (!options.has_device()) return;
  const device::DeviceSpec spec = device::parse_device_spec(options.device, mark(Setting::kDevice));
  if (spec.cuda() != nullptr) device::check_is_there(*spec.cuda(), device::gpu_lack(), device::list_gpus());
}

}  // namespace

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

engine::EngineOptions engine_options(const EngineFlags& flags, UnusedRanks unused_ranks) {
  engine::EngineOptions options;
  name_policies(flags, options);
  if (!flags.memory.empty()) options.memory = parse_size(flags.memory, Setting::kMemory);
  options.threads = static_cast<unsigned>(flags.threads);
  options.chunk = in_range(flags.chunk, 1, 65536, Setting::kChunk);
  options.isa = flags.isa;
  options.math = engine::parse_math(flags.math);
  options.kv = engine::parse_kv(flags.kv);
  if (!flags.profile.empty()) {
    options.profile = engine::read_profile(flags.profile);
  } else if (store::looks_like_store(flags.model)) {
    options.profile = kept_profile(flags);
    options.profile_if_it_fits = options.profile.has_value();
  }
  options.device = flags.device;
  if (!flags.device_math.empty()) options.device_math = engine::parse_device_math(flags.device_math);
  options.allow_timed_bits = flags.allow_timed_bits;
  if (flags.allow_timed_bits && options.device_math != engine::DeviceMath::kFast)
    throw Error(ErrorKind::kUsage, "this flag has no effect here")
        .in(Setting::kTimedBits)
        .expected(Setting::kDeviceMath + " fast, which has other bits than the host")
        .found(flags.device_math.empty() ? "same, the default" : flags.device_math)
        .fix("leave " + Setting::kTimedBits + " out");
  options.seed = flags.seed.value_or(0);
  options.cache_scope = engine::parse_cache_scope(flags.cache_scope);
  if (!flags.capacity.empty()) options.cache_bytes = parse_capacity(flags.capacity);
  if (!flags.keep.empty()) options.keep = engine::parse_keep(flags.keep);
  options.dense = engine::parse_dense(flags.dense);
  if (!flags.dense_on.empty()) options.dense_on = engine::parse_dense_on(flags.dense_on);
  options.device_keep = engine::parse_device_keep(flags.device_keep);
  if (!flags.tiers.empty()) options.tiers = experts::parse_tiers(flags.tiers);
  if (!flags.link.empty())
    options.link_bytes_per_s = device::parse_link_rate(flags.link, mark(Setting::kLink));
  if (!flags.device_memory.empty())
    options.device_memory = parse_size(flags.device_memory, mark(Setting::kDeviceMemory));
  if (flags.device_slots) options.device_slots = static_cast<std::uint32_t>(*flags.device_slots);
  if (flags.prefetch_size) options.prefetch_size = static_cast<std::uint32_t>(*flags.prefetch_size);
  options.device_cache_rules = flags.device_cache_rules.setting();
  set_slice_options(flags.slices, options);
  set_max_loss(flags.slices, flags.model, options);
  options.popularity_name = flags.ranks_of;
  engine::settle_device(options);
  check_device_is_there(options);
  find_residual(flags, options);
  engine::PolicyPlan chosen = engine::choose_policies(options);
  if (lacks_kept_costs(flags, chosen, options)) {
    const Error error = no_kept_costs(flags);
    if (!options.device_is_found) throw error;
    engine::drop_device(options, error.what());
    chosen = engine::choose_policies(options);
  }
  if (chosen.device_cache != nullptr)
    check_device_cache_flags(flags.device_cache_rules, {&chosen.device_cache, 1});
  find_popularity(chosen, unused_ranks, options);
  check_played(flags, *chosen.router);
  drop_unused_residual(flags, chosen, options);
  find_smoe_losses(flags, chosen, options);
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

}  // namespace sluice::app
