// tests/reproduce_test.cc runs the built program.
#include "lab/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/error.h"
#include "experts/presets.h"

namespace sluice::lab {
namespace {

TEST(Compare, TheThreeBaselinesWithoutCompressionReadWholeExperts) {
  std::set<std::string_view> whole;
  for (const experts::Preset& preset : experts::presets())
    if (preset.whole_experts) whole.insert(preset.name);
  EXPECT_EQ(whole, (std::set<std::string_view>{"z-accelerate", "z-deepspeed", "z-moe-infinity"}));
}

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Compared contender(const std::string& preset, std::optional<std::string> arithmetic,
                   const std::vector<Texts>& texts) {
  Compared made{.preset = preset, .path = "m", .arithmetic = std::move(arithmetic)};
  made.lossy = !made.arithmetic;
  made.texts = texts;
  made.runs.resize(texts.size());
  return made;
}

TEST(Compare, OnlyThoseThatComputeAlikeMustAgree) {
  const Texts one = {{1, 2, 3}, {4, 5, 6}}, other = {{1, 2, 3}, {4, 5, 7}};
  struct Case {
    std::vector<Compared> contenders;
    bool same, alike;
    const char* words;
  };
  for (const Case& it : {
           Case{{contender("a", "x", {one, one}), contender("b", "x", {one, one})}, true, true, "all equal"},
           Case{{contender("a", "x", {one, one}), contender("b", "x", {other, other})},
                false,
                false,
                "DIFFER"},
           Case{{contender("a", "x", {one, other}), contender("b", "x", {one, one})}, false, false, "DIFFER"},
           Case{{contender("a", "x", {one, other})}, false, false, "DIFFER"},
           Case{{contender("a", "x", {one, one}), contender("b", "y", {other, other})}, false, true, "alike"},
           Case{{contender("a", {}, {one, other}), contender("b", {}, {other, other})}, false, true, "alike"},
           Case{{contender("a", {}, {other, one}), contender("b", "x", {one, one}),
                 contender("c", "x", {one, one})},
                false,
                true,
                "alike"},
           // The runs between them are no excuse.
           Case{{contender("a", "x", {one, one}), contender("b", {}, {one, one}),
                 contender("c", "y", {one, one}), contender("d", "x", {other, other})},
                false,
                false,
                "DIFFER"},
       }) {
    const Comparison comparison{.contenders = it.contenders,
                                .reasons = {engine::StopReason::kContext, engine::StopReason::kLength}};
    EXPECT_EQ(comparison.same_texts(), it.same) << it.words;
    EXPECT_EQ(!comparison.different_though_computed_alike(), it.alike) << it.words;
    EXPECT_THAT(table_text(comparison, 200), HasSubstr(it.words));
    const Json json = to_json(comparison);
    EXPECT_EQ(json.at("stop_reasons"), Json({"context", "length"}));
    EXPECT_EQ(json.at("texts_equal"), it.same);
    EXPECT_EQ(json.at("texts_equal_where_computed_alike"), it.alike);
    EXPECT_EQ(json.at("tokens"), Json(it.contenders.front().texts.front()));
  }
}

// A contender with a device: what a step took in each run, and what the modelled clock said.
Compared on_device(const std::string& preset, const std::vector<std::pair<double, double>>& steps) {
  Compared made = contender(preset, "x", std::vector<Texts>(steps.size(), Texts{{1, 2}}));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto [tpot, predicted] = steps[i];
    made.runs[i].tpot_s = tpot;
    made.runs[i].predicted_tpot_s = predicted;
    made.runs[i].predicted_ratio = predicted / tpot;
    made.runs[i].overrun_share = .001 * static_cast<double>(i);
  }
  return made;
}

TEST(Compare, SetsBothClocksBesideEachOther) {
  Comparison comparison{.contenders = {on_device("slow", {{4, 3}, {5, 4}, {4, 4}}),
                                       on_device("fast", {{2, 2}, {1, 1}, {2, 1}})}};
  comparison.device = "emulated:link=1GB/s";
  comparison.device_kind = "emulated";
  comparison.device_is_played = true;
  comparison.dilation = 4;
  const Json json = to_json(comparison);
  EXPECT_EQ(json.at("device").at("same_ranking"), true);
  EXPECT_EQ(json.at("device").at("dilation"), 4);
  const Json& slow = json.at("presets").at(0).at("device");
  EXPECT_EQ(slow.at("predicted_tpot_s").at("median"), 4);
  EXPECT_EQ(slow.at("predicted_over_measured").at("median"), .8);
  EXPECT_EQ(slow.at("overrun_share").at("high"), .002);
  EXPECT_THAT(table_text(comparison, 200), AllOf(HasSubstr("0.800 (0.750-1.000)"), HasSubstr("0.20 %"),
                                                 HasSubstr("x4"), HasSubstr("the same order")));
  comparison.contenders.push_back(on_device("slower by one clock", {{3, 6}, {3, 6}, {3, 6}}));
  EXPECT_EQ(to_json(comparison).at("device").at("same_ranking"), false);
  EXPECT_THAT(table_text(comparison, 200), HasSubstr("ANOTHER order"));
  // The exact model beside them has no device.
  comparison.contenders = {contender("exact", "x", {Texts{{1, 2}}}), on_device("fast", {{2, 2}})};
  EXPECT_FALSE(to_json(comparison).at("presets").at(0).contains("device"));
  EXPECT_TRUE(to_json(comparison).at("presets").at(1).contains("device"));
}

TEST(Compare, WhatDiffersIsNamed) {
  const Texts one = {{1, 2, 3}}, other = {{1, 2, 4}};
  const Comparison comparison{
      .contenders = {contender("a", "x", {one, one}), contender("b", {}, {other, one}),
                     contender("c", "y", {other, other}), contender("d", "x", {one, other})}};
  const auto different = comparison.different_though_computed_alike();
  ASSERT_TRUE(different);
  EXPECT_EQ(different->from.preset, "a");
  EXPECT_EQ(different->contender.preset, "d");
  EXPECT_EQ(different->run, 2u);
}

// As --max-loss does when memory grows between two runs.
TEST(Compare, RunsThatChoseDifferentlyNeedNotAgree) {
  Compared it;
  it.add_run({}, "x", false);
  EXPECT_EQ(it.arithmetic, "x");
  EXPECT_FALSE(it.lossy);
  it.add_run({}, std::nullopt, true);
  EXPECT_EQ(it.arithmetic, std::nullopt);
  it.add_run({}, "x", false);
  EXPECT_EQ(it.arithmetic, std::nullopt);
  EXPECT_TRUE(it.lossy);
  EXPECT_EQ(it.runs.size(), 3u);
  Compared between;
  between.add_run({}, "x", true);
  between.add_run({}, "y", true);
  EXPECT_EQ(between.arithmetic, std::nullopt);
}

TEST(Compare, EqualTokensEndAtTheFirstThatDiffers) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    Texts texts(1 + random() % 3), exact(texts.size());
    std::size_t expected = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      for (std::size_t n = random() % 8; n > 0; --n)
        texts[i].push_back(static_cast<tokenizer::TokenId>(random() % 2));
      for (std::size_t n = random() % 8; n > 0; --n)
        exact[i].push_back(static_cast<tokenizer::TokenId>(random() % 2));
      for (std::size_t t = 0; t < texts[i].size(); ++t) {
        if (t == exact[i].size() || texts[i][t] != exact[i][t]) break;
        ++expected;
      }
    }
    EXPECT_EQ(equal_tokens(texts, exact), expected);
  }
  EXPECT_DEATH(equal_tokens({{1}}, {}), "other requests");
}

TEST(Compare, AgreementIsWithTheReferenceOverAllRuns) {
  const Texts exact = {{1, 2, 3}, {4, 5, 6}};
  Comparison comparison{
      .contenders = {
          contender("exact", "x", {exact, exact, exact}), contender("alike", "x", {exact, exact, exact}),
          contender("lossy", {}, {{{1, 9, 3}, {4, 5, 6}}, {{1, 2, 9}, {4, 5, 6}}, {{9, 2, 3}, {9, 5, 6}}}),
          contender("kept", "z", {exact, exact, exact})}};
  EXPECT_FALSE(comparison.agreement(comparison.contenders[2]));  // with nothing
  EXPECT_THAT(table_text(comparison, 200), Not(HasSubstr("the exact model's")));
  comparison.first = First::kReference;
  EXPECT_FALSE(comparison.agreement(comparison.contenders[0]));
  EXPECT_EQ(comparison.agreement(comparison.contenders[1])->equal.low, 6);
  const Agreement lossy = *comparison.agreement(comparison.contenders[2]);
  EXPECT_EQ(lossy.equal.median, 4);
  EXPECT_EQ(lossy.equal.low, 0);
  EXPECT_EQ(lossy.equal.high, 5);
  EXPECT_EQ(lossy.of, 6u);
  comparison.contenders[2].changes = {.json = {{"routing", 1}}, .rows = {{"routing", "much"}}};
  const std::string table = table_text(comparison, 200);
  EXPECT_THAT(table, HasSubstr("lossy            routing  much\n"));
  EXPECT_THAT(table, HasSubstr("tokens   4 (0-5) of 6 before the first"));
  EXPECT_THAT(table, HasSubstr("texts    of its runs differ\n"));
  EXPECT_THAT(table, HasSubstr("kept             tokens   6 (6-6) of 6"));
  EXPECT_THAT(table, Not(HasSubstr("alike            tokens")));
  const Json presets = to_json(comparison).at("presets");
  EXPECT_FALSE(presets[0].contains("equal_tokens"));
  EXPECT_EQ(presets[1].at("equal_tokens").at("median"), 6);
  EXPECT_EQ(presets[1].at("arithmetic"), "x");
  EXPECT_FALSE(presets[1].contains("experts"));
  EXPECT_EQ(presets[2].at("equal_tokens").at("of"), 6);
  EXPECT_EQ(presets[2].at("experts").at("routing"), 1);
  EXPECT_EQ(presets[2].at("arithmetic"), nullptr);
  EXPECT_EQ(presets[2].at("same_tokens"), false);
}

TEST(Compare, UsefulAndWastedBytesStandApart) {
  Comparison comparison{.contenders = {contender("a", "x", {{{1, 2}}})}};
  RunFigures& figures = comparison.contenders[0].runs[0];
  figures.bytes_per_token = 5 << 20;
  figures.useful_per_token = 3 << 20;
  figures.wasted_per_token = 2 << 20;
  const std::string table = table_text(comparison, 200);
  EXPECT_THAT(table, HasSubstr("read/token   in vain  hits"));
  EXPECT_THAT(table, HasSubstr("  3.00 MiB  2.00 MiB  "));
  EXPECT_THAT(table, Not(HasSubstr("5.00 MiB")));
  const Json preset = to_json(comparison).at("presets").at(0);
  EXPECT_EQ(preset.at("bytes_per_token").at("median"), 5 << 20);
  EXPECT_EQ(preset.at("useful_bytes_per_token").at("median"), 3 << 20);
  EXPECT_EQ(preset.at("wasted_bytes_per_token").at("median"), 2 << 20);
}

TEST(Compare, NothingToCompareIsACallersMistake) {
  CompareSettings settings;
  settings.requests.resize(1);
  settings.requests.front().max_tokens = 2;
  const std::vector<Contender> one(1);  // has no checkpoint: asked for last
  EXPECT_DEATH(Comparer().run({}, settings), "no contenders");
  EXPECT_DEATH(Comparer().run(one, settings), "checkpoint");
  settings.runs = 0;
  EXPECT_DEATH(Comparer().run(one, settings), "no runs");
  settings.runs = 1;
  settings.requests.front().max_tokens = 1;
  EXPECT_DEATH(Comparer().run(one, settings), "decodes nothing");
  settings.requests.clear();
  EXPECT_DEATH(Comparer().run(one, settings), "no requests");
  const Comparison nothing;
  EXPECT_DEATH(nothing.find("zipmoe"), "not compared: zipmoe");
  EXPECT_DEATH(spread_of({}), "no values");
  const Compared never;
  EXPECT_DEATH(never.of(&RunFigures::tok_s), "no runs");
}

}  // namespace
}  // namespace sluice::lab
