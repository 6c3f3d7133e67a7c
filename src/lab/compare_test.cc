// Runs of the built program are in tests/reproduce_test.cc.
#include "lab/compare.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "experts/registry.h"

namespace sluice::lab {
namespace {

TEST(Compare, TheThreeBaselinesWithoutCompressionReadWholeExperts) {
  std::set<std::string_view> whole;
  for (const experts::Preset& preset : experts::presets())
    if (preset.whole_experts) whole.insert(preset.name);
  EXPECT_EQ(whole, (std::set<std::string_view>{"z-accelerate", "z-deepspeed", "z-moe-infinity"}));
}

TEST(Compare, NothingToCompareIsACallersMistake) {
  CompareSettings settings;
  settings.requests.resize(1);
  settings.requests.front().max_tokens = 2;
  const std::vector<Contender> one(1);  // without a checkpoint: asked for last
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
