#include "eval/measure_calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/setting.h"
#include "engine/engine.h"
#include "engine/model_identity.h"
#include "engine/plan/engine_plan.h"
#include "engine/run_report.h"
#include "eval/check_reference.h"
#include "eval/growing_windows.h"
#include "eval/identity.h"
#include "eval/state.h"
#include "model/architecture.h"
#include "store/checkpoint.h"

namespace sluice::eval {
namespace {

using engine::Calibration;
using engine::CalibrationPoint;
using engine::Engine;
using engine::EngineOptions;

constexpr std::size_t kLogitRows = 32;

void check_models(const store::Checkpoint& checkpoint, const model::Model& model,
                  const store::Checkpoint& reference, const model::Model& reference_model) {
  if (!checkpoint.slices())
    throw Error(ErrorKind::kUnsupported, "only a store in slices has losses to calibrate")
        .in(checkpoint.path())
        .expected("a store of family sliced")
        .found("experts that are computed as they are")
        .fix("pack the model in slices: sluice pack MODEL " + flag(Setting::kOutput) + " NAME.sluice " +
             flag(Setting::kSlices) + " 8/4");
  check_reference(model, reference, reference_model);
  if (model.config.has_encoder())
    throw Error(ErrorKind::kUnsupported, "an encoder-decoder has no perplexity of a text by itself")
        .in(checkpoint.path())
        .expected("a decoder without an encoder")
        .found(model.config.model_type);
}

// A world in which the store computes the text, with what is known of its point beforehand.
struct World {
  CalibrationPoint point;
  EngineOptions options;
  bool later = false;  // it is computed where its curve needs it
};

// Both, ascending, with whether each is of the second.
std::vector<std::pair<double, bool>> merged(const std::vector<double>& first,
                                            const std::vector<double>& later) {
  std::vector<std::pair<double, bool>> all;
  for (const double one : first) all.emplace_back(one, false);
  for (const double one : later) all.emplace_back(one, true);
  std::ranges::sort(all);
  return all;
}

std::vector<World> settings_of(const CalibrateOptions& options) {
  using experts::PrecisionMode;
  std::vector<World> all;
  const double cache = options.caches.front();
  const auto add = [&](const CalibrationPoint& point) {
    all.push_back({point, options.engine});
    EngineOptions& settings = all.back().options;
    settings.precision = point.precision;
    settings.slices.rules.lsb_miss = experts::LsbMiss::kFetch;
    settings.prefetch = "none";
  };
  const auto add_dbsc = [&](double theta) {
    add({.precision = PrecisionMode::kDbsc, .theta = theta, .cache = cache});
    all.back().options.critical = {.kind = experts::CriticalRule::Kind::kSingleHead, .theta = theta};
  };
  const auto limit_mass = [&](double ceiling) {
    all.back().point.ceiling = ceiling;
    EngineOptions& routed = all.back().options;
    routed.router = "cache-prior";
    routed.constraint = experts::ConstraintMode::kHard;
    routed.limits.limit = 0;
    // A loss that equals the mass, with the ceiling as its limit.
    const experts::LossCurve none({{1, 0}}), mass({{1, 1}});
    routed.contract = {
        .model = {.precision = none, .routing = mass, .precision_upper = none, .routing_upper = mass},
        .limit = ceiling};
  };
  for (const auto& [theta, later] : merged(options.thetas, options.more_thetas)) {
    add_dbsc(theta);
    all.back().later = later;
  }
  add({.precision = PrecisionMode::kLow, .cache = cache});
  for (const double share : options.caches)
    for (const auto& [ceiling, later] : merged(options.ceilings, options.more_ceilings)) {
      add({.precision = PrecisionMode::kHigh, .cache = share});
      limit_mass(ceiling);
      all.back().later = later;
    }
  for (const CalibrateOptions::Both& both : options.both) {
    add_dbsc(both.theta);
    limit_mass(both.ceiling);
  }
  return all;
}

// The low share by theta, up to low, and the mass by ceiling, for each cache; not what changes both.
std::vector<std::vector<std::size_t>> curves_of(const std::vector<World>& worlds) {
  std::map<std::pair<bool, double>, std::vector<std::size_t>> curves;
  for (std::size_t i = 0; i < worlds.size(); ++i) {
    const CalibrationPoint& point = worlds[i].point;
    const bool routed = point.ceiling > 0;
    if (routed && point.precision != experts::PrecisionMode::kHigh) continue;
    curves[{routed, point.cache}].push_back(i);
  }
  std::vector<std::vector<std::size_t>> all;
  for (auto& [axis, curve] : curves) all.push_back(std::move(curve));
  return all;
}

std::string grid_text(const CalibrateOptions& options) {
  std::string text =
      fmt::format("theta {} and {}; ceilings {} and {}; caches {}; both", fmt::join(options.thetas, " "),
                  fmt::join(options.more_thetas, " "), fmt::join(options.ceilings, " "),
                  fmt::join(options.more_ceilings, " "), fmt::join(options.caches, " "));
  for (const CalibrateOptions::Both& both : options.both)
    text += fmt::format(" {}:{}", both.theta, both.ceiling);
  return text;
}

}  // namespace

Calibration measure_calibration(const store::Checkpoint& checkpoint, const model::Model& model,
                                const store::Checkpoint& reference, const model::Model& reference_model,
                                std::span<const tokenizer::TokenId> tokens, const CalibrateOptions& options) {
  check_models(checkpoint, model, reference, reference_model);
  check_windows(options.windows, tokens.size(), "give a longer text, or smaller windows");
  SLUICE_CHECK(!options.caches.empty());
  const std::vector<World> settings = settings_of(options);
  EngineOptions exact_settings = options.engine, high_settings = options.engine;
  exact_settings.positions = options.windows.window;
  exact_settings.precision = experts::PrecisionMode::kFull;
  exact_settings.activations.reset();
  exact_settings.cache = "lru";  // lru needs no measured costs
  high_settings.precision = experts::PrecisionMode::kHigh;
  engine::make_room_for_worlds(settings.size(), options.windows.window, options.windows.prompt,
                               high_settings);
  const auto of_reference = [&] {
    return std::make_unique<Engine>(reference, reference_model,
                                    engine::resolve(exact_settings, reference, reference_model), kLogitRows);
  };
  const auto of_store = [&] {
    return std::make_unique<Engine>(checkpoint, model, engine::resolve(high_settings, checkpoint, model),
                                    kLogitRows);
  };

  // Checked before hours are spent: both are the same model.
  Calibration result;
  Json identity;
  Bytes all_experts = 0;
  std::uint64_t reference_identity = 0;
  {
    const auto engine = of_reference();
    reference_identity = engine::model_identity(*engine);
    result.reference = hex64(reference_identity);
    identity["reference"] = identity_of(*engine).at("weights");
  }
  {
    const auto engine = of_store();
    check_reference_identity(engine::model_identity(*engine), reference_identity, reference.path());
    result.activations = *engine->plan().activations;
    all_experts = engine->report().expert_memory_bytes() * model.experts.size();
    identity.update(identity_of(*engine));
  }
  std::vector<engine::WorldPlan> plans;
  for (const World& one : settings)
    plans.push_back({engine::resolve(one.options, checkpoint, model),
                     static_cast<Bytes>(one.point.cache * static_cast<double>(all_experts))});
  identity.update({{"task", "calibrate in worlds"},
                   {"data", sha256_of(tokens)},
                   {"tokens", tokens.size()},
                   {"ctx", options.windows.window},
                   {"prefill", options.windows.prompt},
                   {"grid", grid_text(options)}});
  State state(options.state, std::move(identity));
  const std::vector<std::vector<std::size_t>> curves = curves_of(settings);
  std::vector<std::uint8_t> later;
  for (const World& one : settings) later.push_back(one.later ? 1 : 0);
  const GrownWindows grown = grow_windows({.text = tokens,
                                           .windows = options.windows,
                                           .plans = plans,
                                           .curves = curves,
                                           .later = later,
                                           .exact = of_reference,
                                           .of_worlds = of_store,
                                           .hours = options.hours,
                                           .on_progress = options.on_progress},
                                          state);

  result.text = calibration_text(tokens, options.windows, grown.windows.size());
  result.perplexity = perplexity(grown.exact);
  const LossDifference high = grown.plain_loss();
  result.high = {.precision = experts::PrecisionMode::kHigh,
                 .cache = 1,
                 .perplexity = grown.plain_perplexity(),
                 .loss = high.loss,
                 .error = high.error};
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if (!grown.is_measured(i)) continue;
    CalibrationPoint found = settings[i].point;
    const LossDifference loss = grown.loss(i);
    const GrownWindows::Means means = grown.means(i);
    found.loss = loss.loss;
    found.error = loss.error;
    found.windows = means.windows;
    found.perplexity = grown.perplexity(i);
    found.bytes_per_token = means.bytes_per_token;
    const bool routed = found.ceiling > 0, rounded = found.precision != experts::PrecisionMode::kHigh;
    found.amount = routed ? means.mass : means.low;
    if (routed && rounded) found.low = means.low;
    (!routed ? result.precision : rounded ? result.both : result.routing).push_back(found);
  }
  return result;
}

}  // namespace sluice::eval
