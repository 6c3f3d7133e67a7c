#include "report/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/duration.h"
#include "base/wrapped_text.h"
#include "engine/generate/generate.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/gate_residual.h"
#include "engine/plan/memory_plan.h"
#include "engine/plan/pool_plan.h"
#include "engine/read_forecast.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "experts/prefetch/prefetch_trial.h"
#include "experts/registry.h"
#include "experts/routing/miss_account.h"
#include "experts/routing/miss_constraint.h"
#include "fetch/memory/expert_store.h"
#include "fetch/memory/fetch_counters.h"
#include "model/architecture.h"
#include "model/config.h"
#include "report/device_report.h"
#include "report/forecast_hint.h"
#include "report/loss_rows.h"
#include "report/memory_report.h"
#include "report/ratios.h"
#include "report/run_json.h"
#include "store/checkpoint.h"

namespace sluice::app {
namespace {

std::string speed(double tokens, double seconds, int digits) {
  return tokens > 0 && seconds > 0 ? fmt::format(", {:.{}f} tok/s", tokens / seconds, digits) : "";
}

// "1.20 MiB", and what was read in vain.
std::string bytes_text(double useful, double wasted) {
  std::string text = format_bytes(static_cast<Bytes>(useful));
  if (wasted >= 1) text += fmt::format(" and {} in vain", format_bytes(static_cast<Bytes>(wasted)));
  return text;
}

// Two lines, so that the figures stand under each other.
std::vector<ReportRow> bytes_rows(const engine::RunReport& run) {
  const engine::ExpertStatistics& decode = run.statistics.decode;
  const double tokens = static_cast<double>(decode.tokens);
  const std::string measured = bytes_text(ratio(static_cast<double>(decode.useful_bytes()), tokens),
                                          ratio(static_cast<double>(decode.wasted_bytes()), tokens));
  return {{"bytes per token", predicted_bytes_text(run)}, {"", fmt::format("measured  {}", measured)}};
}

// By which calibration `auto` prefetches.
std::vector<ReportRow> calibration_rows(const engine::RunReport& run) {
  if (!run.policies.prefetch_by_calibration) return {};
  const engine::PredictionQuality& found = run.policies.residual->all;
  return {{"prefetch",
           fmt::format("{}, calibrated: it foretells {:.1f} % of the experts, stream {:.1f} %",
                       run.policies.prefetch->name, 100 * found.residual.mean, 100 * found.stream.mean)}};
}

// Whether read-ahead went on, where that has been found out.
std::vector<ReportRow> trial_rows(const engine::RunReport& run) {
  const experts::PrefetchTrial* const trial = run.prefetch_trial();
  if (trial == nullptr || !trial->decided() || run.statistics.decode.prefetch_bytes == 0) return {};
  const double with = trial->seconds_with(), without = trial->seconds_without();
  const std::string_view verdict = trial->pays()    ? "pays"
                                   : with < without ? "stopped, since it saves too little for what it wastes"
                                                    : "stopped";
  return {{"read-ahead", fmt::format("{}: a step takes {} with it, {} without", verdict,
                                     format_duration(with), format_duration(without))}};
}

}  // namespace

std::string tokens_text(std::uint64_t tokens) {
  return fmt::format("{} token{}", tokens, tokens == 1 ? "" : "s");
}

std::string predicted_bytes_text(const engine::RunReport& run) {
  if (run.checkpoint.slices())
    return "not predicted: routing, precision and misses decide while a text is generated which slices are "
           "read";
  const engine::ReadForecast forecast = engine::forecast_reads(run);
  return fmt::format("predicted {}{} ({} routing{})",
                     bytes_text(forecast.needed, forecast.in_vain.value_or(0)),
                     forecast.in_vain ? "" : ", in vain not predicted", forecast.routing,
                     forecast.played.empty() ? "" : ", played: " + forecast.played);
}

std::string run_table(const engine::RunReport& run, const std::vector<engine::GenerateRequest>& requests,
                      const std::vector<engine::GenerateResult>& results, const RunTimes& times,
                      std::size_t columns) {
  std::size_t prompt = 0, generated = 0;
  double prefill_s = 0, decode_s = 0, decoded = 0;
  const bool asked_for_nothing = std::ranges::all_of(
      requests, [](const engine::GenerateRequest& request) { return request.max_tokens == 0; });
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].tokens.empty()) prompt += requests[i].prompt.size();
    generated += results[i].tokens.size();
    decoded += results[i].tokens.empty() ? 0 : static_cast<double>(results[i].tokens.size() - 1);
    prefill_s = std::max(prefill_s, results[i].prefill_s);
    decode_s = std::max(decode_s, results[i].decode_s);
  }
  const engine::Statistics& statistics = run.statistics;
  const engine::ExpertStatistics total = statistics.total();
  const engine::DiskReport disk = run.disk();
  std::string table;
  std::vector<std::string> hints;
  const auto row = [&](std::string_view name, const std::string& text) {
    table += report_row(name, text, columns);
  };
  // Without tokens there is no speed, no share of hits, and no prediction.
  row("prompt", prompt == 0 ? asked_for_nothing ? "not read: no token was asked for" : "not read to its end"
                            : fmt::format("{} in {}{}", tokens_text(prompt), format_duration(prefill_s),
                                          speed(static_cast<double>(prompt), prefill_s, 1)));
  row("generated",
      fmt::format("{}{}{} ({})", tokens_text(generated),
                  generated == 0 ? "" : " in " + format_duration(decode_s), speed(decoded, decode_s, 2),
                  results.size() == 1 ? std::string(engine::stop_reason_name(results[0].reason))
                                      : fmt::format("batch of {}", results.size())));
  if (times.first_token_s)
    row("first token", fmt::format("{} after start, {} of it loading", format_duration(*times.first_token_s),
                                   format_duration(times.load_s)));
  else
    row("loading", format_duration(times.load_s));
  row("memory",
      fmt::format("peak {} of {}", format_bytes(memory_peak(run)), format_bytes(run.memory.budget)));
  row("", memory_line(run) + "; each at its own peak");
  const auto hits = [](const engine::ExpertStatistics& counts) {
    return 100 * ratio(static_cast<double>(counts.hits), static_cast<double>(counts.accesses));
  };
  std::string accesses = fmt::format("{} accesses", total.accesses);
  if (total.accesses > 0) accesses += fmt::format(", {:.1f} % hits", hits(total));
  if (statistics.decode.accesses > 0)
    accesses += fmt::format(" ({:.1f} % while decoding)", hits(statistics.decode));
  row("experts", accesses);
  for (const auto& [name, text] : loss_rows(run)) row(name, text);
  const bool decoding = statistics.decode.tokens > 0;
  if (decoding)
    for (const auto& [name, text] : bytes_rows(run)) row(name, text);
  for (const auto& [name, text] : calibration_rows(run)) row(name, text);
  for (const auto& [name, text] : trial_rows(run)) row(name, text);
  if (run.pool_plan) {
    const engine::PoolPlan& plan = *run.pool_plan;
    row("pools", fmt::format("F {} C {} S {} E {} a layer{}", plan.chosen.slots.f, plan.chosen.slots.c,
                             plan.chosen.slots.s, plan.chosen.slots.e,
                             decoding ? fmt::format("; predicted {:.2f} tok/s, limit {}", plan.chosen.tok_s,
                                                    plan.chosen.limit)
                                      : ""));
    const auto& found = total.found;
    row("found in",
        fmt::format("F {}, C {}, S {}, E {}, M {}", found[0], found[1], found[2], found[3], found[4]));
  }
  if (decoding && !run.checkpoint.slices()) {
    const engine::ReadForecast forecast = engine::forecast_reads(run);
    const Decoded decoded_now = decoded_of(run, results);
    for (const std::string& hint : {bytes_hint(forecast, decoded_now), waste_hint(forecast, decoded_now),
                                    speed_hint(forecast, decoded_now)})
      if (!hint.empty()) hints.push_back(hint);
  }
  for (const auto& [name, text] : device_rows(run)) row(name, text);
  row("disk",
      fmt::format("{} in {} reads by {}{}", format_bytes(disk.bytes_read), disk.reads, disk.method,
                  disk.seconds > 0 ? fmt::format(", {:.2f} GB/s while reading",
                                                 static_cast<double>(disk.bytes_read) / 1e9 / disk.seconds)
                                   : ""));
  for (const std::string& hint : hints) row("hint", hint);
  return table;
}

}  // namespace sluice::app
