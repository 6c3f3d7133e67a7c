#include "commands/hybrid/hybrid_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/duration.h"
#include "base/text_table.h"
#include "commands/recorded_prompts.h"
#include "experts/decision_log.h"
#include "report/run_report.h"
#include "streams/played_routing.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {

double bytes_of(const HybridRow& row, double seconds) {
  return seconds / row.settings.costs.device.transfer * static_cast<double>(row.machine->expert_bytes);
}

// What the phase's steps moved: as many whole experts, or of slices what the link's time and the account say.
double demand_bytes(const HybridRow& row, const lab::HybridPhase& phase) {
  if (row.settings.slices) return bytes_of(row, phase.link.loads);
  return static_cast<double>((phase.counts.loads + phase.counts.streamed) * row.machine->expert_bytes);
}

double update_bytes(const HybridRow& row, const lab::HybridPhase& phase) {
  if (row.settings.slices) return bytes_of(row, phase.link.updates);
  return static_cast<double>(phase.counts.updates * row.machine->expert_bytes);
}

double disk_bytes(const HybridRow& row, const lab::HybridHostCounts& host) {
  return row.settings.slices ? host.slices.missed
                             : static_cast<double>(host.misses() * row.machine->expert_bytes);
}

// Where pools hold parts of experts, less is read than the misses' whole experts.
Json host_json(const HybridRow& row, const lab::HybridHostCounts& host) {
  const bool whole = !row.settings.host.pools;
  return {{"accesses", host.accesses},
          {"hits", host.hits},
          {"misses", host.misses()},
          {"bytes_read", whole ? Json(static_cast<Bytes>(disk_bytes(row, host))) : Json()}};
}

// What the host was asked for in decode steps, by the names of `run`.
Json slices_json(const HybridRow& row) {
  if (!row.settings.slices) return nullptr;
  const experts::MissAccount& all = row.result.decode.host.slices;
  return {{"precision", experts::precision_name(row.settings.slices->precision.mode)},
          {"msb_hits", all.msb_requests - all.msb_misses},
          {"msb_misses", all.msb_misses},
          {"lsb_hits", all.lsb_requests - all.lsb_misses - all.downgrades},
          {"lsb_misses", all.lsb_misses},
          {"downgrades", all.downgrades}};
}

Json phase_json(const HybridRow& row, const lab::HybridPhase& phase) {
  const experts::DeviceCounts& counts = phase.counts;
  const lab::OwnExperts& own = phase.own;
  return {{"steps", phase.steps},
          {"tokens", phase.tokens},
          {"seconds", phase.seconds},
          {"experts",
           {{"device",
             {{"assigned", counts.assigned},
              {"hits", counts.hits},
              {"active", counts.active},
              {"resident", counts.resident},
              {"d_hit", counts.d_hit()},
              {"a_hit", counts.a_hit()},
              {"own_active", own.active},
              {"own_resident", own.resident},
              {"own_a_hit", own.a_hit()},
              {"token_hit", counts.token_hit()}}}}},
          {"placement",
           {{"host", counts.active - counts.assigned},
            {"device", counts.assigned},
            {"loads", counts.loads},
            {"streamed", counts.streamed},
            {"imbalance_s", counts.imbalance},
            {"cpu_s", counts.host},
            {"device_s", counts.device},
            {"wait_s", counts.wait},
            {"moe_s", counts.moe}}},
          {"device",
           {{"link",
             {{"demand", demand_bytes(row, phase)},
              {"result_s", phase.link.rows},  // a machine knows what rows take, not their bytes
              {"prefetch", bytes_of(row, phase.link.prefetches)},
              {"update", update_bytes(row, phase)},
              {"busy_s", phase.link.loads + phase.link.rows + phase.link.prefetches + phase.link.updates}}}}},
          {"prefetch",
           {{"asked", counts.prefetch.asked},
            {"paused", counts.prefetch.paused},
            {"sent", counts.prefetch.sent},
            {"used", counts.prefetch.used},
            {"late", counts.prefetch.late},
            {"kept", counts.prefetch.kept},
            {"wasted", counts.prefetch.wasted},
            {"predicted", phase.predictions.predicted},
            {"active", phase.predictions.active},
            {"top", phase.predictions.top},
            {"accuracy", phase.predictions.wanted > 0 ? Json(phase.predictions.accuracy()) : Json()}}},
          {"updates", counts.updates},
          {"tiers",
           {{"dropped", counts.dropped},
            {"returns", counts.returns},
            {"late_returns", counts.late_returns},
            {"there_alone", counts.there_alone},
            {"return_s", phase.link.returns}}},
          {"host", host_json(row, phase.host)}};
}

// As `run` has it.
Json routing_json(const HybridRow& row) {
  const experts::RoutingChanges& routing = row.result.changes;
  Json json = {{"router", row.settings.router.name()},
               {"lossy", is_lossy(row)},
               {"tokens", routing.tokens},
               {"decode_tokens", row.result.decode_changes.tokens},
               {"changed_tokens", routing.changed_tokens},
               {"substituted", routing.substituted},
               {"mass_lost", routing.mass_lost},
               {"recorded_differs", row.result.recorded_differs}};
  if (row.settings.router->rules != experts::RouterRules::kSmoe) return json;
  json["alpha"] = row.settings.smoe.alpha;
  json["calibrated"] = false;  // nobody has measured what alpha costs this model
  json["resident"] = experts::smoe_resident_name(row.settings.smoe.resident);
  return json;
}

// While decoding: prompts are routed exactly.
std::vector<std::string> loss_cells(const HybridRow& row) {
  const experts::RoutingChanges& routing = row.result.decode_changes;
  if (routing.tokens == 0) return {std::string(row.settings.router.name()), "-", "-", "-"};
  const auto percent = [](double share) { return fmt::format("{:.2f}", 100 * share); };
  return {std::string(row.settings.router.name()), fmt::format("{:.1f}", 100 * row.result.decode.own.a_hit()),
          percent(1 - routing.agreement()), percent(routing.mass_lost / static_cast<double>(routing.tokens))};
}

}  // namespace

Json hybrid_json(const HybridRow& row) {
  const lab::HybridPhase& decode = row.result.decode;
  return {{"machine", row.machine->name},
          {"preset", row.preset},
          {"batch", row.batch ? Json(*row.batch) : Json("recorded")},
          {"device_slots", row.settings.slots},
          {"device_cache", row.settings.device_cache.name()},
          {"admit", row.settings.device_cache->learns_idle
                        ? Json(experts::admit_name(row.settings.workload.admit))
                        : Json()},
          {"tiers", experts::tiers_name(row.result.tiers.tiers)},
          {"tiers_why", row.result.tiers.why},
          {"placement_policy", row.settings.placement.name()},
          {"prefill_policy",
           row.settings.prefill_placement.empty() ? Json() : Json(row.settings.prefill_placement.name())},
          {"prefill_from", row.settings.prefill_placement.empty() ? Json() : Json(row.settings.prefill_from)},
          {"prefetch_policy", row.settings.prefetch.name()},
          {"prefetch_size", row.settings.prefetch_size},
          {"predicted_beside", row.predicted_beside.empty() ? Json() : Json(row.predicted_beside)},
          {"tpot_s", decode.steps == 0 ? Json() : Json(decode.seconds / static_cast<double>(decode.steps))},
          {"start_experts", row.result.start},
          {"fallbacks", row.result.fallbacks},
          {"routing", routing_json(row)},
          {"slices", slices_json(row)},
          {"profile", {{"hash", fmt::format("{:016x}", experts::hash_of(row.settings.costs))}}},
          {"prefill", phase_json(row, row.result.prefill)},
          {"decode", phase_json(row, decode)},
          {"decisions", fmt::format("{:016x}", row.result.decision_hash)}};
}

void print_hybrid(const lab::RoutedSteps& recorded, const HybridRequest& request,
                  const std::vector<lab::HybridMachine>& machines, const std::vector<HybridRow>& rows) {
  print_wrapped(fmt::format("{}: {} sparse layers of {} experts, top {}; {}, {} to decode", request.trace,
                            recorded.layers, recorded.experts, recorded.top_k, prompts_text(recorded),
                            tokens_text(recorded.decode_tokens)));
  print_played(recorded.played);
  for (const lab::HybridMachine& machine : machines)
    print_wrapped(fmt::format("{}: {}, {} an expert", machine.name, machine.source,
                              format_bytes(machine.expert_bytes)));
  constexpr std::size_t kTitles = 5;
  std::vector<std::vector<std::string>> table = {{"machine", "preset", "batch", "slots", "device cache",
                                                  "D-hit %", "A-hit %", "tokens %", "copies", "demand",
                                                  "update", "MoE", "TPOT"}};
  const bool reads_ahead =
      std::ranges::any_of(rows, [](const HybridRow& row) { return row.settings.prefetch->prefetches; });
  const bool reads_disk = std::ranges::any_of(
      rows, [](const HybridRow& row) { return row.settings.host.capacity && !row.settings.host.pools; });
  if (reads_disk) table.front().insert(table.front().end(), {"returns", "disk"});
  if (reads_ahead) table.front().insert(table.front().end(), {"prefetch", "sent", "used %"});
  const bool loses = std::ranges::any_of(rows, is_lossy);
  if (loses) table.front().insert(table.front().end(), {"router", "own A-hit %", "replaced %", "lost %"});
  for (const HybridRow& row : rows) {
    const lab::HybridPhase& decode = row.result.decode;
    const experts::DeviceCounts& counts = decode.counts;
    const auto percent = [](double share) { return fmt::format("{:.1f}", 100 * share); };
    const auto steps = static_cast<double>(std::max<std::uint64_t>(decode.steps, 1));
    const auto bytes = [&](double all) { return format_bytes(static_cast<Bytes>(all / steps)); };
    table.push_back(
        {row.machine->name, row.preset, row.batch ? std::to_string(*row.batch) : "-",
         std::to_string(row.settings.slots), std::string(row.settings.device_cache.name()),
         counts.assigned == 0 ? "-" : percent(counts.d_hit()), percent(counts.a_hit()),
         percent(counts.token_hit()),
         fmt::format("{:.2f}", static_cast<double>(counts.loads + counts.streamed + counts.updates) /
                                   (steps * recorded.layers)),
         bytes(demand_bytes(row, decode)), bytes(update_bytes(row, decode)),
         format_duration(counts.moe / steps), format_duration(decode.seconds / steps)});
    if (reads_disk)
      table.back().insert(table.back().end(),
                          {bytes(static_cast<double>(counts.returns * row.machine->expert_bytes)),
                           bytes(disk_bytes(row, decode.host))});
    if (decode.steps == 0) std::fill(table.back().begin() + kTitles, table.back().end(), "-");
    if (reads_ahead) {
      const experts::PrefetchCounts& ahead = counts.prefetch;
      table.back().insert(
          table.back().end(),
          {std::string(row.settings.prefetch.name()),
           decode.steps == 0
               ? "-"
               : fmt::format("{:.2f}", static_cast<double>(ahead.sent) / (steps * recorded.layers)),
           ahead.sent == 0 ? "-"
                           : percent(static_cast<double>(ahead.used) / static_cast<double>(ahead.sent))});
    }
    if (!loses) continue;
    const std::vector<std::string> cells = loss_cells(row);
    table.back().insert(table.back().end(), cells.begin(), cells.end());
  }
  print_output("\n{}", text_table(table, terminal_columns(STDOUT_FILENO, kAnyColumns), kTitles));
  print_wrapped(
      "copies: a step and layer; demand, update, MoE, TPOT: a step. D-hit: of the experts that the device "
      "computes, A-hit: of all active ones, tokens: the same weighted with their tokens.");
  if (reads_disk)
    print_wrapped(
        "returns: what goes back from the device to the host; disk: what the host lacks; both a step.");
  if (reads_ahead)
    print_wrapped(
        "sent: experts prefetched a step and layer; used: of them, those that the device computed.");
  if (loses)
    print_wrapped(fmt::format(
        "smoe is lossy: alpha {:.4g} (uncalibrated), and the text of such a run is not the model's own. "
        "While "
        "decoding, own A-hit: of the experts that the model's own router would choose; replaced: of these, "
        "those that were not used; lost: their share of all scores.",
        request.smoe.alpha));
}

}  // namespace sluice::app
