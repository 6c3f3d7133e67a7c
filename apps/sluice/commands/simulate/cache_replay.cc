#include "commands/simulate/cache_replay.h"

#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/unfinished_file.h"
#include "base/setting.h"
#include "commands/simulate/cache_report.h"
#include "commands/simulate/routing_report.h"
#include "flags/number_range.h"
#include "flags/output_path.h"
#include "flags/room.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"

namespace sluice::app {

void cache_replay(const SimulateOptions& options, std::vector<CacheRow> rows) {
  if (!options.decisions.empty() && rows.size() != 1)
    throw Error(ErrorKind::kUsage, "one log holds the decisions of one cache of one capacity")
        .in(Setting::kDecisions)
        .expected("one replay")
        .found(std::to_string(rows.size()))
        .fix("name one cache and one capacity, or leave " + Setting::kDecisions + " out");
  if (!options.decisions.empty()) check_new_file(options.decisions);
  const Bytes expert_bytes =
      options.expert_bytes.empty() ? 0 : parse_size(options.expert_bytes, Setting::kExpertBytes);

  const std::unique_ptr<trace::RoutingTrace> trace = trace::open_trace(options.trace);
  for (const CacheRow& row : rows)
    if (row.needs_scores()) lab::check_replay_router(row.router, *row.settings.cache, *trace);
  check_output();
  const lab::Requests requests = lab::read_requests(*trace, interrupted_or_unread);
  const trace::TraceHeader& header = trace->header();
  std::optional<trace::TraceSizes> sizes = header.sizes;
  if (!options.expert_bytes.empty()) {
    sizes.emplace(header.layers, header.experts, options.trace);
    for (std::uint32_t layer = 0; layer < header.layers; ++layer)
      for (std::uint32_t e = 0; e < header.experts; ++e)
        sizes->set({static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)}, {.full = expert_bytes},
                   expert_bytes);
  }
  if (options.capacities.empty()) set_capacity_of_slots(header.layers, rows);
  if (requests.cut_off && !options.common.quiet)
    print_warning("{} was cut off; its last record is left out", options.trace);

  std::optional<OutputFile> log;
  std::optional<UnfinishedFile> unfinished;
  if (!options.decisions.empty()) {
    log = OutputFile::create(options.decisions);
    unfinished.emplace(options.decisions);
  }
  std::string buffered;
  for (CacheRow& row : rows) {
    const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    const std::function<void(std::string_view)> write =
        log ? std::function<void(std::string_view)>([&](std::string_view line) {
          buffered += line;
          if (buffered.size() < 64 * kKiB) return;
          log->write(buffered);
          buffered.clear();
        })
            : nullptr;
    const trace::TraceSizes* const known = sizes ? &*sizes : nullptr;
    if (row.needs_scores()) {
      const std::unique_ptr<trace::RoutingTrace> again = trace::open_trace(options.trace);
      lab::RoutedReplayResult routed =
          lab::replay_routed(*again, known, row.settings, row.router, write, interrupted_or_unread);
      row.result = std::move(routed.caches);
      row.routing = routed.routing;
    } else {
      row.result = lab::replay(requests, header.layers, known, row.settings, write, interrupted_or_unread);
    }
    row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  if (log) {
    log->write(buffered);
    log->close();
    unfinished->keep();
  }

  warn_of_own_rule(options, rows[0].routing.recorded_differs);
  if (!options.common.json) return print_cache_rows(*trace, requests, rows);
  std::cout << cache_rows_json(*trace, requests, rows).dump(-1, ' ', false, Json::error_handler_t::replace)
            << '\n';
}

}  // namespace sluice::app
