#include "eval/measure_residual.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "engine/engine.h"
#include "engine/forward/predictor.h"
#include "engine/model_identity.h"
#include "engine/plan/engine_plan.h"
#include "engine/session/sequence.h"
#include "engine/watch/routing_observer.h"
#include "eval/identity.h"
#include "experts/prefetch/prediction_check.h"
#include "experts/prefetch/residual.h"
#include "model/architecture.h"
#include "model/config.h"
#include "store/checkpoint.h"

namespace sluice::eval {
namespace {

using engine::Engine;
using engine::PredictionQuality;
using engine::WindowMean;
using experts::ScoresView;

// Adds up the differences of gate inputs.
class MeanObserver final : public engine::RoutingObserver {
 public:
  MeanObserver(std::size_t layers, std::size_t width) : width_(width), mean_(layers, width) {}

  void on_inputs(std::uint32_t layer, std::span<const float> inputs) override {
    next_.assign(inputs.begin(), inputs.end());
    for (std::size_t at = 0; layer > 0 && at < next_.size(); at += width_)
      mean_.add(layer - 1, std::span(here_).subspan(at, width_), std::span(next_).subspan(at, width_));
    here_.swap(next_);
  }
  const experts::ResidualMean& mean() const { return mean_; }

 private:
  const std::size_t width_;
  experts::ResidualMean mean_;
  std::vector<double> here_, next_;  // (T, d)
};

enum Count { kRaw, kResidual, kStream, kCosineRaw, kCosineResidual, kCounts };

// Compares what is predicted of each layer with what its router then says.
class QualityObserver final : public engine::RoutingObserver {
 public:
  QualityObserver(const model::ModelConfig& config, const experts::ResidualVectors& residual)
      : config_(config), residual_(residual), sums_((residual.layers - 1) * kCounts) {}

  void on_inputs(std::uint32_t layer, std::span<const float> inputs) override {
    const std::size_t d = config_.hidden;
    next_.assign(inputs.begin(), inputs.end());
    for (std::size_t at = 0; layer > 0 && at < next_.size(); at += d) {
      const std::span<double> here = std::span(here_).subspan(at, d);
      const std::span<const double> next = std::span(next_).subspan(at, d);
      sum(layer - 1, kCosineRaw) += experts::cosine(here, next);
      const std::span<const float> mean = residual_.of(layer - 1);
      for (std::size_t i = 0; i < d; ++i) here[i] += mean[i];
      sum(layer - 1, kCosineResidual) += experts::cosine(here, next);
    }
    here_.swap(next_);
  }

  void on_routing(const ScoresView& scores, const experts::Routing& routing) override {
    if (scores.layer == 0) tokens_ += scores.tokens;
    for (std::size_t kind = 0; scores.layer > 0 && kind < predicted_.size(); ++kind)
      for (std::uint32_t t = 0; t < scores.tokens; ++t) {
        const std::span<const experts::Choice> chosen = routing.token(t);
        const auto top = std::span(predicted_[kind]).subspan(std::size_t{t} * top_k(), top_k());
        const auto found = std::ranges::count_if(chosen, [&](const experts::Choice& choice) {
          return std::ranges::find(top, choice.expert) != top.end();
        });
        if (!chosen.empty())
          sum(scores.layer - 1, static_cast<Count>(kind)) +=
              static_cast<double>(found) / static_cast<double>(chosen.size());
      }
  }

  bool wants_ahead() const override { return true; }
  void on_ahead(std::string_view predictor, const ScoresView& next) override {
    constexpr std::string_view kNames[] = {engine::kGateInput, engine::kGateInputAndResidual,
                                           engine::kStream};
    const auto kind = static_cast<std::size_t>(std::ranges::find(kNames, predictor) - std::begin(kNames));
    if (kind >= predicted_.size()) return;
    predicted_[kind].clear();
    std::vector<std::uint32_t> ranking(next.experts);
    for (std::uint32_t t = 0; t < next.tokens; ++t) {
      const std::span<const float> logits = next.logits.subspan(std::size_t{t} * next.experts, next.experts);
      std::iota(ranking.begin(), ranking.end(), 0u);
      std::ranges::stable_sort(ranking, [&](auto a, auto b) { return logits[a] > logits[b]; });
      predicted_[kind].insert(predicted_[kind].end(), ranking.begin(), ranking.begin() + top_k());
    }
  }

  // The means over the tokens since the last call, (layers - 1, kCounts).
  std::vector<double> take() {
    std::vector<double> means(sums_.size());
    std::ranges::transform(sums_, means.begin(),
                           [&](double sum) { return sum / static_cast<double>(tokens_); });
    std::ranges::fill(sums_, 0.0);
    tokens_ = 0;
    return means;
  }

 private:
  double& sum(std::size_t layer, Count count) { return sums_[layer * kCounts + count]; }
  std::ptrdiff_t top_k() const { return static_cast<std::ptrdiff_t>(config_.moe.top_k); }

  const model::ModelConfig& config_;
  const experts::ResidualVectors& residual_;
  std::vector<double> sums_;
  std::size_t tokens_ = 0;
  std::vector<double> here_, next_;                      // (T, d)
  std::array<std::vector<std::uint32_t>, 3> predicted_;  // (T, k) by kRaw, kResidual, kStream
};

// Each window as a prompt of its own.
void run_windows(Engine& engine, std::span<const tokenizer::TokenId> tokens, std::size_t window,
                 const std::function<void(std::size_t done)>& on_window) {
  const engine::LogitSink none{[](std::size_t) { return false; }, [](std::size_t, std::span<const float>) {}};
  for (std::size_t at = 0; at < tokens.size(); at += window) {
    const auto sequence = engine.new_sequence();
    engine.prefill(*sequence, tokens.subspan(at, window), none);
    on_window(at + window);
  }
}

WindowMean mean_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  WindowMean result{std::accumulate(values.begin(), values.end(), 0.0) / n,
                    std::numeric_limits<double>::infinity()};
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.error = std::sqrt(squares / (n - 1) / n);
  return result;
}

// windows: for each the means of layers; `layers` of them are averaged, from `first`.
PredictionQuality quality_of(const std::vector<std::vector<double>>& windows, std::size_t first,
                             std::size_t layers) {
  const auto mean = [&](const std::function<double(const double*)>& value) {
    std::vector<double> values;
    for (const std::vector<double>& window : windows) {
      double sum = 0;
      for (std::size_t l = first; l < first + layers; ++l) sum += value(&window[l * kCounts]);
      values.push_back(sum / static_cast<double>(layers));
    }
    return mean_of(values);
  };
  const auto count = [&](Count one) { return mean([one](const double* v) { return v[one]; }); };
  return {.raw = count(kRaw),
          .residual = count(kResidual),
          .stream = count(kStream),
          .cosine_raw = count(kCosineRaw),
          .cosine_residual = count(kCosineResidual),
          .above_raw = mean([](const double* v) { return v[kResidual] - v[kRaw]; }),
          .above_stream = mean([](const double* v) { return v[kResidual] - v[kStream]; })};
}

void check(const store::Checkpoint& checkpoint, const model::Model& model, std::size_t windows,
           const ResidualOptions& options) {
  if (model.config.has_encoder() || model.config.sparse_layers() < 2)
    throw Error(ErrorKind::kUnsupported, "this model has no residual of gate inputs to measure")
        .in(checkpoint.path())
        .expected("a decoder without an encoder, and at least two layers with routed experts")
        .found(model.config.has_encoder() ? model.config.model_type
                                          : fmt::format("{} of them", model.config.sparse_layers()));
  if (windows < 3)
    throw Error(ErrorKind::kInvalid, "the text is too short to measure a residual and to test it")
        .in(Setting::kFile)
        .expected(fmt::format("at least {} tokens, three windows", 3 * options.window))
        .found(fmt::format("{} windows", windows))
        .fix("give a longer text, or a smaller " + mark(Setting::kCtx));
}

}  // namespace

engine::GateResidual measure_residual(const store::Checkpoint& checkpoint, const model::Model& model,
                                      std::span<const tokenizer::TokenId> tokens,
                                      const ResidualOptions& options) {
  const std::size_t windows = tokens.size() / options.window, d = model.config.hidden;
  check(checkpoint, model, windows, options);
  const std::size_t held_out = std::clamp<std::size_t>(
      static_cast<std::size_t>(std::llround(options.held_out * static_cast<double>(windows))), 1,
      windows - 2);
  const std::size_t averaged = (windows - held_out) * options.window, used = windows * options.window;
  const std::size_t layers = model.config.sparse_layers();
  const auto progress = [&](std::size_t done) {
    if (options.on_progress && !options.on_progress(done, used)) throw interrupted_error();
  };
  engine::EngineOptions settings = options.engine;
  settings.router = "exact";
  settings.prefetch = "none";
  settings.positions = options.window;
  // Gate inputs of two layers, and sums.
  settings.recording = (2 * options.window + layers) * d * sizeof(double);

  engine::GateResidual result;
  result.text_sha256 = sha256_of(tokens.first(used));
  result.tokens = used;
  result.averaged = averaged;
  result.window = options.window;
  result.windows = held_out;
  result.vectors = {.layers = layers, .width = d, .values = {}};
  {
    Engine engine(checkpoint, model, engine::resolve(settings, checkpoint, model), 1);
    result.identity = engine::model_identity(engine);
    MeanObserver observer(layers, d);
    engine.observe(&observer);
    run_windows(engine, tokens.first(averaged), options.window, progress);
    for (std::size_t layer = 0; layer + 1 < layers; ++layer)
      for (const double value : observer.mean().mean(layer))
        result.vectors.values.push_back(static_cast<float>(value));
  }
  settings.residual = std::make_shared<engine::GateResidual>(result);
  Engine engine(checkpoint, model, engine::resolve(settings, checkpoint, model), 1);
  QualityObserver observer(model.config, result.vectors);
  engine.observe(&observer);
  std::vector<std::vector<double>> found;
  run_windows(engine, tokens.subspan(averaged, used - averaged), options.window, [&](std::size_t done) {
    found.push_back(observer.take());
    progress(averaged + done);
  });
  result.all = quality_of(found, 0, layers - 1);
  for (std::size_t layer = 0; layer + 1 < layers; ++layer)
    result.layers.push_back(quality_of(found, layer, 1));
  return result;
}

}  // namespace sluice::eval
