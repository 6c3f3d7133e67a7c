#include "lab/compare.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <span>

#include "base/duration.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "base/text_table.h"
#include "base/wrapped_text.h"
#include "engine/engine.h"
#include "engine/engine_device.h"
#include "engine/model_identity.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/memory_plan.h"
#include "engine/plan/options.h"
#include "engine/plan/pool_plan.h"
#include "engine/plan/profile.h"
#include "engine/run_report.h"
#include "engine/step_times.h"
#include "engine/watch/statistics.h"
#include "eval/check_reference.h"
#include "eval/identity.h"
#include "experts/core/state_order.h"
#include "fetch/memory/expert_store.h"
#include "lab/compared_clocks.h"
#include "model/architecture.h"

namespace sluice::lab {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

struct OneRun {
  RunFigures figures;
  std::vector<engine::GenerateResult> results;
};

OneRun measure(engine::Engine& engine, const CompareSettings& settings, double load_s) {
  OneRun run;
  std::vector<engine::GenerateRequest> requests = settings.requests;
  Clock::time_point first;
  double first_cpu = 0;
  for (engine::GenerateRequest& request : requests) {
    request.should_stop = settings.interrupted;
    request.on_text = [&](const std::string&, std::size_t tokens) {
      if (tokens != 1) return;  // all sequences come one right after the other
      first = Clock::now();
      first_cpu = cpu_seconds();
    };
  }
  const Clock::time_point begin = Clock::now();
  first = begin;
  run.results = engine::generate(engine, settings.tokenizer, requests);
  const Clock::time_point end = Clock::now();
  stop_if(settings.interrupted);

  const engine::ExpertStatistics& decode = engine.report().statistics.decode;
  const double tokens = static_cast<double>(decode.tokens);
  RunFigures& it = run.figures;
  it.load_s = load_s;
  it.ttft_s = seconds(begin, first);
  it.e2e_s = seconds(begin, end);
  it.tpot_s = ratio(seconds(first, end), static_cast<double>(decode.steps));
  it.tok_s = ratio(tokens, seconds(first, end));
  it.bytes_per_token = ratio(static_cast<double>(decode.read()), tokens);
  it.useful_per_token = ratio(static_cast<double>(decode.useful_bytes()), tokens);
  it.wasted_per_token = ratio(static_cast<double>(decode.wasted_bytes()), tokens);
  it.read_s_per_token = ratio(decode.demand_s, tokens);
  it.cpu_s_per_token = ratio(cpu_seconds() - first_cpu, tokens);
  it.wait_share = ratio(engine.report().experts.counters().wait_s, it.e2e_s);
  it.hit_rate = ratio(static_cast<double>(decode.hits), static_cast<double>(decode.accesses));
  it.peak = static_cast<double>(engine.report().accountant.peak());
  if (const engine::EngineDevice* const device = engine.report().device) {
    const engine::StepTimes predicted = engine::predicted_step(engine.report());
    it.moe_s = engine::measured_step(engine.report()).moe;
    it.predicted_tpot_s = predicted.step;
    it.predicted_moe_s = predicted.moe;
    it.predicted_ratio = ratio(predicted.step, it.tpot_s);
    it.overrun_share = device->overrun_share();
  }
  return run;
}

std::optional<std::string> arithmetic_of(const engine::Engine& engine) {
  const engine::PolicyPlan& policies = engine.report().policies;
  if (policies.depends_on_memory()) return std::nullopt;
  const std::string kept = fmt::format("{} keys and values", dtype_name(engine.report().plan.cache_dtype));
  const std::string played = policies.played(), routing = played.empty() ? "" : ", routing " + played;
  if (!engine.report().checkpoint.slices()) {
    const bool coded = engine.report().plan.activations == kernels::ActivationForm::kInt8;
    return "exact weights, " + std::string(coded ? "int8 activations, " : "") + kept + routing;
  }
  return fmt::format("{} precision{}, {} activations, {}{}", experts::precision_name(policies.precision.mode),
                     engine.report().plan.low_view == codec::SliceView::kCenter ? " (amat-center)" : "",
                     engine::activations_name(*engine.report().plan.activations), kept, routing);
}

std::string found_text(const std::array<std::uint64_t, 5>& found) {
  std::string text;
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : " ", experts::kStateOrder[i], found[i]);
  return text;
}

// Adds the contender's name to its error.
Error of_contender(const std::string& name, const Error& error) {
  Error named(error.kind(), fmt::format("{}: {}", name, error.message()));
  if (error.offset())
    named.in(error.where(), *error.offset());
  else
    named.in(error.where());
  return named.expected(error.expected_text()).found(error.found_text()).fix(error.fix_text());
}

std::unique_ptr<engine::Engine> make_engine(const Contender& contender,
                                            const engine::EngineOptions& options) {
  try {
    return std::make_unique<engine::Engine>(*contender.checkpoint, *contender.model,
                                            engine::resolve(options, *contender.checkpoint, *contender.model),
                                            engine::generation_logit_rows(options.sequences));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInterrupted) throw;  // at any contender
    throw of_contender(contender.preset, error);
  }
}

// Compares the models by their files before anything runs. The reference comes last, so that it is not blamed
// for another contender's path.
void check_one_model(const std::vector<Contender>& contenders, const CompareSettings& settings) {
  std::map<const store::Checkpoint*, std::uint64_t> identities;
  for (const Contender& it : contenders) identities.try_emplace(it.checkpoint, 0);
  if (identities.size() == 1) return;
  for (const Contender& it : contenders) {
    stop_if(settings.interrupted);
    const engine::EngineOptions& options = it.options ? *it.options : settings.options;
    std::uint64_t& identity = identities.at(it.checkpoint);
    if (identity == 0) identity = engine::model_identity(*it.checkpoint, *it.model, options.fetch);
  }
  const bool has_reference = settings.first == First::kReference;
  const std::span<const Contender> others = std::span(contenders).subspan(has_reference ? 1 : 0);
  const std::uint64_t expected = identities.at(others.front().checkpoint);
  for (const Contender& it : others) {
    const std::uint64_t identity = identities.at(it.checkpoint);
    if (identity == expected) continue;
    throw Error(ErrorKind::kInvalid,
                fmt::format("this model differs from the model at {}", others.front().checkpoint->path()))
        .in(it.checkpoint->path())
        .expected("tensors and routers of identity " + hex64(expected))
        .found(hex64(identity))
        .fix("compare on one model: a directory and stores packed from it");
  }
  if (has_reference)
    eval::check_reference_identity(expected, identities.at(contenders.front().checkpoint),
                                   contenders.front().checkpoint->path());
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  SLUICE_CHECK(!values.empty(), "no values");
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return {values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2, values.front(),
          values.back()};
}

Spread Compared::of(double RunFigures::*figure) const {
  SLUICE_CHECK(!runs.empty(), "no runs of " + preset);
  std::vector<double> values;
  for (const RunFigures& run : runs) values.push_back(run.*figure);
  return spread_of(std::move(values));
}

std::size_t equal_tokens(const Texts& texts, const Texts& exact) {
  SLUICE_CHECK(texts.size() == exact.size(), "other requests");
  std::size_t equal = 0;
  for (std::size_t i = 0; i < texts.size(); ++i)
    equal += static_cast<std::size_t>(std::ranges::mismatch(texts[i], exact[i]).in1 - texts[i].begin());
  return equal;
}

void Compared::add_run(const RunFigures& figures, const std::optional<std::string>& computed_with,
                       bool loses) {
  if (runs.empty())
    arithmetic = computed_with;
  else if (arithmetic != computed_with)
    arithmetic.reset();
  lossy = lossy || loses;
  runs.push_back(figures);
}

bool Compared::same() const {
  return std::ranges::all_of(texts, [&](const Texts& run) { return run == texts.front(); });
}

bool Comparison::same_texts() const {
  return std::ranges::all_of(contenders, [&](const Compared& it) {
    return it.same() && it.texts.front() == contenders.front().texts.front();
  });
}

std::optional<Comparison::Different> Comparison::different_though_computed_alike() const {
  std::map<std::string, const Compared*> firsts;  // by arithmetic
  for (const Compared& it : contenders) {
    if (!it.arithmetic) continue;
    const Compared& first = *firsts.try_emplace(*it.arithmetic, &it).first->second;
    for (std::size_t run = 0; run < it.texts.size(); ++run)
      if (it.texts[run] != first.texts.front()) return Different{first, it, run + 1};
  }
  return std::nullopt;
}

std::optional<Agreement> Comparison::agreement(const Compared& contender) const {
  if (first != First::kReference || &contender == &contenders.front()) return std::nullopt;
  const Texts& exact = contenders.front().texts.front();
  std::vector<double> equal;
  for (const Texts& run : contender.texts) equal.push_back(static_cast<double>(equal_tokens(run, exact)));
  Agreement agreement{.equal = spread_of(std::move(equal))};
  for (const std::vector<tokenizer::TokenId>& text : exact) agreement.of += text.size();
  return agreement;
}

const Compared& Comparison::find(std::string_view preset) const {
  const auto it = std::ranges::find(contenders, preset, &Compared::preset);
  SLUICE_CHECK(it != contenders.end(), "not compared: " + std::string(preset));
  return *it;
}

std::optional<engine::Profile> Comparer::profile(const store::Checkpoint& checkpoint) const {
  const auto it = profiles_.find(&checkpoint);
  return it == profiles_.end() ? std::nullopt : std::optional(it->second);
}

Comparison Comparer::run(const std::vector<Contender>& contenders, const CompareSettings& settings) {
  SLUICE_CHECK(!contenders.empty(), "no contenders");
  SLUICE_CHECK(!settings.requests.empty(), "no requests");
  SLUICE_CHECK(settings.runs > 0, "no runs");
  for (const engine::GenerateRequest& request : settings.requests)
    SLUICE_CHECK(request.max_tokens >= 2, "a request that decodes nothing");
  Comparison comparison;
  comparison.first = settings.first;
  for (const Contender& contender : contenders) {
    SLUICE_CHECK(contender.checkpoint != nullptr && contender.model != nullptr, contender.preset);
    comparison.contenders.emplace_back();
    comparison.contenders.back().preset = contender.preset;
    comparison.contenders.back().path = contender.checkpoint->path();
  }
  check_one_model(contenders, settings);
  std::size_t done = 0;
  for (unsigned r = 0; r < settings.runs; ++r) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const Contender& contender = contenders[i];
      Compared& compared = comparison.contenders[i];
      engine::EngineOptions options = contender.options.value_or(settings.options);
      if (!contender.options) options.preset = contender.preset;
      options.sequences = settings.requests.size();
      options.stop = settings.interrupted;
      if (const std::optional<engine::Profile> known = profile(*contender.checkpoint)) {
        options.profile = known;
        options.profile_if_it_fits = true;
      }
      const Clock::time_point begin = Clock::now();
      const std::unique_ptr<engine::Engine> made = make_engine(contender, options);
      engine::Engine& engine = *made;
      if (engine.report().profile) profiles_.try_emplace(contender.checkpoint, *engine.report().profile);
      OneRun run = measure(engine, settings, seconds(begin, Clock::now()));
      const std::optional<std::string> arithmetic = arithmetic_of(engine);
      comparison.routing = engine.report().policies.played();
      if (const engine::EngineDevice* const device = engine.report().device) {
        comparison.device = device->name();
        comparison.device_kind = device->spec().kind();
        comparison.device_is_played = device->spec().is_played();
        comparison.dilation = device->spec().dilation();
      }
      const bool loses = !arithmetic || engine.report().checkpoint.slices() || !comparison.routing.empty();
      compared.add_run(run.figures, arithmetic, loses);
      compared.found = engine.report().statistics.decode.found;
      if (engine.report().pool_plan) compared.planned = engine.report().pool_plan->chosen;
      if (!engine.report().model.experts.empty() && !engine.report().checkpoint.slices())
        compared.forecast = engine::forecast_reads(engine.report());
      compared.cache = engine.report().memory.experts;
      if (settings.changes) compared.changes = settings.changes(engine);
      compared.texts.emplace_back();
      for (engine::GenerateResult& result : run.results)
        compared.texts.back().push_back(std::move(result.tokens));
      if (!comparison.text) comparison.text = run.results.front().text;
      if (comparison.reasons.empty()) comparison.reasons = engine::stop_reasons(run.results);
      comparison.budget = engine.report().memory.budget;
      comparison.threads = engine.report().threads;
      if (settings.on_run) settings.on_run(++done, settings.runs * contenders.size());
    }
  }
  return comparison;
}

Json to_json(const Spread& spread) {
  return {{"median", spread.median}, {"low", spread.low}, {"high", spread.high}};
}

Json to_json(const Comparison& comparison) {
  const auto json_of = [](const Spread& spread) { return to_json(spread); };
  Json presets = Json::array();
  for (const Compared& it : comparison.contenders) {
    Json found;
    for (std::size_t i = 0; i < it.found.size(); ++i)
      found[std::string(1, experts::kStateOrder[i])] = it.found[i];
    Json json = {{"preset", it.preset},
                 {"model", it.path},
                 {"runs", it.runs.size()},
                 {"tok_s", json_of(it.of(&RunFigures::tok_s))},
                 {"ttft_s", json_of(it.of(&RunFigures::ttft_s))},
                 {"tpot_s", json_of(it.of(&RunFigures::tpot_s))},
                 {"e2e_s", json_of(it.of(&RunFigures::e2e_s))},
                 {"load_s", json_of(it.of(&RunFigures::load_s))},
                 {"bytes_per_token", json_of(it.of(&RunFigures::bytes_per_token))},
                 {"useful_bytes_per_token", json_of(it.of(&RunFigures::useful_per_token))},
                 {"wasted_bytes_per_token", json_of(it.of(&RunFigures::wasted_per_token))},
                 {"cpu_s_per_token", json_of(it.of(&RunFigures::cpu_s_per_token))},
                 {"wait_share", json_of(it.of(&RunFigures::wait_share))},
                 {"hit_rate", json_of(it.of(&RunFigures::hit_rate))},
                 {"peak_bytes", it.of(&RunFigures::peak).high},
                 {"found", found},
                 {"same_tokens", it.same()},
                 {"lossy", it.lossy},
                 {"arithmetic", it.arithmetic ? Json(*it.arithmetic) : Json(nullptr)}};
    if (has_clocks(it)) json["device"] = clocks_json(it);
    if (!it.changes.json.is_null()) json["experts"] = it.changes.json;
    if (const std::optional<Agreement> agreement = comparison.agreement(it)) {
      json["equal_tokens"] = json_of(agreement->equal);
      json["equal_tokens"]["of"] = agreement->of;
    }
    if (it.forecast)
      json["predicted"] = {
          {"bytes_per_token", it.forecast->needed},
          {"wasted_bytes_per_token", it.forecast->in_vain ? Json(*it.forecast->in_vain) : Json()},
          {"routing", it.forecast->routing},
          {"tok_s", it.forecast->tok_s ? Json(*it.forecast->tok_s) : Json()}};
    if (it.planned)
      json["planned"] = {{"slots",
                          {{"F", it.planned->slots.f},
                           {"C", it.planned->slots.c},
                           {"S", it.planned->slots.s},
                           {"E", it.planned->slots.e}}},
                         {"tok_s", it.planned->tok_s},
                         {"limit", it.planned->limit}};
    presets.push_back(std::move(json));
  }
  Json reasons = Json::array();
  for (const engine::StopReason reason : comparison.reasons)
    reasons.push_back(engine::stop_reason_name(reason));
  Json json = {{"budget", comparison.budget},
               {"threads", comparison.threads},
               {"stop_reasons", reasons},
               {"texts_equal", comparison.same_texts()},
               {"texts_equal_where_computed_alike", !comparison.different_though_computed_alike()},
               {"text", comparison.text ? Json(*comparison.text) : Json(nullptr)},
               {"tokens", comparison.contenders.empty() ? Json::array()
                                                        : Json(comparison.contenders.front().texts.front())},
               {"presets", presets}};
  if (!comparison.routing.empty()) json["routing"] = comparison.routing;
  if (!comparison.device.empty())
    json["device"] = {{"name", comparison.device_kind},
                      {"spec", comparison.device},
                      {"dilation", comparison.dilation},
                      {"same_ranking", same_ranking(comparison)}};
  return json;
}

namespace {

std::string texts_text(const Comparison& comparison) {
  if (comparison.same_texts()) return "all equal";
  return !comparison.different_though_computed_alike() ? "equal where computed alike" : "DIFFER";
}

std::string device_text(const Comparison& comparison) {
  return (comparison.device_is_played ? "device, emulated: no time here is a speed of this program ("
                                      : "device (") +
         breakable(comparison.device) + ")";
}

// One line for each contender that computes otherwise than the exact model.
std::string changes_text(const Comparison& comparison, std::size_t columns) {
  constexpr std::size_t kText = 26;  // column where what changed begins
  std::string text;
  const Compared& front = comparison.contenders.front();
  for (const Compared& it : comparison.contenders) {
    const std::optional<Agreement> agreement = comparison.agreement(it);
    if (!it.lossy && !(agreement && it.arithmetic != front.arithmetic)) continue;
    std::vector<std::pair<std::string, std::string>> rows = it.changes.rows;
    if (agreement)
      rows.emplace_back(
          "tokens",
          fmt::format("{} ({}-{}) of {} before the first that is not the exact model's",
                      agreement->equal.median, agreement->equal.low, agreement->equal.high, agreement->of));
    if (!it.same()) rows.emplace_back("texts", "of its runs differ");
    for (std::size_t i = 0; i < rows.size(); ++i)
      text += fmt::format("{:<17}{:<9}{}\n", i == 0 ? it.preset : "", rows[i].first,
                          wrapped_text(rows[i].second, columns, kText, kText));
  }
  return text.empty()
             ? text
             : '\n' +
                   wrapped_text("what lossy contenders changed (of the last run each; tokens: of all)",
                                columns) +
                   '\n' + text;
}

}  // namespace

// Columns of the table, the first to be left out first: found in, CPU/token, least and most speed, TTFT.
constexpr std::size_t kDispensable[] = {9, 7, 2, 3};

std::string table_text(const Comparison& comparison, std::size_t columns) {
  std::vector<std::vector<std::string>> rows = {{"preset", "tok/s", "(least-most)", "TTFT", "read/token",
                                                 "in vain", "hits", "CPU/token", "peak", "found in"}};
  for (const Compared& it : comparison.contenders) {
    const Spread tok_s = it.of(&RunFigures::tok_s);
    rows.push_back({it.preset, fmt::format("{:.2f}", tok_s.median),
                    fmt::format("({:.1f}-{:.1f})", tok_s.low, tok_s.high),
                    format_duration(it.of(&RunFigures::ttft_s).median),
                    format_bytes(static_cast<Bytes>(it.of(&RunFigures::useful_per_token).median)),
                    format_bytes(static_cast<Bytes>(it.of(&RunFigures::wasted_per_token).median)),
                    fmt::format("{:.0f}%", 100 * it.of(&RunFigures::hit_rate).median),
                    format_duration(it.of(&RunFigures::cpu_s_per_token).median),
                    format_bytes(static_cast<Bytes>(it.of(&RunFigures::peak).high)), found_text(it.found)});
  }
  const auto line = [&](const std::string& words) { return wrapped_text(words, columns) + '\n'; };
  const std::size_t runs = comparison.contenders.front().runs.size();
  const MainColumns shown = main_columns(rows, columns, kDispensable);
  const bool narrow = !shown.left_out.empty();
  return text_table(shown.rows, columns) +
         (narrow ? line(fmt::format("left out: {}; a wider terminal and {} have them",
                                    fmt::join(shown.left_out, ", "), flag(Setting::kJson)))
                 : "") +
         line(fmt::format("budget {}, {} thread{}, {} run{} each in turns; medians; texts {}",
                          format_bytes(comparison.budget), comparison.threads,
                          comparison.threads == 1 ? "" : "s", runs, runs == 1 ? "" : "s",
                          texts_text(comparison))) +
         (comparison.routing.empty() ? "" : line("routing: " + comparison.routing)) +
         (comparison.device.empty() ? "" : line(device_text(comparison))) +
         line(
             "in vain: what was read ahead beside read/token, and then not needed; hits: experts that needed "
             "no "
             "demand read, prefetched ones among them" +
             std::string(narrow ? "" : "; found in: what the cache held")) +
         changes_text(comparison, columns) +
         (comparison.device.empty() ? "" : clocks_table(comparison, columns));
}

}  // namespace sluice::lab
