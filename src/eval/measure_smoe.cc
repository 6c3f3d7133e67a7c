#include "eval/measure_smoe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "base/error.h"
#include "base/setting.h"
#include "engine/engine.h"
#include "engine/plan/engine_plan.h"
#include "engine/run_report.h"
#include "eval/growing_windows.h"
#include "eval/identity.h"
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

engine::EngineOptions smoe_settings(const MeasureSmoeOptions& options) {
  engine::EngineOptions settings = options.engine;
  settings.cache = "lru";      // needs no measured costs
  settings.prefetch = "none";  // bytes are counted as they are demanded
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
  engine::SmoeCalibration result;
  for (const double cache : options.caches)
    for (const double alpha : options.alphas) result.points.push_back({.alpha = alpha, .cache = cache});

  engine::EngineOptions settings = smoe_settings(options);
  engine::make_room_for_worlds(result.points.size(), options.windows.window, options.windows.prompt,
                               settings);
  const auto make_engine = [&] {
    return std::make_unique<engine::Engine>(checkpoint, model, engine::resolve(settings, checkpoint, model),
                                            kSmoeLogitRows);
  };
  Json identity;
  Bytes all_experts = 0;
  {
    const auto engine = make_engine();
    all_experts = engine->report().expert_memory_bytes() * model.experts.size();
    identity = identity_of(*engine);
  }
  std::vector<engine::WorldPlan> plans;
  for (const engine::SmoePoint& point : result.points) {
    engine::EngineOptions world = smoe_settings(options);
    world.router = "smoe";
    world.smoe.alpha = point.alpha;
    plans.push_back({engine::resolve(world, checkpoint, model),
                     static_cast<Bytes>(point.cache * static_cast<double>(all_experts))});
  }
  identity.update({{"task", "calibrate smoe in worlds"},
                   {"data", sha256_of(tokens)},
                   {"tokens", tokens.size()},
                   {"ctx", options.windows.window},
                   {"prefill", options.windows.prompt},
                   {"grid", smoe_grid_text(options)}});
  State state(options.state, std::move(identity));
  const GrownWindows grown = grow_windows({.text = tokens,
                                           .windows = options.windows,
                                           .plans = plans,
                                           .of_worlds = make_engine,
                                           .hours = options.hours,
                                           .on_progress = options.on_progress},
                                          state);

  result.text = calibration_text(tokens, options.windows, grown.windows.size());
  result.perplexity = grown.plain_perplexity();
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    engine::SmoePoint& point = result.points[i];
    const LossDifference loss = grown.loss(i);
    const GrownWindows::Means means = grown.means(i);
    point.amount = means.mass;
    point.perplexity = grown.perplexity(i);
    point.loss = loss.loss;
    point.error = loss.error;
    point.windows = means.windows;
    point.bytes_per_token = means.bytes_per_token;
  }
  return result;
}

}  // namespace sluice::eval
