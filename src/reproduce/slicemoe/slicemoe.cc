#include "reproduce/slicemoe/slicemoe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/stop_request.h"
#include "experts/routing/slice_names.h"
#include "reproduce/slicemoe/slicemoe_results.h"
#include "reproduce/slicemoe/slicemoe_rows.h"
#include "reproduce/svg.h"

namespace sluice::reproduce {
namespace {

using experts::InitialSlices;

constexpr std::uint32_t kPromptTokens = 500, kDecodeTokens = 112;  // SPEC §6.4, "Settings"
constexpr CacheCell kMiddle = {{8, 4}, kCacheSizes[1]};
// The cache that holds the largest share of the slices
constexpr CacheCell kRoomy = {{4, 2}, kCacheSizes[2]};
constexpr double kThetas[] = {.26, .35, .5};

bool same(const CacheCell& a, const CacheCell& b) { return a.bits == b.bits && a.memory == b.memory; }

// Runs the stages in turn; each stores its findings in the results and in the report's data.
class SlicemoeReproducer {
 public:
  explicit SlicemoeReproducer(const SlicemoeSettings& settings) : settings_(settings) {
    const lab::Machine& machine = lab::slicemoe_machine();
    report_.title = "SliceMoE, tried again";
    report_.command = settings.command;
    report_.machine = fmt::format(
        "modelled: Flash {:.0f} Gbit/s and {:.0f} pJ/bit, DRAM {:.0f} Gbit/s and {:.1f} pJ/bit, {:.3f} TOPS "
        "at "
        "{:.2f} TOPS/W",
        machine.flash_bits_per_s * 1e-9, machine.flash_joules_per_bit * 1e12, machine.dram_bits_per_s * 1e-9,
        machine.dram_joules_per_bit * 1e12, machine.xpu_ops_per_s * 1e-12, machine.xpu_ops_per_joule * 1e-12);
    const std::string trace = settings.trace.substr(settings.trace.rfind('/') + 1);
    report_.configuration = {
        .model =
            settings.quick ? "shape of DeepSeek-V2-Lite" : "shapes of DeepSeek-V2-Lite, Qwen1.5-MoE-A2.7B",
        .flags = fmt::format("{}seed {}, trace {}, trained model {}", settings.quick ? "quick, " : "",
                             settings.seed, trace.empty() ? "none" : trace,
                             settings.trained ? settings.trained->model : "none"),
        .machine = "modelled: " + machine.name,
        .version = settings.version};
  }

  Report run() {
    // Reads the data first, because it may be unusable.
    std::optional<lab::RoutedSteps> steps;
    if (!settings_.trace.empty()) steps = read_recorded();
    if (settings_.trained) trained();
    if (steps) recorded(*steps);
    synthetic("DeepSeek-V2-Lite", lab::find_published_model("deepseek-v2-lite"));
    if (!settings_.quick) synthetic("Qwen1.5-MoE", lab::find_published_model("qwen1.5-moe-a2.7b"));
    pictures();
    add_slicemoe_rows(results_, report_);
    report_.data["quick"] = settings_.quick;
    return std::move(report_);
  }

 private:
  void stage(const std::string& text) const {
    stop_if(settings_.interrupted);
    if (settings_.on_stage) settings_.on_stage(text);
  }

  lab::MachineReplayResult replay(const lab::RoutedSteps& steps, const lab::SlicedModel& model,
                                  const lab::MachineReplaySettings& settings) const {
    return lab::replay_on_machine(steps, model, lab::slicemoe_machine(), settings, {}, settings_.interrupted);
  }

  void trained() {
    TrainedSettings settings = *settings_.trained;
    settings.interrupted = settings_.interrupted;
    settings.on_stage = settings_.on_stage;
    results_.trained = measure_trained(settings);
    report_.data["trained"] = to_json(*results_.trained);
  }

  static const lab::SlicedModel& recorded_model() { return lab::find_published_model("deepseek-v2-lite"); }

  lab::RoutedSteps read_recorded() const {
    stage("recorded routing: reading");
    const lab::SlicedModel& model = recorded_model();
    lab::RoutedSteps steps = lab::read_routed_steps(*trace::open_trace(settings_.trace),
                                                    {.prefill = kPromptTokens}, settings_.interrupted);
    if (steps.layers != model.layers() || steps.experts != model.experts() || steps.top_k != model.top_k())
      throw Error(ErrorKind::kInvalid, "the trace is of another model")
          .in(settings_.trace)
          .expected("26 sparse layers of 64 experts, top 6, as DeepSeek-V2-Lite")
          .found(fmt::format("{} sparse layers of {} experts, top {}", steps.layers, steps.experts,
                             steps.top_k));
    if (steps.prompts == 0 || steps.decode_tokens < kEarlySteps)
      throw Error(ErrorKind::kInvalid, "the trace has no prompt with an answer behind it")
          .in(settings_.trace)
          .expected(fmt::format("a prompt and {} steps; of a .mrt, sequences of more than {} tokens",
                                kEarlySteps, kPromptTokens))
          .found(fmt::format("{} prompts, {} steps", steps.prompts, steps.decode_tokens));
    return steps;
  }

  void recorded(const lab::RoutedSteps& steps) {
    report_.played = steps.played;
    RoutingResults& found = results_.recorded.emplace();
    found.facts = lab::facts_of(*trace::open_trace(settings_.trace));
    found.source = "recorded routing of DeepSeek-V2-Lite";
    look_at(steps, recorded_model(), found);
    report_.data["recorded"] = routing_json(found);
  }

  void synthetic(const std::string& name, const lab::SlicedModel& model) {
    stage(name + ": synthetic routing");
    const std::uint32_t prompt = settings_.quick ? 128 : kPromptTokens,
                        decode = settings_.quick ? 64 : kDecodeTokens;
    SlicemoeResults::Synthetic& found = results_.synthetic.emplace_back();
    found.model = name;
    found.settings = synthetic_like(model, settings_.quick ? 1 : 3, prompt + decode, settings_.seed);
    lab::SyntheticTrace facts(found.settings, prompt), trace(found.settings, prompt);
    found.routing.facts = lab::facts_of(facts);
    found.routing.source = "synthetic routing of the shape of " + name;
    const lab::RoutedSteps steps = lab::read_routed_steps(trace, {}, settings_.interrupted);
    look_at(steps, model, found.routing);
    for (const CacheCell& cell : cache_grid()) {
      stage(fmt::format("{}: {} in {:.1f} GB", name, mat_name(cell.bits),
                        static_cast<double>(cell.memory) * 1e-9));
      found.limited_starts.push_back(
          start_cell(cell, steps, model, found.routing.facts, [&](InitialSlices initial) {
            lab::MachineReplaySettings settings = slicemoe_system(model, cell.bits, cell.memory, kMissRate);
            settings.slices.initial = initial;
            return settings;
          }));
      found.systems.push_back(system_cell(cell, steps, model, found.routing.facts));
    }
    for (const double reserve : kReserves) {
      stage(fmt::format("{}: {:.0f} % for LSBs", name, 100 * reserve));
      ReserveCell& cell = found.reserves.emplace_back();
      cell.reserve = reserve;
      for (const bool limited : {false, true}) {
        lab::MachineReplaySettings settings =
            limited ? slicemoe_system(model, kMiddle.bits, kMiddle.memory, kMissRate)
                    : exact_slices(model, kMiddle.bits, kMiddle.memory, InitialSlices::kWarmup);
        settings.slices.rules.lsb_reserve = reserve;
        (limited ? cell.limited : cell.exact) =
            figures_of(steps, replay(steps, model, settings), found.routing.facts);
      }
    }
    routers(steps, model, found);
    Json& data = report_.data["synthetic"][name];
    data["parameters"] = {{"a", found.settings.a},
                          {"d", found.settings.d},
                          {"phi", found.settings.phi},
                          {"sigma", found.settings.sigma},
                          {"seed", found.settings.seed}};
    data["routing"] = routing_json(found.routing);
    for (const StartCell& cell : found.limited_starts) data["limited_starts"].push_back(start_json(cell));
    for (const SystemCell& cell : found.systems) data["systems"].push_back(system_json(cell));
    for (const RouterCell& cell : found.routers)
      data["routers"].push_back({{"router", cell.router},
                                 {"constraint", cell.constraint},
                                 {"lambda", cell.lambda},
                                 {"violations", cell.violations},
                                 {"figures", figures_json(cell.figures)}});
    for (const ReserveCell& cell : found.reserves)
      data["reserves"].push_back({{"reserve", cell.reserve},
                                  {"exact", figures_json(cell.exact)},
                                  {"limited", figures_json(cell.limited)}});
  }

  // Every way to choose experts, with all other settings equal.
  void routers(const lab::RoutedSteps& steps, const lab::SlicedModel& model,
               SlicemoeResults::Synthetic& found) const {
    using experts::ConstraintMode;
    struct Way {
      const char* router;
      ConstraintMode mode;
      double lambda = 0;
    };
    constexpr Way kWays[] = {
        {"exact", ConstraintMode::kNone},           {"cache-prior", ConstraintMode::kNone, .2},
        {"cache-prior", ConstraintMode::kNone, .5}, {"cache-prior", ConstraintMode::kAdaptive},
        {"cache-prior", ConstraintMode::kHard},     {"cache-prior", ConstraintMode::kHard, .2},
        {"cumsum", ConstraintMode::kNone},          {"cumsum", ConstraintMode::kHard}};
    for (const Way& way : kWays) {
      stage(fmt::format("{}: router {}", found.model, way.router));
      lab::MachineReplaySettings settings = slicemoe_system(model, kMiddle.bits, kMiddle.memory, kMissRate);
      settings.router = way.router;
      settings.cache_aware.lambda = settings.constraint.lambda = way.lambda;
      settings.constraint.mode = way.mode;
      const lab::MachineReplayResult result = replay(steps, model, settings);
      found.routers.push_back({.router = way.router,
                               .constraint = std::string(experts::constraint_name(way.mode)),
                               .lambda = result.lambda,
                               .figures = figures_of(steps, result, found.routing.facts),
                               .violations = result.violations});
    }
  }

  void look_at(const lab::RoutedSteps& steps, const lab::SlicedModel& model, RoutingResults& found) const {
    found.prompts = steps.prompts;
    found.prompt_tokens = steps.prompt_tokens;
    found.decode_tokens = steps.decode_tokens;
    found.overlap = hot_overlap(steps, {2, 4, 8, 16, 24, 32, 48}, kEarlySteps);
    for (const double theta : kThetas) {
      stage(found.source + fmt::format(": critical experts at {}", theta));
      lab::MachineReplaySettings settings =
          exact_slices(model, kMiddle.bits, kMiddle.memory, InitialSlices::kWarmup);
      settings.precision.critical.theta = theta;
      const lab::MachineReplayResult result = replay(steps, model, settings);
      CriticalShares& shares = found.critical.emplace_back();
      shares.theta = theta;
      for (const std::uint64_t count : result.critical)
        shares.shares.push_back(static_cast<double>(count) / static_cast<double>(result.changes.tokens));
    }
    for (const CacheCell& cell : cache_grid()) {
      stage(found.source + fmt::format(": starts of {} in {:.1f} GB", mat_name(cell.bits),
                                       static_cast<double>(cell.memory) * 1e-9));
      found.starts.push_back(start_cell(cell, steps, model, found.facts, [&](InitialSlices initial) {
        return exact_slices(model, cell.bits, cell.memory, initial);
      }));
    }
  }

  StartCell start_cell(const CacheCell& cell, const lab::RoutedSteps& steps, const lab::SlicedModel& model,
                       const lab::RoutingFacts& facts,
                       const std::function<lab::MachineReplaySettings(InitialSlices)>& settings) const {
    StartCell found = {.cell = cell, .whole = {}, .early = {}, .joules_by_step = {}};
    for (std::size_t i = 0; i < kInitialStates; ++i) {
      const lab::MachineReplayResult result = replay(steps, model, settings(static_cast<InitialSlices>(i)));
      found.whole[i] = figures_of(steps, result, facts);
      std::vector<double>& joules = found.joules_by_step[i];
      std::vector<double> answers;  // only answers of that length
      double early = 0;
      for_each_decoded(steps, result, [&](std::size_t in_answer, const lab::MachineStepFigures& figures) {
        if (in_answer == joules.size()) {
          joules.push_back(0);
          answers.push_back(0);
        }
        joules[in_answer] += figures.joules;
        answers[in_answer] += 1;
        if (in_answer >= kEarlySteps) return;
        found.early[i].joules += figures.joules;
        found.early[i].seconds += figures.seconds;
        early += 1;
      });
      for (std::size_t s = 0; s < joules.size(); ++s) joules[s] /= answers[s];
      found.early[i].joules /= early;
      found.early[i].seconds /= early;
    }
    return found;
  }

  SystemCell system_cell(const CacheCell& cell, const lab::RoutedSteps& steps, const lab::SlicedModel& model,
                         const lab::RoutingFacts& facts) const {
    SystemCell found;
    found.cell = cell;
    const auto high = [&](double limit) {
      return figures_of(steps, replay(steps, model, high_bit_system(model, cell.bits, cell.memory, limit)),
                        facts);
    };
    const auto slices = [&](double limit) {
      return figures_of(steps, replay(steps, model, slicemoe_system(model, cell.bits, cell.memory, limit)),
                        facts);
    };
    for (const double limit : kLimits) found.high_sweep.push_back(high(limit));
    if (!settings_.quick || same(cell, kMiddle))
      for (const double limit : kLimits) found.slices_sweep.push_back(slices(limit));
    found.high = high(kMissRate);
    found.slices = slices(kMissRate);
    found.free_high = found.high_sweep.back();  // a limit of 100 % never acts
    found.free_slices = slices(kLimits.back());
    found.equal_loss = at_equal_loss(found.high_sweep, found.slices.mass_lost);
    return found;
  }

  static Json figures_json(const SystemFigures& figures) {
    return {{"joules_per_token", figures.joules},
            {"seconds_per_token", figures.seconds},
            {"hbn_miss_rate", figures.hbn},
            {"mass_lost", figures.mass_lost},
            {"high_share", figures.high},
            {"limited_joules_per_token", figures.limited_joules},
            {"limited_seconds_per_token", figures.limited_seconds},
            {"msb_miss_rate", figures.msb_missed},
            {"lsb_miss_rate", figures.lsb_missed},
            {"flash_j", figures.energy.flash},
            {"dram_read_j", figures.energy.dram_read},
            {"dram_write_j", figures.energy.dram_write},
            {"compute_j", figures.energy.compute}};
  }
  static Json cell_json(const CacheCell& cell) {
    return {{"slices", codec::slice_bits_text(cell.bits)}, {"memory", cell.memory}};
  }
  static Json start_json(const StartCell& cell) {
    Json json = cell_json(cell.cell);
    for (std::size_t i = 0; i < kInitialStates; ++i)
      json[std::string(experts::initial_slices_name(static_cast<InitialSlices>(i)))] = {
          {"whole", figures_json(cell.whole[i])},
          {"early_joules_per_token", cell.early[i].joules},
          {"early_seconds_per_token", cell.early[i].seconds},
          {"joules_by_step", cell.joules_by_step[i]}};
    return json;
  }
  static Json system_json(const SystemCell& cell) {
    Json json = cell_json(cell.cell);
    json["high"] = figures_json(cell.high);
    json["sliced"] = figures_json(cell.slices);
    json["free_high"] = figures_json(cell.free_high);
    json["free_sliced"] = figures_json(cell.free_slices);
    json["limits"] = kLimits;
    json["high_sweep"] = json["sliced_sweep"] = Json::array();
    for (const SystemFigures& one : cell.high_sweep) json["high_sweep"].push_back(figures_json(one));
    for (const SystemFigures& one : cell.slices_sweep) json["sliced_sweep"].push_back(figures_json(one));
    json["high_at_equal_loss"] = {{"joules_per_token", cell.equal_loss.joules},
                                  {"seconds_per_token", cell.equal_loss.seconds},
                                  {"inside", cell.equal_loss.inside}};
    return json;
  }
  static Json routing_json(const RoutingResults& found) {
    Json json = {{"f_1", found.facts.f_1},
                 {"mass", found.facts.mass},
                 {"overlap", found.facts.overlap},
                 {"prompts", found.prompts},
                 {"prompt_tokens", found.prompt_tokens},
                 {"decode_tokens", found.decode_tokens}};
    for (const HotOverlap& one : found.overlap)
      json["hot"].push_back(
          {{"hottest", one.hottest}, {"prompt", one.prompt}, {"best", one.best}, {"chance", one.chance}});
    for (const CriticalShares& one : found.critical)
      json["critical"].push_back({{"theta", one.theta}, {"shares", one.shares}});
    for (const StartCell& cell : found.starts) json["starts"].push_back(start_json(cell));
    return json;
  }

  void pictures() {
    const SlicemoeResults::Synthetic& synthetic = results_.synthetic.front();
    const RoutingResults& routing = results_.recorded ? *results_.recorded : synthetic.routing;
    overlap_picture(routing, synthetic.routing);
    start_picture(routing);
    memory_picture(synthetic);
    loss_picture(synthetic);
  }

  void overlap_picture(const RoutingResults& routing, const RoutingResults& synthetic) {
    std::vector<PlotSeries> series;
    const auto add = [&](const std::string& name, const RoutingResults& of, double HotOverlap::*share) {
      PlotSeries& one = series.emplace_back(PlotSeries{name, {}});
      for (const HotOverlap& at : of.overlap) {
        const double y = 100 * at.*share;
        one.points.push_back({static_cast<double>(at.hottest), y, y, y});
      }
    };
    add("hottest of the prompt", routing, &HotOverlap::prompt);
    add("the best choice", routing, &HotOverlap::best);
    if (results_.recorded) add("hottest of the prompt, synthetic", synthetic, &HotOverlap::prompt);
    add("by chance", routing, &HotOverlap::chance);
    picture("overlap.svg", "What the prompt's hottest experts cover of the first decode steps",
            line_chart({"Hot in the prompt, hot at the start of the answer", "hottest experts of each layer",
                        fmt::format("% of the requests of the first {} steps", kEarlySteps), routing.source},
                       series));
  }

  void start_picture(const RoutingResults& routing) {
    constexpr std::size_t kWindow = 4;
    for (const StartCell& cell : routing.starts) {
      if (!same(cell.cell, kRoomy)) continue;
      std::vector<PlotSeries> series;
      for (std::size_t i = 0; i < kInitialStates; ++i) {
        PlotSeries& one = series.emplace_back(
            PlotSeries{std::string(experts::initial_slices_name(static_cast<InitialSlices>(i))), {}});
        const std::vector<double>& joules = cell.joules_by_step[i];
        for (std::size_t s = 0; s + kWindow <= std::min<std::size_t>(joules.size(), 64); s += kWindow) {
          double sum = 0;
          for (std::size_t j = 0; j < kWindow; ++j) sum += joules[s + j];
          const double y = 1e3 * sum / kWindow;
          one.points.push_back({static_cast<double>(s + kWindow), y, y, y});
        }
      }
      picture("start.svg", "What decode steps cost behind a prompt, by what the cache begins with",
              line_chart({"MAT42 in 3.6 GB, the model's own routing", "decode steps",
                          fmt::format("mJ a token, mean of {} steps", kWindow), routing.source},
                         series));
    }
  }

  void memory_picture(const SlicemoeResults::Synthetic& synthetic) {
    std::vector<PlotSeries> series;
    for (const bool slices : {false, true})
      for (const codec::SliceBits bits : codec::kStoredSliceBits) {
        PlotSeries& one = series.emplace_back(
            PlotSeries{mat_name(bits) + (slices ? " in slices" : " at high precision"), {}});
        for (const SystemCell& cell : synthetic.systems) {
          if (cell.cell.bits != bits) continue;
          const double y = 1e3 * (slices ? cell.slices : cell.high).joules;
          one.points.push_back({static_cast<double>(cell.cell.memory) * 1e-9, y, y, y});
        }
      }
    picture("memory.svg", "Energy of a decode token against the cache, misses limited to 5 % of bytes",
            line_chart({"Energy at equal miss rate (5 %)", "expert cache, GB", "mJ a token",
                        synthetic.routing.source},
                       series));
  }

  void loss_picture(const SlicemoeResults::Synthetic& synthetic) {
    for (const SystemCell& cell : synthetic.systems) {
      if (!same(cell.cell, kMiddle)) continue;
      std::vector<PlotSeries> series;
      for (const auto& [name, sweep] : {std::pair{"Cache-Prior at high precision", &cell.high_sweep},
                                        std::pair{"in slices", &cell.slices_sweep}}) {
        PlotSeries& one = series.emplace_back(PlotSeries{name, {}});
        for (const SystemFigures& at : *sweep) {
          const double x = std::round(1e3 * at.mass_lost) / 10, y = 1e3 * at.joules;
          one.points.push_back({x, y, y, y});
        }
        std::ranges::sort(one.points, {}, &PlotPoint::x);
      }
      picture(
          "loss.svg", "Energy of a decode token against what routing loses",
          line_chart({"Energy against routing loss, MAT84 in 2.4 GB",
                      "% of the scores of the model's own experts that is lost", "mJ a token",
                      "limits of 1, 2, 5, 10, 15, 20, 30 and 100 % of bytes; " + synthetic.routing.source},
                     series));
    }
  }

  void picture(const std::string& file, const std::string& caption, std::string svg) {
    report_.pictures.push_back({"slicemoe-" + file, caption, std::move(svg)});
  }

  const SlicemoeSettings& settings_;
  SlicemoeResults results_;
  Report report_;
};

}  // namespace

Report reproduce_slicemoe(const SlicemoeSettings& settings) { return SlicemoeReproducer(settings).run(); }

}  // namespace sluice::reproduce
