// `sluice simulate`: what any cache would have done with recorded routing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "command.h"
#include "experts/registry.h"
#include "lab/replay.h"

namespace sluice::app {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string trace, caches, capacities, scope = "layer", keep = "full", expert_bytes, decisions;
  std::uint64_t seed = 0, window = 0;
  bool json = false;
};

struct Row {
  lab::ReplaySettings settings;
  std::string capacity;  // as given
  lab::ReplayResult result;
  double seconds = 0;
};

std::vector<std::string> split(const std::string& list, const char* flag) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    parts.push_back(list.substr(at, comma - at));
    if (parts.back().empty())
      throw Error(ErrorKind::kUsage, "an entry of the list is empty")
          .in(flag)
          .found(fmt::format("\"{}\"", list));
    at = comma + 1;
  }
  return parts;
}

std::vector<std::string> cache_names(const std::string& list) {
  std::vector<std::string> names;
  if (list == "all") {
    for (const experts::CachePolicy& policy : experts::cache_policies())
      if (!policy.pooled) names.emplace_back(policy.name);
    return names;
  }
  names = split(list, "--cache");
  for (const std::string& name : names) experts::find_cache(name);
  return names;
}

// "100" is experts, "4GiB" bytes.
void parse_capacity(const std::string& text, lab::ReplaySettings& settings) {
  settings.capacity = parse_size(text, "--capacity");
  const bool bare = text.find_first_not_of("0123456789") == std::string::npos;
  settings.unit = bare ? lab::CapacityUnit::kExperts : lab::CapacityUnit::kBytes;
}

Json result_json(const Row& row) {
  const lab::ReplayResult& result = row.result;
  Json json = {{"cache", row.settings.cache},
               {"scope", row.settings.scope == lab::Scope::kLayer ? "layer" : "global"},
               {"capacity", row.settings.capacity},
               {"capacity_unit", row.settings.unit == lab::CapacityUnit::kBytes ? "bytes" : "experts"},
               {"accesses", result.total.accesses},
               {"hits", result.total.hits},
               {"misses", result.total.misses()},
               {"hit_rate", result.total.hit_rate()},
               {"decode_hit_rate", result.decode.hit_rate()},
               {"evictions", result.evictions},
               {"decisions", fmt::format("{:016x}", result.decision_hash)},
               {"seconds", row.seconds}};
  if (result.bytes_read) json["bytes_read"] = *result.bytes_read;
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

Json trace_json(const trace::RoutingTrace& trace, const lab::Requests& requests) {
  const trace::TraceHeader& header = trace.header();
  return {{"trace", trace.path()},
          {"format", header.format},
          {"architecture", header.architecture},
          {"layers", header.layers},
          {"experts", header.experts},
          {"top_k", header.top_k},
          {"steps", requests.steps},
          {"prefill_steps", requests.prefill_steps},
          {"cut_off", requests.cut_off}};
}

void print_table(const trace::RoutingTrace& trace, const lab::Requests& requests,
                 const std::vector<Row>& rows) {
  const trace::TraceHeader& header = trace.header();
  fmt::print("{}: {}{}{}, {} sparse layers of {} experts, top {}\n", trace.path(), header.format,
             header.architecture.empty() ? "" : " of ", header.architecture, header.layers, header.experts,
             header.top_k);
  fmt::print("{} steps, {} of them prefill; {} events, {} accesses; one cache {}\n\n", requests.steps,
             requests.prefill_steps, requests.list.events(), requests.list.accesses(),
             rows[0].settings.scope == lab::Scope::kLayer ? "a layer" : "for all layers");
  const bool sizes = rows[0].result.bytes_read.has_value();
  fmt::print("{:<14} {:>12} {:>8} {:>8} {:>11} {:>11} {:>11}{}\n", "cache", "capacity", "hit %", "decode %",
             "hits", "misses", "evictions", sizes ? fmt::format(" {:>12}", "read") : "");
  for (const Row& row : rows) {
    const lab::ReplayResult& result = row.result;
    const std::string decode =
        result.decode.accesses == 0 ? "-" : fmt::format("{:.3f}", 100 * result.decode.hit_rate());
    fmt::print("{:<14} {:>12} {:>8.3f} {:>8} {:>11} {:>11} {:>11}{}\n", row.settings.cache, row.capacity,
               100 * result.total.hit_rate(), decode, result.total.hits, result.total.misses(),
               result.evictions, sizes ? fmt::format(" {:>12}", format_bytes(*result.bytes_read)) : "");
  }
  for (const Row& row : rows) {
    if (row.settings.window == 0) continue;
    fmt::print("\n{} {}: hit % by steps\n", row.settings.cache, row.capacity);
    for (const lab::ReplayWindow& window : row.result.windows) {
      const double rate = window.counts.hit_rate();
      fmt::print("  {:>8} … {:<8} {:>8.3f}  {}\n", window.first_step, window.first_step + window.steps - 1,
                 100 * rate, std::string(static_cast<std::size_t>(rate * 50 + 0.5), '#'));
    }
  }
}

void run(const Options& options) {
  const std::vector<std::string> caches = cache_names(options.caches),
                                 capacities = split(options.capacities, "--capacity");
  std::vector<Row> rows;
  for (const std::string& capacity : capacities)
    for (const std::string& cache : caches) {
      Row row;
      row.capacity = capacity;
      row.settings.cache = cache;
      row.settings.scope = options.scope == "layer" ? lab::Scope::kLayer : lab::Scope::kGlobal;
      row.settings.keep = options.keep == "full" ? experts::Parts(experts::Part::kFull)
                                                 : experts::Part::kSm | experts::Part::kExp;
      row.settings.seed = options.seed;
      row.settings.window = options.window;
      parse_capacity(capacity, row.settings);
      rows.push_back(std::move(row));
    }
  if (!options.decisions.empty() && rows.size() != 1)
    throw Error(ErrorKind::kUsage, "one log holds the decisions of one cache of one capacity")
        .in("--decisions");
  const Bytes expert_bytes =
      options.expert_bytes.empty() ? 0 : parse_size(options.expert_bytes, "--expert-bytes");

  const std::unique_ptr<trace::RoutingTrace> trace = trace::open_trace(options.trace);
  const lab::Requests requests = lab::read_requests(*trace, interrupted);
  const trace::TraceHeader& header = trace->header();
  std::optional<trace::TraceSizes> sizes = header.sizes;
  if (!options.expert_bytes.empty()) {
    sizes.emplace(header.layers, header.experts);
    for (std::uint32_t layer = 0; layer < header.layers; ++layer)
      for (std::uint32_t e = 0; e < header.experts; ++e)
        sizes->set({static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)}, {.full = expert_bytes},
                   expert_bytes);
  }
  if (requests.cut_off)
    fmt::print(stderr, "sluice: warning: {} was cut off; its last record is left out\n", options.trace);

  std::optional<OutputFile> log;
  if (!options.decisions.empty()) log = OutputFile::create(options.decisions);
  std::string buffered;
  for (Row& row : rows) {
    const Clock::time_point start = Clock::now();
    row.result = lab::replay(requests, header.layers, sizes ? &*sizes : nullptr, row.settings,
                             log ? std::function<void(std::string_view)>([&](std::string_view line) {
                               buffered += line;
                               if (buffered.size() < 64 * kKiB) return;
                               log->write(buffered);
                               buffered.clear();
                             })
                                 : nullptr,
                             interrupted);
    row.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  }
  if (log) {
    log->write(buffered);
    log->close();
  }

  if (!options.json) return print_table(*trace, requests, rows);
  Json json = trace_json(*trace, requests);
  if (rows.size() == 1) {
    json.update(result_json(rows[0]));
  } else {
    json["results"] = Json::array();
    for (const Row& row : rows) json["results"].push_back(result_json(row));
  }
  std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace

void add_simulate(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("simulate", "Replay recorded routing through any cache");
  std::string names;
  for (const experts::CachePolicy& policy : experts::cache_policies())
    if (!policy.pooled) names += std::string(policy.name) + ", ";
  command->add_option("--trace", options->trace, "File of `sluice trace`, .mrt or .csv; each also as .zst")
      ->required();
  command->add_option("--cache", options->caches, names + "several with commas between them, or all")
      ->required();
  command
      ->add_option("--capacity", options->capacities,
                   "Of each cache: experts (64) or a size (4GiB); several with commas between them")
      ->required();
  command->add_option("--scope", options->scope, "One cache a layer, or one for all: layer, global")
      ->check(CLI::IsMember({"layer", "global"}))
      ->capture_default_str();
  command->add_option("--keep", options->keep, "Experts stay in memory as: full, packed")
      ->check(CLI::IsMember({"full", "packed"}))
      ->capture_default_str();
  command->add_option("--expert-bytes", options->expert_bytes,
                      "Size of every expert, where the trace does not say it or says another");
  command->add_option("--seed", options->seed, "Of caches that draw (marking)")->capture_default_str();
  command->add_option("--window", options->window, "Also report the hit rate of every so many steps")
      ->check(CLI::PositiveNumber);
  command->add_option("--decisions", options->decisions,
                      "Write every decision to this new file, as `sluice run --decisions` does");
  command->add_flag("--json", options->json, "Print one JSON object and nothing else");
  command->footer(
      "Examples:\n"
      "  sluice simulate --trace fable.trace --cache all --capacity 8\n"
      "  sluice simulate --trace qwen.route.csv.zst --cache lru,lfu,belady --capacity 1GiB,2GiB,4GiB --scope "
      "global");
  command->callback([options] { run(*options); });
}

}  // namespace sluice::app
