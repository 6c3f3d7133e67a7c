#include "eval/measure_smoe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "base/error.h"
#include "base/setting.h"
#include "engine/engine.h"
#include "engine/plan/engine_plan.h"
#include "engine/run_report.h"
#include "eval/identity.h"
#include "eval/scored_way.h"
#include "eval/state.h"
#include "model/architecture.h"
#include "store/checkpoint.h"

namespace sluice::eval {
namespace {

constexpr std::size_t kSmoeLogitRows = 32;

void check_takes_smoe(const store::Checkpoint& checkpoint, const model::Model& model) {
  const auto refuse = [&](const char* why, const char* expected, std::string found) {
    return Error(ErrorKind::kUnsupported, why).in(checkpoint.path()).expected(expected).found(found);
  };
  if (checkpoint.slices())
    throw refuse("the losses of a store in slices are measured against the model that it was packed from",
                 "a store without slices", "a store of family sliced");
  if (model.experts.empty())
    throw refuse("a model without experts loses nothing by routing", "a mixture of experts",
                 model.config.model_type);
  if (model.config.has_encoder())
    throw refuse("an encoder-decoder has no perplexity of a text by itself", "a decoder without an encoder",
                 model.config.model_type);
}

engine::EngineOptions smoe_settings(const MeasureSmoeOptions& options, const engine::SmoePoint& point,
                                    Bytes all_experts) {
  engine::EngineOptions settings = options.engine;
  settings.router = "smoe";
  settings.smoe.alpha = point.alpha;
  settings.cache = "lru";      // needs no measured costs
  settings.prefetch = "none";  // bytes are counted as they are demanded
  settings.less_cache_will_do = true;
  settings.cache_bytes = static_cast<Bytes>(point.cache * static_cast<double>(all_experts));
  return settings;
}

std::string smoe_grid_text(const MeasureSmoeOptions& options) {
  return fmt::format("alphas {}; caches {}", fmt::join(options.alphas, " "), fmt::join(options.caches, " "));
}

}  // namespace

engine::SmoeCalibration measure_smoe(const store::Checkpoint& checkpoint, const model::Model& model,
                                     std::span<const tokenizer::TokenId> tokens,
                                     const MeasureSmoeOptions& options) {
  check_takes_smoe(checkpoint, model);
  check_windows(options.windows, tokens.size(), "give a longer text, or smaller windows");
  SLUICE_CHECK(!options.caches.empty() && !options.alphas.empty() && options.alphas.front() == 0);
  engine::SmoeCalibration result{.text = calibration_text(tokens, options.windows)};
  for (const double cache : options.caches)
    for (const double alpha : options.alphas) result.points.push_back({.alpha = alpha, .cache = cache});

  Json identity;
  Bytes all_experts = 0;
  const auto engine_for = [&](const engine::SmoePoint& point) {
    const engine::EngineOptions settings = smoe_settings(options, point, all_experts);
    return std::make_unique<engine::Engine>(checkpoint, model, engine::resolve(settings, checkpoint, model),
                                            kSmoeLogitRows);
  };
  {
    engine::EngineOptions settings = options.engine;
    settings.router = "smoe";
    settings.cache = "lru";
    const engine::Engine engine(checkpoint, model, engine::resolve(settings, checkpoint, model),
                                kSmoeLogitRows);
    all_experts = engine.report().expert_memory_bytes() * model.experts.size();
    identity = identity_of(engine);
  }
  identity.update({{"task", "calibrate smoe"},
                   {"data", result.text.sha256},
                   {"tokens", tokens.size()},
                   {"ctx", result.text.window},
                   {"prefill", result.text.prompt},
                   {"grid", smoe_grid_text(options)}});
  State state(options.state, std::move(identity));
  const std::vector<ScoredWay> scored = finish<ScoredWay>(
      state, result.points.size(),
      [&](const Json& json, const std::string& name) {
        return scored_way_from_json(json, name, result.text.windows);
      },
      [&](std::size_t i) {
        return score_way(*engine_for(result.points[i]), tokens, options.windows, true, [&](std::size_t done) {
          return !options.on_progress ||
                 options.on_progress(i * tokens.size() + done, result.points.size() * tokens.size());
        });
      });

  const ScoredWay& exact = scored.front();  // alpha 0
  result.perplexity = perplexity(exact.windows);
  for (std::size_t i = 0; i < scored.size(); ++i) {
    engine::SmoePoint& point = result.points[i];
    const LossDifference loss = difference(scored[i].windows, exact.windows);
    point.amount = scored[i].mass;
    point.perplexity = perplexity(scored[i].windows);
    point.loss = loss.loss;
    point.error = loss.error;
    point.bytes_per_token = scored[i].bytes_per_token;
  }
  return result;
}

}  // namespace sluice::eval
