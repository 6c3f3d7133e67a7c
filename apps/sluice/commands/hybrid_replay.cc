#include "commands/hybrid_replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/duration.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/files/unfinished_file.h"
#include "base/json/json.h"
#include "base/setting.h"
#include "base/text_table.h"
#include "command.h"
#include "commands/recorded_prompts.h"
#include "device/emulated/emulated_spec.h"
#include "experts/decision_log.h"
#include "experts/device_presets.h"
#include "experts/prefetch/prefetch.h"
#include "experts/registry.h"
#include "flags/number_range.h"
#include "flags/output_path.h"
#include "flags/policy_names.h"
#include "flags/pool_slots.h"
#include "flags/room.h"
#include "flags/split_list.h"
#include "lab/machine/hybrid_machine.h"
#include "lab/replay/batches.h"
#include "lab/replay/hybrid_replay.h"
#include "lab/replay/predicted_steps.h"
#include "streams/played_routing.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"
#include "trace/choice_counts.h"

namespace sluice::app {
namespace {

// What runs where the user names every part by itself.
constexpr experts::DevicePreset kNoPreset = {
    .name = "-", .device_cache = {}, .placement = {}, .guards_prefetch = true};

struct Row {
  const lab::HybridMachine* machine = nullptr;
  std::string preset;
  std::optional<std::uint32_t> batch;  // empty: as it was recorded
  lab::HybridSettings settings;
  lab::HybridResult result;
};

std::vector<std::uint32_t> parse_numbers(const std::string& list, Setting setting, std::uint32_t least) {
  constexpr std::uint32_t kMost = 65536;
  std::vector<std::uint32_t> numbers;
  for (const std::string& part : split_list(list, setting)) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || end != part.data() + part.size() || number < least || number > kMost)
      throw Error(ErrorKind::kUsage, "this is no such number")
          .in(setting)
          .expected(fmt::format("numbers from {} to {}, with commas between them", least, kMost))
          .found(fmt::format("\"{}\"", part));
    numbers.push_back(number);
  }
  return numbers;
}

// Slots a layer, for each entry of the list.
std::vector<std::uint32_t> slots_of(const HybridFlags& flags, const lab::HybridMachine& machine,
                                    std::uint32_t layers, std::uint32_t experts) {
  if (const bool neither = flags.slots.empty(); flags.memories.empty() == neither)
    throw Error(ErrorKind::kUsage,
                neither ? "the device's cache has no size" : "the device's cache has one size")
        .in(Setting::kDeviceSlots)
        .expected("either " + Setting::kDeviceSlots + " (experts of each layer) or " + Setting::kDeviceMemory)
        .found(neither ? "neither" : "both")
        .fix(neither ? "add " + Setting::kDeviceSlots + " 16, or another size" : "leave one of them out");
  std::vector<std::uint32_t> slots;
  if (!flags.slots.empty()) slots = parse_numbers(flags.slots, Setting::kDeviceSlots, 0);
  if (!flags.memories.empty())
    for (const std::string& memory : split_list(flags.memories, Setting::kDeviceMemory))
      slots.push_back(static_cast<std::uint32_t>(std::min<Bytes>(
          parse_size(memory, Setting::kDeviceMemory) / (machine.expert_bytes * layers), experts)));
  for (const std::uint32_t one : slots)
    if (one > experts)
      throw Error(ErrorKind::kUsage, "a layer has fewer experts than that")
          .in(Setting::kDeviceSlots)
          .expected(fmt::format("at most {}", experts))
          .found(std::to_string(one))
          .fix(fmt::format("give {} for all of them", experts));
  return slots;
}

std::vector<std::string> list_or(const std::string& list, Setting setting, std::string_view otherwise) {
  return list.empty() ? std::vector<std::string>{std::string(otherwise)} : split_list(list, setting);
}

// The presets that are asked for; none where both parts of one are named.
std::vector<const experts::DevicePreset*> presets_of(const HybridRequest& request, const HybridFlags& flags) {
  if (request.presets.empty() && !flags.placement.empty() && !flags.caches.empty()) return {&kNoPreset};
  std::vector<const experts::DevicePreset*> presets;
  for (const std::string& name : list_or(request.presets, Setting::kPreset, "dali"))
    presets.push_back(&experts::find_device_preset(name));
  return presets;
}

// Empty: as it was recorded.
std::vector<std::optional<std::uint32_t>> batches_of(const HybridFlags& flags) {
  if (flags.batches.empty()) return {std::nullopt};
  std::vector<std::optional<std::uint32_t>> batches;
  for (const std::uint32_t one : parse_numbers(flags.batches, Setting::kBatch, 1)) batches.emplace_back(one);
  return batches;
}

// As a run has it: a placement that is named holds for prompts, too, unless one for these is named beside it.
void set_prefill(const HybridFlags& flags, const experts::DevicePreset& preset,
                 lab::HybridSettings& settings) {
  if (!flags.placement_prefill.empty()) {
    settings.prefill_placement =
        experts::find_placement(flags.placement_prefill, Setting::kPlacementPrefill).name;
  } else if (flags.placement.empty()) {
    settings.prefill_placement = preset.prefill_placement;
    settings.prefill_from = preset.prefill_from;
  }
}

std::vector<Row> rows_of(const HybridRequest& request, const HybridFlags& flags,
                         const std::vector<lab::HybridMachine>& machines, const trace::TraceHeader& header) {
  if (flags.prefetch_size && *flags.prefetch_size > header.experts)
    throw Error(ErrorKind::kUsage, "a layer does not have so many experts")
        .in(Setting::kPrefetchSize)
        .expected(fmt::format("at most {}", header.experts))
        .found(std::to_string(*flags.prefetch_size))
        .fix(fmt::format("give {} {} for all of them", mark(Setting::kPrefetchSize), header.experts));
  std::vector<Row> rows;
  for (const lab::HybridMachine& machine : machines)
    for (const std::optional<std::uint32_t>& batch : batches_of(flags))
      for (const std::uint32_t slots : slots_of(flags, machine, header.layers, header.experts))
        for (const experts::DevicePreset* const one : presets_of(request, flags)) {
          const experts::DevicePreset& preset = *one;
          const experts::PrefetchPolicy& prefetch = experts::find_prefetch(
              flags.prefetch.empty() ? preset.prefetch : std::string_view(flags.prefetch));
          const std::uint32_t size = preset.prefetch_size != 0 && flags.prefetch.empty()
                                         ? preset.prefetch_size
                                         : experts::usual_prefetch_size(header.experts);
          for (const std::string& cache : list_or(flags.caches, Setting::kDeviceCache, preset.device_cache)) {
            Row row{.machine = &machine,
                    .preset = std::string(preset.name),
                    .batch = batch,
                    .settings = {},
                    .result = {}};
            lab::HybridSettings& settings = row.settings;
            settings.placement = flags.placement.empty() ? preset.placement : flags.placement;
            set_prefill(flags, preset, settings);
            check_cache(cache, Setting::kDeviceCache, CacheUser::kReplay);
            settings.device_cache = cache;
            experts::find_placement(settings.placement);
            settings.slots = slots;
            settings.prefetch = prefetch.name;
            settings.guards_prefetch = preset.guards_prefetch;
            settings.prefetch_size = static_cast<std::uint32_t>(flags.prefetch_size.value_or(size));
            // An engine has a staging buffer more for each expert that it copies ahead.
            const bool ahead = settings.prefetch != "none" && machine.buffers != experts::kAnyBuffers;
            settings.buffers = machine.buffers + (ahead ? settings.prefetch_size : 0);
            settings.workload.window.steps = static_cast<std::uint32_t>(flags.w_size.value_or(4));
            settings.workload.score_iterations =
                static_cast<std::uint32_t>(flags.w_size.value_or(experts::ScoreWindow::kIterations));
            settings.workload.window.swaps = static_cast<std::uint32_t>(flags.u_size.value_or(8));
            settings.workload.ema.swaps = static_cast<std::uint32_t>(flags.u_size.value_or(2));
            if (!flags.tiers.empty()) settings.tiers = experts::parse_tiers(flags.tiers);
            settings.packed_copies = machine.packed;
            settings.costs = machine.costs;
            settings.seed = request.seed;
            rows.push_back(std::move(row));
          }
        }
  return rows;
}

std::string cache_names(bool experts::CachePolicy::*property) {
  std::string names;
  for (const experts::CachePolicy& policy : experts::cache_policies())
    if (policy.*property) names += (names.empty() ? "" : ", ") + std::string(policy.name);
  return names;
}

// Refuses flags that act on no row.
void check_effects(const HybridFlags& flags, const std::vector<Row>& rows) {
  std::set<std::string> caches, prefetches;
  for (const Row& row : rows) {
    caches.insert(row.settings.device_cache);
    prefetches.insert(row.settings.prefetch);
  }
  const auto any = [&](bool experts::CachePolicy::*property) {
    return std::ranges::any_of(caches, [&](const auto& name) { return experts::find_cache(name).*property; });
  };
  const auto cached_by = [&](bool experts::CachePolicy::*property) {
    return Setting::kDeviceCache + " with one of " + cache_names(property);
  };
  const struct {
    Setting setting;
    bool given, acts;
    std::string needs, found;
  } all[] = {
      {Setting::kWSize, flags.w_size.has_value(), any(&experts::CachePolicy::windowed),
       cached_by(&experts::CachePolicy::windowed), fmt::format("{}", fmt::join(caches, ", "))},
      {Setting::kUSize, flags.u_size.has_value(), any(&experts::CachePolicy::swaps),
       cached_by(&experts::CachePolicy::swaps), fmt::format("{}", fmt::join(caches, ", "))},
      {Setting::kPrefetchSize, flags.prefetch_size.has_value(), prefetches != std::set<std::string>{"none"},
       Setting::kPrefetch + " or a preset that prefetches", "the prefetch none"},
  };
  for (const auto& [setting, given, acts, needs, found] : all) {
    if (!given || acts) continue;
    throw Error(ErrorKind::kUsage, "this flag has no effect here")
        .in(setting)
        .expected(needs)
        .found(found)
        .fix("give what the flag needs, or leave " + setting + " out");
  }
}

// An error about a policy that the row's preset chose, not a flag, is about that preset.
void blame_preset(Error& error, const Row& row, const HybridFlags& flags) {
  const struct {
    Setting setting;
    const std::string &flag, &policy;
    std::string_view kind;
  } all[] = {{Setting::kDeviceCache, flags.caches, row.settings.device_cache, "device cache"},
             {Setting::kPlacement, flags.placement, row.settings.placement, "placement"},
             {Setting::kPrefetch, flags.prefetch, row.settings.prefetch, "prefetch"}};
  for (const auto& [setting, flag, policy, kind] : all)
    if (flag.empty() && error.where() == std::string_view(setting))
      error.in(Setting::kPreset).found(fmt::format("{}, whose {} is {}", row.preset, kind, policy));
}

// Whether batches of up to `batch` sequences can be made of `steps`, which `path` has.
void check_can_be_batched(const lab::RoutedSteps& steps, std::uint32_t batch, const std::string& path) {
  for (const lab::RoutedStep& step : steps.steps)
    if (step.sequences.size() > 1)
      throw Error(ErrorKind::kUsage, "the trace was recorded in batches, which are replayed as they are")
          .in(Setting::kBatch)
          .expected("a trace with one sequence in each step")
          .found(fmt::format("{}, and a step of {} sequences", batch, step.sequences.size()))
          .fix("leave " + Setting::kBatch + " out");
  const std::uint32_t most = lab::largest_batch(steps);
  if (batch > std::max(most, 1U))
    throw Error(ErrorKind::kUsage, "there are not so many sequences to decode together")
        .in(Setting::kBatch)
        .expected(fmt::format("at most {}, the sequences of {} that decode something", most, path))
        .found(std::to_string(batch))
        .fix("give " + Setting::kBatch +
             fmt::format(" {}, or a trace of more sequences", std::max(most, 1U)));
}

// The recorded routing with what each row's prefetch needs, read and batched as rows ask for it.
class RoutingOfRows {
 public:
  RoutingOfRows(const HybridRequest& request, const trace::TraceHeader& header, const std::vector<Row>& rows)
      : request_(request), batch_(std::ranges::max(rows, {}, &Row::batch).batch) {
    for (const Row& row : rows) {
      const experts::PrefetchPolicy& policy = experts::find_prefetch(row.settings.prefetch);
      if (policy.needs != experts::PrefetchNeeds::kTransitions || transitions_ || request.ranks_of.empty())
        continue;
      const lab::RoutedSteps text =
          lab::read_routed_steps(*trace::open_trace(request.ranks_of), {}, interrupted_or_unread);
      tell_played(request.ranks_of, text.played);
      if (text.layers != header.layers || text.experts != header.experts)
        throw Error(ErrorKind::kInvalid,
                    "the routing that says which experts follow which is of another model")
            .in(request.ranks_of);
      transitions_ = lab::count_transitions(text);
    }
  }

  const experts::ExpertTransitions* transitions() const { return transitions_ ? &*transitions_ : nullptr; }

  // Valid until the next call.
  const lab::RoutedSteps& of(const Row& row) {
    const experts::PredictorKind kind =
        experts::find_prefetch(row.settings.prefetch).make({.transitions = transitions()})->predictor();
    auto [at, is_new] = steps_.try_emplace(kind);
    if (is_new) {
      at->second = lab::read_predicted_steps(
          request_.trace, kind, {.prefill = static_cast<std::uint32_t>(request_.prefill.value_or(0))},
          request_.ranks_of, interrupted_or_unread);
      if (steps_.size() == 1) check(at->second);
    }
    if (!row.batch) return at->second;
    if (batched_of_ != std::pair(kind, *row.batch)) batched_ = lab::batched(at->second, *row.batch);
    batched_of_ = {kind, *row.batch};
    return batched_;
  }
  // As recorded. REQUIRES: of() was called.
  const lab::RoutedSteps& recorded() const { return steps_.begin()->second; }

 private:
  void check(const lab::RoutedSteps& steps) const {
    if (batch_) check_can_be_batched(steps, *batch_, request_.trace);
    if (request_.quiet) return;
    if (steps.cut_off) print_warning("{} was cut off; its last step is left out", request_.trace);
    if (steps.decode_tokens == 0)
      print_warning("all tokens are of prompts, and no decode step was replayed{}",
                    request_.prefill
                        ? fmt::format(": {} {} takes them all", flag(Setting::kPrefill), *request_.prefill)
                        : "");
  }

  const HybridRequest& request_;
  const std::optional<std::uint32_t> batch_;  // the largest of all rows; empty: all are as recorded
  std::optional<experts::ExpertTransitions> transitions_;
  std::map<experts::PredictorKind, lab::RoutedSteps> steps_;
  std::pair<experts::PredictorKind, std::uint32_t> batched_of_{};  // no batch is 0
  lab::RoutedSteps batched_;
};

// How often each expert is chosen.
std::vector<std::vector<double>> popularity_of(const std::string& path, const trace::TraceHeader& header) {
  const std::unique_ptr<trace::RoutingTrace> trace = trace::open_trace(path);
  if (trace->header().layers != header.layers || trace->header().experts != header.experts)
    throw Error(ErrorKind::kInvalid, "the routing that says which experts are popular is of another model")
        .in(path)
        .expected(fmt::format("{} layers of {} experts", header.layers, header.experts))
        .found(fmt::format("{} of {}", trace->header().layers, trace->header().experts));
  std::vector<std::vector<double>> counts = trace::choice_counts(*trace, interrupted_or_unread);
  tell_played(path, trace->played());
  return counts;
}

// The host's cache of all rows. By bytes where the trace says sizes and nothing counts experts.
std::optional<trace::TraceSizes> set_host(const HybridHostFlags& flags, const trace::TraceHeader& header,
                                          std::vector<Row>& rows) {
  lab::HybridHost host;
  if (!flags.cache.empty()) host.cache = experts::find_cache(flags.cache).name;
  host.by_layer = flags.scope == "layer";
  if (flags.keep == "packed") host.keep = experts::Part::kSm | experts::Part::kExp;
  if (!flags.pools.empty()) host.pools = parse_pool_slots(flags.pools);
  std::optional<Room> room;
  if (!flags.capacity.empty()) room = parse_room(flags.capacity);
  if (room) host.capacity = room->amount;
  const bool by_bytes = header.sizes && (!room || room->bytes);
  if (room && room->bytes && !header.sizes)
    throw Error(ErrorKind::kUsage, "the trace does not say how large its experts are")
        .in(Setting::kCapacity)
        .expected("a number of experts")
        .found(flags.capacity)
        .fix("give a number without a unit");
  std::optional<trace::TraceSizes> sizes;
  if (by_bytes) sizes = header.sizes;
  for (Row& row : rows) row.settings.host = host;
  return sizes;
}

double bytes_of(const Row& row, double seconds) {
  return seconds / row.settings.costs.device.transfer * static_cast<double>(row.machine->expert_bytes);
}

// Where pools hold parts of experts, less is read than the misses' whole experts.
Json host_json(const Row& row, const lab::HybridHostCounts& host) {
  const bool whole = !row.settings.host.pools;
  return {{"accesses", host.accesses},
          {"hits", host.hits},
          {"misses", host.misses()},
          {"bytes_read", whole ? Json(host.misses() * row.machine->expert_bytes) : Json()}};
}

Json phase_json(const Row& row, const lab::HybridPhase& phase) {
  const experts::DeviceCounts& counts = phase.counts;
  const auto bytes = static_cast<double>(row.machine->expert_bytes);
  return {{"steps", phase.steps},
          {"tokens", phase.tokens},
          {"seconds", phase.seconds},
          {"experts",
           {{"device",
             {{"assigned", counts.assigned},
              {"hits", counts.hits},
              {"active", counts.active},
              {"resident", counts.resident},
              {"d_hit", counts.d_hit()},
              {"a_hit", counts.a_hit()},
              {"token_hit", counts.token_hit()}}}}},
          {"placement",
           {{"host", counts.active - counts.assigned},
            {"device", counts.assigned},
            {"loads", counts.loads},
            {"streamed", counts.streamed},
            {"imbalance_s", counts.imbalance},
            {"cpu_s", counts.host},
            {"device_s", counts.device},
            {"wait_s", counts.wait},
            {"moe_s", counts.moe}}},
          {"device",
           {{"link",
             {{"demand", static_cast<double>(counts.loads + counts.streamed) * bytes},
              {"result_s", phase.link.rows},  // a machine knows what rows take, not their bytes
              {"prefetch", bytes_of(row, phase.link.prefetches)},
              {"update", static_cast<double>(counts.updates) * bytes},
              {"busy_s", phase.link.loads + phase.link.rows + phase.link.prefetches + phase.link.updates}}}}},
          {"prefetch",
           {{"asked", counts.prefetch.asked},
            {"paused", counts.prefetch.paused},
            {"sent", counts.prefetch.sent},
            {"used", counts.prefetch.used},
            {"late", counts.prefetch.late},
            {"kept", counts.prefetch.kept},
            {"wasted", counts.prefetch.wasted},
            {"predicted", phase.predictions.predicted},
            {"active", phase.predictions.active},
            {"top", phase.predictions.top},
            {"accuracy", phase.predictions.wanted > 0 ? Json(phase.predictions.accuracy()) : Json()}}},
          {"updates", counts.updates},
          {"tiers",
           {{"dropped", counts.dropped},
            {"returns", counts.returns},
            {"late_returns", counts.late_returns},
            {"there_alone", counts.there_alone},
            {"return_s", phase.link.returns}}},
          {"host", host_json(row, phase.host)}};
}

Json row_json(const Row& row) {
  const lab::HybridPhase& decode = row.result.decode;
  return {{"machine", row.machine->name},
          {"preset", row.preset},
          {"batch", row.batch ? Json(*row.batch) : Json("recorded")},
          {"device_slots", row.settings.slots},
          {"device_cache", row.settings.device_cache},
          {"tiers", experts::tiers_name(row.result.tiers.tiers)},
          {"tiers_why", row.result.tiers.why},
          {"placement_policy", row.settings.placement},
          {"prefill_policy",
           row.settings.prefill_placement.empty() ? Json() : Json(row.settings.prefill_placement)},
          {"prefill_from", row.settings.prefill_placement.empty() ? Json() : Json(row.settings.prefill_from)},
          {"prefetch_policy", row.settings.prefetch},
          {"prefetch_size", row.settings.prefetch_size},
          {"tpot_s", decode.steps == 0 ? Json() : Json(decode.seconds / static_cast<double>(decode.steps))},
          {"start_experts", row.result.start},
          {"fallbacks", row.result.fallbacks},
          {"profile", {{"hash", fmt::format("{:016x}", experts::hash_of(row.settings.costs))}}},
          {"prefill", phase_json(row, row.result.prefill)},
          {"decode", phase_json(row, decode)},
          {"decisions", fmt::format("{:016x}", row.result.decision_hash)}};
}

void print_table(const lab::RoutedSteps& recorded, const HybridRequest& request,
                 const std::vector<lab::HybridMachine>& machines, const std::vector<Row>& rows) {
  print_wrapped(fmt::format("{}: {} sparse layers of {} experts, top {}; {}, {} to decode", request.trace,
                            recorded.layers, recorded.experts, recorded.top_k, prompts_text(recorded),
                            tokens_text(recorded.decode_tokens)));
  print_played(recorded.played);
  for (const lab::HybridMachine& machine : machines)
    print_wrapped(fmt::format("{}: {}, {} an expert", machine.name, machine.source,
                              format_bytes(machine.expert_bytes)));
  constexpr std::size_t kTitles = 5;
  std::vector<std::vector<std::string>> table = {{"machine", "preset", "batch", "slots", "device cache",
                                                  "D-hit %", "A-hit %", "tokens %", "copies", "demand",
                                                  "update", "MoE", "TPOT"}};
  const bool reads_ahead =
      std::ranges::any_of(rows, [](const Row& row) { return row.settings.prefetch != "none"; });
  const bool reads_disk = std::ranges::any_of(
      rows, [](const Row& row) { return row.settings.host.capacity && !row.settings.host.pools; });
  if (reads_disk) table.front().insert(table.front().end(), {"returns", "disk"});
  if (reads_ahead) table.front().insert(table.front().end(), {"prefetch", "sent", "used %"});
  for (const Row& row : rows) {
    const lab::HybridPhase& decode = row.result.decode;
    const experts::DeviceCounts& counts = decode.counts;
    const auto percent = [](double share) { return fmt::format("{:.1f}", 100 * share); };
    const auto steps = static_cast<double>(std::max<std::uint64_t>(decode.steps, 1));
    const auto bytes = [&](std::uint64_t copies) {
      return format_bytes(
          static_cast<Bytes>(static_cast<double>(copies * row.machine->expert_bytes) / steps));
    };
    table.push_back(
        {row.machine->name, row.preset, row.batch ? std::to_string(*row.batch) : "-",
         std::to_string(row.settings.slots), row.settings.device_cache,
         counts.assigned == 0 ? "-" : percent(counts.d_hit()), percent(counts.a_hit()),
         percent(counts.token_hit()),
         fmt::format("{:.2f}", static_cast<double>(counts.loads + counts.streamed + counts.updates) /
                                   (steps * recorded.layers)),
         bytes(counts.loads + counts.streamed), bytes(counts.updates), format_duration(counts.moe / steps),
         format_duration(decode.seconds / steps)});
    if (reads_disk)
      table.back().insert(table.back().end(), {bytes(counts.returns), bytes(decode.host.misses())});
    if (decode.steps == 0) std::fill(table.back().begin() + kTitles, table.back().end(), "-");
    if (!reads_ahead) continue;
    const experts::PrefetchCounts& ahead = counts.prefetch;
    table.back().insert(
        table.back().end(),
        {row.settings.prefetch,
         decode.steps == 0
             ? "-"
             : fmt::format("{:.2f}", static_cast<double>(ahead.sent) / (steps * recorded.layers)),
         ahead.sent == 0 ? "-" : percent(static_cast<double>(ahead.used) / static_cast<double>(ahead.sent))});
  }
  print_output("\n{}", text_table(table, terminal_columns(STDOUT_FILENO, kAnyColumns), kTitles));
  print_wrapped(
      "copies: a step and layer; demand, update, MoE, TPOT: a step. D-hit: of the experts that the device "
      "computes, A-hit: of all active ones, tokens: the same weighted with their tokens.");
  if (reads_disk)
    print_wrapped(
        "returns: what goes back from the device to the host; disk: what the host lacks; both a step.");
  if (reads_ahead)
    print_wrapped(
        "sent: experts prefetched a step and layer; used: of them, those that the device computed.");
}

}  // namespace

void add_hybrid_flags(Command& command, HybridFlags& flags) {
  const std::string group = "Host and device on a modelled machine";
  std::string machines, presets, placements, prefetches;
  for (const lab::HybridMachine& one : lab::hybrid_machines()) machines += one.name + ", ";
  for (const experts::DevicePreset& one : experts::device_presets())
    if (one.missing.empty()) presets += std::string(one.name) + " ";
  for (const experts::PlacementPolicy& one : experts::placement_policies())
    placements += std::string(one.name) + " ";
  for (const experts::PrefetchPolicy& one : experts::prefetch_policies())
    prefetches += std::string(one.name) + " ";
  command
      .add_option(Setting::kDeviceSlots, &flags.slots,
                  "Experts of each layer that the device holds; several with commas between them. With " +
                      Setting::kMachine + ": " + machines + "or a JSON file; and " + Setting::kPreset + ": " +
                      presets)
      ->group(group);
  command.add_option(Setting::kDeviceMemory, &flags.memories, "The same in bytes for all layers (4GiB)")
      ->group(group);
  command
      .add_option(Setting::kDeviceCache, &flags.caches,
                  "Caches of the device, with commas between them; default: the preset's")
      ->group(group);
  command
      .add_option(
          Setting::kTiers, &flags.tiers,
          "An expert that the device keeps stays in the host's memory, too, as its cache says: "
          "inclusive; or does not, and goes back there when it leaves the device: exclusive; default: "
          "exclusive where " +
              Setting::kCapacity + " is too small for all experts and the host's cache can take them back")
      ->group(group);
  command.add_option(Setting::kPlacement, &flags.placement, placements + "(default: the preset's)")
      ->group(group);
  command
      .add_option(Setting::kPlacementPrefill, &flags.placement_prefill,
                  "The same of steps with tokens of prompts; default: the preset's, or " +
                      Setting::kPlacement + " where that is given")
      ->group(group);
  command
      .add_option(Setting::kLink, &flags.link,
                  "The link carries no more than this (25GB/s), however fast the machine's is")
      ->group(group);
  command
      .add_option(Setting::kPrefetch, &flags.prefetch,
                  prefetches +
                      "(default: the preset's). stream, raw and dali-residual need a trace made with " +
                      Setting::kAhead + ", stat and dali-residual also " + Setting::kRanksOf)
      ->group(group);
  command
      .add_option(Setting::kPrefetchSize, &flags.prefetch_size,
                  "Experts of a layer that are prefetched, at most; default: 1 where a layer has 8, else 4")
      ->check(whole_number(Setting::kPrefetchSize, 0, 1 << 16))
      ->group(group);
  command
      .add_option(Setting::kBatch, &flags.batches,
                  "Sequences that are decoded together; several with commas between them")
      ->group(group);
  command
      .add_option(Setting::kWSize, &flags.w_size,
                  "Steps of the window; default: 4 of workload-window, 16 of score-window")
      ->check(whole_number(Setting::kWSize, 1, 1 << 20))
      ->group(group);
  command
      .add_option(Setting::kUSize, &flags.u_size,
                  "Swaps at a time; default: 8 of workload-window, 2 of workload-ema")
      ->check(whole_number(Setting::kUSize, 0, 1 << 16))
      ->group(group);
}

void hybrid_replay(const HybridRequest& request, const HybridFlags& flags) {
  std::vector<lab::HybridMachine> machines;
  for (const std::string& name : split_list(request.machine, Setting::kMachine))
    machines.push_back(lab::find_hybrid_machine(name));
  if (!flags.link.empty())
    for (lab::HybridMachine& machine : machines)
      lab::limit_link(device::parse_link_rate(flags.link, mark(Setting::kLink)), machine);
  if (!request.quiet && request.host.keep != "packed")
    for (const lab::HybridMachine& machine : machines)
      if (machine.packed)
        print_warning(
            "{} was measured with packed experts, which the host of this replay keeps in full; a run "
            "with it decides alike only with {} packed",
            machine.name, mark(Setting::kKeep));
  const std::unique_ptr<trace::RoutingTrace> trace = trace::open_trace(request.trace);
  const trace::TraceHeader header = trace->header();
  check_prefill(request.prefill, header, request.trace);
  std::vector<Row> rows = rows_of(request, flags, machines, header);
  check_effects(flags, rows);
  if (!request.decisions.empty() && rows.size() != 1)
    throw Error(ErrorKind::kUsage, "one log holds the decisions of one row")
        .in(Setting::kDecisions)
        .expected("one machine, batch, size, preset and cache")
        .found(fmt::format("{} rows", rows.size()))
        .fix("name one of each, or leave " + Setting::kDecisions + " out");
  if (!request.decisions.empty()) check_new_file(request.decisions);
  if (!request.ranks_of.empty()) {
    const std::vector<std::vector<double>> popularity = popularity_of(request.ranks_of, header);
    for (Row& row : rows) row.settings.workload.popularity = popularity;
  }
  check_output();
  const std::optional<trace::TraceSizes> sizes = set_host(request.host, header, rows);
  RoutingOfRows routing(request, header, rows);
  for (Row& row : rows) try {
      row.settings.sizes = sizes ? &*sizes : nullptr;
      row.settings.transitions = routing.transitions();
      const lab::RoutedSteps& steps = routing.of(row);
      std::optional<OutputFile> log;
      std::optional<UnfinishedFile> unfinished;
      std::function<void(std::string_view)> write;
      if (!request.decisions.empty()) {
        log = OutputFile::create(request.decisions);
        unfinished.emplace(request.decisions);
        write = [&](std::string_view line) { log->write(line); };
      }
      row.result = lab::replay_hybrid(steps, row.settings, write, interrupted_or_unread);
      if (log) {
        log->close();
        unfinished->keep();
      }
    } catch (Error& error) {
      blame_preset(error, row, flags);
      throw;
    }
  const lab::RoutedSteps& recorded = routing.recorded();
  if (!request.json) return print_table(recorded, request, machines, rows);
  Json json = {{"trace", request.trace},
               {"layers", header.layers},
               {"experts", header.experts},
               {"top_k", header.top_k},
               {"prefill", lab::marks_prompts(header) ? Json() : Json(request.prefill.value_or(0))},
               {"prompts", count_prompts(recorded)},
               {"prompt_tokens", recorded.prompt_tokens},
               {"decode_tokens", recorded.decode_tokens},
               {"cut_off", recorded.cut_off}};
  add_played(json, recorded.played);
  json["machines"] = Json::array();
  for (const lab::HybridMachine& machine : machines) json["machines"].push_back(lab::to_json(machine));
  json["results"] = Json::array();
  for (const Row& row : rows) json["results"].push_back(row_json(row));
  std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace sluice::app
