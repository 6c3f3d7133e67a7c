// New experts of further tokens, counted by hand and by sets of random routing.
#include "engine/draft/fresh_experts.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>
#include <set>
#include <vector>

#include "engine/session/encoder_memory.h"
#include "engine/session/kv_pool.h"
#include "engine/session/sequence.h"
#include "model/config.h"

namespace sluice::engine {
namespace {

using TokenExperts = std::vector<std::vector<std::uint16_t>>;  // by layer

class FreshExpertsTest : public ::testing::Test {
 protected:
  // One step of a sequence that decodes these tokens.
  void step(FreshExperts& fresh, Sequence& sequence, const std::vector<TokenExperts>& tokens,
            StepKind kind = StepKind::kDecode, bool fails = false) {
    const SequenceSpan span{&sequence, 0, tokens.size(), kind};
    const Step step{.tokens = {}, .spans = {&span, 1}};
    fresh.begin_step();
    for (std::size_t layer = 0; layer < tokens[0].size(); ++layer) {
      experts::Routing routing;
      routing.begin.push_back(0);
      for (const TokenExperts& token : tokens) {
        for (const std::uint16_t expert : token[layer]) routing.choices.push_back({.expert = expert});
        routing.begin.push_back(static_cast<std::uint32_t>(routing.choices.size()));
      }
      fresh.on_event(step, {.routing = routing});
    }
    if (!fails) fresh.end_step();
  }
  std::unique_ptr<Sequence> sequence() {
    return std::make_unique<Sequence>(next_++, config_, pool_,
                                      EncoderMemory(config_, DType::kF32, 0, accountant_));
  }

  model::ModelConfig config_;
  device::Accountant accountant_{kMiB};
  KvPool pool_{config_, DType::kF32, 0, accountant_};
  experts::SequenceId next_ = 1;
};

TEST_F(FreshExpertsTest, CountsWhatTokensBeforeDoNotUse) {
  FreshExperts fresh(1, 2);
  const auto one = sequence();
  step(fresh, *one, {{{1, 2}}});
  EXPECT_EQ(fresh.means()[0], 2);
  EXPECT_EQ(fresh.means()[1], 0);  // not known yet
  step(fresh, *one, {{{2, 3}}});
  EXPECT_EQ(fresh.means()[1], 1);
  step(fresh, *one, {{{1, 4}}});
  EXPECT_EQ(fresh.means()[1], 1.5);  // the mean of 1, and of 2
  EXPECT_EQ(fresh.means()[2], 1);    // the token before the last one has 1
  step(fresh, *one, {{{7, 8}}}, StepKind::kPrompt);
  EXPECT_EQ(fresh.means()[0], 2);
}

TEST_F(FreshExpertsTest, CountsTokensOfOneStepAmongThemselves) {
  FreshExperts fresh(1, 2);
  const auto one = sequence();
  step(fresh, *one, {{{1, 2}}, {{1, 3}}, {{2, 3}}});
  EXPECT_EQ(fresh.means()[0], 2);
  EXPECT_EQ(fresh.means()[1], 1);  // 3 of the second, 2 of the third
  EXPECT_EQ(fresh.means()[2], 0);
}

TEST_F(FreshExpertsTest, ForgetsAnotherSequenceAndAFailedStep) {
  FreshExperts fresh(1, 2);
  const auto one = sequence(), other = sequence();
  step(fresh, *one, {{{1, 2}}});
  step(fresh, *other, {{{1, 2}}});
  EXPECT_EQ(fresh.means()[1], 0);
  step(fresh, *other, {{{3, 4}}}, StepKind::kDecode, true);
  step(fresh, *other, {{{1, 2}}});
  EXPECT_EQ(fresh.means()[1], 0);  // the token before it has both
  step(fresh, *other, {{{3, 4}}});
  EXPECT_EQ(fresh.means()[1], 1);
}

TEST_F(FreshExpertsTest, AreWhatSetsSay) {
  const char* const given = std::getenv("SLUICE_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "SLUICE_TEST_SEED=" << seed << '\n';
  std::mt19937_64 random(seed);
  constexpr std::size_t kLayers = 3, kTopK = 4;
  FreshExperts fresh(kLayers, kTopK);
  const auto one = sequence();
  std::vector<TokenExperts> text;
  // While the means look back to the first token they are plain means.
  std::array<double, kMostDrafts + 1> sums{}, counts{};
  for (std::size_t t = 0; t < 25; ++t) {
    TokenExperts token(kLayers);
    for (std::vector<std::uint16_t>& layer : token) {
      std::set<std::uint16_t> chosen;
      while (chosen.size() < kTopK) chosen.insert(static_cast<std::uint16_t>(random() % 10));
      layer.assign(chosen.begin(), chosen.end());
    }
    text.push_back(token);
    step(fresh, *one, {token});
    for (std::size_t b = 0; b <= std::min(t, kMostDrafts); ++b) {
      counts[b] += 1;
      for (std::size_t layer = 0; layer < kLayers; ++layer) {
        std::set<std::uint16_t> before;
        for (std::size_t back = 1; back <= b; ++back)
          before.insert(text[t - back][layer].begin(), text[t - back][layer].end());
        for (const std::uint16_t expert : token[layer]) sums[b] += before.contains(expert) ? 0 : 1;
      }
    }
    for (std::size_t b = 0; b <= kMostDrafts; ++b)
      EXPECT_NEAR(fresh.means()[b], counts[b] == 0 ? 0 : sums[b] / counts[b], 1e-9) << t << ", " << b;
  }
}

}  // namespace
}  // namespace sluice::engine
