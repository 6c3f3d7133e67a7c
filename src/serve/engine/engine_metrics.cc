#include "serve/engine/engine_metrics.h"

#include <algorithm>
#include <array>
#include <utility>

#include "device/accountant.h"
#include "engine/engine_device.h"
#include "engine/plan/memory_plan.h"

namespace sluice::serve {
namespace {

using NamedBytes = std::pair<std::string, std::uint64_t>;

constexpr std::array<std::pair<const char*, bool>, 2> kPhases = {{{"prefill", false}, {"decode", true}}};
constexpr std::array<const char*, 7> kHostStates = {"M", "E", "S", "C", "F", "msb", "msb+lsb"};
constexpr std::array<const char*, 5> kDeviceStates = {"", "full", "packed", "msb", "msb+lsb"};

double number(std::uint64_t value) { return static_cast<double>(value); }

void collect_passes(const EngineSnapshot& now, MetricSet& metrics) {
  for (const auto& [phase, decode] : kPhases) {
    const engine::ExpertStatistics& of = decode ? now.statistics.decode : now.statistics.prefill;
    metrics.add("passes_total", {phase}, number(of.steps));
    const double wait = std::min(of.moe_s, of.demand_s);
    metrics.add("pass_seconds_total", {phase, "wait"}, wait);
    metrics.add("pass_seconds_total", {phase, "experts"}, of.moe_s - wait);
    metrics.add("pass_seconds_total", {phase, "policy"}, of.policy_s);
    metrics.add("pass_seconds_total", {phase, "dense"}, std::max(0.0, of.seconds - of.moe_s - of.policy_s));
    const std::vector<LayerCounts>& layers = now.layers[decode];
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      const std::vector<std::string> labels = {phase, std::to_string(layer)};
      metrics.add("expert_demand_total", labels, number(layers[layer].demand));
      metrics.add("expert_accesses_total", labels, number(layers[layer].accesses));
      metrics.add("expert_hits_total", labels, number(layers[layer].hits));
      metrics.add("expert_misses_total", labels, number(layers[layer].misses));
    }
  }
}

void collect_residency(const ExpertBoard& board, MetricSet& metrics) {
  std::array<std::uint64_t, kHostStates.size()> host{};
  std::array<std::uint64_t, kDeviceStates.size()> device{};
  for (const std::uint8_t state : board.state) {
    ++host[std::min<std::size_t>(state & 15, host.size() - 1)];
    ++device[std::min<std::size_t>(state >> 4, device.size() - 1)];
  }
  for (std::size_t i = 0; i < host.size(); ++i)
    if (board.states.find(kHostStates[i]) != std::string::npos || host[i] > 0) {
      metrics.add("experts_resident", {kHostStates[i], "host"}, number(host[i]));
      const auto bytes = std::ranges::find(board.expert_bytes, kHostStates[i], &NamedBytes::first);
      const std::uint64_t each = bytes != board.expert_bytes.end() ? bytes->second : 0;
      metrics.add("expert_resident_bytes", {kHostStates[i], "host"}, number(host[i] * each));
    }
  for (std::size_t i = 1; i < device.size(); ++i)
    if (board.device && device[i] > 0)
      metrics.add("experts_resident", {kDeviceStates[i], "device"}, number(device[i]));
}

void collect_accounts(const device::Accountant& accountant, const char* tier, MetricSet& metrics) {
  metrics.add("memory_budget_bytes", {tier}, number(accountant.budget()));
  for (std::size_t i = 0; i < device::kAccountCount; ++i) {
    const auto account = static_cast<device::Account>(i);
    const std::string name(device::account_name(account));
    metrics.add("memory_used_bytes", {name, tier}, number(accountant.used(account)));
    metrics.add("memory_peak_bytes", {name, tier}, number(accountant.peak(account)));
  }
}

}  // namespace

void collect_engine(const EngineSnapshot& now, const ExpertBoard& board, MetricSet& metrics) {
  metrics.add("num_requests_running", number(now.load.prefilling + now.load.decoding + now.load.stalled));
  metrics.add("num_requests_waiting", number(now.load.waiting));
  metrics.add("num_requests_stalled", number(now.load.stalled));
  const std::size_t blocks = now.kv.free + now.kv.used + now.kv.cached;
  metrics.add("kv_cache_usage_perc", blocks == 0 ? 0 : number(now.kv.used) / number(blocks));
  metrics.add("kv_blocks", {"free"}, number(now.kv.free));
  metrics.add("kv_blocks", {"used"}, number(now.kv.used));
  metrics.add("kv_blocks", {"cached"}, number(now.kv.cached));
  collect_passes(now, metrics);
  metrics.add("spec_decode_num_drafts_total", number(now.drafts.passes));
  metrics.add("spec_decode_num_draft_tokens_total", number(now.drafts.drafted));
  metrics.add("spec_decode_num_accepted_tokens_total", number(now.drafts.accepted));
  collect_residency(board, metrics);
  const fetch::PrefetchCounters& ahead = now.fetched.prefetch;
  metrics.add("expert_prefetch_total", {"useful"}, number(ahead.useful));
  metrics.add("expert_prefetch_total", {"late"}, number(ahead.late));
  metrics.add("expert_prefetch_total", {"wasted"}, number(ahead.wasted));
  metrics.add("expert_prefetch_total", {"dropped"}, number(ahead.dropped));
  const Bytes experts = now.fetched.demand_bytes + now.fetched.prefetch_bytes + now.fetched.update_bytes;
  metrics.add("io_bytes_total", {"demand"}, number(now.fetched.demand_bytes));
  metrics.add("io_bytes_total", {"prefetch"}, number(now.fetched.prefetch_bytes));
  metrics.add("io_bytes_total", {"dense"},
              number(now.disk.bytes_read - std::min(now.disk.bytes_read, experts)));
  metrics.add("io_reads_total", number(now.disk.reads));
  metrics.add("io_busy_seconds_total", now.disk.seconds);
  if (!now.device) return;
  for (std::size_t i = 0; i < now.device->link.size(); ++i)
    metrics.add("link_bytes_total", {std::string(device::traffic_name(static_cast<device::Traffic>(i)))},
                number(now.device->link[i]));
  metrics.add("link_busy_seconds_total", now.device->link_busy_s);
  metrics.add("device_busy_seconds_total", now.device->computed_s);
}

void collect_memory(const engine::RunReport& run, MetricSet& metrics) {
  collect_accounts(run.accountant, "host", metrics);
  if (run.device != nullptr) collect_accounts(run.device->accountant(), "device", metrics);
}

}  // namespace sluice::serve
