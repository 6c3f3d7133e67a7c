// The router `smoe` through the built program: what alpha 0 leaves alone, what a larger one saves and says,
// and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/files/scratch_directory.h"
#include "base/json/json.h"
#include "bundled_model.h"

namespace {

using sluice::Json;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::program::run_json;
using ::testing::HasSubstr;

// Two fifths of all experts stay in memory, and nothing is read ahead: every start decides alike.
std::string story(const std::string& more) {
  return "run " + kModel +
         " -p 'Once upon a time' -n 60 --temp 0 --ignore-eos --capacity 10MiB --prefetch none --memory " +
         memory(64) + " " + more;
}

Json routing_of(const Json& ran) { return ran.at("experts").at("routing"); }

TEST(SmoeRun, AlphaZeroIsExact) {
  const Json exact = run_json(story("")), zero = run_json(story("--router smoe --alpha 0"));
  EXPECT_EQ(exact.at("text"), zero.at("text"));
  EXPECT_EQ(exact.at("decisions"), zero.at("decisions"));
  EXPECT_EQ(routing_of(zero).at("substituted").get<int>(), 0);
}

TEST(SmoeRun, ALargerAlphaReplacesMoreReadsLessAndSaysSo) {
  double bytes = 1e18;
  int substituted = -1;
  for (const std::string alpha : {"0", "0.1", "0.25", "0.6"}) {
    SCOPED_TRACE(alpha);
    const Json ran = run_json(story("--router smoe --alpha " + alpha));
    const Json routing = routing_of(ran);
    EXPECT_EQ(routing.at("router").get<std::string>(), "smoe");
    EXPECT_EQ(std::to_string(routing.at("alpha").get<double>()), std::to_string(std::stod(alpha)));
    EXPECT_FALSE(routing.at("calibrated").get<bool>());
    EXPECT_GT(routing.at("substituted").get<int>(), substituted);
    EXPECT_LT(ran.at("experts").at("decode").at("bytes_read").get<double>(), bytes);
    substituted = routing.at("substituted").get<int>();
    bytes = ran.at("experts").at("decode").at("bytes_read").get<double>();
  }
  const Outcome shown = run(story("--router smoe"));
  EXPECT_EQ(shown.code, 0);
  EXPECT_THAT(shown.err, HasSubstr("smoe, alpha 0.25 (uncalibrated)"));
}

TEST(SmoeRun, OneBudgetGivesOneTextWhateverTheThreads) {
  const Json one = run_json(story("--router smoe --threads 1")),
             two = run_json(story("--router smoe --threads 2"));
  EXPECT_EQ(one.at("text"), two.at("text"));
  EXPECT_EQ(one.at("decisions"), two.at("decisions"));
}

// Beside a device, costs from a file give one text at every start; the host's experts give way as well,
// unless both memories count.
TEST(SmoeRun, BesideADeviceCostsFromAFileGiveOneText) {
  const sluice::testing::ScratchDirectory directory;
  const std::string device =
                        " --device emulated:link=inf,compute=inf,latency=0us --keep full --device-keep full",
                    costs = directory.file("costs.json");
  const Outcome none = run(story("--router smoe" + device));
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("--profile FILE"));
  const Outcome measured = run("profile " + kModel + device + " -o " + costs + " -q");
  ASSERT_EQ(measured.code, 0) << measured.err;

  const std::string both =
      " --device-slots 8 --device-cache lru --placement device --profile " + costs + device;
  const Json exact = run_json(story(both)), zero = run_json(story("--router smoe --alpha 0" + both)),
             one = run_json(story("--router smoe" + both)), two = run_json(story("--router smoe" + both)),
             wider = run_json(story("--router smoe --resident memory" + both));
  EXPECT_EQ(zero.at("text"), exact.at("text"));
  EXPECT_EQ(one.at("text"), two.at("text"));
  EXPECT_EQ(one.at("decisions"), two.at("decisions"));
  EXPECT_EQ(routing_of(one).at("resident").get<std::string>(), "device");
  EXPECT_EQ(routing_of(wider).at("resident").get<std::string>(), "memory");
  EXPECT_GT(routing_of(wider).at("substituted").get<int>(), 0);
  EXPECT_GT(routing_of(one).at("substituted").get<int>(), routing_of(wider).at("substituted").get<int>());
  const auto copied = [](const Json& ran) { return ran.at("device").at("link").at("demand").get<double>(); };
  EXPECT_LT(copied(one), copied(exact));
}

// The rung of the paper's ladder whose router it is: lossy, and says so.
TEST(SmoeRun, APresetForADeviceMayBeLossy) {
  const sluice::testing::ScratchDirectory directory;
  const std::string device =
                        " --device emulated:link=inf,compute=inf,latency=0us --keep full --device-keep full",
                    costs = directory.file("costs.json"), slots = " --device-slots 8 --profile " + costs;
  const Outcome none = run(story("--preset s-er" + device));
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("sluice: --preset: beside a device the router smoe"));
  ASSERT_EQ(run("profile " + kModel + device + " -o " + costs + " -q").code, 0);
  const Json exact = run_json(story("--preset s-ce" + device + slots)),
             lossy = run_json(story("--preset s-er --alpha 0.5" + device + slots)),
             parts = run_json(story("--preset s-ce --router smoe --alpha 0.5" + device + slots));
  EXPECT_EQ(routing_of(exact).at("router"), "exact");
  EXPECT_EQ(routing_of(lossy).at("router"), "smoe");
  EXPECT_EQ(routing_of(lossy).at("alpha"), .5);
  EXPECT_GT(routing_of(lossy).at("substituted").get<int>(), 0);
  EXPECT_EQ(lossy.at("decisions"), parts.at("decisions"));
  const Outcome shown = run(story("--preset s-er" + device + slots));
  EXPECT_THAT(shown.err, HasSubstr("smoe, alpha 0.25 (uncalibrated)"));
  const Outcome both = run("compare " + kModel + " --preset s-ce,s-er -p 'Once upon a time' -n 24 --runs 1 " +
                           "--memory 48MiB" + device + slots + " --json");
  ASSERT_EQ(both.code, 0) << both.err;
  const Json compared = Json::parse(both.out);
  for (const Json& one : compared.at("presets"))
    EXPECT_EQ(one.at("lossy").get<bool>(), one.at("preset") == "s-er") << one.dump();
}

TEST(SmoeRun, WhatMakesNoSenseIsRefused) {
  const struct {
    const char *flags, *says;
  } all[] = {
      {"--alpha 0.1", "--router smoe"},
      {"--router cache-prior --merge off", "--router smoe"},
      {"--router smoe --alpha -1", "at least 0"},
      {"--router smoe --alpha nan", "at least 0"},
      {"--router smoe --alpha much", "at least 0"},
      {"--router smoe --merge maybe", "on or off"},
      {"--router smoe --renorm sum", "model, mass or none"},
      {"--router smoe --resident memory", "--device"},
      {"--router smoe --top-j 2", "cache-prior or cumsum"},
      {"--router smoe --constraint hard", "both replace experts"},
  };
  for (const auto& [flags, says] : all) {
    SCOPED_TRACE(flags);
    const Outcome refused = run(story(flags));
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr(says));
    EXPECT_EQ(refused.out, "");
  }
}

}  // namespace
