#include "eval/measure_calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/setting.h"
#include "engine/engine.h"
#include "engine/model_identity.h"
#include "engine/plan/engine_plan.h"
#include "engine/run_report.h"
#include "eval/check_reference.h"
#include "eval/identity.h"
#include "eval/scored_way.h"
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

// One way in which the store computes the text, with what is known of its point beforehand.
struct Way {
  CalibrationPoint point;
  EngineOptions settings;
};

// All ways except high precision with everything in memory.
std::vector<Way> ways(const CalibrateOptions& options, Bytes all_experts) {
  const auto settings = [&](experts::PrecisionMode precision, double cache) {
    EngineOptions settings = options.engine;
    settings.precision = precision;
    settings.slices.rules.lsb_miss = experts::LsbMiss::kFetch;
    settings.prefetch = "none";  // bytes are counted as they are demanded
    settings.less_cache_will_do = true;
    settings.cache_bytes = static_cast<Bytes>(cache * static_cast<double>(all_experts));
    return settings;
  };
  using experts::PrecisionMode;
  std::vector<Way> all;
  const double cache = options.caches.front();
  const auto add_dbsc = [&](double theta) {
    all.push_back({{.precision = PrecisionMode::kDbsc, .theta = theta, .cache = cache},
                   settings(PrecisionMode::kDbsc, cache)});
    all.back().settings.critical = {.kind = experts::CriticalRule::Kind::kSingleHead, .theta = theta};
  };
  const auto limit_mass = [&](double ceiling) {
    all.back().point.ceiling = ceiling;
    EngineOptions& routed = all.back().settings;
    routed.router = "cache-prior";
    routed.constraint = experts::ConstraintMode::kHard;
    routed.limits.limit = 0;
    // A loss that equals the mass, with the ceiling as its limit.
    const experts::LossCurve none({{1, 0}}), mass({{1, 1}});
    routed.contract = {
        .model = {.precision = none, .routing = mass, .precision_upper = none, .routing_upper = mass},
        .limit = ceiling};
  };
  for (const double theta : options.thetas) add_dbsc(theta);
  all.push_back({{.precision = PrecisionMode::kLow, .cache = cache}, settings(PrecisionMode::kLow, cache)});
  for (const double share : options.caches)
    for (const double ceiling : options.ceilings) {
      all.push_back(
          {{.precision = PrecisionMode::kHigh, .cache = share}, settings(PrecisionMode::kHigh, share)});
      limit_mass(ceiling);
    }
  for (const CalibrateOptions::Both& both : options.both) {
    add_dbsc(both.theta);
    limit_mass(both.ceiling);
  }
  return all;
}

std::string grid_text(const CalibrateOptions& options) {
  std::string text = fmt::format("theta {}; ceilings {}; caches {}; both", fmt::join(options.thetas, " "),
                                 fmt::join(options.ceilings, " "), fmt::join(options.caches, " "));
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
  Calibration result;
  result.text = calibration_text(tokens, options.windows);

  const auto of_store = [&](const EngineOptions& settings) {
    return std::make_unique<Engine>(checkpoint, model, engine::resolve(settings, checkpoint, model),
                                    kLogitRows);
  };
  EngineOptions exact_settings = options.engine, high_settings = options.engine;
  exact_settings.precision = experts::PrecisionMode::kFull;
  exact_settings.activations.reset();
  exact_settings.cache = "lru";  // lru needs no measured costs
  high_settings.precision = experts::PrecisionMode::kHigh;
  const auto of_reference = [&] {
    return std::make_unique<Engine>(reference, reference_model,
                                    engine::resolve(exact_settings, reference, reference_model), kLogitRows);
  };

  // Checked before hours are spent: both are the same model.
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
    const auto engine = of_store(high_settings);
    check_reference_identity(engine::model_identity(*engine), reference_identity, reference.path());
    result.activations = *engine->plan().activations;
    all_experts = engine->report().expert_memory_bytes() * model.experts.size();
    identity.update(identity_of(*engine));
  }
  const std::vector<Way> all = ways(options, all_experts);
  identity.update({{"task", "calibrate"},
                   {"data", result.text.sha256},
                   {"tokens", tokens.size()},
                   {"ctx", result.text.window},
                   {"prefill", result.text.prompt},
                   {"grid", grid_text(options)}});
  State state(options.state, std::move(identity));

  constexpr std::size_t kExact = 0, kHigh = 1, kWays = 2;
  const auto score = [&](std::size_t i) {
    const bool steps = i >= kWays;
    const auto engine =
        i == kExact ? of_reference() : of_store(steps ? all[i - kWays].settings : high_settings);
    return score_way(*engine, tokens, options.windows, steps, [&](std::size_t done) {
      return !options.on_progress ||
             options.on_progress(i * tokens.size() + done, (kWays + all.size()) * tokens.size());
    });
  };
  const std::vector<ScoredWay> scored = finish<ScoredWay>(
      state, kWays + all.size(),
      [&](const Json& json, const std::string& name) {
        return scored_way_from_json(json, name, result.text.windows);
      },
      score);

  const auto point = [&](CalibrationPoint point, const ScoredWay& one, const ScoredWay& against) {
    const LossDifference loss = difference(one.windows, against.windows);
    point.bytes_per_token = one.bytes_per_token;
    point.perplexity = perplexity(one.windows);
    point.loss = loss.loss;
    point.error = loss.error;
    return point;
  };
  result.perplexity = perplexity(scored[kExact].windows);
  result.high =
      point({.precision = experts::PrecisionMode::kHigh, .cache = 1}, scored[kHigh], scored[kExact]);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ScoredWay& one = scored[kWays + i];
    CalibrationPoint found = point(all[i].point, one, scored[kHigh]);
    const bool routed = found.ceiling > 0, rounded = found.precision != experts::PrecisionMode::kHigh;
    found.amount = routed ? one.mass : one.low;
    if (routed && rounded) found.low = one.low;
    (!routed ? result.precision : rounded ? result.both : result.routing).push_back(found);
  }
  return result;
}

}  // namespace sluice::eval
