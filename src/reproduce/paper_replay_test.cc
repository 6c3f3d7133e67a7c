#include "reproduce/paper_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "reproduce/zipmoe/zipmoe_replay.h"

namespace sluice::reproduce {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A small measured model: experts of 3 tensors of 1000 weights.
engine::Profile measured() {
  engine::Profile profile;
  profile.model = {.architecture = "small",
                   .codec = "zstd",
                   .layers = 2,
                   .experts = 4,
                   .top_k = 2,
                   .tensors = 3,
                   .chunks = 2,
                   .full = 6000,
                   .sm = 3000,
                   .exp = 1000};
  profile.machine = {.cpu = "cpu", .isa = "avx2", .io = "direct", .threads = 2};
  profile.u = {1e-4, 0};
  profile.v = {1e-5, 0};
  profile.c = {1e-6, 0};  // for 500 exponents
  profile.merge = {2e-7, 0};
  profile.p = {1e-6, 0};
  profile.p_of_tokens = {{1, {1e-6, 0}}, {4, {2e-6, 0}}};
  profile.rest = {1e-5, 0};
  return profile;
}

TEST(PaperProfile, HasTheSizesAndReadsOfThePaper) {
  const engine::Profile profile = paper_profile(deepseek_v2_lite(), {}, measured());
  EXPECT_NEAR(static_cast<double>(profile.model.full), 17.30e6, .01e6);  // SPEC §6
  EXPECT_NEAR(static_cast<double>(profile.model.sm), 8.65e6, .01e6);
  EXPECT_NEAR(static_cast<double>(profile.model.exp), 3.11e6, .01e6);
  EXPECT_NEAR(profile.u.median, .824e-3, .001e-3);
  EXPECT_NEAR(profile.v.median, .36 * .824e-3 / 4, 1e-6);
  // Measured times grow with weights.
  const double tensor = 8650752.0 / 3;
  EXPECT_NEAR(profile.c.median, 1e-6 * tensor / 4 / 500, 1e-12);
  EXPECT_NEAR(profile.merge.median, 2e-7 * tensor / 1000, 1e-12);
  EXPECT_NEAR(profile.p.median, 1e-6 * tensor / 1000, 1e-12);
  EXPECT_NEAR(profile.p_of_tokens[1].second.median, 2 * profile.p.median, 1e-12);
  EXPECT_NEAR(profile.rest.median, profile.p.median * (2.4e9 / 8650752 - 26 * 6), 1e-9);
}

TEST(Conversations, GoRoundFromPlacesOfTheirOwn) {
  const std::vector<Conversation> two = conversations(10, 16, 2);
  EXPECT_THAT(two[0].prompt, ElementsAre(10, 11));
  EXPECT_THAT(two[0].output, ElementsAre(12, 13, 14, 15));
  EXPECT_THAT(two[1].prompt, ElementsAre(13, 14));
  EXPECT_THAT(two[1].output, ElementsAre(15, 10, 11, 12));
}

class PaperReplayTest : public ::testing::Test {
 protected:
  PaperReplayTest() : routing_(26, 64, 6), replay_(deepseek_v2_lite(), filled(routing_), measured()) {}
  // Tokens 2t and 2t + 1 choose the same experts.
  static const TokenRouting& filled(TokenRouting& routing) {
    for (std::uint16_t t = 0; t < 24; ++t) {
      std::vector<std::uint16_t> ids;
      for (std::uint16_t layer = 0; layer < 26; ++layer)
        for (std::uint16_t i = 0; i < 6; ++i)
          ids.push_back(static_cast<std::uint16_t>((t / 2 + layer + 9 * i) % 64));
      routing.add_token(ids);
    }
    return routing;
  }
  ReplayFigures run(const char* preset, double memory, std::size_t batch = 1, double disk = 3.5e9) const {
    return replay_.run({.preset = preset,
                        .memory = memory,
                        .before = conversations(0, 12, batch),
                        .batch = conversations(12, 24, batch),
                        .machine = {.disk_bytes_per_s = disk}});
  }
  TokenRouting routing_;
  PaperReplay replay_;
};

TEST_F(PaperReplayTest, WithoutACacheEveryExpertIsReadWhole) {
  const engine::Profile profile = paper_profile(deepseek_v2_lite(), {}, measured());
  const ReplayFigures figures = run("z-accelerate", 0);
  const double layer = 6 * (17301504 / 3.5e9 + profile.p.median);
  EXPECT_NEAR(figures.tpot_s, 26 * layer + profile.rest.median, 1e-6);
  EXPECT_NEAR(figures.tok_s, 1 / figures.tpot_s, 1e-6);
  EXPECT_NEAR(figures.e2e_s, figures.ttft_s + 8 * figures.tpot_s, 1e-6);
  EXPECT_NEAR(figures.stall_share, 26 * 6 * (17301504 / 3.5e9) / figures.tpot_s, .05);
  EXPECT_GT(run("z-accelerate", 0, 1, 2e9).stall_share, figures.stall_share);
  EXPECT_LT(run("z-accelerate", 0, 1, 32e9).stall_share, figures.stall_share);
}

TEST_F(PaperReplayTest, WhatFilledTheCacheBeforeIsNotTimed) {
  // All experts of the batch were used before, and all of them fit.
  const ReplayFigures all = replay_.run({.preset = "z-basic-lru",
                                         .memory = 40e9,
                                         .before = conversations(0, 24, 1),
                                         .batch = conversations(12, 24, 1)});
  EXPECT_EQ(all.stall_share, 0);
  EXPECT_GT(run("z-basic-lru", 40e9).stall_share, 0);  // tokens of the second half are new
}

TEST_F(PaperReplayTest, MemoryHelpsAllButTheStream) {
  for (const char* preset : {"z-accelerate", "z-moe-infinity", "z-basic-lru", "z-C", "z-C+P"}) {
    SCOPED_TRACE(preset);
    EXPECT_LE(run(preset, 20e9).tpot_s, run(preset, 2e9).tpot_s);
  }
  EXPECT_EQ(run("z-deepspeed", 20e9).tpot_s, run("z-deepspeed", 2e9).tpot_s);
  EXPECT_GT(run("z-deepspeed", 20e9).tpot_s, 26 * 63 * 17301504.0 / 3.5e9);  // all 64 experts of every layer
  EXPECT_LT(run("z-C+P", 10e9).tpot_s, run("z-accelerate", 10e9).tpot_s);
}

TEST_F(PaperReplayTest, ABatchSharesWhatItReads) {
  const ReplayFigures one = run("z-accelerate", 2e9), four = run("z-accelerate", 2e9, 4);
  EXPECT_GT(four.tok_s, one.tok_s);
  EXPECT_GT(four.tpot_s, one.tpot_s);
}

TEST(ZipmoeReplay, SaysWhatItCannotReplay) {
  const ZipmoeReplay without = replay_zipmoe({.trace = "", .batches = {1}}, measured());
  for (const std::string* row : {&without.f1, &without.f7, &without.f8, &without.f9})
    EXPECT_TRUE(row->starts_with("n/a; ")) << *row;
  EXPECT_EQ(without.f10, "n/a");
  EXPECT_THAT(without.missing, HasSubstr("--trace"));
  EXPECT_THAT(without.conditions, HasSubstr("k = 1, N = 128"));
  EXPECT_THAT(without.conditions, HasSubstr("synthetic"));
  EXPECT_THROW(
      replay_zipmoe({.trace = SLUICE_SOURCE_DIR "/tests/data/routing/qwen.route.csv.zst", .batches = {1}},
                    measured()),
      Error);
}

TEST(ZipmoeReplay, BothHalvesHaveFigures) {
  std::vector<std::string> stages;
  const ZipmoeReplay both =
      replay_zipmoe({.trace = SLUICE_SOURCE_DIR "/tests/data/routing/dsv2lite.first48.mrt.zst",
                     .batches = {1, 2},
                     .on_stage = [&](const std::string& text) { stages.push_back(text); }},
                    measured());
  for (const std::string* row : {&both.f1, &both.f7, &both.f8, &both.f9, &both.f10}) {
    EXPECT_EQ(row->find("n/a"), std::string::npos) << *row;
    EXPECT_EQ(row->find("nan"), std::string::npos) << *row;
    EXPECT_EQ(row->find("inf"), std::string::npos) << *row;
  }
  EXPECT_THAT(both.f8, HasSubstr("B=2"));
  EXPECT_THAT(both.conditions, HasSubstr("48 tokens"));
  EXPECT_EQ(both.missing, "");
  EXPECT_EQ(both.data.size(), 2u);
  EXPECT_FALSE(stages.empty());
}

}  // namespace
}  // namespace sluice::reproduce
