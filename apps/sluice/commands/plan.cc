// `sluice plan`: shows where every byte of a budget goes, and which speed to expect and why. Generates
// nothing.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "base/duration.h"
#include "base/error.h"
#include "base/wrapped_text.h"
#include "command.h"
#include "commands/recorded_routing.h"
#include "engine/engine.h"
#include "engine/generate.h"
#include "flags/engine_flags.h"
#include "flags/number_range.h"
#include "flags/sampling_flags.h"
#include "report/run_report.h"
#include "streams/standard_error.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {

// What `sluice run` asks for by default: an answer of 128 tokens, here behind a prompt of as many.
constexpr std::int64_t kRunTokens = 256;

struct Options {
  EngineFlags engine;
  SamplingFlags sampling;
  std::string trace;
  std::int64_t tokens = kRunTokens, batch = 1;
};

std::string slots_text(const experts::PoolSlots& slots) {
  return fmt::format("F {}, C {}, S {}, E {}", slots.f, slots.c, slots.s, slots.e);
}

std::string_view view_name(engine::DenseView view) {
  return view == engine::DenseView::kPacked ? "packed" : "words";
}

std::string table(const engine::Engine& engine, const engine::PoolPlan& plan, std::size_t positions,
                  std::size_t columns) {
  const engine::Profile& profile = *engine.profile();
  const engine::MemoryPlan& memory = engine.plan();
  std::string text;
  const auto row = [&](std::string_view name, const std::string& value) {
    text += report_row(name, value, columns);
  };
  row("budget", format_bytes(memory.budget));
  row("", fmt::format("process {}, dense {}, kv {}, tables {}, activations {}, staging {}, experts {}",
                      format_bytes(memory.process), format_bytes(memory.dense), format_bytes(memory.kv),
                      format_bytes(memory.tables), format_bytes(memory.activations),
                      format_bytes(memory.staging), format_bytes(memory.experts)));
  row("tokens", fmt::format("{} of prompt and answer {} have room{}", positions,
                            engine.model().config.has_encoder() ? "each" : "together",
                            positions == kRunTokens ? " (--tokens asks for more)" : ""));
  row("dense weights",
      fmt::format("{}: {}", view_name(engine.dense_choice().view), engine.dense_choice().why));
  row("a layer",
      fmt::format("{} for {} experts, {} of them used a step{}", format_bytes(plan.layer_memory),
                  profile.model.experts, plan.distinct,
                  plan.ranks_assumed ? " (how often each: assumed; record it with `sluice trace`)" : ""));
  row("an expert", fmt::format("F {}, C {}, S {}, E {}", format_bytes(profile.model.full),
                               format_bytes(profile.model.sm + profile.model.exp),
                               format_bytes(profile.model.sm), format_bytes(profile.model.exp)));
  row("costs", fmt::format("u {}, v {}, c {}, merge {}, p {}; the rest of a step {}",
                           format_duration(profile.u.median), format_duration(profile.v.median),
                           format_duration(profile.c.median), format_duration(profile.merge.median),
                           format_duration(profile.p.median), format_duration(profile.rest.median)));
  row("shares", fmt::format("F {:.2f}, C {:.2f}, S {:.2f}, E {:.2f} of the memory ({} configurations)",
                            plan.gamma.f, plan.gamma.c, plan.gamma.s, plan.gamma.e, plan.configurations));
  const auto choice = [&](std::string_view name, const engine::PoolChoice& it) {
    row(name, fmt::format("{}: {} a layer, {:.2f} tok/s, {} a step, limit {}", slots_text(it.slots),
                          format_duration(it.expected.cost), it.tok_s,
                          format_bytes(static_cast<Bytes>(it.disk_bytes)), it.limit));
    if (it.wasted_bytes.value_or(0) >= 1)
      row("", fmt::format("and {} a step read ahead in vain, unless that does not pay and stops",
                          format_bytes(static_cast<Bytes>(*it.wasted_bytes))));
  };
  choice("plan", plan.chosen);
  choice("F only", plan.f_only);
  choice("equal shares", plan.equal_shares);
  const auto gain = [&](const engine::PoolChoice& other) {
    return other.expected.cost > 0 ? 100 * (1 - plan.chosen.expected.cost / other.expected.cost) : 0.0;
  };
  row("gain", fmt::format("{:.1f} % of a layer's cost over F only, {:.1f} % over equal shares",
                          gain(plan.f_only), gain(plan.equal_shares)));
  return text;
}

void plan(const Options& options) {
  const EngineFlags& flags = options.engine;
  engine_options(flags, 1);
  const OpenModel open = open_model(flags.model, WithTokenizer::kIfThere, flags);  // it takes memory in a run
  if (open.model.experts.empty())
    throw Error(ErrorKind::kUnsupported, "the model has no experts, so there is nothing to plan")
        .in(flags.model);
  if (open.checkpoint->slices())
    throw Error(ErrorKind::kUnsupported,
                "a plan shares memory between pools, which experts in slices do not have")
        .in(flags.model)
        .expected("a model directory, or a store of family raw or split")
        .found("family sliced")
        .fix("`sluice run` says how much memory it takes");
  const std::size_t positions =
      std::min<std::size_t>(static_cast<std::size_t>(options.tokens), context_tokens(flags, open.model));
  if (options.tokens > static_cast<std::int64_t>(positions) && options.tokens != kRunTokens && !flags.quiet)
    print_warning("--tokens: the context holds {} tokens; this plan is for them, not for {}", positions,
                  options.tokens);
  // For a model with an encoder, the prompt is the encoder's input, and the answer stands alone.
  engine::EngineOptions settings =
      engine_options(flags, positions, open.model.config.has_encoder() ? positions : 0);
  settings.sequences = static_cast<std::size_t>(options.batch);
  settings.draws = !sampler_config(options.sampling, open.model.generation, 0).takes_likeliest();
  if (settings.preset.empty() || settings.preset == "auto") {
    settings.preset = "zipmoe";
    if (settings.prefetch.empty()) settings.prefetch = "lookahead";  // as `run` does
  }
  settings.cache = "zip-pools";
  RecordedRouting routing;
  if (!options.trace.empty()) {
    routing = read_routing(options.trace, open.model.config);
    settings.ranks = routing.ranks;
  }
  const engine::Engine engine(*open.checkpoint, open.model, settings,
                              engine::generation_logit_rows(settings.sequences));
  keep_profile(flags, engine);
  check_identity(routing, options.trace, engine);
  const engine::PoolPlan& pools = *engine.pool_plan();
  if (!flags.json) {
    std::cout << table(engine, pools, positions, terminal_columns(STDOUT_FILENO));
    return;
  }
  const engine::MemoryPlan& memory = engine.plan();
  Json json = engine::to_json(pools);
  json["budget"] = memory.budget;
  json["tokens"] = positions;
  json["by_name"] = {{"process", memory.process},
                     {"dense", memory.dense},
                     {"kv", memory.kv},
                     {"tables", memory.tables},
                     {"activations", memory.activations},
                     {"staging", memory.staging},
                     {"experts", memory.experts}};
  json["dense"] = {{"view", view_name(engine.dense_choice().view)}, {"why", engine.dense_choice().why}};
  json["minimum"] = memory.stated;
  json["profile"] = engine::to_json(*engine.profile());
  std::cout << json.dump() << '\n';
}

}  // namespace

void add_plan(Command& app) {
  Command* command = app.add_command("plan", "Say where the bytes of a budget go and what speed to expect");
  auto options = std::make_shared<Options>();
  command
      ->add_option("--tokens", &options->tokens,
                   "Prompt and answer together (each by itself, behind an encoder) to reserve the key/value "
                   "cache for; "
                   "a run without -n takes its prompt and 128")
      ->show_default()
      ->check(whole_number("--tokens", 1, std::uint64_t{1} << 31));
  command->add_option("--batch", &options->batch, "Sequences that are decoded together, 1 to 256")
      ->show_default()
      ->check(whole_number("--batch", 1, 256));
  add_sampling_flags(*command, options->sampling, SamplingChoice::kThatTakesMemory);
  command->add_option("--trace", &options->trace,
                      "Recorded routing to plan with (sluice trace); default: the profile's, else assumed");
  add_engine_flags(*command, options->engine,
                   {.seed = "Which experts costs are measured of at the start; default: 0",
                    .context = "Most tokens to plan for (see --tokens); default: the model's maximum",
                    .policies = PolicyFlags::kPools});
  command->footer(
      "Examples:\n  sluice plan qwen.sluice --memory 8GiB\n  sluice plan qwen.sluice --memory 8GiB --trace "
      "qwen.trace");
  command->callback([options] { plan(*options); });
}

}  // namespace sluice::app
