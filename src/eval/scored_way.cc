#include "eval/scored_way.h"

#include <fmt/format.h>

#include "engine/engine.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "eval/identity.h"
#include "experts/layer_decider.h"

namespace sluice::eval {

Json to_json(const ScoredWay& scored) {
  Json windows = Json::array();
  for (const WindowScore& window : scored.windows) windows.push_back(to_json(window));
  return {{"windows", windows},
          {"low_share", scored.low},
          {"mass_lost", scored.mass},
          {"bytes_per_token", scored.bytes_per_token}};
}

ScoredWay scored_way_from_json(const Json& json, const std::string& name, std::size_t windows) {
  constexpr double kMost = 1e300;
  const JsonObject object(json, name);
  ScoredWay scored;
  scored.low = object.real("low_share", 0, kMost);
  scored.mass = object.real("mass_lost", 0, kMost);
  scored.bytes_per_token = object.real("bytes_per_token", 0, kMost);
  const Json* const list = object.find("windows");
  if (list == nullptr || !list->is_array() || list->size() != windows)
    object.fail("windows", fmt::format("the scores of {} windows", windows));
  for (const Json& window : *list)
    scored.windows.push_back(window_score_from_json(window, Compared::kNo, name + ": windows"));
  return scored;
}

ScoredWay score_way(engine::Engine& engine, std::span<const tokenizer::TokenId> tokens,
                    const SteppedWindows& windows, bool steps,
                    const std::function<bool(std::size_t)>& on_progress) {
  ScoredWay scored;
  scored.windows = score_windows(engine, tokens, windows, steps, on_progress);
  if (!steps) return scored;
  const auto mean = [](double sum, std::uint64_t count) {
    return count == 0 ? 0 : sum / static_cast<double>(count);
  };
  const engine::Statistics& statistics = engine.statistics();
  const experts::RoutingChanges& routing = engine.report().decider.decode_changes();
  scored.low = mean(statistics.low_share, statistics.low_tokens);
  scored.mass = mean(routing.mass_lost, routing.tokens);
  scored.bytes_per_token =
      static_cast<double>(statistics.decode.bytes_read) / static_cast<double>(statistics.decode.tokens);
  return scored;
}

engine::CalibrationText calibration_text(std::span<const tokenizer::TokenId> tokens,
                                         const SteppedWindows& windows) {
  return {.sha256 = sha256_of(tokens),
          .tokens = tokens.size(),
          .scored = windows.scored(tokens.size()),
          .windows = windows.count(tokens.size()),
          .window = windows.window,
          .prompt = windows.prompt};
}

}  // namespace sluice::eval
