// `sluice plan`: where every byte of a budget goes, what speed to expect and why. Nothing is generated.
#include <fmt/format.h>

#include <iostream>

#include "base/error.h"
#include "command.h"
#include "engine/engine.h"
#include "engine/generate.h"
#include "engine_flags.h"
#include "number_range.h"
#include "recorded_routing.h"
#include "run_report.h"

namespace sluice::app {
namespace {

struct Options {
  EngineFlags engine;
  std::string trace;
  std::int64_t tokens = 4096, batch = 1;
};

std::string slots_text(const experts::PoolSlots& slots) {
  return fmt::format("F {}  C {}  S {}  E {}", slots.f, slots.c, slots.s, slots.e);
}

std::string_view view_name(engine::DenseView view) {
  return view == engine::DenseView::kPacked ? "packed" : "words";
}

std::string table(const engine::Engine& engine, const engine::PoolPlan& plan) {
  const engine::Profile& profile = *engine.profile();
  const engine::MemoryPlan& memory = engine.plan();
  std::string text;
  const auto row = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<18}{}\n", name, value);
  };
  row("budget", format_bytes(memory.budget));
  row("", fmt::format("process {}, dense {}, kv {}, tables {}", format_bytes(memory.process),
                      format_bytes(memory.dense), format_bytes(memory.kv), format_bytes(memory.tables)));
  row("", fmt::format("activations {}, staging {}, experts {}", format_bytes(memory.activations),
                      format_bytes(memory.staging), format_bytes(memory.experts)));
  row("dense weights",
      fmt::format("{}: {}", view_name(engine.dense_choice().view), engine.dense_choice().why));
  row("a layer",
      fmt::format("{} for {} experts, {} of them used a step{}", format_bytes(plan.layer_memory),
                  profile.model.experts, plan.distinct,
                  plan.ranks_assumed ? " (how often each: assumed; record it with `sluice trace`)" : ""));
  row("an expert", fmt::format("F {}  C {}  S {}  E {}", format_bytes(profile.model.full),
                               format_bytes(profile.model.sm + profile.model.exp),
                               format_bytes(profile.model.sm), format_bytes(profile.model.exp)));
  row("costs",
      fmt::format(
          "u {:.3f} ms, v {:.3f} ms, c {:.3f} ms, merge {:.3f} ms, p {:.3f} ms; the rest of a step {:.2f} ms",
          profile.u.median * 1e3, profile.v.median * 1e3, profile.c.median * 1e3, profile.merge.median * 1e3,
          profile.p.median * 1e3, profile.rest.median * 1e3));
  row("shares", fmt::format("F {:.2f}  C {:.2f}  S {:.2f}  E {:.2f} of the memory ({} configurations)",
                            plan.gamma.f, plan.gamma.c, plan.gamma.s, plan.gamma.e, plan.configurations));
  const auto choice = [&](std::string_view name, const engine::PoolChoice& it) {
    row(name, fmt::format("{:<24} {:8.3f} ms a layer, {:7.2f} tok/s, {:>10} a step, limit {}",
                          slots_text(it.slots), it.expected.cost * 1e3, it.tok_s,
                          format_bytes(static_cast<Bytes>(it.disk_bytes)), it.limit));
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
  const OpenModel open = open_model(flags.model, WithTokenizer::kNo, flags);
  if (open.model.experts.empty())
    throw Error(ErrorKind::kUnsupported, "the model has no experts, so there is nothing to plan")
        .in(flags.model);
  if (open.checkpoint->slices())
    throw Error(ErrorKind::kUnsupported,
                "a plan shares memory between pools, which experts in slices do not have")
        .in(flags.model)
        .expected("a model directory, or a store of family raw or split")
        .found("family sliced")
        .fix("`sluice run` says what memory it takes");
  const std::size_t positions =
      std::min<std::size_t>(static_cast<std::size_t>(options.tokens), context_tokens(flags, open.model));
  engine::EngineOptions settings = engine_options(flags, positions);
  settings.sequences = static_cast<std::size_t>(options.batch);
  settings.draws = !engine::sampler_defaults(open.model.generation).takes_likeliest();  // as `run` would
  if (settings.preset.empty() || settings.preset == "auto") settings.preset = "zipmoe";
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
    std::cout << table(engine, pools);
    return;
  }
  const engine::MemoryPlan& memory = engine.plan();
  Json json = engine::to_json(pools);
  json["budget"] = memory.budget;
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

void add_plan(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("plan", "Say where the bytes of a budget go and what speed to expect");
  auto options = std::make_shared<Options>();
  add_engine_flags(*command, options->engine,
                   {.seed = kSeedOfCaches,
                    .context = "Most tokens to plan for (see --tokens); default: the model's maximum"});
  command->add_option("--tokens", options->tokens, "Prompt and answer to reserve the key/value cache for")
      ->capture_default_str()
      ->check(whole_number("--tokens", 1, std::uint64_t{1} << 31));
  command->add_option("--batch", options->batch, "Sequences that are decoded together, 1 to 256")
      ->capture_default_str()
      ->check(whole_number("--batch", 1, 256));
  command->add_option("--trace", options->trace,
                      "Recorded routing to plan with (sluice trace); default: the profile's, else assumed");
  command->footer(
      "Examples:\n  sluice plan qwen.sluice --memory 8GiB\n  sluice plan qwen.sluice --memory 8GiB --trace "
      "qwen.trace");
  command->callback([options] { plan(*options); });
}

}  // namespace sluice::app
