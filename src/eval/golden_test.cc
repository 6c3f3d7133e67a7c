// Scores of the bundled model against transformers and lm-evaluation-harness (tests/golden/eval, made by
// tools/oracle/make_eval_golden.py), in fp32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/options.h"
#include "engine/watch/statistics.h"
#include "eval/logits.h"
#include "eval/tasks/choice_score.h"
#include "eval/tasks/choice_tasks.h"
#include "eval/tasks/data_file.h"
#include "eval/text_score.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "store/source/open_checkpoint.h"
#include "tokenizer/store_tokenizer.h"

namespace sluice::eval {
namespace {

const std::string kRoot = SLUICE_SOURCE_DIR "/";
const std::string kModel = kRoot + "models/fable-moe-18m";

// Tolerance of a token's log-likelihood: logits differ from transformers' by up to 1e-4 of the largest logit,
// 17 here (engine/golden_test.cc), and their logarithmic sum by as much again.
constexpr double kTokenTolerance = 2 * 1e-4 * 17;
// Sums are far closer; a whole answer or text may differ by this much per token.
constexpr double kMeanTolerance = 2e-4;

struct Loaded {
  explicit Loaded(const std::string& path = kModel)
      : checkpoint(store::open_checkpoint(path)), model(model::describe_model(*checkpoint)) {}
  std::unique_ptr<store::Checkpoint> checkpoint;
  model::Model model;
};

engine::EngineOptions options(std::size_t positions) {
  engine::EngineOptions options;
  options.memory = 256 * kMiB;
  options.threads = 2;
  options.math = engine::Math::kF32;
  options.positions = positions;
  options.fetch.io = fetch::IoMode::kBuffered;
  return options;
}

struct Excerpt {
  const char *task, *file, *golden;
};
void PrintTo(const Excerpt& excerpt, std::ostream* out) { *out << excerpt.golden; }

class ChoiceGolden : public ::testing::TestWithParam<Excerpt> {};

TEST_P(ChoiceGolden, LikelihoodsTokensAndMetricsAreTheHarnesss) {
  const Loaded loaded;
  const auto tokenizer = tokenizer::load_tokenizer_of(*loaded.checkpoint);
  const std::string path = kRoot + "tests/data/eval/" + GetParam().file;
  const std::vector<ChoiceItem> items =
      find_choice_task(GetParam().task).read(read_data_file(path, kMiB), path);
  const Json golden = read_json_file(kRoot + "tests/golden/eval/" + GetParam().golden + ".json");
  const std::size_t most = golden["max_length"].is_null() ? loaded.model.config.max_positions
                                                          : golden["max_length"].get<std::size_t>();
  engine::Engine engine(*loaded.checkpoint, loaded.model,
                        engine::resolve(options(512), *loaded.checkpoint, loaded.model), 8);
  ChoiceScorer scorer(engine);
  std::vector<ChoiceScore> scores;
  double worst = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Json& expected = golden["items"][i];
    const std::vector<ChoiceRequest> requests = encode_choices(*tokenizer, items[i], most, "item");
    scores.push_back(scorer.score(requests, {}));
    for (std::size_t choice = 0; choice < requests.size(); ++choice) {
      EXPECT_EQ(requests[choice].context_tokens, expected["context_tokens"][choice]);
      const auto tokens = expected["tokens"][choice].get<std::size_t>();
      EXPECT_EQ(scores[i].tokens[choice], tokens);
      EXPECT_LE(requests[choice].fed(), most);
      const double difference =
          std::abs(scores[i].log_likelihoods[choice] - expected["log_likelihoods"][choice].get<double>());
      EXPECT_LE(difference, std::max(kTokenTolerance, kMeanTolerance * static_cast<double>(tokens)))
          << "item " << i << " choice " << choice;
      worst = std::max(worst, difference / static_cast<double>(tokens));
    }
  }
  RecordProperty("worst_of_a_token", std::to_string(worst));
  const ChoiceMetrics metrics = choice_metrics(items, scores);
  const auto expect = [&](const Share& share, const std::string& name) {
    EXPECT_DOUBLE_EQ(share.mean, golden[name].get<double>()) << name;
    EXPECT_NEAR(share.error.value(), golden[name + "_stderr"].get<double>(), 1e-12) << name;
  };
  expect(metrics.acc, "acc");
  expect(metrics.acc_norm, "acc_norm");
  expect(metrics.acc_bytes, "acc_bytes");
}

INSTANTIATE_TEST_SUITE_P(Tasks, ChoiceGolden,
                         ::testing::Values(Excerpt{"arc-easy", "arc-easy.json", "arc-easy"},
                                           Excerpt{"arc-challenge", "arc-challenge.jsonl", "arc-challenge"},
                                           Excerpt{"hellaswag", "hellaswag.jsonl.zst", "hellaswag"},
                                           Excerpt{"openbookqa", "openbookqa.tsv", "openbookqa"},
                                           Excerpt{"boolq", "boolq.jsonl", "boolq"},
                                           Excerpt{"boolq", "boolq.jsonl", "boolq-96"}));

// The common front of an item's choices is fed once; the bits equal those of each request alone, fed token by
// token.
TEST(ChoiceScore, IsTheSameBitsHoweverItIsFed) {
  const Loaded loaded;
  const auto tokenizer = tokenizer::load_tokenizer_of(*loaded.checkpoint);
  const std::string path = kRoot + "tests/data/eval/hellaswag.jsonl.zst";
  std::vector<ChoiceItem> items = read_hellaswag(read_data_file(path, kMiB), path);
  items.resize(3);
  engine::EngineOptions for_three = options(256);
  for_three.sequences = 3;
  engine::Engine engine(*loaded.checkpoint, loaded.model,
                        engine::resolve(for_three, *loaded.checkpoint, loaded.model), 8);
  ChoiceScorer together(engine), stepwise(engine, 10);
  for (const ChoiceItem& item : items) {
    const std::vector<ChoiceRequest> requests = encode_choices(*tokenizer, item, 4096, "item");
    const ChoiceScore score = together.score(requests, {});
    EXPECT_EQ(stepwise.score(requests, {}).log_likelihoods, score.log_likelihoods);
    for (std::size_t choice = 0; choice < requests.size(); ++choice)
      EXPECT_EQ(ChoiceScorer(engine).score(std::span(requests).subspan(choice, 1), {}).log_likelihoods[0],
                score.log_likelihoods[choice]);
  }
}

std::vector<tokenizer::TokenId> some_text(const Loaded& loaded, std::size_t bytes) {
  return tokenizer::load_tokenizer_of(*loaded.checkpoint)
      ->encode(read_data_file(kModel + "/eval.txt", kMiB).substr(0, bytes), tokenizer::AddSpecial::kNo);
}

std::vector<WindowScore> scores_of(TextScorer& scorer, std::span<const tokenizer::TokenId> tokens,
                                   std::span<const Window> windows) {
  std::vector<WindowScore> scores;
  for (const Window& window : windows) scores.push_back(scorer.score(tokens, window, {}));
  return scores;
}

TEST(TextScore, IsThatOfTransformersInTheWindowsOfItsGuide) {
  const Loaded loaded;
  const Json golden = read_json_file(kRoot + "tests/golden/eval/perplexity.json");
  const std::vector<tokenizer::TokenId> tokens = some_text(loaded, golden["text_bytes"].get<std::size_t>());
  ASSERT_EQ(tokens.size(), golden["tokens"]);
  engine::Engine engine(*loaded.checkpoint, loaded.model,
                        engine::resolve(options(4096), *loaded.checkpoint, loaded.model), 64);
  TextScorer scorer(engine);
  for (const Json& run : golden["runs"]) {
    const auto length = run["ctx"].get<std::size_t>(), stride = run["stride"].get<std::size_t>();
    SCOPED_TRACE(std::to_string(length) + "/" + std::to_string(stride));
    if (stride == 1) continue;  // the windows of that run are compared below
    const std::vector<Window> windows = cut_windows(tokens.size(), length, stride);
    const TextScore score = sum(scores_of(scorer, tokens, windows));
    EXPECT_EQ(score.predicted, run["predicted"]);
    EXPECT_NEAR(score.perplexity(), run["perplexity"].get<double>(),
                kMeanTolerance * run["perplexity"].get<double>());
  }
  for (const Json& run : golden["runs"]) {
    const std::vector<Window> windows =
        cut_windows(tokens.size(), run["ctx"].get<std::size_t>(), run["stride"].get<std::size_t>());
    for (const Json& expected : run["windows"]) {
      const auto window = std::find_if(windows.begin(), windows.end(),
                                       [&](const Window& one) { return one.begin == expected["begin"]; });
      ASSERT_NE(window, windows.end());
      EXPECT_EQ(window->end, expected["end"]);
      const WindowScore score = scorer.score(tokens, *window, {});
      EXPECT_EQ(score.predicted, expected["scored"]);
      EXPECT_NEAR(score.nll, expected["nll"].get<double>(),
                  std::max(kTokenTolerance, kMeanTolerance * static_cast<double>(score.predicted)));
    }
  }
}

// For every architecture with only a decoder: grouping of tokens into chunks changes no bit.
TEST(TextScore, IsTheSameBitsInChunksAndTokenByToken) {
  std::size_t models = 0;
  for (const char* name : {"deepseek_a", "deepseek_v2_a", "deepseek_v2_b", "mixtral_a", "olmoe_a",
                           "qwen2_moe_a", "qwen3_moe_a", "xverse_a"}) {
    SCOPED_TRACE(name);
    const std::string path = sluice::testing::kGoldenModels + "/" + name;
    const Loaded loaded(path);
    const auto tokens = read_json_file(sluice::testing::kGoldens + "/" + name + ".golden/golden.json")
                            .at("tokens")
                            .get<std::vector<tokenizer::TokenId>>();
    const std::vector<Window> windows = cut_windows(tokens.size(), 32, 20);
    for (const engine::Math math : {engine::Math::kF32, engine::Math::kAuto}) {
      engine::EngineOptions with = options(32);
      with.math = math;
      engine::Engine engine(*loaded.checkpoint, loaded.model,
                            engine::resolve(with, *loaded.checkpoint, loaded.model), 4);
      std::vector<double> all;
      for (const std::size_t prompt :
           {kAllOfIt, std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{31}}) {
        TextScorer scorer(engine, prompt);
        std::vector<double> nll;
        for (const WindowScore& score : scores_of(scorer, tokens, windows)) nll.push_back(score.nll);
        if (all.empty()) all = nll;
        EXPECT_EQ(nll, all) << prompt;
        EXPECT_EQ(engine.statistics().decode.steps > 0, prompt != kAllOfIt);
      }
    }
    ++models;
  }
  EXPECT_EQ(models, 8u);
}

// Two models of one vocabulary, and arbitrary tokens.
TEST(TextScore, ComparisonIsWhatAllLogitsGive) {
  const std::string models = sluice::testing::kGoldenModels + "/";
  const Loaded loaded(models + "qwen3_moe_a"), other_loaded(models + "deepseek_v2_a");
  const std::size_t vocab = loaded.model.config.vocab;
  ASSERT_EQ(other_loaded.model.config.vocab, vocab);
  constexpr unsigned kSeed = 11;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  std::vector<tokenizer::TokenId> tokens(180);
  for (tokenizer::TokenId& token : tokens) token = static_cast<tokenizer::TokenId>(random() % vocab);
  engine::Engine reference(*loaded.checkpoint, loaded.model,
                           engine::resolve(options(64), *loaded.checkpoint, loaded.model), 4);
  engine::Engine model(*other_loaded.checkpoint, other_loaded.model,
                       engine::resolve(options(64), *other_loaded.checkpoint, other_loaded.model), 4);
  const std::vector<Window> windows = cut_windows(tokens.size(), 64, 40);

  // By definition, from whole matrices.
  const auto all_logits = [&](engine::Engine& engine, std::size_t prompt) {
    std::vector<std::vector<float>> rows;
    const auto sequence = engine.new_sequence();
    for (const Window& window : windows) {
      sequence->clear();
      const std::span<const tokenizer::TokenId> part =
          std::span<const tokenizer::TokenId>(tokens).subspan(window.begin, window.end - window.begin);
      for (std::size_t t = 0; t < part.size(); ++t) {
        const auto keep = [&](std::span<const float> logits) {
          if (window.begin + t + 1 >= window.scored && t + 1 < part.size())
            rows.emplace_back(logits.begin(), logits.end());
        };
        if (t >= prompt)
          keep(engine.decode(*sequence, part[t]));
        else
          engine.prefill(*sequence, part.subspan(t, 1),
                         {[](std::size_t) { return true; },
                          [&](std::size_t, std::span<const float> logits) { keep(logits); }});
      }
    }
    return rows;
  };
  constexpr std::size_t kPrompt = 5;
  const std::vector<std::vector<float>> exact = all_logits(reference, kAllOfIt),
                                        other = all_logits(model, kPrompt);
  std::vector<double> expected;
  std::size_t same = 0;
  for (std::size_t row = 0; row < exact.size(); ++row) {
    long double p_sum = 0, q_sum = 0, kl = 0;
    for (std::size_t i = 0; i < vocab; ++i) {
      p_sum += std::exp(static_cast<long double>(exact[row][i]));
      q_sum += std::exp(static_cast<long double>(other[row][i]));
    }
    std::size_t p_top = 0, q_top = 0;
    for (std::size_t i = 0; i < vocab; ++i) {
      const long double p = std::exp(static_cast<long double>(exact[row][i])) / p_sum;
      const long double q = std::exp(static_cast<long double>(other[row][i])) / q_sum;
      kl += p * std::log(p / q);
      if (exact[row][i] > exact[row][p_top]) p_top = i;
      if (other[row][i] > other[row][q_top]) q_top = i;
    }
    expected.push_back(static_cast<double>(kl));
    same += p_top == q_top;
  }
  ASSERT_GT(expected.size(), 100u);

  // For any number of positions by which the reference goes ahead.
  for (const std::size_t rows : {1, 13, 64}) {
    SCOPED_TRACE(rows);
    TextScorer scorer(model, kPrompt);
    scorer.compare_with(reference, rows);
    const std::vector<WindowScore> scores = scores_of(scorer, tokens, windows);
    std::vector<double> found;
    for (const WindowScore& score : scores) {
      EXPECT_EQ(score.divergence.size(), score.predicted);
      found.insert(found.end(), score.divergence.begin(), score.divergence.end());
    }
    ASSERT_EQ(found.size(), expected.size());
    double most = 0, mean = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 1e-10) << i;
      most = std::max(most, expected[i]);
      mean += expected[i] / static_cast<double>(expected.size());
    }
    const TextScore score = sum(scores);
    EXPECT_GT(most, 1e-3);  // the models do differ
    EXPECT_NEAR(score.divergence->most, most, 1e-10);
    EXPECT_NEAR(score.divergence->mean, mean, 1e-10);
    std::vector<double> ascending = expected;
    std::sort(ascending.begin(), ascending.end());
    EXPECT_NEAR(score.divergence->median,
                (ascending[(ascending.size() - 1) / 2] + ascending[ascending.size() / 2]) / 2, 1e-10);
    EXPECT_DOUBLE_EQ(score.top_agreement, static_cast<double>(same) / static_cast<double>(expected.size()));
  }
  // A model does not differ from itself.
  engine::Engine itself(*loaded.checkpoint, loaded.model,
                        engine::resolve(options(64), *loaded.checkpoint, loaded.model), 4);
  TextScorer scorer(itself, kPrompt);
  scorer.compare_with(reference, 7);
  const TextScore none = sum(scores_of(scorer, tokens, windows));
  EXPECT_NEAR(none.divergence->most, 0, 1e-12);
  EXPECT_EQ(none.top_agreement, 1);
  EXPECT_EQ(none.nll, none.reference_nll);
}

TEST(TextScore, StopsWhereItIsTold) {
  const Loaded loaded;
  const std::vector<tokenizer::TokenId> tokens = some_text(loaded, 300);
  engine::EngineOptions for_both = options(64);
  for_both.sequences = 2;
  engine::Engine engine(*loaded.checkpoint, loaded.model,
                        engine::resolve(for_both, *loaded.checkpoint, loaded.model), 4);
  TextScorer scorer(engine);
  int asked = 0;
  const Window window{0, 40, 1};
  EXPECT_THROW(scorer.score(tokens, window, [&] { return ++asked < 5; }), Error);
  EXPECT_EQ(asked, 5);
  const double whole = scorer.score(tokens, window, {}).nll;  // as if nothing had happened before
  EXPECT_EQ(TextScorer(engine).score(tokens, window, {}).nll, whole);
}

}  // namespace
}  // namespace sluice::eval
