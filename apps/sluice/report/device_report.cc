#include "report/device_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/rate.h"
#include "base/setting.h"
#include "base/wrapped_text.h"
#include "device/device.h"
#include "engine/device_budget.h"
#include "engine/engine_device.h"
#include "engine/plan/device_profile.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/profile.h"
#include "engine/run_report.h"
#include "engine/step_times.h"
#include "engine/watch/statistics.h"
#include "experts/decision_log.h"
#include "experts/layer_decider.h"
#include "experts/tier_choice.h"
#include "report/shown_device.h"
#include "report/start_warnings.h"

namespace sluice::app {
namespace {

using device::Traffic;
using experts::StepKind;

constexpr Traffic kTraffics[] = {Traffic::kDemand, Traffic::kResult, Traffic::kPrefetch, Traffic::kUpdate};

// Over both kinds of step.
template <class Member>
auto sum(const experts::DeviceDecider& decider, Member member) {
  return decider.counts(StepKind::kPrompt).*member + decider.counts(StepKind::kDecode).*member;
}

experts::PrefetchCounts prefetches(const experts::DeviceDecider& decider) {
  experts::PrefetchCounts all = decider.counts(StepKind::kPrompt).prefetch;
  const experts::PrefetchCounts& decode = decider.counts(StepKind::kDecode).prefetch;
  all.asked += decode.asked;
  all.paused += decode.paused;
  all.sent += decode.sent;
  all.used += decode.used;
  all.late += decode.late;
  all.kept += decode.kept;
  all.wasted += decode.wasted;
  return all;
}

double share(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string pause_text(const experts::PrefetchCounts& ahead) {
  if (ahead.paused == 0) return "";
  return fmt::format("; paused in {:.1f} % of events, where it cost more than it saved",
                     share(static_cast<double>(ahead.paused), static_cast<double>(ahead.asked)));
}

// Shares of the wall time of all steps.
double device_idle_share(const engine::RunReport& run) {
  const double seconds = run.statistics.total().seconds;
  return seconds > 0 ? std::max(0.0, 1 - run.device->computed().busy_s / seconds) : 0;
}
double host_wait_share(const engine::RunReport& run) {
  const double seconds = run.statistics.total().seconds;
  return seconds > 0 ? run.statistics.total().device_wait_s / seconds : 0;
}

Bytes all_link_bytes(const engine::EngineDevice& device) {
  Bytes bytes = 0;
  for (const Traffic traffic : kTraffics) bytes += device.link_bytes(traffic);
  return bytes;
}

// Bytes of each kind, and the rate while the link was busy beside its limit.
std::string link_text(const engine::EngineDevice& device) {
  std::string text;
  for (const Traffic traffic : kTraffics)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", device::traffic_name(traffic),
                        format_bytes(device.link_bytes(traffic)));
  const double busy = device.link_busy_s();
  if (busy > 0)
    text += fmt::format("; {} while busy", format_rate(static_cast<double>(all_link_bytes(device)) / busy));
  if (const auto limit = device.spec().link_limit()) text += " of " + format_rate(*limit);
  return text;
}

bool link_is_limited(const engine::RunReport& run) { return run.plan.device && run.plan.device->link_limit; }

// "cuda (NVIDIA H200, compute 9.0)".
std::string kind_text(const engine::EngineDevice& device) {
  const std::string& hardware = device.facts().hardware;
  return std::string(device.device().name()) + (hardware.empty() ? "" : " (" + hardware + ")");
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

std::string resting_reason(const engine::RunReport& run) {
  const experts::ExpertCosts& costs = run.decider.policies().costs;
  return fmt::format(
      "computing an expert for one token takes {} here and {} there, a copy {}, and no step would end "
      "earlier, or the link would not keep up with it",
      format_duration(costs.run.of(1)), format_duration(costs.device.run.of(1)),
      format_duration(costs.device.transfer));
}

std::string slots_text(const engine::RunReport& run) {
  const engine::EngineDevice& device = *run.device;
  const engine::DeviceProfile& profile = run.profile.value().device.value();
  return fmt::format("{}: {}; {} a slot, {} a copy ({})", device.slot_form().form(),
                     with_names(device.slot_form().why), format_bytes(device.memory().expert),
                     format_bytes(profile.expert), profile.view);
}

std::string tiers_text(const engine::RunReport& run) {
  return fmt::format("{}: {}", experts::tiers_name(run.tiers.tiers), run.tiers.why);
}

Json slots_json(const engine::RunReport& run) {
  const engine::EngineDevice& device = *run.device;
  return {{"form", device.slot_form().form()},
          {"why", with_names(device.slot_form().why)},
          {"slot_bytes", device.memory().expert},
          {"copy_bytes", run.profile.value().device.value().expert}};
}

std::string link_limit_text(const engine::RunReport& run) {
  if (!link_is_limited(run)) return "";
  const auto rate = [&](double bytes_per_s) {
    return std::isinf(bytes_per_s) ? "not paced" : format_rate(bytes_per_s);
  };
  const std::optional<double> without = run.plan.device->link_limit->without;
  return fmt::format("{} limits the link to {}{}", flag(Setting::kLink),
                     rate(run.device->spec().link_limit().value()),
                     without ? "; without it: " + rate(*without) : "");
}

// Null where the host takes as long as it takes.
static Json host_pace_json(const engine::EngineDevice& device) {
  const std::optional<double> rate = device.spec().host_limit();
  if (!rate) return {};
  const device::LaneCounters computed = device.host_computed();
  return {{"limit_bytes_per_s", *rate},
          {"busy_s", computed.busy_s},
          {"overruns", computed.overruns},
          {"overrun_s", computed.overrun_s}};
}

Json device_json(const engine::RunReport& run) {
  const engine::EngineDevice& device = *run.device;
  const device::Accountant& accountant = device.accountant();
  const device::LaneCounters computed = device.computed();
  Json by_name = {{"context", device.memory().context}};
  for (const device::Account account :
       {device::Account::kDense, device::Account::kKv, device::Account::kActivations,
        device::Account::kStaging, device::Account::kExperts})
    by_name[std::string(device::account_name(account))] = accountant.peak(account);
  Json bytes;
  for (const Traffic traffic : kTraffics)
    bytes[std::string(device::traffic_name(traffic))] = device.link_bytes(traffic);
  bytes["busy_s"] = device.link_busy_s();
  const std::optional<double> limit = device.spec().link_limit();
  bytes["limit_bytes_per_s"] = limit ? Json(*limit) : Json();
  bytes["limited"] = link_is_limited(run);
  const device::LockedPages locked = device.locked();
  bytes["locked"] = {{"bytes", locked.bytes}, {"refused_bytes", locked.refused_bytes}};
  return {{"name", device.device().name()},
          {"spec", device::to_text(device.spec())},
          {"hardware", text_or_null(device.facts().hardware)},
          {"memory", {{"budget", device.memory().budget}, {"peak", device.peak()}, {"by_name", by_name}}},
          {"slots", device.memory().slots},
          {"math", engine::device_math_name(run.plan.device->math)},
          {"dense_on", device.has_dense() ? "device" : "host"},
          {"dense_why", text_or_null(run.dense_place.why)},
          {"experts_lack", text_or_null(run.plan.device->experts_lack.formats)},
          {"experts_lack_layers", layers_lacking(run)},
          {"keep", slots_json(run)},
          {"tiers", experts::tiers_name(run.tiers.tiers)},
          {"tiers_why", run.tiers.why},
          {"link", bytes},
          {"busy_s", computed.busy_s},
          {"idle_share", device_idle_share(run)},
          {"rests", device.rests()},
          {"overruns", computed.overruns},
          {"overrun_s", computed.overrun_s},
          {"overrun_share", device.overrun_share()},
          {"host", host_pace_json(device)},
          {"dilation", device.spec().dilation()},
          {"valid_times", device.has_valid_times()}};
}

// A decode step by both clocks.
static Json step_times_json(const engine::RunReport& run) {
  const engine::StepTimes measured = engine::measured_step(run), predicted = engine::predicted_step(run);
  return {{"tpot_s", measured.step},
          {"predicted_tpot_s", predicted.step},
          {"moe_s", measured.moe},
          {"predicted_moe_s", predicted.moe}};
}

Json placement_json(const engine::RunReport& run) {
  using experts::DeviceCounts;
  const experts::DeviceDecider& decider = *run.decider.device();
  const std::uint64_t assigned = sum(decider, &DeviceCounts::assigned);
  const experts::DevicePolicies& device = run.decider.policies().device.value();
  const bool prefills = device.prefill_placement != nullptr;
  return {{"policy", run.decider.policies().placement->name()},
          {"prefill_policy", prefills ? Json(device.prefill_placement->name()) : Json()},
          {"prefill_from", prefills ? Json(device.prefill_from) : Json()},
          {"host", sum(decider, &DeviceCounts::active) - assigned},
          {"device", assigned},
          {"loads", sum(decider, &DeviceCounts::loads)},
          {"streamed", sum(decider, &DeviceCounts::streamed)},
          {"updates", sum(decider, &DeviceCounts::updates)},
          {"imbalance_s", sum(decider, &DeviceCounts::imbalance)},
          {"cpu_s", sum(decider, &DeviceCounts::host)},
          {"device_s", sum(decider, &DeviceCounts::device)},
          {"wait_s", sum(decider, &DeviceCounts::wait)},
          {"host_wait_s", run.statistics.total().device_wait_s},
          {"decode", step_times_json(run)},
          {"fallbacks", run.decider.policies().placement->fallbacks()}};
}

// What was decided on the modelled clock, by the names of `simulate`; and what became of the copies.
static Json prefetch_json(const engine::RunReport& run) {
  const experts::PrefetchCounts decided = prefetches(*run.decider.device());
  const fetch::DeviceStoreCounters& copies = run.device->copies();
  return {{"asked", decided.asked},
          {"paused", decided.paused},
          {"sent", decided.sent},
          {"used", decided.used},
          {"late", decided.late},
          {"kept", decided.kept},
          {"wasted", decided.wasted},
          {"copies",
           {{"begun", copies.prefetches},
            {"useful", copies.useful},
            {"late", copies.late},
            {"wasted", copies.wasted}}}};
}

// As prefetch_json().
static Json tiers_json(const engine::RunReport& run) {
  using experts::DeviceCounts;
  const experts::DeviceDecider& decider = *run.decider.device();
  const fetch::ReturnCounters& copies = run.device->returns();
  return {{"dropped", sum(decider, &DeviceCounts::dropped)},
          {"returns", sum(decider, &DeviceCounts::returns)},
          {"late_returns", sum(decider, &DeviceCounts::late_returns)},
          {"there_alone", sum(decider, &DeviceCounts::there_alone)},
          {"copies",
           {{"begun", copies.begun},
            {"complete", copies.complete},
            {"late", copies.late},
            {"lost", copies.lost}}}};
}

Json device_experts_json(const engine::RunReport& run) {
  using experts::DeviceCounts;
  const experts::DeviceDecider& decider = *run.decider.device();
  return {{"assigned", sum(decider, &DeviceCounts::assigned)},
          {"hits", sum(decider, &DeviceCounts::hits)},
          {"active", sum(decider, &DeviceCounts::active)},
          {"resident", sum(decider, &DeviceCounts::resident)},
          {"in_place", run.device->copies().in_place},
          {"prefetch", prefetch_json(run)},
          {"tiers", tiers_json(run)}};
}

Json device_profile_json(const engine::RunReport& run) {
  const bool given = run.plan.profile && run.profile && run.plan.profile->device == run.profile->device;
  return {{"hash", fmt::format("{:016x}", experts::hash_of(run.decider.policies().costs))},
          {"measured", !given}};
}

void add_device(Json& json, const engine::RunReport& run) {
  if (!run.plan.no_device.empty()) json["no_device"] = with_names(run.plan.no_device);
  if (!run.plan.device_faults.empty()) json["device_faults"] = device_faults_json(run.plan.device_faults);
  if (run.device == nullptr) return;
  json["device"] = device_json(run);
  json["placement"] = placement_json(run);
  json["profile"] = device_profile_json(run);
}

std::string device_text(const engine::RunReport& run) {
  if (run.device == nullptr) return "";
  if (!run.device->spec().is_played()) return shown_device(run.device->name());
  return fmt::format("emulated, dilated x{:g}: no time here is a speed of this program ({})",
                     run.device->spec().dilation(), shown_device(run.device->name()));
}

// How many layers have experts that the host computes because of their formats.
std::size_t layers_lacking(const engine::RunReport& run) {
  const std::size_t layers = run.model.config.sparse_layers();
  return layers - run.plan.device->experts_lack.layers_there(layers);
}

std::string lacking_text(const engine::RunReport& run) {
  const engine::LackingExperts& lacking = run.plan.device->experts_lack;
  if (!lacking.any()) return "";
  const std::string which = lacking.all() ? "all experts"
                                          : fmt::format("the experts of {} of {} layers", layers_lacking(run),
                                                        run.model.config.sparse_layers());
  return "the host computes " + which + ": the device has no good kernels for " + lacking.formats;
}

// Behind a figure of what was copied ahead; empty where nobody has foretold numbers of tokens.
static std::string prediction_text(const experts::LayerDecider& decider) {
  experts::PredictionCounts counts = decider.predictions(StepKind::kPrompt);
  counts += decider.predictions(StepKind::kDecode);
  if (counts.wanted == 0) return "";
  return fmt::format("; {:.1f} % of the {} with the most tokens in each layer were foretold",
                     100 * counts.accuracy(), decider.predicted_top());
}

std::string device_figures(const engine::RunReport& run) {
  if (run.device == nullptr) return "";
  using experts::DeviceCounts;
  const experts::DeviceDecider& decider = *run.decider.device();
  return fmt::format("device {} of {}, {}{:.0f} % of experts", format_bytes(run.device->used()),
                     format_bytes(run.device->memory().budget),
                     run.device->has_dense() ? "all dense weights and " : "",
                     share(static_cast<double>(sum(decider, &DeviceCounts::assigned)),
                           static_cast<double>(sum(decider, &DeviceCounts::active))));
}

std::vector<ReportRow> device_rows(const engine::RunReport& run) {
  if (run.device == nullptr && !run.plan.no_device.empty())
    return {{"device", "none: " + with_names(run.plan.no_device)}};
  if (run.device == nullptr) return {};
  using experts::DeviceCounts;
  const engine::EngineDevice& device = *run.device;
  const experts::DeviceDecider& decider = *run.decider.device();
  const auto assigned = static_cast<double>(sum(decider, &DeviceCounts::assigned));
  const auto active = static_cast<double>(sum(decider, &DeviceCounts::active));
  std::vector<ReportRow> rows = {
      {"device", fmt::format("{}: peak {} of {}, {}room for {} experts of each layer", kind_text(device),
                             format_bytes(device.peak()), format_bytes(device.memory().budget),
                             device.has_dense() ? "with dense weights and the key/value cache, " : "",
                             device.memory().slots)}};
  if (device.rests()) {
    rows.push_back(
        {"", std::string(device.has_dense() ? "routed experts are left to the host: " : "left alone: ") +
                 resting_reason(run)});
    return rows;
  }
  rows.push_back(
      {"placement", fmt::format("{}: {:.1f} % of experts on the device, {:.1f} % of these were there",
                                run.policies.placement_text(), share(assigned, active),
                                share(static_cast<double>(sum(decider, &DeviceCounts::hits)), assigned))});
  if (std::string lacking = lacking_text(run); !lacking.empty()) rows.push_back({"", std::move(lacking)});
  if (device.takes_none()) rows.push_back({"", "no expert is computed there, so that none is copied there"});
  rows.push_back({"link", link_text(device)});
  if (link_is_limited(run)) rows.push_back({"", link_limit_text(run)});
  if (const Bytes refused = device.locked().refused_bytes; refused > 0)
    rows.push_back({"", format_bytes(refused) +
                            " of the host's memory could not be page-locked: copies from there are slower"});
  if (const std::uint64_t returns = sum(decider, &DeviceCounts::returns); returns > 0)
    rows.push_back({"", fmt::format("{} of {} experts that left the device went back to the host", returns,
                                    sum(decider, &DeviceCounts::dropped))});
  if (const experts::PrefetchCounts ahead = prefetches(decider); ahead.sent > 0)
    rows.push_back({"", fmt::format("{} experts copied ahead, {:.1f} % of them computed{}{}", ahead.sent,
                                    share(static_cast<double>(ahead.used), static_cast<double>(ahead.sent)),
                                    prediction_text(run.decider), pause_text(ahead))});
  rows.push_back({"idle", fmt::format("the device {:.1f} % of the time, the host {:.1f} % (it waits for the "
                                      "device)",
                                      100 * device_idle_share(run), 100 * host_wait_share(run))});
  if (run.statistics.decode.steps > 0)
    rows.push_back({"step", fmt::format("{} by the modelled clock, {} here",
                                        format_duration(engine::predicted_step(run).step),
                                        format_duration(engine::measured_step(run).step))});
  const std::string kind =
      device.spec().is_played() ? fmt::format("emulated, dilated x{:g}: ", device.spec().dilation()) : "";
  if (!device.has_valid_times())
    rows.push_back({"", kind + (device.spec().is_unpaced()
                                    ? "the device is not paced: no time of this run is valid"
                                    : "the device could not keep its own times here: no time of this run is "
                                      "valid")});
  else if (device.spec().is_played())
    rows.push_back({"", kind + "no time of this run is a speed of this program"});
  return rows;
}

}  // namespace sluice::app
