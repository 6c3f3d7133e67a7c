#include "commands/simulate/cache_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/text_table.h"
#include "commands/simulate/routing_report.h"
#include "streams/played_routing.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {

Json cache_row_json(const CacheRow& row) {
  const lab::ReplayResult& result = row.result;
  Json json = {{"cache", row.settings.cache.name()},
               {"scope", row.settings.scope == lab::Scope::kLayer ? "layer" : "global"},
               {"capacity", row.settings.capacity},
               {"capacity_unit", row.settings.unit == lab::CapacityUnit::kBytes ? "bytes" : "experts"},
               {"accesses", result.total.accesses},
               {"hits", result.total.hits},
               {"misses", result.total.misses()},
               {"partial", result.partial},
               {"hit_rate", result.total.hit_rate()},
               {"decode_hit_rate", result.decode.hit_rate()},
               {"evictions", result.evictions},
               {"decisions", fmt::format("{:016x}", result.decision_hash)},
               {"seconds", row.seconds}};
  if (const auto& slots = row.settings.pools)
    json["pools"] = {{"slots", {slots->f, slots->c, slots->s, slots->e}},
                     {"delta", row.settings.rules.delta},
                     {"demote", experts::demotion_name(row.settings.rules.demotion)},
                     {"half_life", row.settings.rules.half_life}};
  if (result.bytes_read) json["bytes_read"] = *result.bytes_read;
  if (row.router.routes()) json["routing"] = smoe_routing_json(row.router, row.routing);
  if (row.settings.window > 0) {
    json["windows"] = Json::array();
    for (const lab::ReplayWindow& window : result.windows)
      json["windows"].push_back({{"first_step", window.first_step},
                                 {"steps", window.steps},
                                 {"accesses", window.counts.accesses},
                                 {"hits", window.counts.hits},
                                 {"hit_rate", window.counts.hit_rate()}});
  }
  return json;
}

Json cache_trace_json(const trace::RoutingTrace& trace, const lab::Requests& requests) {
  const trace::TraceHeader& header = trace.header();
  Json json = {{"trace", trace.path()},
               {"format", header.format},
               {"architecture", header.architecture},
               {"layers", header.layers},
               {"experts", header.experts},
               {"top_k", header.top_k},
               {"steps", requests.steps},
               {"prefill_steps", requests.prefill_steps},
               {"cut_off", requests.cut_off}};
  add_played(json, requests.played);
  return json;
}

}  // namespace

Json cache_rows_json(const trace::RoutingTrace& trace, const lab::Requests& requests,
                     const std::vector<CacheRow>& rows) {
  Json json = cache_trace_json(trace, requests);
  if (rows.size() == 1) {
    json.update(cache_row_json(rows[0]));
  } else {
    json["results"] = Json::array();
    for (const CacheRow& row : rows) json["results"].push_back(cache_row_json(row));
  }
  return json;
}

void print_cache_rows(const trace::RoutingTrace& trace, const lab::Requests& requests,
                      const std::vector<CacheRow>& rows) {
  const trace::TraceHeader& header = trace.header();
  const std::size_t columns = terminal_columns(STDOUT_FILENO);
  print_wrapped(fmt::format("{}: {}{}{}, {} sparse layers of {} experts, top {}", trace.path(), header.format,
                            header.architecture.empty() ? "" : " of ", header.architecture, header.layers,
                            header.experts, header.top_k));
  print_wrapped(fmt::format("{} steps, {} of them prefill; {} events, {} accesses; one cache {}",
                            requests.steps, requests.prefill_steps, requests.list.events(),
                            requests.list.accesses(),
                            rows[0].settings.scope == lab::Scope::kLayer ? "a layer" : "for all layers"));
  print_played(requests.played);
  const bool sizes = rows[0].result.bytes_read.has_value();
  std::vector<std::vector<std::string>> table = {
      {"cache", "capacity", "hit %", "decode %", "hits", "misses", "evictions"}};
  if (sizes) table[0].push_back("read");
  const bool routed = rows[0].router.routes();
  if (routed) table[0].insert(table[0].end(), {"replaced %", "lost %"});
  for (const CacheRow& row : rows) {
    const lab::ReplayResult& result = row.result;
    table.push_back(
        {std::string(row.settings.cache.name()), row.capacity,
         fmt::format("{:.3f}", 100 * result.total.hit_rate()),
         result.decode.accesses == 0 ? "-" : fmt::format("{:.3f}", 100 * result.decode.hit_rate()),
         std::to_string(result.total.hits), std::to_string(result.total.misses()),
         std::to_string(result.evictions)});
    if (sizes) table.back().push_back(format_bytes(*result.bytes_read));
    if (!routed) continue;
    const experts::RoutingChanges& decode = row.routing.decode;
    table.back().push_back(fmt::format("{:.2f}", 100 * (1 - decode.agreement())));
    table.back().push_back(fmt::format(
        "{:.2f}", 100 * decode.mass_lost / static_cast<double>(std::max<std::uint64_t>(decode.tokens, 1))));
  }
  print_output("\n{}", text_table(table, terminal_columns(STDOUT_FILENO, kAnyColumns)));
  if (routed)
    print_wrapped(fmt::format(
        "smoe is lossy: alpha {:.4g} (uncalibrated), and the text of such a run is not the model's own. "
        "While "
        "decoding, replaced: of the experts that the model's own router would choose, those that were not "
        "used; lost: their share of all scores.",
        rows[0].router.smoe.alpha));
  constexpr std::size_t kBeforeBar = 33;
  const std::size_t most = std::min<std::size_t>(50, columns - std::min(columns - 1, kBeforeBar));
  for (const CacheRow& row : rows) {
    if (row.settings.window == 0) continue;
    print_output("\n{} {}: hit % by steps\n", row.settings.cache.name(), row.capacity);
    for (const lab::ReplayWindow& window : row.result.windows) {
      const double rate = window.counts.hit_rate();
      print_output("  {:>8} … {:<8} {:>8.3f}  {}\n", window.first_step, window.first_step + window.steps - 1,
                   100 * rate,
                   std::string(static_cast<std::size_t>(std::lround(rate * static_cast<double>(most))), '#'));
    }
  }
}

}  // namespace sluice::app
