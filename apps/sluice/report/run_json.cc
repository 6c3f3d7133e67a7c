#include "report/run_json.h"
#include "report/ratios.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "engine/engine.h"
#include "engine/generate/generate.h"
#include "engine/plan/gate_residual.h"
#include "engine/read_forecast.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "experts/layer_decider.h"
#include "experts/prefetch/prediction_check.h"
#include "experts/prefetch/prefetch_trial.h"
#include "experts/registry.h"
#include "experts/routing/miss_account.h"
#include "experts/routing/miss_constraint.h"
#include "experts/routing/smoe_rules.h"
#include "fetch/memory/expert_store.h"
#include "fetch/memory/fetch_counters.h"
#include "flags/slice_effects.h"
#include "report/device_report.h"
#include "report/forecast_hint.h"
#include "store/checkpoint.h"
#include "streams/played_routing.h"

namespace sluice::app {
namespace {

// What other experts than the model's own cost, where it was measured; null beyond what was measured.
// Shares of perplexity.
Json routing_loss_json(const engine::RunReport& run) {
  const experts::RoutingChanges& routing = run.decider.decode_changes();
  const double mass = ratio(routing.mass_lost, static_cast<double>(routing.tokens));
  const experts::LossEstimate estimate = experts::estimate_loss(*run.policies.routing_losses, 0, mass);
  return {{"total", as_share(estimate.total())}, {"upper", as_share(estimate.upper)}};
}

// Losses as shares of perplexity; each part is converted separately, so that their sum is a little less than
// the total.
Json contract_json(const engine::RunReport& run) {
  const experts::LossGuard& guard = *run.loss_guard();
  const experts::LossEstimate estimate = guard.estimate();
  Json json = {{"max_loss", as_share(guard.contract().limit)},
               {"estimated_loss",
                {{"high", as_share(estimate.high)},
                 {"precision", as_share(estimate.precision)},
                 {"routing", as_share(estimate.routing)},
                 {"both", as_share(estimate.both)},
                 {"total", as_share(estimate.total())},
                 {"upper", as_share(estimate.upper)}}},
               {"low_share", guard.low_share()},
               {"mass_lost", guard.mass_lost()},
               {"raised", guard.raised()}};
  if (run.policies.precision.mode == experts::PrecisionMode::kDbsc)
    json["theta"] = run.policies.precision.critical.theta;
  return json;
}

// Null for a mode without a limit.
Json limit_json(const experts::ConstraintConfig& config) {
  return keeps_limit(config.mode) ? Json(config.limit) : Json();
}

// Counts of decode steps; the limit leaves out the first steps of each generation.
Json slices_json(const engine::RunReport& run) {
  const engine::Statistics& statistics = run.statistics;
  const experts::MissAccount& all = statistics.decode.slices;
  const experts::MissConstraint& constraint = *run.constraint();
  Json json = {{"precision", experts::precision_name(run.policies.precision.mode)},
               {"activations", engine::activations_name(*run.plan.activations)},
               {"constraint", experts::constraint_name(constraint.config().mode)},
               {"hbn_miss_rate", constraint.account().rate()},
               {"limit", limit_json(constraint.config())},
               {"msb_hits", all.msb_requests - all.msb_misses},
               {"msb_misses", all.msb_misses},
               {"lsb_hits", all.lsb_requests - all.lsb_misses - all.downgrades},
               {"lsb_misses", all.lsb_misses},
               {"downgrades", all.downgrades},
               {"replaced", constraint.replaced()},
               {"violations", constraint.violations()},
               {"agreement", run.decider.decode_changes().agreement()}};
  if (run.loss_guard() != nullptr) json.update(contract_json(run));
  return json;
}

// REQUIRES: decided.
Json trial_json(const experts::PrefetchTrial& trial) {
  return {{"pays", trial.pays()},
          {"step_s_with", trial.seconds_with()},
          {"step_s_without", trial.seconds_without()}};
}

// How the prediction that the prefetch follows came true (docs/counters.md).
Json prediction_json(const engine::RunReport& run) {
  experts::PredictionCounts counts = run.decider.predictions(experts::StepKind::kPrompt);
  counts += run.decider.predictions(experts::StepKind::kDecode);
  Json json = {{"predicted", counts.predicted},
               {"active", counts.active},
               {"top", counts.top},
               {"top_x", run.decider.predicted_top()}};
  if (counts.wanted > 0) json["accuracy"] = counts.accuracy();
  Json cosines = Json::array();
  const std::span<const experts::InputPrediction::Mean> means = run.input_prediction.means();
  for (std::size_t layer = 1; layer < means.size(); ++layer)
    cosines.push_back(means[layer].tokens > 0 ? Json(means[layer].value()) : Json());
  const auto known = [](const Json& cosine) { return !cosine.is_null(); };
  if (std::any_of(cosines.begin(), cosines.end(), known)) json["cosine"] = cosines;
  return json;
}

Json counts_json(const engine::ExpertStatistics& counts) {
  return {{"accesses", counts.accesses},
          {"hits", counts.hits},
          {"misses", counts.misses},
          {"partial", counts.partial},
          {"bytes_read", counts.bytes_read},
          {"prefetch_bytes", counts.prefetch_bytes},
          {"useful_bytes", counts.useful_bytes()},
          {"wasted_bytes", counts.wasted_bytes()},
          {"policy_s", counts.policy_s},
          {"predict_s", counts.predict_s},
          {"moe_s", counts.moe_s},
          {"demand_s", counts.demand_s},
          {"demand_arrived_bytes", counts.demand_arrived},
          {"steps", counts.steps},
          {"tokens", counts.tokens},
          {"seconds", counts.seconds},
          {"states",
           {{"F", counts.found[0]},
            {"C", counts.found[1]},
            {"S", counts.found[2]},
            {"E", counts.found[3]},
            {"M", counts.found[4]}}}};
}

}  // namespace

Json io_json(const engine::RunReport& run) {
  const engine::DiskReport disk = run.disk();
  Json json = {{"bytes_read", disk.bytes_read},
               {"reads", disk.reads},
               {"seconds", disk.seconds},
               {"method", disk.method}};
  if (const std::optional<Bytes> cached = run.page_cache_bytes()) json["page_cache_bytes"] = *cached;
  return json;
}

Json losses_json(const engine::RunReport& run) {
  Json json;
  const experts::RoutingChanges& routing = run.decider.changes();
  json["routing"] = {{"router", run.policies.router->name},
                     {"tokens", routing.tokens},
                     {"decode_tokens", run.decider.decode_changes().tokens},
                     {"changed_tokens", routing.changed_tokens},
                     {"substituted", routing.substituted},
                     {"mass_lost", routing.mass_lost}};
  if (run.policies.router->rules == experts::RouterRules::kSmoe) {
    json["routing"]["alpha"] = run.policies.smoe.alpha;
    json["routing"]["calibrated"] = run.policies.routing_losses.has_value();
    if (run.device != nullptr)
      json["routing"]["resident"] = experts::smoe_resident_name(run.policies.smoe.resident);
  }
  if (run.policies.routing_losses) json["routing"]["estimated_loss"] = routing_loss_json(run);
  if (run.loss_guard() != nullptr && !run.checkpoint.slices())
    json["routing"]["max_loss"] = as_share(run.loss_guard()->contract().limit);
  if (const std::string played = run.policies.played(); !played.empty()) json["routing"]["played"] = played;
  if (run.plan.activations && !run.checkpoint.slices())
    json["activations"] = engine::activations_name(*run.plan.activations);
  if (run.checkpoint.slices())
    json["slices"] = slices_json(run);
  else if (const experts::MissConstraint* const limit = run.constraint())
    json["limit"] = {{"constraint", experts::constraint_name(limit->config().mode)},
                     {"limit", limit_json(limit->config())},
                     {"miss_rate", limit->account().rate()},
                     {"replaced", limit->replaced()},
                     {"violations", limit->violations()}};
  return json;
}

Json experts_json(const engine::RunReport& run) {
  const engine::Statistics& statistics = run.statistics;
  Json json = counts_json(statistics.total());
  const fetch::ExpertCounters counters = run.experts.counters();
  const fetch::PrefetchCounters& ahead = counters.prefetch;
  json["prefetch"] = {{"policy", run.policies.prefetch->name},
                      {"useful", ahead.useful},
                      {"late", ahead.late},
                      {"wasted", ahead.wasted},
                      {"dropped", ahead.dropped},
                      {"used_bytes", ahead.used_bytes},
                      {"wasted_bytes", ahead.wasted_bytes},
                      {"delay_bytes", ahead.delay_bytes},
                      {"paused_events", statistics.prefetch_paused}};
  json["prefetch"].update(prediction_json(run));
  if (run.policies.residual)
    json["prefetch"]["calibration"] = {{"chose", run.policies.prefetch_by_calibration},
                                       {"accuracy_residual", run.policies.residual->all.residual.mean},
                                       {"accuracy_stream", run.policies.residual->all.stream.mean}};
  if (const experts::PrefetchTrial* const trial = run.prefetch_trial(); trial != nullptr && trial->decided())
    json["prefetch"]["trial"] = trial_json(*trial);
  json.update(losses_json(run));
  json["update_bytes"] = counters.update_bytes;
  json["wait_s"] = counters.wait_s;
  json["decode_work_s"] = counters.decode_s;
  json["schedule"] = {
      {"plans", statistics.plans}, {"seconds", statistics.plan_s}, {"fallbacks", run.scheduler_fallbacks()}};
  json["prefill"] = counts_json(statistics.prefill);
  json["decode"] = counts_json(statistics.decode);
  if (run.device != nullptr) json["device"] = device_experts_json(run);
  return json;
}

Json start_json(const engine::RunReport& run, const RunTimes& times) {
  const engine::StartTimes& start = run.start_times;
  return {{"open_s", times.open_s}, {"tokenizer_s", times.tokenizer_s}, {"prompt_s", times.prompt_s},
          {"plan_s", start.plan_s}, {"dense_s", start.dense_s},         {"profile_s", start.profile_s},
          {"load_s", times.load_s}};
}

Json forecast_json(const engine::RunReport& run) {
  const engine::ReadForecast forecast = engine::forecast_reads(run);
  Json json = {{"bytes_per_token", forecast.needed},
               {"wasted_bytes_per_token", forecast.in_vain ? Json(*forecast.in_vain) : Json()},
               {"routing", forecast.routing},
               {"tok_s", forecast.tok_s ? Json(*forecast.tok_s) : Json()}};
  add_played(json, forecast.played);
  return json;
}

Json forecast_json(const engine::RunReport& run, const std::vector<engine::GenerateResult>& results) {
  const engine::ReadForecast forecast = engine::forecast_reads(run);
  const Decoded decoded = decoded_of(run, results);
  const auto text = [](const std::string& hint) { return hint.empty() ? Json() : Json(hint); };
  Json json = forecast_json(run);
  json["bytes_hint"] = text(bytes_hint(forecast, decoded));
  json["waste_hint"] = text(waste_hint(forecast, decoded));
  json["speed_hint"] = text(speed_hint(forecast, decoded));
  return json;
}

}  // namespace sluice::app
