#include "reproduce/token_routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice::reproduce {
namespace {

using ::testing::ElementsAre;

TEST(TokenRouting, StepsCountTokensOfEachExpert) {
  TokenRouting routing(2, 5, 2);
  routing.add_token(std::vector<std::uint16_t>{4, 1, 0, 2});
  routing.add_token(std::vector<std::uint16_t>{1, 2, 3, 4});
  EXPECT_EQ(routing.tokens(), 2u);
  EXPECT_THAT(routing.chosen(1, 1), ElementsAre(3, 4));
  lab::Requests requests;
  const std::vector<std::size_t> both = {0, 1}, second = {1};
  routing.append_step(both, {0, 1}, trace::TracePhase::kPrefill, requests);
  routing.append_step(second, {0, 2}, trace::TracePhase::kDecode, requests);
  EXPECT_EQ(requests.steps, 2u);
  EXPECT_EQ(requests.prefill_steps, 1u);
  EXPECT_EQ(requests.trace_tokens, 3u);
  ASSERT_EQ(requests.list.events(), 3u);
  EXPECT_THAT(requests.list.event(0),
              ElementsAre(experts::ExpertId{0, 1}, experts::ExpertId{0, 2}, experts::ExpertId{0, 4}));
  EXPECT_THAT(requests.list.event(2), ElementsAre(experts::ExpertId{1, 3}, experts::ExpertId{1, 4}));
  EXPECT_THAT(requests.tokens, ElementsAre(2, 1, 1, 1, 1, 1, 1));
  EXPECT_EQ(requests.events[0].tokens, 2u);
  EXPECT_EQ(requests.events[2].step, 1u);
  EXPECT_EQ(requests.events[2].layer, 1u);
  EXPECT_EQ(requests.events[2].phase, trace::TracePhase::kDecode);
}

TEST(TokenRouting, ReadsTracesInWhichEveryTokenIsWhole) {
  const auto mrt = trace::open_trace(SLUICE_SOURCE_DIR "/tests/data/routing/dsv2lite.first48.mrt.zst");
  const TokenRouting routing = read_token_routing(*mrt);
  EXPECT_EQ(routing.tokens(), 48u);
  EXPECT_EQ(routing.layers(), 26u);
  EXPECT_THAT(routing.chosen(0, 0), ElementsAre(8, 11, 26, 56, 57, 60));
  // The last layer of this trace routes only the token whose logits are wanted.
  const auto csv = trace::open_trace(SLUICE_SOURCE_DIR "/tests/data/routing/qwen.route.csv.zst");
  EXPECT_THROW(read_token_routing(*csv), Error);
}

TEST(SyntheticRouting, IsWhatItsParametersSay) {
  lab::SyntheticRouting settings{.layers = 2, .experts = 32, .top_k = 3, .prompts = 40, .tokens = 30};
  lab::RoutingFacts plain, again, skewed, sticky;
  const TokenRouting routing = synthetic_routing(settings, plain), same = synthetic_routing(settings, again);
  ASSERT_EQ(routing.tokens(), 1200u);
  for (std::size_t t = 0; t < routing.tokens(); ++t)
    for (std::uint32_t layer = 0; layer < 2; ++layer) {
      const auto chosen = routing.chosen(t, layer);
      ASSERT_TRUE(chosen[0] < chosen[1] && chosen[1] < chosen[2] && chosen[2] < 32);
      ASSERT_TRUE(std::ranges::equal(chosen, same.chosen(t, layer)));
    }
  EXPECT_EQ(plain.f_1, again.f_1);
  EXPECT_EQ(plain.overlap, again.overlap);
  for (const double share : {plain.f_1, plain.mass, plain.overlap}) {
    EXPECT_GT(share, 3.0 / 32);  // more than choosing at random
    EXPECT_LT(share, 1);
  }
  settings.a = 4;
  synthetic_routing(settings, skewed);
  EXPECT_GT(skewed.f_1, plain.f_1);
  EXPECT_GT(skewed.mass, plain.mass);
  settings.a = 1;
  settings.phi = .99;
  synthetic_routing(settings, sticky);
  EXPECT_GT(sticky.overlap, plain.overlap + .2);
}

}  // namespace
}  // namespace sluice::reproduce
