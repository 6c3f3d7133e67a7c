#include "reproduce/zipmoe/zipmoe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/hash.h"
#include "base/machine/cpu.h"
#include "base/machine/system_memory.h"
#include "base/machine/thread_pool.h"
#include "engine/engine.h"
#include "engine/model_identity.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/options.h"
#include "engine/plan/profile.h"
#include "engine/run_report.h"
#include "experts/registry.h"
#include "model/architecture.h"
#include "reproduce/run_pictures.h"
#include "reproduce/svg.h"
#include "reproduce/zipmoe/zipmoe_results.h"
#include "reproduce/zipmoe/zipmoe_rows.h"
#include "reproduce/zipmoe/zipmoe_runs.h"
#include "reproduce/zipmoe/zipmoe_sections.h"
#include "reproduce/zipmoe/zipmoe_systems.h"

namespace sluice::reproduce {
namespace {

// Runs the stages in turn; each stores its findings in the results and in the report's data.
class Reproducer {
 public:
  explicit Reproducer(const ZipmoeSettings& settings) : runs_(settings) {
    report_.title = "ZipMoE (arXiv 2601.21198), tried again";
    report_.command = settings.command;
    report_.prepare = settings.prepare;
    report_.machine = fmt::format("{}, {} threads, {} of memory; reads: {}", cpu_info().model,
                                  runs_.options().threads != 0 ? runs_.options().threads : usable_cpus(),
                                  format_bytes(read_memory_limits().machine_total),
                                  fetch::io_mode_name(runs_.options().fetch.io));
  }

  Report run() {
    identify();
    arithmetic();
    budgets();
    ladder();
    batches();
    lengths();
    pictures_of_runs();
    replay();
    add_zipmoe_rows(runs_, results_, report_);
    add_zipmoe_sections(runs_, results_, report_);
    report_.data["texts_equal"] = runs_.all_same();
    report_.data["quick"] = runs_.settings().quick;
    return std::move(report_);
  }

 private:
  void identify() {
    runs_.stage("looking at the model");
    engine::EngineOptions options = runs_.options();
    options.preset = "z-basic-lru";
    options.scheduler = "serial";  // needs no profile
    if (!runs_.settings().budgets.empty()) options.memory = runs_.settings().budgets.front();
    const engine::Engine engine(
        *runs_.settings().packed.checkpoint, *runs_.settings().packed.model,
        engine::resolve(options, *runs_.settings().packed.checkpoint, *runs_.settings().packed.model));
    std::string budgets;
    for (const Bytes budget : runs_.settings().budgets) budgets += fmt::format(" {}", budget);
    const std::string trace = runs_.settings().trace.substr(runs_.settings().trace.rfind('/') + 1);
    report_.configuration = {
        .model = hex64(engine::model_identity(engine)),
        .flags = fmt::format("{}{} tokens, {} runs, budgets{}, trace {}, isa {}, io {}",
                             runs_.settings().quick ? "quick, " : "", runs_.tokens(), runs_.repeats(),
                             budgets.empty() ? " by shares" : budgets, trace.empty() ? "none" : trace,
                             isa_name(engine.report().isa), fetch::io_mode_name(runs_.options().fetch.io)),
        .machine = fmt::format("{}, {} threads", cpu_info().model, engine.report().threads),
        .version = runs_.settings().version};
  }

  void arithmetic() {
    runs_.stage("counting exponents");
    results_.exponents = exponent_facts(*runs_.settings().whole.checkpoint, *runs_.settings().whole.model,
                                        runs_.settings().quick ? 48 : 192, 4, runs_.settings().interrupted);
    runs_.stage("random schedules");
    const std::size_t instances = runs_.settings().quick ? 2000 : 20000;
    for (const char* scheduler :
         {"zip-affinity", "zip-affinity-literal", "zip-affinity-best-of", "p_sorted", "fifo"})
      results_.ratios.push_back({scheduler, makespan_ratio(scheduler, instances, 1)});
    Json codecs, ratios;
    for (const CodecSize& codec : results_.exponents.codecs) codecs[codec.codec] = codec.size;
    for (const auto& [name, ratio] : results_.ratios)
      ratios[name] = {{"instances", ratio.instances},
                      {"mean", ratio.mean},
                      {"worst", ratio.worst},
                      {"worst_of_bound", ratio.worst_of_bound}};
    report_.data["exponents"] = {{"words", results_.exponents.words},
                                 {"entropy_bits", results_.exponents.entropy_bits},
                                 {"symbols", results_.exponents.symbols},
                                 {"bound", results_.exponents.bound},
                                 {"codecs", codecs}};
    report_.data["makespan_ratio"] = ratios;
  }

  void budgets() {
    runs_.stage("sizing budgets");
    results_.budgets = runs_.settings().budgets;
    if (results_.budgets.empty())
      for (const double share :
           runs_.settings().quick ? std::vector{.25, .5, .75} : std::vector{.25, .375, .5, .625, .75})
        results_.budgets.push_back(runs_.budget_for(share));
    const std::vector<std::string> systems = sweep_systems();
    for (std::size_t i = 0; i < results_.budgets.size(); ++i) {
      results_.sweep.push_back(runs_.compare(fmt::format("budget {} of {}", i + 1, results_.budgets.size()),
                                             systems, results_.budgets[i], 1, runs_.tokens()));
      report_.data["budgets"].push_back(to_json(results_.sweep.back()));
    }
    const auto chart = [&](const char* title, const char* y, double lab::RunFigures::*figure, double factor) {
      std::vector<PlotSeries> series;
      for (const std::string& name : systems) {
        series.push_back({name, {}});
        for (const lab::Comparison& one : results_.sweep) {
          const lab::Spread spread = one.find(name).of(figure);
          series.back().points.push_back(
              {std::round(10 * static_cast<double>(one.budget) / static_cast<double>(kMiB)) / 10,
               spread.median * factor, spread.low * factor, spread.high * factor});
        }
      }
      return line_chart({title, "budget, MiB", y,
                         fmt::format("medians of {} runs in turns; bars: least and most", runs_.repeats())},
                        series, true);
    };
    picture("tpot.svg", "Time per output token against the budget, per system",
            chart("Time per output token", "ms per token (log)", &lab::RunFigures::tpot_s, 1e3));
    picture("ttft.svg", "Time to the first token against the budget, per system",
            chart("Time to the first token", "ms (log)", &lab::RunFigures::ttft_s, 1e3));
  }

  void ladder() {
    results_.ladder = runs_.compare("ladder", ladder_steps(), results_.middle(), 1, runs_.tokens());
    report_.data["ladder"] = to_json(results_.ladder);
    std::vector<PlotBar> bars;
    for (const lab::Compared& one : results_.ladder.contenders) {
      const lab::Spread spread = one.of(&lab::RunFigures::tok_s);
      bars.push_back({one.preset, spread.median, spread.low, spread.high});
    }
    picture("ladder.svg",
            "Ablation: whole experts, compression with a flat cache, pools (+C), planned pools (+C+P)",
            bar_chart({"Ablation at " + format_bytes(results_.middle()), "preset", "tokens per second",
                       fmt::format("medians of {} runs in turns; bars: least and most", runs_.repeats())},
                      bars));
  }

  void batches() {
    const std::vector<std::string> systems = batch_systems();
    for (const std::size_t batch : runs_.batches()) {
      // Adds room for the keys and values of more sequences, with the same experts.
      const model::ModelConfig& config = runs_.settings().packed.model->config;
      const std::size_t positions = runs_.positions(batch, runs_.tokens() / 2);
      const Bytes more = engine::kv_bytes(config, DType::kF32, batch, positions) -
                         engine::kv_bytes(config, DType::kF32, 1, positions);
      results_.batches.push_back(runs_.compare(fmt::format("batch {}", batch), systems,
                                               results_.middle() + more, batch, runs_.tokens() / 2));
      results_.batch_budgets.push_back(results_.middle() + more);
      report_.data["batches"].push_back({{"batch", batch}, {"comparison", to_json(results_.batches.back())}});
    }
  }

  void lengths() {
    const std::vector<std::string> systems = length_systems();
    for (const std::size_t length : runs_.lengths()) {
      results_.lengths.push_back(
          runs_.compare(fmt::format("length {}", length), systems, results_.middle(), 1, length));
      report_.data["lengths"].push_back(
          {{"tokens", length}, {"comparison", to_json(results_.lengths.back())}});
    }
  }

  void pictures_of_runs() {
    for (const char* preset : {"z-C+P", "z-C"}) {
      runs_.stage(std::string("watching ") + preset);
      engine::EngineOptions options = runs_.options();
      options.preset = preset;
      options.memory = results_.budgets.front();
      options.profile = runs_.profile();
      options.profile_if_it_fits = true;
      const model::ModelConfig& config = runs_.settings().packed.model->config;
      fetch::Timeline timeline;  // outlives reads ahead
      engine::Engine engine(
          *runs_.settings().packed.checkpoint, *runs_.settings().packed.model,
          engine::resolve(options, *runs_.settings().packed.checkpoint, *runs_.settings().packed.model));
      StateCounter states(config.sparse_layers(), config.moe.experts);
      engine.observe(&states);
      engine::GenerateRequest request = runs_.requests(1, runs_.tokens()).front();
      request.should_stop = runs_.settings().interrupted;
      request.on_text = [&](const std::string&, std::size_t tokens) {
        if (tokens == std::max<std::size_t>(5, runs_.tokens()) - 4) engine.record_timeline(&timeline);
      };
      engine::generate(engine, runs_.settings().tokenizer, request);
      engine.record_timeline(nullptr);
      engine.observe(nullptr);
      const bool equal = options.preset.host().sharing == experts::PoolSharing::kEqual;
      const std::string file = equal ? "equal" : "planned";
      const std::string which = equal ? "pools of equal shares (z-C)" : "planned pools (z-C+P)";
      picture("states-" + file + ".svg",
              fmt::format("In which state experts were found, by rank: {} at {}", which,
                          format_bytes(results_.budgets.front())),
              states_picture(which, states));
      picture("gantt-" + file + ".svg",
              "One layer of one decode step: reads, decoding and computing; " + which,
              layer_gantt("One layer of one decode step, " + which, timeline));
      const auto by_rank = states.by_rank();
      report_.data["states_by_rank"][preset] = {
          {"F", by_rank[0]}, {"C", by_rank[1]}, {"S", by_rank[2]}, {"E", by_rank[3]}, {"M", by_rank[4]}};
    }
  }

  void picture(const std::string& file, const std::string& caption, std::string svg) {
    report_.pictures.push_back({"zipmoe-" + file, caption, std::move(svg)});
  }

  void replay() {
    const std::optional<engine::Profile> profile = runs_.profile();
    if (!profile || profile->model.chunks == 0) return;
    results_.replay = replay_zipmoe({.trace = runs_.settings().trace,
                                     .batches = runs_.batches(),
                                     .stop = runs_.settings().interrupted,
                                     .on_stage = [&](const std::string& text) { runs_.stage(text); }},
                                    *profile);
    report_.data["replay"] = results_.replay->data;
    report_.played = results_.replay->played;
  }

  ZipmoeRuns runs_;
  ZipmoeResults results_;
  Report report_;
};

}  // namespace

Report reproduce_zipmoe(const ZipmoeSettings& settings) { return Reproducer(settings).run(); }

}  // namespace sluice::reproduce
