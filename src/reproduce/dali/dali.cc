#include "reproduce/dali/dali.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/machine/cpu.h"
#include "base/stop_request.h"
#include "base/stopwatch.h"
#include "experts/placement/placement.h"
#include "experts/registry.h"
#include "reproduce/dali/dali_report.h"
#include "reproduce/dali/dali_results.h"

namespace sluice::reproduce {
namespace {

constexpr std::uint32_t kPrompt = 64;  // SPEC §6.3, "Defaults"

std::string file_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Runs the stages in turn; each stores its findings in the results and in the report's data.
class DaliReproducer {
 public:
  explicit DaliReproducer(const DaliSettings& settings) : settings_(settings) {
    report_.title = "DALI, tried again";
    report_.command = settings.command;
    report_.machine = "modelled: RTX 3090, PCIe 4.0 x16, EPYC 7532, each of them in several versions";
    report_.configuration = {
        .model = "shapes of DeepSeek-V2-Lite, Mixtral-8x7B, Qwen3-30B-A3B",
        .flags = fmt::format("{}seed {}, trace {}, trained model {}", settings.quick ? "quick, " : "",
                             settings.seed, settings.trace.empty() ? "none" : file_of(settings.trace),
                             settings.trained ? settings.trained->model : "none"),
        .machine = fmt::format("modelled; decisions and the trained model on {}", cpu_info().model),
        .version = settings.version};
  }

  Report run() {
    if (settings_.trace.empty())
      results_.missing = "DeepSeek-V2-Lite: no recorded routing is at hand";
    else
      replays(dali_deepseek(), DaliTokens(recorded(dali_deepseek(), settings_.trace)));
    replays(dali_mixtral(), DaliTokens(synthetic(dali_mixtral(), .45, .5, 1)));
    if (!settings_.quick)
      replays(dali_qwen(), DaliTokens(synthetic(dali_qwen(), .32, .4, .85)));
    else
      results_.missing +=
          std::string(results_.missing.empty() ? "" : "; ") + "Qwen3-30B-A3B: left out of a quick run";
    if (settings_.trained) {
      stage("the trained model's predictions");
      DaliTrainedSettings trained = *settings_.trained;
      trained.interrupted = settings_.interrupted;
      results_.trained = measure_dali(trained);
      report_.data["trained"] = to_json(*results_.trained);
    }
    store_tables();
    add_dali_rows(results_, report_);
    add_dali_pictures(results_, report_);
    report_.data["quick"] = settings_.quick;
    return std::move(report_);
  }

 private:
  void check_interrupted() const { stop_if(settings_.interrupted); }
  void stage(const std::string& text) const {
    check_interrupted();
    if (settings_.on_stage) settings_.on_stage(text);
  }
  std::vector<std::uint32_t> batches() const {
    return settings_.quick ? std::vector<std::uint32_t>{8, 32} : std::vector<std::uint32_t>{8, 16, 32, 64};
  }
  std::uint32_t output() const { return settings_.quick ? 24 : 64; }

  WeightedTokens recorded(const DaliModel& model, const std::string& path) {
    stage(model.name + ": reading recorded routing");
    const auto trace = trace::open_trace(path);
    const trace::TraceHeader& header = trace->header();
    if (header.layers != model.layers || header.experts != model.experts || header.top_k != model.top_k)
      throw Error(ErrorKind::kInvalid, "the trace is of another model")
          .in(path)
          .expected(fmt::format("{} sparse layers of {} experts, top {}, as {}", model.layers, model.experts,
                                model.top_k, model.name))
          .found(fmt::format("{} sparse layers of {} experts, top {}", header.layers, header.experts,
                             header.top_k));
    WeightedTokens tokens = read_weighted_tokens(*trace, settings_.interrupted);
    if (tokens.tokens() < 3)
      throw Error(ErrorKind::kInvalid, "the trace has too few tokens")
          .in(path)
          .expected("at least 3")
          .found(std::to_string(tokens.tokens()));
    report_.played = trace->played();
    results_.routings.push_back({.model = &model,
                                 .source = fmt::format("recorded ({}, {} tokens, top {})", file_of(path),
                                                       tokens.tokens(), model.top_k),
                                 .facts = {},
                                 .active = {},
                                 .top3_overlap = {}});
    if (header.format == "mrt") results_.routings.back().facts = lab::facts_of(*trace::open_trace(path));
    return tokens;
  }

  // There is no recording of Mixtral, and none of Qwen3 with all its experts. What this routing is like
  // stands in the report.
  WeightedTokens synthetic(const DaliModel& model, double a, double phi, double sigma) {
    stage(model.name + ": synthetic routing");
    lab::SyntheticRouting routing{.layers = model.layers,
                                  .experts = model.experts,
                                  .top_k = model.top_k,
                                  .prompts = 8,
                                  .tokens = 256,
                                  .a = a,
                                  .d = .1,
                                  .phi = phi,
                                  .sigma = sigma,
                                  .seed = settings_.seed};
    lab::SyntheticTrace trace(routing, 0);
    results_.routings.push_back(
        {.model = &model,
         .source =
             fmt::format("synthetic (a = {}, d = {}, φ = {}, σ = {}, {} prompts of {} tokens)", routing.a,
                         routing.d, routing.phi, routing.sigma, routing.prompts, routing.tokens),
         .facts = lab::facts_of(trace),
         .active = {},
         .top3_overlap = {}});
    return synthetic_weighted_tokens(routing);
  }

  void add(DaliTable& table, DaliWork& work, const DaliMachine& machine, const DaliSystem& system,
           std::uint32_t key = 0) const {
    table.add({.model = work.model().name,
               .machine = machine.label,
               .system = system.name,
               .batch = key != 0 ? key : work.shape().sequences,
               .slots = system.settings.slots,
               .result = work.run(system, machine, settings_.interrupted)});
  }

  void replays(const DaliModel& model, const DaliTokens& tokens) {
    DaliResults::Routing& routing = results_.routings.back();
    const std::vector<DaliMachine> machines = machines_of(model);
    for (const std::uint32_t batch : batches()) {
      stage(fmt::format("{}: all systems, B = {}", model.name, batch));
      DaliWork work(model, tokens, {batch, kPrompt, output()}, settings_.seed);
      const lab::RoutedSteps& steps = work.steps(DaliGuess::kNone);
      routing.active[batch] = active_experts(steps);
      for (const std::uint32_t layer : {1u, 4u, 8u, 16u})
        routing.top3_overlap[batch].push_back(workload_overlap(steps, 3, {layer}));
      for (const DaliMachine& machine : machines) {
        check_interrupted();
        systems(work, machine);
      }
    }
    for (const std::uint32_t batch : {16u, 32u}) assignments(model, tokens, machines, batch);
    parts(model, tokens, machines);
    windows(model, tokens, machines);
    if (model.name == dali_mixtral().name) mixtral_alone(tokens, machines);
    if (results_.assign_times.empty()) overheads(model, tokens, machines.front());
  }

  // D-F12, D-F13, D-F5, D-fig.
  void systems(DaliWork& work, const DaliMachine& machine) {
    const DaliModel& model = work.model();
    const std::uint32_t half = model.experts / 2;
    for (const char* preset : {"d-naive", "d-llamacpp", "ncmoe", "d-ktransformers", "d-fiddler", "gpu-lru",
                               "d-moe-lightning", "d-hybrimoe", "hybrimoe", "dali", "dali-plus"})
      add(results_.sweep, work, machine, dali_system(model, preset, half));
    DaliSystem alone = dali_system(model, "d-hybrimoe", half);
    alone.name = "d-hybrimoe, no prefetch";
    alone.settings.prefetch = "none";
    alone.guess = DaliGuess::kNone;
    add(results_.sweep, work, machine, alone);
  }

  // D-F14, D-F15, D-T4, D-fig.
  void assignments(const DaliModel& model, const DaliTokens& tokens, const std::vector<DaliMachine>& machines,
                   std::uint32_t batch) {
    stage(fmt::format("{}: assignment, B = {}", model.name, batch));
    DaliWork work(model, tokens, {batch, 0, output()}, settings_.seed);
    for (const DaliMachine& machine : machines)
      for (const char* placement : {"cpu", "threshold", "greedy", "beam", "ratio-prefix", "optimal"}) {
        check_interrupted();
        add(results_.assignment, work, machine, static_system(model, placement, model.experts / 2));
      }
  }

  // D-F19, D-F16, D-F18a, D-F17, D-F18b.
  void parts(const DaliModel& model, const DaliTokens& tokens, const std::vector<DaliMachine>& machines) {
    stage(model.name + ": parts of DALI");
    const std::uint32_t quarter = model.experts / 4, half = model.experts / 2;
    DaliWork work(model, tokens, {16, 0, output()}, settings_.seed);
    const auto with = [&](DaliSystem system, const std::string& name,
                          experts::Named<experts::PrefetchPolicy> prefetch, std::uint32_t size) {
      system.name = name;
      system.settings.prefetch = prefetch;
      system.settings.prefetch_size = size;
      system.guess = guess_of(*prefetch);
      return system;
    };
    for (const DaliMachine& machine : machines) {
      check_interrupted();
      const DaliSystem greedy = static_system(model, "greedy", quarter);
      const std::uint32_t size = model.ladder_prefetch;
      add(results_.ladder, work, machine, dali_system(model, "d-naive", quarter));
      add(results_.ladder, work, machine, greedy);
      add(results_.ladder, work, machine, with(greedy, "+ prefetch", "dali-residual", size));
      add(results_.ladder, work, machine,
          with(dali_system(model, "dali", quarter), "+ cache", "dali-residual", size));
      add(results_.ladder, work, machine,
          with(dali_system(model, "dali", quarter), "cache, no prefetch", "none", 0));
      add(results_.ladder, work, machine, dali_system(model, "dali-plus", quarter));
      for (const char* prefetch : {"none", "random", "stat", "raw", "dali-residual"})
        add(results_.prefetches, work, machine,
            with(greedy, prefetch, prefetch, model.experts <= 8 ? 2 : size));
      for (const std::uint32_t n : {1u, 2u, 4u, 8u})
        if (n < model.experts)
          add(results_.prefetches, work, machine,
              with(greedy, fmt::format("size {}", n), "dali-residual", n));
      for (const std::uint32_t slots : {quarter, half})
        for (const char* cache : {"workload-window", "workload-ema", "lru", "d-hybrimoe", "hybrimoe"}) {
          DaliSystem system = dali_system(model, "dali", slots);
          system.name = cache;
          system.settings.device_cache = cache;
          add(results_.caches, work, machine, system);
        }
      for (std::uint32_t eighths = 1; eighths < 8; eighths += 2)
        add(results_.shares, work, machine, dali_system(model, "dali", model.experts * eighths / 8));
    }
  }

  // D-T9, D-F18c.
  void windows(const DaliModel& model, const DaliTokens& tokens, const std::vector<DaliMachine>& machines) {
    stage(model.name + ": windows of the cache");
    DaliWork work(model, tokens, {32, 0, settings_.quick ? 32u : 64u}, settings_.seed);
    using Pair = std::pair<std::uint32_t, std::uint32_t>;
    const std::vector<Pair> pairs = model.experts <= 8
                                        ? std::vector<Pair>{{2, 1}, {2, 2}, {4, 1}, {4, 2}, {8, 1}}
                                        : std::vector<Pair>{{2, 8}, {2, 16}, {4, 8}, {4, 16}, {8, 8}};
    for (const DaliMachine& machine : machines) {
      check_interrupted();
      add(results_.windows, work, machine, dali_system(model, "d-hybrimoe", model.experts / 4));
      for (const auto& [w, u] : pairs) {
        DaliSystem system = dali_system(model, "dali", model.experts / 4);
        system.name = fmt::format("({},{})", w, u);
        system.settings.workload.window = {.steps = w, .swaps = u};
        add(results_.windows, work, machine, system);
      }
    }
  }

  // D-F7, D-F18d, D-F22.
  void mixtral_alone(const DaliTokens& tokens, const std::vector<DaliMachine>& machines) {
    const DaliModel& model = dali_mixtral();
    stage(model.name + ": few slots, hits over time, lengths");
    DaliWork four(model, tokens, {4, 0, 64}, settings_.seed);
    for (const DaliMachine& machine : machines)
      for (std::uint32_t slots = 1; slots <= 4; ++slots)
        add(results_.few_slots, four, machine, dali_system(model, "d-hybrimoe", slots));
    DaliSystem system = dali_system(model, "dali", 4);
    system.settings.workload.window = {.steps = 8, .swaps = 1};
    constexpr std::size_t kGroup = 8;
    std::vector<double> hits(64 / kGroup), assigned(64 / kGroup);
    const lab::RoutedStep* last = nullptr;
    std::size_t step = 0;
    four.run(system, machines.front(), settings_.interrupted,
             [&](const lab::RoutedStep& at, const experts::LayerDecision& decision,
                 const experts::DeviceDecider&) {
               if (last != nullptr && last != &at) ++step;
               last = &at;
               for (const experts::DeviceUse& use : decision.device->uses) {
                 hits[step / kGroup] += use.from == experts::DeviceBytes::kSlot ? 1 : 0;
                 assigned[step / kGroup] += 1;
               }
             });
    for (std::size_t i = 0; i < hits.size(); ++i)
      results_.hits_over_time.push_back(assigned[i] > 0 ? hits[i] / assigned[i] : 0);
    const std::vector<std::uint32_t> lengths = settings_.quick
                                                   ? std::vector<std::uint32_t>{128, 256}
                                                   : std::vector<std::uint32_t>{128, 256, 512, 1024};
    for (const std::uint32_t length : lengths) {
      DaliWork work(model, tokens, {16, 32, length}, settings_.seed);
      for (const DaliMachine& machine : machines) {
        check_interrupted();
        for (const char* preset : {"d-llamacpp", "d-ktransformers", "d-hybrimoe", "dali"})
          add(results_.lengths, work, machine, dali_system(model, preset, 4), length);
      }
    }
  }

  // D-F15, D-T6: what deciding takes here and now.
  void overheads(const DaliModel& model, const DaliTokens& tokens, const DaliMachine& machine) {
    stage("how long deciding takes");
    DaliWork sixteen(model, tokens, {16, 0, output()}, settings_.seed);
    for (const char* placement : {"greedy", "ratio-prefix", "beam", "optimal"})
      results_.assign_times.push_back({placement, assign_seconds(sixteen, machine, placement)});
    DaliWork eight(model, tokens, {8, 0, output()}, settings_.seed);
    for (const char* preset : {"d-hybrimoe", "dali", "dali-plus"}) {
      const DaliSystem system = dali_system(model, preset, model.experts / 2);
      eight.steps(system.guess);  // made beforehand
      double least = 1e300;
      for (int round = 0; round < 3; ++round) {
        Stopwatch watch;
        const lab::HybridResult result = eight.run(system, machine, settings_.interrupted);
        least = std::min(least, watch.lap() / static_cast<double>(result.decode.steps));
      }
      results_.decide_s.emplace_back(preset, least);
    }
  }

  // The experts of every event, half of them resident.
  static double assign_seconds(DaliWork& work, const DaliMachine& machine, const std::string& name) {
    const auto placement = experts::find_placement(name).make();
    const experts::ExpertCosts& costs = machine.machine.costs;
    double seconds = 0, events = 0;
    for (const lab::RoutedStep& step : work.steps(DaliGuess::kNone).steps)
      for (std::uint32_t l = 0; l < work.model().layers; ++l) {
        std::vector<std::uint32_t> all(work.model().experts), tokens;
        for (const experts::Choice& choice : step.layers[l].choices) ++all[choice.expert];
        std::vector<experts::ExpertId> ids;
        std::vector<double> host, device, transfer;
        std::vector<std::uint8_t> there;
        for (std::uint16_t e = 0; e < all.size(); ++e) {
          if (all[e] == 0) continue;
          ids.push_back({static_cast<std::uint16_t>(l), e});
          tokens.push_back(all[e]);
          host.push_back(costs.run.of(all[e]));
          device.push_back(costs.device.run.of(all[e]));
          there.push_back(e % 2 == 0 ? 1 : 0);
          transfer.push_back(e % 2 == 0 ? 0 : costs.device.transfer);
        }
        experts::Assignment assignment;
        Stopwatch watch;
        placement->assign({ids, tokens},
                          {.t_host = host, .t_device = device, .transfer = transfer, .on_device = there},
                          assignment);
        seconds += watch.lap();
        events += 1;
      }
    return seconds / events;
  }

  void store_tables() {
    const std::pair<const char*, const DaliTable*> tables[] = {
        {"sweep", &results_.sweep},    {"assignment", &results_.assignment},
        {"ladder", &results_.ladder},  {"prefetches", &results_.prefetches},
        {"caches", &results_.caches},  {"windows", &results_.windows},
        {"shares", &results_.shares},  {"few_slots", &results_.few_slots},
        {"lengths", &results_.lengths}};
    for (const auto& [name, table] : tables) {
      report_.data[name] = Json::array();
      for (const DaliCell& cell : table->cells()) report_.data[name].push_back(to_json(cell));
    }
    report_.data["hits_over_time"] = results_.hits_over_time;
    for (const AssignTime& one : results_.assign_times) report_.data["assign_s"][one.placement] = one.seconds;
    for (const auto& [system, seconds] : results_.decide_s) report_.data["decide_s"][system] = seconds;
    report_.data["machines"] = Json::array();
    for (const DaliModel* model : {&dali_deepseek(), &dali_mixtral(), &dali_qwen()})
      for (const DaliMachine& machine : machines_of(*model)) {
        Json json = lab::to_json(machine.machine);
        json["model"] = model->name;
        json["label"] = machine.label;
        json["source"] = machine.machine.source;
        json["consumed"] = machine.consumed;
        report_.data["machines"].push_back(std::move(json));
      }
  }

  const DaliSettings& settings_;
  DaliResults results_;
  Report report_;
};

}  // namespace

Report reproduce_dali(const DaliSettings& settings) { return DaliReproducer(settings).run(); }

}  // namespace sluice::reproduce
