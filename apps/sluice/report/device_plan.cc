#include "report/device_plan.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/setting.h"
#include "engine/device_budget.h"
#include "engine/engine_device.h"
#include "engine/plan/memory_plan.h"
#include "engine/plan/profile.h"
#include "engine/plan/unit_forecast.h"
#include "engine/run_report.h"
#include "experts/layer_decider.h"
#include "experts/tier_choice.h"
#include "fetch/memory/expert_store.h"
#include "report/device_costs.h"
#include "report/device_report.h"

namespace sluice::app {
namespace {

using engine::UnitForecast;

struct Forecasts {
  UnitForecast decode, prompt, twice_memory, twice_link;  // the last two of a decode step
  std::uint32_t more_slots = 0;                           // in twice the memory
};

Forecasts forecasts_of(const engine::RunReport& run, std::uint32_t tokens) {
  const engine::EngineDevice& device = *run.device;
  const experts::ExpertCosts& costs = run.decider.policies().costs;
  const engine::UnitShape shape = device.shape();
  engine::UnitShape more = shape;
  more.slots = device.memory().slots_in(2 * device.memory().budget, shape.experts);
  engine::DeviceProfile faster = run.profile.value().device.value();
  faster.busy.bytes_per_s *= 2;
  experts::ExpertCosts faster_costs = costs;
  faster.put_costs(faster_costs);
  return {.decode = engine::forecast_units(costs, shape, tokens),
          .prompt = engine::forecast_units(costs, shape, static_cast<std::uint32_t>(run.memory.chunk)),
          .twice_memory = engine::forecast_units(costs, more, tokens),
          .twice_link = engine::forecast_units(faster_costs, shape, tokens),
          .more_slots = more.slots};
}

std::string forecast_text(const UnitForecast& forecast) {
  return fmt::format(
      "{} on the host alone, {} on the device alone, {} on both, with {} of {} experts on the device, {} of "
      "them copied",
      format_duration(forecast.host), format_duration(forecast.device), format_duration(forecast.both),
      forecast.on_device, forecast.active, forecast.copied);
}

std::string change_text(const UnitForecast& now, const UnitForecast& then) {
  return fmt::format("{} on both, {:+.1f} %", format_duration(then.both),
                     now.both > 0 ? 100 * (then.both / now.both - 1) : 0.0);
}

Json to_json(const UnitForecast& forecast) {
  return {{"tokens", forecast.tokens},       {"active", forecast.active},   {"resident", forecast.resident},
          {"host_s", forecast.host},         {"device_s", forecast.device}, {"both_s", forecast.both},
          {"on_device", forecast.on_device}, {"copied", forecast.copied}};
}

}  // namespace

std::vector<ReportRow> device_plan_rows(const engine::RunReport& run, std::uint32_t tokens) {
  const engine::EngineDevice& device = *run.device;
  const engine::DeviceMemoryPlan& memory = device.memory();
  const std::uint32_t experts = device.shape().experts;
  std::vector<ReportRow> rows = device_cost_rows(run.profile.value().device.value());
  const auto row = [&](std::string_view name, std::string text) { rows.push_back({name, std::move(text)}); };
  if (std::string limit = link_limit_text(run); !limit.empty()) row("link limit", std::move(limit));
  row("device memory",
      fmt::format("{}: {}{}activations {}, staging {}, experts {} ({} of {} of each layer, {} each)",
                  format_bytes(memory.budget),
                  memory.context > 0 ? fmt::format("context {}, ", format_bytes(memory.context)) : "",
                  device.has_dense()
                      ? fmt::format("dense {}, kv {}, ", format_bytes(memory.dense), format_bytes(memory.kv))
                      : "",
                  format_bytes(memory.activations), format_bytes(memory.staging),
                  format_bytes(memory.experts), memory.slots, experts, format_bytes(memory.expert)));
  row("slots", slots_text(run));
  row("tiers", tiers_text(run));
  row("", std::string(
              device.has_dense()
                  ? "dense weights and the key/value cache are on the device, which computes attention, "
                    "shared experts and its routed ones; "
                  : "dense weights and the key/value cache are in host memory: the device computes routed "
                    "experts alone; ") +
              "experts that are neither there nor in host memory are on disk");
  for (const kernels::UnitFault& fault : run.plan.device_faults)
    row("not trusted", fmt::format("{}: {}", fault.operation, fault.found));
  if (!run.dense_place.why.empty())
    row("", fmt::format("dense weights on the {}: {}", device.has_dense() ? "device" : "host",
                        run.dense_place.why));
  if (std::string lacking = lacking_text(run); !lacking.empty()) {
    const bool all = run.plan.device->experts_lack.all();
    row(all ? "left alone" : "left to the host", std::move(lacking));
    if (all) return rows;
  }
  const Forecasts forecasts = forecasts_of(run, tokens);
  row("a layer",
      fmt::format("of {} token{}: {}", tokens, tokens == 1 ? "" : "s", forecast_text(forecasts.decode)));
  row("", fmt::format("of a prompt's {}: {}", forecasts.prompt.tokens, forecast_text(forecasts.prompt)));
  row("", "if tokens use all experts evenly, and as measured costs say; attention and norms come on top");
  row("twice the memory", fmt::format("{} of {} of each layer: {}", forecasts.more_slots, experts,
                                      change_text(forecasts.decode, forecasts.twice_memory)));
  row("twice the link", change_text(forecasts.decode, forecasts.twice_link));
  if (device.rests()) row("left alone", resting_reason(run));
  return rows;
}

Json device_plan_json(const engine::RunReport& run, std::uint32_t tokens) {
  const engine::DeviceMemoryPlan& memory = run.device->memory();
  const engine::LackingExperts& lacking = run.plan.device->experts_lack;
  Json json = {{"memory",
                {{"budget", memory.budget},
                 {"minimum", memory.minimum},
                 {"by_name",
                  {{"context", memory.context},
                   {"dense", memory.dense},
                   {"kv", memory.kv},
                   {"activations", memory.activations},
                   {"staging", memory.staging},
                   {"experts", memory.experts}}}}},
               {"slots", memory.slots},
               {"keep", slots_json(run)},
               {"tiers", experts::tiers_name(run.tiers.tiers)},
               {"tiers_why", run.tiers.why},
               {"math", engine::device_math_name(run.plan.device->math)},
               {"dense_on", run.device->has_dense() ? "device" : "host"},
               {"dense_why", run.dense_place.why.empty() ? Json() : Json(run.dense_place.why)},
               {"experts_lack", lacking.any() ? Json(lacking.formats) : Json()},
               {"experts_lack_layers", layers_lacking(run)},
               {"rests", run.device->rests()}};
  if (lacking.all()) return json;
  const Forecasts forecasts = forecasts_of(run, tokens);
  json.update({{"decode", to_json(forecasts.decode)},
               {"prompt", to_json(forecasts.prompt)},
               {"twice_memory", to_json(forecasts.twice_memory)},
               {"twice_link", to_json(forecasts.twice_link)}});
  return json;
}

}  // namespace sluice::app
