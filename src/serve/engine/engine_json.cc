#include "serve/engine/engine_json.h"

#include <algorithm>
#include <string>

#include "base/machine/system_memory.h"
#include "device/accountant.h"
#include "engine/engine_device.h"
#include "engine/plan/memory_plan.h"

namespace sluice::serve {
namespace {

Bytes planned(const engine::MemoryPlan& plan, device::Account account) {
  using enum device::Account;
  switch (account) {
    case kProcess:
      return plan.process;
    case kDense:
      return plan.dense;
    case kExperts:
      return plan.experts;
    case kKv:
      return plan.kv;
    case kActivations:
      return plan.activations;
    case kStaging:
      return plan.staging;
    case kTables:
      return plan.tables;
    case kServe:
      return plan.serve;
  }
  return 0;
}

Json accounts_json(const device::Accountant& accountant, const engine::MemoryPlan* plan) {
  Json by_name = Json::object();
  Bytes used = 0;
  for (std::size_t i = 0; i < device::kAccountCount; ++i) {
    const auto account = static_cast<device::Account>(i);
    const Bytes now = accountant.used(account), peak = accountant.peak(account);
    const Bytes expected = plan != nullptr ? planned(*plan, account) : peak;
    used += now;
    if (peak == 0 && expected == 0) continue;
    by_name[std::string(device::account_name(account))] = {
        {"now", now}, {"peak", peak}, {"planned", expected}};
  }
  return {{"budget", accountant.budget()}, {"used", used}, {"by_name", by_name}};
}

double tokens_per_s(const engine::ExpertStatistics& before, const engine::ExpertStatistics& now,
                    double seconds) {
  return seconds > 0 ? static_cast<double>(now.tokens - before.tokens) / seconds : 0;
}

}  // namespace

Json memory_json(const engine::RunReport& run) {
  Json host = accounts_json(run.accountant, &run.memory);
  host["limit"] = read_memory_limits().cgroup_limit.value_or(0);
  Json memory = {{"host", std::move(host)}};
  if (run.device != nullptr) {
    memory["device"] = accounts_json(run.device->accountant(), nullptr);
    memory["device"]["limit"] = Bytes{0};
  }
  return memory;
}

Json stats_json(const EngineSnapshot& before, const EngineSnapshot& now, double seconds_since_start,
                const Json& memory) {
  const double seconds = std::chrono::duration<double>(now.at - before.at).count();
  const engine::ExpertStatistics &decode = now.statistics.decode, &earlier = before.statistics.decode;
  const std::uint64_t steps = decode.steps - earlier.steps;
  const auto of_step = [&](double sum) { return steps == 0 ? 0.0 : 1000 * sum / static_cast<double>(steps); };
  const double moe = decode.moe_s - earlier.moe_s, wait = std::min(moe, decode.demand_s - earlier.demand_s);
  const double whole = decode.seconds - earlier.seconds;
  const engine::ExpertStatistics total = now.statistics.total();
  const fetch::PrefetchCounters& ahead = now.fetched.prefetch;
  return {{"t", seconds_since_start},
          {"tokens_per_s",
           {{"prefill", tokens_per_s(before.statistics.prefill, now.statistics.prefill, seconds)},
            {"decode", tokens_per_s(earlier, decode, seconds)}}},
          {"step_ms",
           {{"wait", of_step(wait)},
            {"experts", of_step(moe - wait)},
            {"attention", 0.0},
            {"dense", of_step(std::max(0.0, whole - moe))},
            {"sampling", 0.0}}},
          {"hits", total.hits},
          {"accesses", total.accesses},
          {"demand", now.demand},
          {"prefetch", {{"useful", ahead.useful}, {"late", ahead.late}, {"wasted", ahead.wasted}}},
          {"disk",
           {{"bytes_per_s",
             seconds > 0 ? static_cast<double>(now.disk.bytes_read - before.disk.bytes_read) / seconds : 0.0},
            {"limit", 0.0}}},
          {"memory", memory}};
}

}  // namespace sluice::serve
