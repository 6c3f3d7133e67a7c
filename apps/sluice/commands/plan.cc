// `sluice plan`: shows where every byte of a budget goes, and which speed to expect and why. Generates
// nothing.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/duration.h"
#include "base/error.h"
#include "base/setting.h"
#include "base/wrapped_text.h"
#include "command.h"
#include "commands/recorded_routing.h"
#include "engine/engine.h"
#include "engine/forward/dense/dense_choice.h"
#include "engine/forward/dense/dense_weights.h"
#include "engine/generate/generate.h"
#include "engine/plan/memory_plan.h"
#include "engine/plan/pool_plan.h"
#include "engine/read_forecast.h"
#include "engine/run_report.h"
#include "experts/registry.h"
#include "experts/routing/slice_names.h"
#include "fetch/memory/expert_store.h"
#include "flags/engine_flags.h"
#include "flags/number_range.h"
#include "flags/sampling_flags.h"
#include "model/architecture.h"
#include "report/device_plan.h"
#include "report/plan_json.h"
#include "report/run_json.h"
#include "report/run_report.h"
#include "report/start_warnings.h"
#include "setup/engine_options.h"
#include "setup/kept_measurements.h"
#include "setup/open_model.h"
#include "store/checkpoint.h"
#include "streams/played_routing.h"
#include "streams/standard_error.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace plan_command {

// What `sluice run` asks for by default: an answer of 128 tokens, here behind a prompt of as many.
constexpr std::int64_t kRunTokens = 256;

struct Options {
  EngineFlags engine;
  SamplingFlags sampling;
  std::string trace;
  std::int64_t tokens = kRunTokens, batch = 1;
};

std::string pools_text(const experts::PoolSlots& slots) {
  return fmt::format("F {}, C {}, S {}, E {}", slots.f, slots.c, slots.s, slots.e);
}

// Rows of a table for a terminal of this many columns.
class Table {
 public:
  explicit Table(std::size_t columns) : columns_(columns) {}
  void row(std::string_view name, const std::string& value) { text_ += report_row(name, value, columns_); }
  const std::string& text() const { return text_; }

 private:
  std::size_t columns_;
  std::string text_;
};

void add_memory(const engine::Engine& engine, std::size_t positions, Table& table) {
  const engine::MemoryPlan& memory = engine.report().memory;
  table.row("budget", format_bytes(memory.budget));
  const std::string serve = memory.serve == 0 ? "" : fmt::format("serve {}, ", format_bytes(memory.serve));
  table.row("",
            fmt::format("process {}, dense {}, kv {}, tables {}, {}activations {}, staging {}, experts {}",
                        format_bytes(memory.process), format_bytes(memory.dense), format_bytes(memory.kv),
                        format_bytes(memory.tables), serve, format_bytes(memory.activations),
                        format_bytes(memory.staging), format_bytes(memory.experts)));
  table.row("tokens", fmt::format("{} of prompt and answer {} have room{}", positions,
                                  engine.report().model.config.has_encoder() ? "each" : "together",
                                  positions == kRunTokens
                                      ? " (128 of each, the answer as run's default; a run with fewer keeps "
                                        "more experts; " +
                                            flag(Setting::kTokens) + " N plans for N)"
                                      : ""));
  table.row("dense weights", fmt::format("{}: {}", dense_view_name(engine.report().dense_choice.view),
                                         engine.report().dense_choice.why));
}

// A time that may be nothing beside times of microseconds.
std::string short_time(double seconds) { return seconds == 0 ? "0 µs" : format_duration(seconds); }

// What pools keep in which state, and the speed that measured costs let expect.
void add_pools(const engine::Engine& engine, const engine::PoolPlan& plan, Table& table) {
  const engine::Profile& profile = *engine.report().profile;
  table.row(
      "a layer",
      fmt::format("{} for {} experts, {} of them used a step{}", format_bytes(plan.layer_memory),
                  profile.model.experts, plan.distinct,
                  plan.ranks_assumed ? " (how often each: assumed; record it with `sluice trace`)" : ""));
  table.row("an expert", fmt::format("F {}, C {}, S {}, E {}", format_bytes(profile.model.full),
                                     format_bytes(profile.model.sm + profile.model.exp),
                                     format_bytes(profile.model.sm), format_bytes(profile.model.exp)));
  table.row("costs", fmt::format("u {}, v {}, c {}, merge {}, p {}; a read alone {}; the rest of a step {}",
                                 short_time(profile.u.median), short_time(profile.v.median),
                                 short_time(profile.c.median), short_time(profile.merge.median),
                                 short_time(profile.p.median), short_time(profile.latency.median),
                                 short_time(profile.rest.median)));
  table.row("shares",
            fmt::format("F {:.2f}, C {:.2f}, S {:.2f}, E {:.2f} of the memory ({} configurations)",
                        plan.gamma.f, plan.gamma.c, plan.gamma.s, plan.gamma.e, plan.configurations));
  const auto choice = [&](std::string_view name, const engine::PoolChoice& it) {
    table.row(name, fmt::format("{}: {} a layer, {:.2f} tok/s, {} a step, limit {}", pools_text(it.slots),
                                short_time(it.expected.cost), it.tok_s,
                                format_bytes(static_cast<Bytes>(it.disk_bytes)), it.limit));
    if (it.wasted_bytes.value_or(0) >= 1)
      table.row("", fmt::format("and {} a step read ahead in vain, unless that does not pay and stops",
                                format_bytes(static_cast<Bytes>(*it.wasted_bytes))));
  };
  choice("plan", plan.chosen);
  choice("F only", plan.f_only);
  choice("equal shares", plan.equal_shares);
  const auto gain = [&](const engine::PoolChoice& other) {
    return other.step_s > 0 ? 100 * (1 - plan.chosen.step_s / other.step_s) : 0.0;
  };
  table.row("gain", fmt::format("{:.1f} % of a step's time over F only, {:.1f} % over equal shares",
                                gain(plan.f_only), gain(plan.equal_shares)));
  table.row("bytes per token", predicted_bytes_text(engine.report()));
}

std::string policies_text(const engine::Engine& engine) {
  const engine::PolicyPlan& policies = engine.report().policies;
  std::string text = fmt::format(
      "preset {}: router {}, cache {} ({}), scheduler {}, prefetch {}, placement {}", policies.preset_name(),
      policies.router->name, policies.cache->name, engine::cache_scope_name(engine.report().plan.cache_scope),
      policies.scheduler->name, policies.prefetch->name, policies.placement_text());
  if (policies.precision.mode != experts::PrecisionMode::kFull)
    text += fmt::format(", precision {}", experts::precision_name(policies.precision.mode));
  if (policies.limits.mode != experts::ConstraintMode::kNone)
    text += fmt::format(", constraint {}", experts::constraint_name(policies.limits.mode));
  return text;
}

void add_cache(const engine::Engine& engine, Table& table) {
  const std::size_t all = engine.report().model.experts.size();
  std::string name = "the cache holds";
  for (const Held& held : held_by_cache(engine.report())) {
    table.row(name, fmt::format("{} of {} experts: {}, {} each", held.experts, all, held.parts,
                                format_bytes(held.each)));
    name = "or";
  }
  table.row("bytes per token", predicted_bytes_text(engine.report()));
  if (engine.report().policies.router->lossy && !engine.report().checkpoint.slices())
    table.row("", fmt::format("less with the router {}, which decides while a text is generated",
                              engine.report().policies.router->name));
  table.row("speed", engine.report().checkpoint.slices()
                         ? "not predicted, as the bytes are not"
                         : "not predicted: only for caches with pools (" + flag(Setting::kCache) +
                               " zip-pools) are costs measured");
}

// `run` has pools for packed stores by default; a plan also shows what they would do for a directory.
// Whatever the user chose is planned as it would run.
void choose_pools(const EngineFlags& flags, bool sliced, engine::EngineOptions& settings) {
  if (settings.has_device()) return;  // beside one the plan is that of a run
  const bool chosen = settings.preset.is_chosen() || !settings.cache.empty();
  const bool words = flags.keep != "packed" && flags.device_keep != "packed";
  if (chosen || sliced || !words) return;
  settings.preset = "zipmoe-plus";
  if (settings.prefetch.empty()) settings.prefetch = "stream";  // as `run` does
}

void plan(const Options& options) {
  const EngineFlags& flags = options.engine;
  engine::EngineOptions settings = engine_options(flags);
  const OpenModel open = open_model(flags.model, WithTokenizer::kIfThere, flags);  // it takes memory in a run
  if (open.model.experts.empty())
    throw Error(ErrorKind::kUnsupported, "the model has no experts, so there is nothing to plan")
        .in(flags.model)
        .expected("a model with routed experts")
        .found(open.model.config.model_type + ", without any")
        .fix("run it as it is: it is read once, at the start");
  const bool sliced = open.checkpoint->slices().has_value();
  if (sliced && !options.trace.empty())
    throw Error(ErrorKind::kUsage,
                "recorded routing says how often whole experts are read, and these are in slices")
        .in(Setting::kTrace)
        .expected("a model directory, or a store of family raw or split")
        .found("family sliced")
        .fix("leave " + Setting::kTrace + " out");
  const std::size_t positions =
      std::min<std::size_t>(static_cast<std::size_t>(options.tokens), context_tokens(flags, open.model));
  if (options.tokens > static_cast<std::int64_t>(positions) && options.tokens != kRunTokens && !flags.quiet)
    print_warning("{}: the context holds {} tokens; this plan is for them, not for {}",
                  flag(Setting::kTokens), positions, options.tokens);
  // For a model with an encoder, the prompt is the encoder's input, and the answer stands alone.
  settings.positions = positions;
  settings.encoder_positions = open.model.config.has_encoder() ? positions : 0;
  settings.sequences = static_cast<std::size_t>(options.batch);
  settings.draws = !sampler_config(options.sampling, open.model.generation, 0).takes_likeliest();
  choose_pools(flags, sliced, settings);
  RecordedRouting routing;
  if (!options.trace.empty()) {
    routing = read_routing(options.trace, open.model.config);
    settings.ranks = routing.ranks;
  }
  const engine::Engine engine(*open.checkpoint, open.model,
                              engine::resolve(settings, *open.checkpoint, open.model),
                              engine::generation_logit_rows(settings.sequences));
  keep_profile(flags, engine);
  check_identity(routing, options.trace, engine);
  if (options.trace.empty()) routing.played = engine::played_in_profile(engine.report());
  if (flags.json) {
    Json json = plan_json(engine.report(), positions);
    if (!engine.report().plan.no_device.empty())
      json["no_device"] = with_names(engine.report().plan.no_device);
    if (!engine.report().plan.device_faults.empty())
      json["device_faults"] = device_faults_json(engine.report().plan.device_faults);
    if (engine.report().device != nullptr)
      json["device"] = device_plan_json(engine.report(), static_cast<std::uint32_t>(options.batch));
    add_played(json, routing.played);
    std::cout << json.dump() << '\n';
    return;
  }
  Table table(terminal_columns(STDOUT_FILENO));
  add_memory(engine, positions, table);
  table.row("policies", policies_text(engine));
  if (!routing.played.empty()) table.row("routing", routing.played);
  if (engine.report().pool_plan)
    add_pools(engine, *engine.report().pool_plan, table);
  else
    add_cache(engine, table);
  if (!engine.report().plan.no_device.empty())
    table.row("device", "none: " + with_names(engine.report().plan.no_device));
  if (engine.report().device != nullptr)
    for (const ReportRow& row : device_plan_rows(engine.report(), static_cast<std::uint32_t>(options.batch)))
      table.row(row.name, row.text);
  std::cout << table.text();
}

}  // namespace plan_command
}  // namespace

void add_plan(Command& app) {
  using namespace plan_command;
  Command* command = app.add_command("plan", "Say where the bytes of a budget go and what speed to expect");
  auto options = std::make_shared<Options>();
  command
      ->add_option(Setting::kTokens, &options->tokens,
                   "Tokens of prompt and answer to have room for; run takes those of its prompt and " +
                       Setting::kPredict)
      ->show_default()
      ->check(whole_number(Setting::kTokens, 1, std::uint64_t{1} << 31));
  command->add_option(Setting::kBatch, &options->batch, "Sequences that are decoded together, 1 to 256")
      ->show_default()
      ->check(whole_number(Setting::kBatch, 1, 256));
  add_sampling_flags(*command, options->sampling, SamplingChoice::kThatTakesMemory);
  command->add_option(Setting::kTrace, &options->trace,
                      "Recorded routing to plan with (sluice trace); default: the profile's, else assumed");
  add_engine_flags(
      *command, options->engine,
      {.seed = "Which experts costs are measured of at the start; default: 0",
       .router = "all but exact change the text; prompts are routed exactly",
       .context = "Most tokens to plan for (see " + Setting::kTokens + "); default: the model's maximum",
       .devices = true,
       .finds_device = true});
  // What these decide, they decide token by token, and a plan has no tokens.
  command->without_effect(
      {Setting::kCritical, Setting::kTheta, Setting::kCriticalCount, Setting::kLowView, Setting::kLsbMiss,
       Setting::kLsbReserve, Setting::kWarmup, Setting::kKappa, Setting::kRho, Setting::kMissRate,
       Setting::kLambda, Setting::kEta, Setting::kCumsumP, Setting::kAlpha, Setting::kMerge, Setting::kRenorm,
       Setting::kResident, Setting::kTopJ},
      "run");
  command->footer(
      "Flags of policies are those of run, and are planned for as a run would take them.\n"
      "Examples:\n"
      "  sluice plan qwen.sluice --memory 8GiB\n"
      "  sluice plan qwen.sluice --memory 8GiB --trace qwen.trace\n"
      "  sluice plan sliced.sluice --memory 8GiB --preset slicemoe\n"
      "  sluice plan qwen.sluice --memory 8GiB --device cuda --device-memory 20GiB");
  command->callback([options] { plan(*options); });
}

}  // namespace sluice::app
