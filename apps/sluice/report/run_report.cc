#include "report/run_report.h"
#include "experts/core/state_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "base/duration.h"
#include "base/wrapped_text.h"
#include "engine/read_forecast.h"
#include "experts/registry.h"
#include "flags/slice_effects.h"
#include "report/forecast_hint.h"

namespace sluice::app {
namespace {

std::string speed(double tokens, double seconds, int digits) {
  return tokens > 0 && seconds > 0 ? fmt::format(", {:.{}f} tok/s", tokens / seconds, digits) : "";
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

double as_share(double nats) { return std::expm1(nats); }

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
               {"agreement", statistics.decode_routing.agreement()}};
  if (run.loss_guard() != nullptr) json.update(contract_json(run));
  return json;
}

// REQUIRES: decided.
Json trial_json(const experts::PrefetchTrial& trial) {
  return {{"pays", trial.pays()},
          {"step_s_with", trial.seconds_with()},
          {"step_s_without", trial.seconds_without()}};
}

Json counts_json(const engine::ExpertStatistics& counts) {
  return {{"accesses", counts.accesses},
          {"hits", counts.hits},
          {"misses", counts.misses},
          {"partial", counts.partial},
          {"bytes_read", counts.bytes_read},
          {"prefetch_bytes", counts.prefetch_bytes},
          {"useful_bytes", counts.useful_bytes()},
          {"wasted_bytes", counts.wasted_bytes},
          {"policy_s", counts.policy_s},
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

Decoded decoded_of(const engine::RunReport& run, const std::vector<engine::GenerateResult>& results) {
  const engine::ExpertStatistics& decode = run.statistics.decode;
  Decoded decoded;
  decoded.tokens = decode.tokens;
  decoded.bytes_per_token = ratio(static_cast<double>(decode.read()), static_cast<double>(decode.tokens));
  decoded.wasted_per_token =
      ratio(static_cast<double>(decode.wasted_bytes), static_cast<double>(decode.tokens));
  double tokens = 0, seconds = 0;
  for (const engine::GenerateResult& result : results) {
    tokens += result.tokens.empty() ? 0 : static_cast<double>(result.tokens.size() - 1);
    seconds = std::max(seconds, result.decode_s);
  }
  decoded.tok_s = ratio(tokens, seconds);
  decoded.cache = run.memory.experts;
  decoded.model = run.checkpoint.path();
  decoded.packed = run.checkpoint.packed();
  return decoded;
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
                                          ratio(static_cast<double>(decode.wasted_bytes), tokens));
  if (run.checkpoint.slices()) return {{"bytes per token", "measured " + measured}};
  return {{"bytes per token", predicted_bytes_text(run)}, {"", fmt::format("measured  {}", measured)}};
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

constexpr device::Account kAccounts[] = {
    device::Account::kProcess,     device::Account::kDense,   device::Account::kExperts, device::Account::kKv,
    device::Account::kActivations, device::Account::kStaging, device::Account::kTables};

// For runs without a contract; under a contract misses are only as few as the accepted loss allows.
std::string limit_text(const experts::MissConstraint& constraint) {
  std::string text = fmt::format("{:.2f} % of bytes missed", 100 * constraint.account().rate());
  if (!keeps_limit(constraint.config().mode)) return text;
  const bool exceeded = constraint.account().rate() > constraint.config().limit;
  return text + fmt::format(" (limit {:.3g} %{}, {} replaced, {} times read all the same)",
                            100 * constraint.config().limit, exceeded ? ", exceeded" : "",
                            constraint.replaced(), constraint.violations());
}

std::string slices_line(const engine::RunReport& run) {
  const experts::MissAccount& all = run.statistics.decode.slices;
  const experts::MissConstraint& constraint = *run.constraint();
  const auto share = [](std::uint64_t part, std::uint64_t whole) {
    return 100 * ratio(static_cast<double>(part), static_cast<double>(whole));
  };
  std::string line =
      fmt::format("{} precision{}, {} activations", experts::precision_name(run.policies.precision.mode),
                  run.loss_guard() != nullptr && run.policies.precision.mode == experts::PrecisionMode::kDbsc
                      ? fmt::format(" (theta {:.3g})", run.policies.precision.critical.theta)
                      : "",
                  engine::activations_name(*run.plan.activations));
  if (all.msb_requests > 0)
    line += fmt::format(", {:.1f} % MSB misses", share(all.msb_misses, all.msb_requests));
  if (all.lsb_requests > 0)
    line += fmt::format(", {:.1f} % LSB misses, {} downgrades", share(all.lsb_misses, all.lsb_requests),
                        all.downgrades);
  if (constraint.account().requested == 0) return line;
  if (run.loss_guard() != nullptr)
    return line + fmt::format("; {:.2f} % of bytes missed, {} replaced", 100 * constraint.account().rate(),
                              constraint.replaced());
  return line + "; " + limit_text(constraint);
}

std::string contract_line(const engine::RunReport& run) {
  const experts::LossGuard& guard = *run.loss_guard();
  const experts::LossEstimate estimate = guard.estimate();
  const auto percent = [](double nats) { return 100 * as_share(nats); };
  return fmt::format(
      "estimated {:.2f} % of perplexity, at most {:.2f} % with errors of calibration (accepted {:.4g} %): "
      "rounding {:.2f}, low precision {:.2f}, routing {:.2f}, these two together {:.2f}",
      percent(estimate.total()), percent(estimate.upper), percent(guard.contract().limit),
      percent(estimate.high), percent(estimate.precision), percent(estimate.routing), percent(estimate.both));
}

}  // namespace

Bytes memory_peak(const engine::RunReport& run, Engines engines) {
  const Bytes accounted = run.accountant.peak();
  return engines == Engines::kOne ? std::max(accounted, engine::measured_peak()) : accounted;
}

Json memory_json(const engine::RunReport& run, Engines engines) {
  Json by_name;
  for (const device::Account account : kAccounts)
    by_name[std::string(device::account_name(account))] = run.accountant.peak(account);
  return {{"budget", run.memory.budget},
          {"peak", memory_peak(run, engines)},
          {"accounted", run.accountant.peak()},
          {"by_name", by_name}};
}

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
  const experts::RoutingChanges& routing = run.statistics.routing;
  json["routing"] = {{"router", run.policies.router->name},
                     {"tokens", routing.tokens},
                     {"decode_tokens", run.statistics.decode_routing.tokens},
                     {"changed_tokens", routing.changed_tokens},
                     {"substituted", routing.substituted},
                     {"mass_lost", routing.mass_lost}};
  if (const std::string played = run.policies.played(); !played.empty()) json["routing"]["played"] = played;
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
  if (const experts::PrefetchTrial* const trial = run.prefetch_trial(); trial != nullptr && trial->decided())
    json["prefetch"]["trial"] = trial_json(*trial);
  json.update(losses_json(run));
  json["wait_s"] = counters.wait_s;
  json["decode_work_s"] = counters.decode_s;
  json["schedule"] = {
      {"plans", statistics.plans}, {"seconds", statistics.plan_s}, {"fallbacks", run.scheduler_fallbacks()}};
  json["prefill"] = counts_json(statistics.prefill);
  json["decode"] = counts_json(statistics.decode);
  return json;
}

Json start_json(const engine::RunReport& run, const RunTimes& times) {
  const engine::StartTimes& start = run.start_times;
  return {{"open_s", times.open_s}, {"tokenizer_s", times.tokenizer_s}, {"prompt_s", times.prompt_s},
          {"plan_s", start.plan_s}, {"dense_s", start.dense_s},         {"profile_s", start.profile_s},
          {"load_s", times.load_s}};
}

std::string memory_line(const engine::RunReport& run) {
  std::string line;
  for (const device::Account account : kAccounts)
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", device::account_name(account),
                        format_bytes(run.accountant.peak(account)));
  return line;
}

std::string memory_line_short(const engine::RunReport& run, std::size_t columns) {
  struct Part {
    Bytes used;
    std::string text;
  };
  std::vector<Part> parts;
  std::size_t length = std::string_view("MiB:").size();
  for (const device::Account account : kAccounts) {
    const Bytes used = run.accountant.used(account);
    parts.push_back({used, fmt::format(" {} {:.1f}", device::account_name(account),
                                       static_cast<double>(used) / static_cast<double>(kMiB))});
    length += parts.back().text.size();
  }
  constexpr std::size_t kMore = 2;  // columns of " …"
  bool left_out = false;
  while (!parts.empty() && length + (left_out ? kMore : 0) > columns) {
    const auto smallest = std::min_element(parts.begin(), parts.end(),
                                           [](const Part& a, const Part& b) { return a.used < b.used; });
    length -= smallest->text.size();
    parts.erase(smallest);
    left_out = true;
  }
  std::string line = "MiB:";
  for (const Part& part : parts) line += part.text;
  return left_out ? line + " …" : line;
}

Json forecast_json(const engine::RunReport& run) {
  const engine::ReadForecast forecast = engine::forecast_reads(run);
  return {{"bytes_per_token", forecast.needed},
          {"wasted_bytes_per_token", forecast.in_vain ? Json(*forecast.in_vain) : Json()},
          {"routing", forecast.routing},
          {"tok_s", forecast.tok_s ? Json(*forecast.tok_s) : Json()}};
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

std::string predicted_bytes_text(const engine::RunReport& run) {
  const engine::ReadForecast forecast = engine::forecast_reads(run);
  return fmt::format("predicted {}{} ({} routing)", bytes_text(forecast.needed, forecast.in_vain.value_or(0)),
                     forecast.in_vain ? "" : ", in vain unknown", forecast.routing);
}

namespace {

constexpr const char* kNoColour = "\x1b[0m";

// One line a layer: signs of its experts, each of one column, in lines of at most `columns`.
class Picture {
 public:
  Picture(bool colour, std::size_t columns) : colour_(colour), columns_(columns) {}

  void begin_layer(std::uint32_t layer) {
    text_ += fmt::format("layer {:>3} ", layer);
    column_ = kIndent;
    last_ = nullptr;
  }
  void add(std::string_view sign, const char* colour) {
    if (column_ == columns_) {
      end_line();
      text_.append(kIndent, ' ');
      column_ = kIndent;
    }
    if (colour_ && colour != last_) text_ += colour;
    last_ = colour;
    text_ += sign;
    ++column_;
  }
  void end_line() {
    text_ += colour_ ? kNoColour + std::string("\n") : "\n";
    last_ = nullptr;
  }
  void explain(const std::string& text) {
    text_ += std::string(kIndent, ' ') + wrapped_text(text, columns_, kIndent, kIndent) + '\n';
  }
  const std::string& text() const { return text_; }

 private:
  static constexpr std::size_t kIndent = 10;  // columns of "layer NNN "

  bool colour_;
  std::size_t columns_, column_ = 0;
  const char* last_ = nullptr;
  std::string text_;
};

constexpr const char *kGreen = "\x1b[32m", *kCyan = "\x1b[36m", *kGrey = "\x1b[90m", *kYellow = "\x1b[33m";

// Calls `draw` with the parts in memory of every expert, layer by layer.
template <class Draw>
void draw_layers(const engine::RunReport& run, Picture& picture, Draw draw) {
  const model::ModelConfig& config = run.model.config;
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    if (!config.sparse[layer]) continue;
    picture.begin_layer(layer);
    for (std::uint32_t e = 0; e < config.moe.experts; ++e)
      draw(run.experts.parts(
          {static_cast<std::uint16_t>(config.sparse_index(layer)), static_cast<std::uint16_t>(e)}));
    picture.end_line();
  }
}

std::string slices_picture(const engine::RunReport& run, bool colour, std::size_t columns) {
  Picture picture(colour, columns);
  std::size_t high = 0, low = 0, none = 0;
  draw_layers(run, picture, [&](experts::Parts parts) {
    const std::string_view sign = parts.has(experts::Part::kLsb) ? "H" : parts.empty() ? "·" : "l";
    ++(sign == "H" ? high : sign == "l" ? low : none);
    picture.add(sign, sign == "H" ? kGreen : sign == "l" ? kCyan : kGrey);
  });
  picture.explain(
      fmt::format("H both slices in memory: {}; l the MSB slice: {}; · on disk: {}", high, low, none));
  return picture.text();
}

}  // namespace

std::string residency_picture(const engine::RunReport& run, bool colour, std::size_t columns) {
  if (run.checkpoint.slices()) return slices_picture(run, colour, columns);
  using experts::State;
  Picture picture(colour, columns);
  std::map<State, std::size_t> count;
  draw_layers(run, picture, [&](experts::Parts parts) {
    const State state = experts::state_of(parts);
    ++count[state];
    constexpr std::string_view kSigns = "FcseM";
    const std::size_t at = experts::place_of(state);
    picture.add(state == State::kM ? "·" : kSigns.substr(at, 1), state == State::kF   ? kGreen
                                                                 : state == State::kC ? kCyan
                                                                 : state == State::kM ? kGrey
                                                                                      : kYellow);
  });
  picture.explain(fmt::format("F in memory: {}; c in memory, packed: {}; · on disk: {}", count[State::kF],
                              count[State::kC], count[State::kM]));
  if (count[State::kS] + count[State::kE] > 0)
    picture.explain(
        fmt::format("in part: s sign+mantissa {}; e exponents {}", count[State::kS], count[State::kE]));
  return picture.text();
}

std::vector<ReportRow> loss_rows(const engine::RunReport& run) {
  std::vector<ReportRow> rows;
  const engine::Statistics& statistics = run.statistics;
  const experts::RoutingChanges& routing = statistics.decode_routing;  // prompts are routed exactly
  if (const std::string played = run.policies.played(); !played.empty()) {
    const experts::RoutingChanges& all = statistics.routing;
    rows.push_back({"routing", fmt::format("{}; the model itself would have chosen otherwise for {:.1f} % of "
                                           "tokens, so the text is not its own",
                                           played,
                                           100 * ratio(static_cast<double>(all.changed_tokens),
                                                       static_cast<double>(all.tokens)))});
  } else if (run.policies.router->lossy && routing.tokens > 0) {
    const auto tokens = static_cast<double>(routing.tokens);
    rows.push_back({"routing", fmt::format("{}: while decoding, {:.1f} % of tokens' sets changed, {} experts "
                                           "substituted, {:.2f} % of all scores lost",
                                           run.policies.router->name,
                                           100 * ratio(static_cast<double>(routing.changed_tokens), tokens),
                                           routing.substituted, 100 * ratio(routing.mass_lost, tokens))});
  }
  const bool decoding = statistics.decode.tokens > 0;
  if (run.checkpoint.slices())
    rows.push_back({"slices", slices_line(run)});
  else if (decoding && run.constraint() != nullptr)
    rows.push_back({"misses", limit_text(*run.constraint())});
  if (run.loss_guard() != nullptr && decoding) rows.push_back({"loss", contract_line(run)});
  return rows;
}

std::string run_table(const engine::RunReport& run, const std::vector<engine::GenerateRequest>& requests,
                      const std::vector<engine::GenerateResult>& results, const RunTimes& times,
                      std::size_t columns) {
  std::size_t prompt = 0, generated = 0;
  double prefill_s = 0, decode_s = 0, decoded = 0;
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
  row("prompt", prompt == 0 ? "not read to its end"
                            : fmt::format("{} tokens in {}{}", prompt, format_duration(prefill_s),
                                          speed(static_cast<double>(prompt), prefill_s, 1)));
  row("generated",
      fmt::format("{} tokens{}{} ({})", generated, generated == 0 ? "" : " in " + format_duration(decode_s),
                  speed(decoded, decode_s, 2),
                  results.size() == 1 ? std::string(engine::stop_reason_name(results[0].reason))
                                      : fmt::format("batch of {}", results.size())));
  if (times.first_token_s)
    row("first token", fmt::format("{} after start, {} of it loading", format_duration(*times.first_token_s),
                                   format_duration(times.load_s)));
  else
    row("loading", format_duration(times.load_s));
  row("memory",
      fmt::format("peak {} of {}", format_bytes(memory_peak(run)), format_bytes(run.memory.budget)));
  row("", memory_line(run));
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
  row("disk",
      fmt::format("{} in {} reads by {}{}", format_bytes(disk.bytes_read), disk.reads, disk.method,
                  disk.seconds > 0 ? fmt::format(", {:.2f} GB/s while reading",
                                                 static_cast<double>(disk.bytes_read) / 1e9 / disk.seconds)
                                   : ""));
  for (const std::string& hint : hints) row("hint", hint);
  return table;
}

}  // namespace sluice::app
