// The parts of SliceMoE's rows: shares by hand, and a report that has every row.
#include "reproduce/slicemoe/slicemoe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "reproduce/slicemoe/slicemoe_results.h"
#include "reproduce/slicemoe/slicemoe_trained_rows.h"
#include "reproduce/well_formed.h"

namespace sluice::reproduce {
namespace {

using ::testing::HasSubstr;

lab::RoutedStep step_of(bool prompt, std::uint32_t context,
                        const std::vector<std::vector<std::uint16_t>>& tokens) {
  lab::RoutedStep step;
  step.prompt = prompt;
  step.sequences = {{static_cast<std::uint32_t>(tokens.size()), context}};
  lab::RoutedLayer& layer = step.layers.emplace_back();
  layer.begin = {0};
  for (const std::vector<std::uint16_t>& token : tokens) {
    for (const std::uint16_t expert : token) layer.choices.push_back({.expert = expert, .weight = .5f});
    layer.begin.push_back(static_cast<std::uint32_t>(layer.choices.size()));
  }
  return step;
}

TEST(HotOverlap, CountsRequestsOfTheFirstSteps) {
  lab::RoutedSteps steps;
  steps.layers = 1, steps.experts = 4, steps.top_k = 2;
  // Prompt: expert 0 three times, 1 twice, 2 once. Decode: 0 1, 0 3, then one step too late.
  steps.steps = {step_of(true, 0, {{0, 1}, {0, 1}, {0, 2}}), step_of(false, 3, {{0, 1}}),
                 step_of(false, 4, {{0, 3}}), step_of(false, 5, {{2, 3}})};
  const std::vector<HotOverlap> overlap = hot_overlap(steps, {1, 2, 4}, 2);
  ASSERT_EQ(overlap.size(), 3u);
  EXPECT_DOUBLE_EQ(overlap[0].prompt, .5);  // expert 0: two of four requests
  EXPECT_DOUBLE_EQ(overlap[0].best, .5);
  EXPECT_DOUBLE_EQ(overlap[0].chance, .25);
  EXPECT_DOUBLE_EQ(overlap[1].prompt, .75);  // 0 and 1
  EXPECT_DOUBLE_EQ(overlap[2].prompt, 1);
  // A second generation counts as much; a prompt without steps is not counted.
  steps.steps.push_back(step_of(true, 0, {{2, 3}}));
  steps.steps.push_back(step_of(false, 1, {{2, 3}}));
  steps.steps.push_back(step_of(true, 0, {{0, 1}}));
  const std::vector<HotOverlap> both = hot_overlap(steps, {1, 2}, 2);
  EXPECT_DOUBLE_EQ(both[0].prompt, (.5 + .5) / 2);
  EXPECT_DOUBLE_EQ(both[1].prompt, (.75 + 1) / 2);
}

TEST(HotCounts, DoubleAndAreNeverNone) {
  using ::testing::ElementsAre;
  EXPECT_THAT(hot_counts(64), ElementsAre(4, 8, 16, 32));
  EXPECT_THAT(hot_counts(60), ElementsAre(3, 6, 12, 24, 48));
  EXPECT_THAT(hot_counts(16), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(hot_counts(8), ElementsAre(1, 2, 4));
  EXPECT_THAT(hot_counts(2), ElementsAre(1));
  EXPECT_THAT(hot_counts(1), ElementsAre(1));
}

TEST(EqualLoss, LiesBetweenNeighboursAndSaysWhereItDoesNot) {
  const auto at = [](double lost, double joules) {
    SystemFigures figures;
    figures.mass_lost = lost;
    figures.joules = joules;
    figures.seconds = 2 * joules;
    return figures;
  };
  const std::vector<SystemFigures> sweep = {at(.1, 1), at(0, 5), at(.05, 3)};
  EXPECT_DOUBLE_EQ(at_equal_loss(sweep, .05).joules, 3);
  EXPECT_DOUBLE_EQ(at_equal_loss(sweep, .075).joules, 2);
  EXPECT_DOUBLE_EQ(at_equal_loss(sweep, .025).seconds, 8);
  EXPECT_TRUE(at_equal_loss(sweep, .025).inside);
  EXPECT_FALSE(at_equal_loss(sweep, .2).inside);
  EXPECT_DOUBLE_EQ(at_equal_loss(sweep, .2).joules, 1);
}

TEST(CriticalShares, CountWeightsOfAtLeastTheirShareInSteps) {
  lab::RoutedSteps steps;
  steps.layers = 1, steps.experts = 4, steps.top_k = 2;
  lab::RoutedStep prompt = step_of(true, 0, {{0, 1}}), one = step_of(false, 1, {{0, 1}}),
                  two = step_of(false, 2, {{0, 2}, {1, 3}});
  two.layers[0].choices[0].weight = .8f;  // .8 and .5: shares .615 and .385
  two.layers[0].choices[2].weight = .2f;  // .2 and .5: .286 and .714
  steps.steps = {prompt, one, two};
  const CriticalShares at_half = critical_shares(steps, .5);  // 2, 1 and 1 experts
  EXPECT_THAT(at_half.shares, ::testing::ElementsAre(0, ::testing::DoubleNear(2. / 3, 1e-12),
                                                     ::testing::DoubleNear(1. / 3, 1e-12)));
  EXPECT_NEAR(at_half.mean(), 4. / 3, 1e-12);
  EXPECT_EQ(at_half.most(), 2u);
  EXPECT_THAT(critical_shares(steps, .75).shares, ::testing::ElementsAre(1, 0, 0));
  EXPECT_EQ(critical_shares(steps, .75).most(), 0u);
}

// Routing of the published shapes must resemble the recording that it replaces.
TEST(SyntheticLike, IsAboutWhatIsRecorded) {
  const auto trace = trace::open_trace(SLUICE_SOURCE_DIR "/tests/data/routing/dsv2lite.summary612.mrt.zst");
  const lab::RoutingFacts recorded = lab::facts_of(*trace);
  lab::SyntheticTrace synthetic(synthetic_like(lab::find_published_model("deepseek-v2-lite"), 1, 612, 1),
                                500);
  const lab::RoutingFacts facts = lab::facts_of(synthetic);
  EXPECT_NEAR(facts.f_1, recorded.f_1, .05);
  EXPECT_NEAR(facts.mass, recorded.mass, .02);
  EXPECT_NEAR(facts.overlap, recorded.overlap, .03);
}

TEST(ReproduceSlicemoe, HasEveryRowWithPictures) {
  std::vector<std::string> stages;
  const Report report =
      reproduce_slicemoe({.trained = std::nullopt,
                          .trace = SLUICE_SOURCE_DIR "/tests/data/routing/dsv2lite.summary612.mrt.zst",
                          .quick = true,
                          .command = "sluice reproduce slicemoe --quick",
                          .version = "1",
                          .interrupted = {},
                          .on_stage = [&](std::string_view text) { stages.emplace_back(text); }});
  ASSERT_EQ(report.rows.size(), slicemoe_row_ids().size());
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    EXPECT_EQ(report.rows[i].id, slicemoe_row_ids()[i]);
    // Without a trained model nothing is measured.
    const bool measured = std::ranges::count(trained_row_ids(), report.rows[i].id) == 1;
    EXPECT_EQ(mode_text(report.rows[i]), measured ? "N" : "S");
    EXPECT_EQ(report.rows[i].ours.find("nan"), std::string::npos) << report.rows[i].ours;
    EXPECT_FALSE(report.rows[i].note.empty());
  }
  EXPECT_THAT(report.rows[0].paper, HasSubstr("AMAT 10.18, 7.56, 7.11"));
  EXPECT_THAT(report.rows[4].paper, HasSubstr("2.37×, 1.81×"));
  EXPECT_THAT(report.rows[5].paper, HasSubstr("2.31×, 1.96×"));
  EXPECT_EQ(report.pictures.size(), 4u);
  for (const ReportPicture& picture : report.pictures)
    EXPECT_EQ(sluice::testing::xml_fault(picture.svg), "") << picture.file;
  EXPECT_GT(stages.size(), 10u);

  // Properties of every replay: limits are kept, and slices never have more experts at high precision than
  // the system at high precision.
  const Json& systems = report.data.at("synthetic").at("DeepSeek-V2-Lite").at("systems");
  ASSERT_EQ(systems.size(), 9u);
  for (const Json& cell : systems) {
    EXPECT_LE(cell.at("sliced").at("hbn_miss_rate").get<double>(), kMissRate);
    EXPECT_LE(cell.at("high").at("hbn_miss_rate").get<double>(), kMissRate);
    EXPECT_EQ(cell.at("high").at("high_share"), 1);
    EXPECT_LT(cell.at("sliced").at("high_share").get<double>(), 1);
    EXPECT_EQ(cell.at("high_sweep").size(), 8u);
    EXPECT_EQ(cell.at("high_sweep").back().at("mass_lost"), 0);  // a limit of 100 % changes nothing
  }
}

TEST(ReproduceSlicemoe, RefusesOtherTraces) {
  SlicemoeSettings settings;
  settings.trace = SLUICE_SOURCE_DIR "/tests/data/routing/qwen.route.csv.zst";
  EXPECT_THROW(reproduce_slicemoe(settings), Error);
  // The whole trace is a prompt
  settings.trace = SLUICE_SOURCE_DIR "/tests/data/routing/dsv2lite.first48.mrt.zst";
  EXPECT_THROW(reproduce_slicemoe(settings), Error);
}

}  // namespace
}  // namespace sluice::reproduce
