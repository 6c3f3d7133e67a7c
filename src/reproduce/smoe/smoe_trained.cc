#include "reproduce/smoe/smoe_trained.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "engine/engine.h"
#include "engine/forward/predictor.h"
#include "engine/run_report.h"
#include "eval/feed.h"
#include "eval/stepped_windows.h"
#include "eval/text_score.h"
#include "experts/layer_decider.h"
#include "lab/replay/routing_recorder.h"
#include "model/architecture.h"
#include "store/source/open_checkpoint.h"
#include "tokenizer/store_tokenizer.h"

namespace sluice::reproduce {
namespace {

constexpr eval::SteppedWindows kWindows{.window = 256, .prompt = 64};
constexpr std::size_t kLogitRows = 32;

class Measurement {
 public:
  explicit Measurement(const SmoeTrainedSettings& settings)
      : settings_(settings),
        checkpoint_(store::open_checkpoint(settings.model)),
        model_(model::describe_model(*checkpoint_)) {
    const model::ModelConfig& config = model_.config;
    if (config.has_encoder() || config.sparse_layers() < 2)
      throw Error(ErrorKind::kUnsupported, "nothing predicts a next layer with experts in this model")
          .in(settings.model)
          .expected("a decoder with at least two sparse layers");
    const auto tokenizer = tokenizer::load_tokenizer_of(*checkpoint_);
    if (tokenizer == nullptr)
      throw Error(ErrorKind::kNotFound, "a text needs a tokenizer, and this model has none")
          .in(settings.model);
    tokens_ = tokenizer->encode(settings.text, tokenizer::AddSpecial::kNo);
    tokens_.resize(std::min(tokens_.size(), settings.windows * kWindows.window));
    eval::check_windows(kWindows, tokens_.size(), "give a longer text");
    found_.model =
        std::filesystem::path(settings.model + "/").lexically_normal().parent_path().filename().string();
    found_.windows = kWindows.count(tokens_.size());
    found_.scored = kWindows.scored(tokens_.size());
  }

  SmoeTrained run() {
    record();
    for (const double cache : settings_.caches)
      for (const double alpha : settings_.alphas) score(alpha, cache);
    return std::move(found_);
  }

 private:
  // Nothing is read ahead but what a setting says, so every measurement of the same text is the same.
  engine::EngineOptions options(double cache) {
    engine::EngineOptions options = settings_.options;
    options.positions = kWindows.window;
    options.cache = "lru";
    options.prefetch = "none";
    options.less_cache_will_do = true;
    if (cache < 1) options.cache_bytes = static_cast<Bytes>(cache * static_cast<double>(all_experts()));
    return options;
  }

  Bytes all_experts() {
    if (all_experts_ == 0) {
      engine::EngineOptions options = settings_.options;
      options.positions = kWindows.window;
      options.cache = "lru";
      const engine::Engine engine(*checkpoint_, model_, engine::resolve(options, *checkpoint_, model_));
      all_experts_ = engine.report().expert_memory_bytes() * model_.experts.size();
    }
    return all_experts_;
  }

  void record() {
    engine::EngineOptions with = options(SmoeTrained::kHeld);
    with.prefetch = "smoe-partial";
    with.smoe.alpha = SmoeTrained::kAccuracyAlpha;
    engine::Engine engine(*checkpoint_, model_, engine::resolve(with, *checkpoint_, model_));
    lab::RoutingRecorder recorder(model_.config, engine::kPartialState);
    engine.observe(&recorder);
    for (std::size_t w = 0; w < found_.windows; ++w) {
      stop_if(settings_.interrupted);
      const std::size_t begin = w * kWindows.window;
      const auto sequence = engine.new_sequence();
      eval::feed(engine, *sequence,
                 std::span(tokens_).subspan(begin, std::min(kWindows.window, tokens_.size() - begin)),
                 kWindows.prompt,
                 {[](std::size_t) { return false; }, [](std::size_t, std::span<const float>) {}});
    }
    engine.observe(nullptr);
    found_.routing = recorder.steps();
    found_.facts = routing_facts(found_.routing);
    found_.ranks = rank_figures(found_.routing);
    found_.accuracy = top_score_accuracy(found_.routing, SmoeTrained::kAccuracyAlpha);
  }

  void score(double alpha, double cache) {
    engine::EngineOptions with = options(cache);
    with.router = "smoe";
    with.smoe.alpha = alpha;
    engine::Engine engine(*checkpoint_, model_, engine::resolve(with, *checkpoint_, model_), kLogitRows),
        exact(*checkpoint_, model_, engine::resolve(options(1), *checkpoint_, model_), kLogitRows);
    eval::TextScorer scorer(engine, kWindows.prompt);
    scorer.compare_with(exact, kLogitRows);
    std::vector<eval::WindowScore> changed, reference;
    SmoeLoss loss{.alpha = alpha, .cache = cache};
    double positions = 0;
    for (std::size_t w = 0; w < found_.windows; ++w) {
      const std::size_t begin = w * kWindows.window;
      const eval::WindowScore one =
          scorer.score(tokens_,
                       {.begin = begin,
                        .end = std::min(begin + kWindows.window, tokens_.size()),
                        .scored = begin + kWindows.prompt + 1},
                       [&] { return !settings_.interrupted || !settings_.interrupted(); });
      changed.push_back({.predicted = one.predicted, .nll = one.nll});
      reference.push_back({.predicted = one.predicted, .nll = one.reference_nll});
      loss.divergence += std::accumulate(one.divergence.begin(), one.divergence.end(), 0.0);
      loss.agreement += static_cast<double>(one.same_top);
      positions += static_cast<double>(one.predicted);
    }
    const eval::PerplexityLoss share = eval::of_perplexity(eval::difference(changed, reference));
    loss.loss = share.share;
    loss.error = share.error;
    loss.divergence /= positions;
    loss.agreement /= positions;
    const experts::RoutingChanges changes = engine.report().decider.decode_changes();
    loss.moved = changes.tokens == 0 ? 0 : changes.mass_lost / static_cast<double>(changes.tokens);
    found_.perplexity = eval::perplexity(reference);
    found_.losses.push_back(loss);
  }

  const SmoeTrainedSettings& settings_;
  const std::unique_ptr<store::Checkpoint> checkpoint_;
  const model::Model model_;
  std::vector<tokenizer::TokenId> tokens_;
  Bytes all_experts_ = 0;
  SmoeTrained found_;
};

}  // namespace

Json to_json(const SmoeTrained& trained) {
  Json json = {
      {"model", trained.model},
      {"windows", trained.windows},
      {"scored", trained.scored},
      {"perplexity", trained.perplexity},
      {"facts",
       {{"f_1", trained.facts.f_1}, {"mass", trained.facts.mass}, {"overlap", trained.facts.overlap}}},
      {"score_by_rank", trained.ranks.score},
      {"reuse_by_rank", trained.ranks.reuse},
      {"predicted",
       {{"experts", trained.accuracy.predicted},
        {"top_score", trained.accuracy.precision()},
        {"active", trained.accuracy.active_share()}}}};
  json["losses"] = Json::array();
  for (const SmoeLoss& one : trained.losses)
    json["losses"].push_back({{"alpha", one.alpha},
                              {"cache", one.cache},
                              {"moved", one.moved},
                              {"loss", one.loss},
                              {"error", one.error},
                              {"divergence", one.divergence},
                              {"agreement", one.agreement}});
  return json;
}

SmoeTrained measure_smoe_trained(const SmoeTrainedSettings& settings) { return Measurement(settings).run(); }

}  // namespace sluice::reproduce
