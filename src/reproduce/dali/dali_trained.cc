#include "reproduce/dali/dali_trained.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/stop_request.h"
#include "engine/engine.h"
#include "engine/forward/predictor.h"
#include "engine/watch/routing_observer.h"
#include "experts/prefetch/expert_transitions.h"
#include "experts/prefetch/prediction_check.h"
#include "experts/prefetch/prefetch.h"
#include "experts/prefetch/residual.h"
#include "experts/registry.h"
#include "model/architecture.h"
#include "store/source/open_checkpoint.h"
#include "tokenizer/store_tokenizer.h"

namespace sluice::reproduce {
namespace {

constexpr std::size_t kWindow = 256, kLeast = 512, kBlocks = 16;
constexpr const char* kPrefetches[] = {"dali-residual", "raw", "stream", "stat", "random"};

// What one sparse layer saw and said, token by token.
struct LayerRecord {
  std::vector<float> inputs;             // (T, d)
  std::vector<float> logits, scores;     // (T, N)
  std::vector<float> raw, stream;        // (T, N): as predicted while the layer before was computed
  std::vector<experts::Choice> choices;  // (T, k)
};

class Recorder final : public engine::RoutingObserver {
 public:
  explicit Recorder(std::size_t layers) : layers_(layers) {}
  std::vector<LayerRecord> take() { return std::move(layers_); }

  void on_inputs(std::uint32_t layer, std::span<const float> inputs) override {
    append(inputs, layers_[layer].inputs);
  }
  void on_routing(const experts::ScoresView& scores, const experts::Routing& routing) override {
    LayerRecord& layer = layers_[scores.layer];
    append(scores.logits, layer.logits);
    append(scores.scores, layer.scores);
    layer.choices.insert(layer.choices.end(), routing.choices.begin(), routing.choices.end());
  }
  bool wants_ahead() const override { return true; }
  void on_ahead(std::string_view predictor, const experts::ScoresView& next) override {
    if (predictor == engine::kStream) append(next.logits, layers_[next.layer].stream);
    if (predictor == engine::kGateInput) append(next.logits, layers_[next.layer].raw);
  }

 private:
  static void append(std::span<const float> from, std::vector<float>& to) {
    to.insert(to.end(), from.begin(), from.end());
  }
  std::vector<LayerRecord> layers_;
};

std::vector<double> doubles(const std::vector<float>& all, std::size_t row, std::size_t width) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * width);
  return {begin, begin + static_cast<std::ptrdiff_t>(width)};
}

class NothingHeld final : public experts::ResidencyView {
 public:
  experts::Parts parts(experts::ExpertId) const override { return {}; }
};

class Measurement {
 public:
  explicit Measurement(const DaliTrainedSettings& settings)
      : settings_(settings),
        checkpoint_(store::open_checkpoint(settings.model)),
        model_(model::describe_model(*checkpoint_)),
        tokenizer_(tokenizer::load_tokenizer_of(*checkpoint_)) {
    const model::ModelConfig& config = model_.config;
    if (config.has_encoder() || config.sparse_layers() < 2)
      throw Error(ErrorKind::kUnsupported, "nothing predicts a next layer with experts in this model")
          .in(settings.model)
          .expected("a decoder with at least two sparse layers");
    if (tokenizer_ == nullptr)
      throw Error(ErrorKind::kNotFound, "a text needs a tokenizer, and this model has none")
          .in(settings.model);
    found_.model =
        std::filesystem::path(settings.model + "/").lexically_normal().parent_path().filename().string();
    found_.layers = config.sparse_layers();
    found_.experts = config.moe.experts;
    found_.top_k = config.moe.top_k;
  }

  DaliTrained run() {
    const std::vector<tokenizer::TokenId> all =
        tokenizer_->encode(settings_.text, tokenizer::AddSpecial::kNo);
    if (all.size() < 2 * kLeast)
      throw Error(ErrorKind::kInvalid,
                  "the text is too short to calibrate with one half and measure the other")
          .expected(fmt::format("{} tokens", 2 * kLeast))
          .found(std::to_string(all.size()));
    const std::span tokens(all);
    const std::size_t half = all.size() / 2, count = std::min(settings_.tokens, half);
    calibrate(record(tokens.first(count)));
    found_.calibrated = count;
    const std::vector<LayerRecord> held_out = record(tokens.subspan(half, count));
    found_.measured = count;
    cosines(held_out);
    accuracies(kDaliHeldOut, held_out);
    for (const DaliTrainedSettings::Text& other : settings_.others) {
      std::vector<tokenizer::TokenId> ids = tokenizer_->encode(other.text, tokenizer::AddSpecial::kNo);
      ids.resize(std::min(ids.size(), settings_.tokens));
      if (ids.size() >= kLeast) accuracies(other.name, record(ids));
    }
    return std::move(found_);
  }

 private:
  // Windows that know nothing of each other. Routing has the same bits however many tokens share a step.
  std::vector<LayerRecord> record(std::span<const tokenizer::TokenId> tokens) {
    engine::EngineOptions options = settings_.options;
    options.positions = kWindow;
    options.prefetch = "none";
    engine::Engine engine(*checkpoint_, model_, engine::resolve(options, *checkpoint_, model_));
    Recorder recorder(found_.layers);
    engine.observe(&recorder);
    for (std::size_t at = 0; at < tokens.size(); at += kWindow) {
      stop_if(settings_.interrupted);
      const auto sequence = engine.new_sequence();
      engine.prefill(*sequence, tokens.subspan(at, std::min(kWindow, tokens.size() - at)),
                     {[](std::size_t) { return false; }, [](std::size_t, std::span<const float>) {}});
    }
    engine.observe(nullptr);
    return recorder.take();
  }

  void calibrate(const std::vector<LayerRecord>& text) {
    const std::size_t width = model_.config.hidden, n = found_.experts, k = found_.top_k;
    experts::ResidualMean inputs(found_.layers, width), logits(found_.layers, n);
    transitions_.emplace(found_.layers, found_.experts);
    for (std::uint32_t l = 0; l + 1 < found_.layers; ++l)
      for (std::size_t t = 0; t < text[l].logits.size() / n; ++t) {
        inputs.add(l, doubles(text[l].inputs, t, width), doubles(text[l + 1].inputs, t, width));
        logits.add(l, doubles(text[l + 1].raw, t, n), doubles(text[l + 1].logits, t, n));
        std::vector<std::uint16_t> here, next;
        for (std::size_t c = t * k; c < (t + 1) * k; ++c) {
          here.push_back(text[l].choices.at(c).expert);
          next.push_back(text[l + 1].choices.at(c).expert);
        }
        transitions_->add(l, here, next);
      }
    for (std::uint32_t l = 0; l + 1 < found_.layers; ++l) {
      residual_.push_back(inputs.mean(l));
      logit_residual_.push_back(logits.mean(l));
    }
  }

  void cosines(const std::vector<LayerRecord>& text) {
    const std::size_t width = model_.config.hidden;
    for (std::uint32_t l = 0; l + 1 < found_.layers; ++l) {
      double raw = 0, corrected = 0;
      const std::size_t tokens = text[l].inputs.size() / width;
      for (std::size_t t = 0; t < tokens; ++t) {
        std::vector<double> here = doubles(text[l].inputs, t, width);
        const std::vector<double> next = doubles(text[l + 1].inputs, t, width);
        raw += experts::cosine(std::span(here), std::span(next));
        for (std::size_t i = 0; i < width; ++i) here[i] += residual_[l][i];
        corrected += experts::cosine(std::span(here), std::span(next));
      }
      found_.cosine_raw.push_back(raw / static_cast<double>(tokens));
      found_.cosine_residual.push_back(corrected / static_cast<double>(tokens));
    }
  }

  void accuracies(const std::string& name, const std::vector<LayerRecord>& text) {
    for (const std::uint32_t batch : settings_.batches)
      for (const char* prefetch : kPrefetches)
        for (const std::uint32_t top : settings_.tops)
          if (top <= found_.experts) found_.accuracies.push_back(accuracy(name, text, prefetch, batch, top));
  }

  DaliAccuracy accuracy(const std::string& name, const std::vector<LayerRecord>& text,
                        const std::string& prefetch, std::uint32_t batch, std::uint32_t top) {
    const auto policy = experts::find_prefetch(prefetch).make({.seed = 1, .transitions = &*transitions_});
    const std::size_t tokens = text[0].logits.size() / found_.experts, steps = tokens / batch;
    std::vector<double> blocks(kBlocks), counts(kBlocks);
    for (std::size_t step = 0; step < steps; ++step) {
      stop_if(settings_.interrupted, step, 64);
      std::vector<std::size_t> of_step;
      for (std::uint32_t b = 0; b < batch; ++b) of_step.push_back(b * steps + step);
      for (std::uint32_t l = 0; l + 1 < found_.layers; ++l) {
        const std::size_t block = step * kBlocks / steps;
        blocks[block] += right(text, l, of_step, *policy, top);
        counts[block] += 1;
      }
    }
    return summary(name, prefetch, batch, top, blocks, counts);
  }

  static DaliAccuracy summary(const std::string& name, const std::string& prefetch, std::uint32_t batch,
                              std::uint32_t top, const std::vector<double>& blocks,
                              const std::vector<double>& counts) {
    DaliAccuracy found{name, prefetch, batch, top};
    std::vector<double> means;
    for (std::size_t i = 0; i < kBlocks; ++i)
      if (counts[i] > 0) means.push_back(blocks[i] / counts[i]);
    const auto n = static_cast<double>(means.size());
    found.value = std::accumulate(means.begin(), means.end(), 0.0) / n;
    double squares = 0;
    for (const double mean : means) squares += (mean - found.value) * (mean - found.value);
    found.error = n > 1 ? std::sqrt(squares / (n - 1) / n) : 0;
    return found;
  }

  // The share of the experts of most tokens in the layer behind l that is named.
  double right(const std::vector<LayerRecord>& text, std::uint32_t l, const std::vector<std::size_t>& tokens,
               experts::Prefetch& prefetch, std::uint32_t top) {
    const std::size_t n = found_.experts, k = found_.top_k;
    routing_.choices.clear();
    routing_.begin = {0};
    predicted_.clear();
    std::vector<std::uint32_t> count(n);
    std::vector<double> mass(n);
    for (const std::size_t t : tokens) {
      const auto chosen = std::span(text[l].choices).subspan(t * k, k);
      routing_.choices.insert(routing_.choices.end(), chosen.begin(), chosen.end());
      routing_.begin.push_back(static_cast<std::uint32_t>(routing_.choices.size()));
      append_prediction(text[l + 1], l, t, prefetch.predictor());
      for (const experts::Choice& choice : std::span(text[l + 1].choices).subspan(t * k, k))
        ++count[choice.expert];
      for (std::size_t e = 0; e < n; ++e) mass[e] += text[l + 1].scores[t * n + e];
    }
    set_scores();
    const experts::ScoresView next{.layer = l + 1,
                                   .experts = found_.experts,
                                   .tokens = static_cast<std::uint32_t>(tokens.size()),
                                   .logits = predicted_,
                                   .scores = scores_};
    const NothingHeld nothing;
    named_.clear();
    prefetch.propose({.layer = l,
                      .layers = found_.layers,
                      .experts = found_.experts,
                      .routing = &routing_,
                      .residency = &nothing,
                      .next = predicted_.empty() ? nullptr : &next,
                      .top_k = found_.top_k,
                      .most = top},
                     named_);
    std::vector<std::uint32_t> ids;
    for (const experts::PartRequest& one : named_) ids.push_back(one.id.index);
    check_.expect(l + 1, top, ids);
    return check_.observe(l + 1, count, mass).accuracy();
  }

  // The softmax of each predicted row.
  void set_scores() {
    const std::size_t n = found_.experts;
    scores_.clear();
    for (std::size_t at = 0; at < predicted_.size(); at += n) {
      const auto row = std::span(predicted_).subspan(at, n);
      const float most = *std::ranges::max_element(row);
      double sum = 0;
      for (const float z : row) sum += std::exp(double{z} - most);
      for (const float z : row) scores_.push_back(static_cast<float>(std::exp(double{z} - most) / sum));
    }
  }

  void append_prediction(const LayerRecord& next, std::uint32_t l, std::size_t token,
                         experts::PredictorKind kind) {
    if (kind == experts::PredictorKind::kNone) return;
    const std::vector<float>& from = kind == experts::PredictorKind::kStream ? next.stream : next.raw;
    for (std::size_t e = 0; e < found_.experts; ++e) {
      const double added = kind == experts::PredictorKind::kResidual ? logit_residual_[l][e] : 0;
      predicted_.push_back(static_cast<float>(from[token * found_.experts + e] + added));
    }
  }

  const DaliTrainedSettings& settings_;
  const std::unique_ptr<store::Checkpoint> checkpoint_;
  const model::Model model_;
  const std::unique_ptr<tokenizer::Tokenizer> tokenizer_;
  DaliTrained found_;
  // By layer but the last: of gate inputs, (d), and of the next layer's logits, (N), which is the same behind
  // the router (lab/replay/logit_residual.h).
  std::vector<std::vector<double>> residual_, logit_residual_;
  std::optional<experts::ExpertTransitions> transitions_;
  experts::Routing routing_;
  std::vector<float> predicted_, scores_;  // (T, N) of a step
  std::vector<experts::PartRequest> named_;
  experts::TopPrediction check_;
};

}  // namespace

const DaliAccuracy& DaliTrained::find(const std::string& text, const std::string& prefetch,
                                      std::uint32_t batch, std::uint32_t top) const {
  for (const DaliAccuracy& one : accuracies)
    if (one.text == text && one.prefetch == prefetch && one.batch == batch && one.top == top) return one;
  SLUICE_CHECK(false, "no accuracy of " + prefetch + " on " + text);
}

Json to_json(const DaliTrained& trained) {
  Json json = {{"model", trained.model},
               {"layers", trained.layers},
               {"experts", trained.experts},
               {"top_k", trained.top_k},
               {"calibrated_tokens", trained.calibrated},
               {"measured_tokens", trained.measured},
               {"cosine", {{"raw", trained.cosine_raw}, {"residual", trained.cosine_residual}}}};
  json["accuracy"] = Json::array();
  for (const DaliAccuracy& one : trained.accuracies)
    json["accuracy"].push_back({{"text", one.text},
                                {"prefetch", one.prefetch},
                                {"batch", one.batch},
                                {"top", one.top},
                                {"value", one.value},
                                {"error", one.error}});
  return json;
}

DaliTrained measure_dali(const DaliTrainedSettings& settings) { return Measurement(settings).run(); }

}  // namespace sluice::reproduce
