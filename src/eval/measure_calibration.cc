#include "eval/measure_calibration.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "engine/model_identity.h"

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
        .fix("pack the model in slices: sluice pack MODEL -o NAME.sluice --slices 8/4");
  if (reference.slices())
    throw Error(ErrorKind::kInvalid, "the reference is rounded itself")
        .in(reference.path())
        .expected("the model that the store was packed from, as a directory or a store without slices")
        .found("a store of family sliced");
  const auto refuse = [&](const char* what, const std::string& expected, const std::string& found) {
    if (expected == found) return;
    throw Error(ErrorKind::kInvalid, fmt::format("the reference has another {} than the store", what))
        .in(reference.path())
        .expected(expected)
        .found(found)
        .fix("give the model that the store was packed from");
  };
  const model::ModelConfig &a = model.config, &b = reference_model.config;
  refuse("architecture", a.model_type, b.model_type);
  refuse("vocabulary", std::to_string(a.vocab), std::to_string(b.vocab));
  refuse("number of layers", std::to_string(a.layers), std::to_string(b.layers));
  refuse("number of experts", std::to_string(a.moe.experts), std::to_string(b.moe.experts));
  if (a.has_encoder())
    throw Error(ErrorKind::kUnsupported, "an encoder-decoder has no perplexity of a text by itself")
        .in(checkpoint.path())
        .expected("a decoder without an encoder")
        .found(a.model_type);
}

std::string sha256_of(std::span<const model::TokenId> tokens) {
  std::vector<std::byte> bytes;
  for (const model::TokenId token : tokens)
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<std::byte>(static_cast<std::uint32_t>(token) >> shift & 255));
  return sha256_hex(bytes);
}

// Measures point after point, and tells how far all of them are.
class Measurement {
 public:
  Measurement(const store::Checkpoint& checkpoint, const model::Model& model,
              std::span<const model::TokenId> tokens, const CalibrateOptions& options)
      : checkpoint_(checkpoint), model_(model), tokens_(tokens), options_(options) {
    all_ = tokens.size() * (2 + options.thetas.size() + 1 + options.caches.size() * options.ceilings.size());
  }

  std::vector<WindowScore> score(Engine& engine, bool steps) {
    auto scores = score_windows(engine, tokens_, options_.windows, steps, [&](std::size_t done) {
      return !options_.on_progress || options_.on_progress(done_ + done, all_);
    });
    done_ += tokens_.size();
    return scores;
  }

  std::unique_ptr<Engine> make(const EngineOptions& settings) const {
    return std::make_unique<Engine>(checkpoint_, model_, settings, kLogitRows);
  }

  EngineOptions settings(experts::PrecisionMode precision) const {
    EngineOptions settings = options_.engine;
    settings.precision = precision;
    settings.slices.rules.lsb_miss = experts::LsbMiss::kFetch;
    return settings;
  }

  // A store's point against `high`.
  CalibrationPoint point(EngineOptions settings, double cache, std::span<const WindowScore> high) {
    if (all_experts_ == 0) {
      const auto any = make(settings);
      all_experts_ = any->expert_memory_bytes() * model_.experts.size();
    }
    settings.less_cache_will_do = true;
    settings.cache_bytes = static_cast<Bytes>(cache * static_cast<double>(all_experts_));
    const auto run = make(settings);
    const std::vector<WindowScore> scores = score(*run, true);
    const LossDifference loss = difference(scores, high);
    const engine::Statistics& statistics = run->statistics();
    CalibrationPoint point{.precision = settings.precision, .cache = cache};
    if (point.precision == experts::PrecisionMode::kDbsc) point.theta = settings.critical.theta;
    point.amount = settings.contract ? statistics.decode_routing.mass_lost /
                                           static_cast<double>(statistics.decode_routing.tokens)
                                     : statistics.low_share / static_cast<double>(statistics.low_tokens);
    point.perplexity = perplexity(scores);
    point.loss = loss.loss;
    point.error = loss.error;
    point.bytes_per_token =
        static_cast<double>(statistics.decode.bytes_read) / static_cast<double>(statistics.decode.tokens);
    return point;
  }

 private:
  const store::Checkpoint& checkpoint_;
  const model::Model& model_;
  std::span<const model::TokenId> tokens_;
  const CalibrateOptions& options_;
  Bytes all_experts_ = 0;
  std::size_t done_ = 0, all_ = 0;
};

}  // namespace

Calibration measure_calibration(const store::Checkpoint& checkpoint, const model::Model& model,
                                const store::Checkpoint& reference, const model::Model& reference_model,
                                std::span<const model::TokenId> tokens, const CalibrateOptions& options) {
  check_models(checkpoint, model, reference, reference_model);
  check_windows(options.windows, tokens.size(), "give a longer text, or smaller windows");
  SLUICE_CHECK(!options.caches.empty());
  Calibration result;
  result.text_sha256 = sha256_of(tokens);
  result.tokens = tokens.size();
  result.window = options.windows.window;
  result.prompt = options.windows.prompt;
  result.windows = options.windows.count(tokens.size());
  result.scored = options.windows.scored(tokens.size());

  Measurement measurement(checkpoint, model, tokens, options);
  std::vector<WindowScore> exact;
  {
    EngineOptions settings = options.engine;
    settings.precision = experts::PrecisionMode::kFull;
    settings.activations.reset();
    settings.cache = "lru";  // costs need not be measured for it
    Engine engine(reference, reference_model, settings, kLogitRows);
    result.reference = hex64(engine::model_identity(engine));
    exact = measurement.score(engine, false);
  }
  result.perplexity = perplexity(exact);
  std::vector<WindowScore> high;
  {
    const auto run = measurement.make(measurement.settings(experts::PrecisionMode::kHigh));
    if (const std::string identity = hex64(engine::model_identity(*run)); identity != result.reference)
      throw Error(ErrorKind::kInvalid, "the reference is not the model that the store was packed from")
          .in(reference.path())
          .expected("tensors and routers of identity " + identity)
          .found(result.reference)
          .fix("give the model that the store was packed from");
    result.activations = *run->options().activations;
    high = measurement.score(*run, false);
  }
  const LossDifference loss = difference(high, exact);
  result.high = {.precision = experts::PrecisionMode::kHigh,
                 .cache = 1,
                 .perplexity = perplexity(high),
                 .loss = loss.loss,
                 .error = loss.error};

  for (const double theta : options.thetas) {
    EngineOptions settings = measurement.settings(experts::PrecisionMode::kDbsc);
    settings.critical = {.kind = experts::CriticalRule::Kind::kSingleHead, .theta = theta};
    result.precision.push_back(measurement.point(settings, options.caches.front(), high));
  }
  result.precision.push_back(
      measurement.point(measurement.settings(experts::PrecisionMode::kLow), options.caches.front(), high));
  for (const double cache : options.caches) {
    for (const double ceiling : options.ceilings) {
      EngineOptions settings = measurement.settings(experts::PrecisionMode::kHigh);
      settings.router = "cache-prior";
      settings.constraint = experts::ConstraintMode::kHard;
      settings.limits.limit = 0;
      // A loss that is the mass itself, limited to the ceiling.
      const experts::LossCurve none({{1, 0}}), mass({{1, 1}});
      settings.contract = {
          .model = {.precision = none, .routing = mass, .precision_upper = none, .routing_upper = mass},
          .limit = ceiling};
      CalibrationPoint point = measurement.point(settings, cache, high);
      point.ceiling = ceiling;
      result.routing.push_back(point);
    }
  }
  return result;
}

}  // namespace sluice::eval
