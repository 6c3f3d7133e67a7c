// A run with a device and the replay of its trace decide alike, in both tiers, from one profile (SPEC I6, §10
// G8). Through the built program.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "packed_model.h"

namespace {

namespace fs = std::filesystem;
using sluice::Json;
using sluice::program::content_of;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::PackedModelTest;
using sluice::program::run;
using sluice::program::run_json;

const std::string kDevice = " --device emulated:link=inf,compute=inf,latency=0us";

class DeviceDecisions : public PackedModelTest {
 protected:
  // A profile of the model in which both units have work: computing on the host takes 2 ms and 1 ms a token,
  // on the device .4 ms, and a copy 3 ms.
  static std::string profile_of(const std::string& model, const std::string& keep = "") {
    std::string name = fs::path(model).filename().string() + keep + ".json";
    std::ranges::replace(name, ' ', '_');
    name = file(name);
    if (fs::exists(name)) return name;
    Json profile = run_json("profile " + model + kDevice + keep + " --repeats 1 -o " + file("measured.json"));
    fs::remove(file("measured.json"));
    Json& device = profile["device"];
    device["host"] = Json::array();
    for (const int tokens : {1, 4, 16})
      device["host"].push_back({{"tokens", tokens}, {"median", 2e-3 + 1e-3 * tokens}, {"spread", 0}});
    device["run"] = Json::array({{{"tokens", 1}, {"median", 4e-4}, {"spread", 0}},
                                 {{"tokens", 16}, {"median", 6e-4}, {"spread", 0}}});
    device["link"]["busy"] = {{"bytes_per_s", device["expert"].get<double>() / 2.9e-3}, {"latency_s", 1e-4}};
    device["attention"] = Json::array({{{"tokens", 1}, {"median", 1e-3}, {"spread", 0}}});
    device["sync"]["median"] = 2e-4;
    std::ofstream(name) << profile;
    return name;
  }

  struct Case {
    std::string model, policies;  // for the device, as both commands take them
    std::string host = " --memory " + memory(40);
    std::size_t batch = 1;
    int seed = 1;
    std::string keep = "";       // as `profile`, too, takes it
    std::string precision = "";  // as `profile` takes it; the replay takes it and `slices`
    std::string slices = "";
    std::string trace = "";  // as `trace` alone does
  };

  void expect_same(const Case& one) {
    SCOPED_TRACE(one.model + one.policies + one.host + " B " + std::to_string(one.batch) + " seed " +
                 std::to_string(one.seed));
    for (const char* name : {"a.trace", "ran", "replayed"}) fs::remove(file(name));
    request_ = one.model + prompts(one.batch, one.seed) + " -n 12 --temp 0.9 --ignore-eos --seed " +
               std::to_string(one.seed) + kDevice + one.policies + one.host + one.keep + one.precision +
               one.slices + " --profile " + profile_of(one.model, one.keep + one.precision);
    const Json ran =
        run_json("trace " + request_ + one.trace + " -o " + file("a.trace") + " --decisions " + file("ran"));
    const Json& setting = ran.at("run");
    std::string host = " --cache " + setting.at("cache").get<std::string>() + " --scope " +
                       setting.at("scope").get<std::string>() + " --capacity " +
                       std::to_string(setting.at("capacity").get<std::uint64_t>()) + "B";
    if (one.precision.empty()) host += " --keep " + setting.at("keep").get<std::string>();
    if (setting.contains("pools")) {
      std::string slots;
      for (const Json& one_pool : setting["pools"]["slots"])
        slots += (slots.empty() ? " --pools " : ",") + std::to_string(one_pool.get<int>());
      host += slots;
    }
    const Json replayed = replayed_ =
        run_json("simulate --trace " + file("a.trace") + " --machine " +
                 profile_of(one.model, one.keep + one.precision) + one.policies + host + one.precision +
                 one.slices + " --seed " + std::to_string(one.seed) + " --decisions " + file("replayed"));
    const std::string log = content_of(file("ran"));
    EXPECT_EQ(log, content_of(file("replayed")));
    EXPECT_GT(log.size(), 2000u);
    const Json& row = replayed.at("results").at(0);
    EXPECT_EQ(ran.at("decisions"), row.at("decisions"));
    EXPECT_EQ(setting.at("device").at("profile"), row.at("profile").at("hash"));
    EXPECT_NE(log.find("profile=" + row.at("profile").at("hash").get<std::string>()), std::string::npos);
    on_device_ += log.find(" device ") != std::string::npos;
    on_both_ += log.find(" hit ") != std::string::npos && log.find(" device ") != std::string::npos;
    brought_ += log.find(" bring ") != std::string::npos;
    ++cases_;
  }

  void TearDown() override {
    if (cases_ == 0) return;
    std::cout << cases_ << " runs, " << on_device_ << " with experts on the device, " << on_both_
              << " on both units, " << brought_ << " with updates\n";
  }
  std::string request_;  // the last run's
  Json replayed_;
  int cases_ = 0, on_device_ = 0, on_both_ = 0, brought_ = 0, replaced_ = 0;
};

TEST_F(DeviceDecisions, ReplayDecidesWhatTheRunDecided) {
  const std::vector<std::string> caches = {"workload-ema", "workload-window", "lru", "hybrimoe",
                                           "d-hybrimoe",   "static-layers",   "none"},
                                 placements = {"ratio-prefix", "greedy",      "device",  "two-pointer",
                                               "threshold",    "layer-split", "optimal", "beam"};
  std::size_t next = 0;  // samples the pairs: their numbers have no common divisor
  for (const int seed : {1, 2, 3})
    for (const std::size_t batch : {std::size_t{1}, std::size_t{4}, std::size_t{16}})
      for (int i = 0; i < 2; ++i, ++next)
        expect_same({.model = kModel,
                     .policies = " --device-cache " + caches[next % caches.size()] + " --placement " +
                                 placements[next % placements.size()] + " --device-slots " +
                                 std::to_string(next % 3 * 5),
                     .batch = batch,
                     .seed = seed});
  EXPECT_GE(on_device_, 12);
  EXPECT_GE(on_both_, 8);
  EXPECT_GE(brought_, 3);
}

// Prompts by a placement of their own, named or the preset's.
TEST_F(DeviceDecisions, PromptsMayBePlacedOtherwise) {
  const std::string device = " --device-slots 5 --prefetch none";
  const auto heading = [] {
    const std::string log = content_of(file("ran"));
    return log.substr(0, log.find('\n'));
  };
  expect_same({.model = kModel,
               .policies = device + " --device-cache lru --placement ratio-prefix --placement-prefill device",
               .batch = 4});
  EXPECT_NE(heading().find(" placement=ratio-prefix "), std::string::npos) << heading();
  EXPECT_NE(heading().find(" prefill=device prefill_from=1 "), std::string::npos) << heading();
  expect_same({.model = kModel, .policies = device + " --preset ncmoe"});
  EXPECT_NE(heading().find(" prefill=device prefill_from=32 "), std::string::npos) << heading();
  expect_same({.model = kModel, .policies = device + " --preset ncmoe --placement-prefill greedy"});
  EXPECT_NE(heading().find(" prefill=greedy prefill_from=1 "), std::string::npos) << heading();
  expect_same({.model = kModel, .policies = device + " --preset ncmoe --placement layer-split"});
  EXPECT_EQ(heading().find("prefill"), std::string::npos) << heading();
}

// The replay routes anew, by the recorded logits, and replaces what the run has replaced. With a capacity a
// run that records nothing decides like the one that does.
TEST_F(DeviceDecisions, SmoeReplacesAlike) {
  const std::vector<std::string> rules = {" --alpha 0.5", " --alpha 0.25 --merge off",
                                          " --alpha 0.8 --renorm mass", " --alpha 0.5 --resident memory"},
                                 policies = {" --device-cache score-window --placement device",
                                             " --device-cache score-window --placement ratio-prefix",
                                             " --device-cache lru --placement greedy",
                                             " --device-cache workload-ema --placement device"},
                                 hosts = {" --capacity 12MiB --memory " + memory(64),
                                          " --capacity 5MiB --cache lru --memory " + memory(40)};
  std::size_t next = 0;
  for (const int seed : {1, 2, 3})
    for (const std::size_t batch : {std::size_t{1}, std::size_t{3}})
      for (int i = 0; i < 2; ++i, ++next) {
        const std::string device = policies[next % policies.size()] + " --prefetch none --device-slots " +
                                   std::to_string(5 + next % 3 * 4);
        expect_same({.model = kModel,
                     .policies = device + " --router smoe" + rules[(next + next / 4) % rules.size()],
                     .host = hosts[next / 2 % hosts.size()],
                     .batch = batch,
                     .seed = seed});
        const Json ran = run_json("run " + request_).at("experts").at("routing"),
                   row = replayed_.at("results").at(0).at("routing");
        for (const char* const name : {"router", "tokens", "decode_tokens", "changed_tokens", "substituted",
                                       "alpha", "calibrated", "resident"})
          EXPECT_EQ(ran.at(name), row.at(name)) << name;
        EXPECT_DOUBLE_EQ(ran.at("mass_lost").get<double>(), row.at("mass_lost").get<double>());
        EXPECT_TRUE(row.at("lossy").get<bool>());
        EXPECT_EQ(row.at("recorded_differs"), 0);
        replaced_ += row.at("substituted") > 0 ? 1 : 0;
      }
  EXPECT_GE(replaced_, 8);
}

// The last rungs of SMoE's ladder: what is predicted by the partial state depends on what is on the device,
// and decides what will be there.
TEST_F(DeviceDecisions, TheLadderOfSmoe) {
  for (const int seed : {1, 2, 3})
    for (const std::size_t batch : {std::size_t{1}, std::size_t{3}, std::size_t{16}}) {
      const std::string preset = (static_cast<std::size_t>(seed) + batch) % 2 == 0 ? "smoe" : "s-pre";
      expect_same({.model = kModel,
                   .policies = " --device-slots 8 --preset " + preset,
                   .host = " --cache lru --memory " + memory(64),
                   .batch = batch,
                   .seed = seed,
                   .trace = " --ahead"});
      const Json& row = replayed_.at("results").at(0);
      EXPECT_GT(row.at("routing").at("substituted"), 0) << preset;
      EXPECT_GT(row.at("decode").at("prefetch").at("used"), 0) << preset;
      EXPECT_TRUE(row.at("predicted_beside").is_null());
    }
  // The predictions of the trace are those that its device led to.
  const std::string replay =
      "simulate --trace " + file("a.trace") + " --machine smoe-s3 --preset s-pre --device-slots ";
  const std::string beside = "cache score-window, placement device, 8 slots of each layer";
  EXPECT_EQ(run(replay + "8").err, "");
  EXPECT_NE(run(replay + "6").err.find(beside), std::string::npos);
  EXPECT_EQ(run_json(replay + "6 -q").at("results").at(0).at("predicted_beside"), beside);
}

// While the host computes what the device lacks, the cache of the device goes on learning.
TEST_F(DeviceDecisions, CachesLearnWhileTheLinkIsIdle) {
  for (const std::size_t batch : {std::size_t{1}, std::size_t{4}})
    for (const std::string admit : {"loaded", "idle"}) {
      expect_same(
          {.model = kModel,
           .policies = " --device-slots 6 --device-cache score-window --placement ratio-prefix --w-size 8 "
                       "--admit " +
                       admit,
           .batch = batch});
      const Json& decode = replayed_.at("results").at(0).at("decode");
      if (admit == "idle")
        EXPECT_GT(decode.at("updates"), 0);
      else
        EXPECT_EQ(decode.at("updates"), 0);
    }
}

TEST_F(DeviceDecisions, WithEveryKindOfHost) {
  const std::string policies = " --device-cache workload-ema --placement ratio-prefix --device-slots 6";
  expect_same({.model = kModel, .policies = policies, .host = " --memory " + memory(30) + " --chunk 5"});
  expect_same({.model = kModel, .policies = policies, .host = " --cache-scope layer --memory " + memory(40)});
  expect_same({.model = store(), .policies = policies, .host = " --preset zipmoe --memory " + memory(34)});
  expect_same({.model = store(),
               .policies = policies,
               .host = " --cache lru --keep packed --memory " + memory(34),
               .batch = 4});
  // Packed slots, whose copies take two thirds of the time by the profile's bytes.
  expect_same({.model = packable(),
               .policies = policies,
               .host = " --memory " + memory(44),
               .batch = 4,
               .keep = " --device-keep packed"});
  EXPECT_EQ(on_both_, 5);
  const std::string profile = profile_of(packable(), " --device-keep packed"),
                    replay = "simulate --trace " + file("a.trace") + " --machine " + profile +
                             " --preset dali --prefetch none --device-slots 4";
  EXPECT_NE(run(replay).err.find(profile + " was measured with packed experts"), std::string::npos);
  EXPECT_EQ(run(replay + " --keep packed").err, "");
}

// Slices cross one by one, and a slot may have one of them alone; hits, misses and views are the run's.
TEST_F(DeviceDecisions, ExpertsInSlices) {
  const std::vector<std::string> devices = {
      " --device-cache lru --placement device", " --device-cache workload-ema --placement ratio-prefix",
      " --device-cache workload-window --placement greedy", " --device-cache score-window --placement beam"};
  const struct {
    const char *precision, *slices, *host;
  } rules[] = {{" --precision high", "", " --cache lru"},
               {" --precision dbsc", " --lsb-miss fetch", ""},
               {" --precision low", "", ""},
               {" --precision dbsc", " --critical fixed_top_c --critical-count 2 --rho 0.25", ""},
               {" --precision low", " --device-keep full", " --cache lru"},
               {" --precision high", "", " --cache-scope layer"}};
  std::size_t next = 0;
  int low = 0, high = 0;
  for (const std::size_t batch : {std::size_t{1}, std::size_t{4}, std::size_t{16}})
    for (int i = 0; i < 4; ++i, ++next) {
      const auto& [precision, slices, host] = rules[next % std::size(rules)];
      expect_same({.model = sliced(),
                   .policies = devices[(next + next / 4) % devices.size()] +
                               " --prefetch none --device-slots " + std::to_string(3 + next % 3 * 4),
                   .host = host + std::string(" --memory ") + memory(next % 2 == 0 ? 34 : 40),
                   .batch = batch,
                   .seed = static_cast<int>(next),
                   .precision = precision,
                   .slices = slices});
      const std::string log = content_of(file("ran"));
      EXPECT_NE(log.find(" device_slices="), std::string::npos);
      low += log.find(":low", log.find(" device ")) != std::string::npos ? 1 : 0;
      high += log.find(":high", log.find(" device ")) != std::string::npos ? 1 : 0;
      const Json ran = run_json("run " + request_).at("experts").at("slices"),
                 row = replayed_.at("results").at(0).at("slices");
      for (const char* const name :
           {"precision", "msb_hits", "msb_misses", "lsb_hits", "lsb_misses", "downgrades"})
        EXPECT_EQ(ran.at(name), row.at(name)) << name;
    }
  EXPECT_GE(low, 6);
  EXPECT_EQ(high, 12);  // prompts
  EXPECT_GE(on_both_, 8);
  // What is copied ahead has the slices that every use needs.
  for (const char* const precision : {" --precision low", " --precision high", " --precision dbsc"}) {
    expect_same({.model = sliced(),
                 .policies = " --device-cache lru --placement ratio-prefix --device-slots 5 --prefetch raw",
                 .batch = 4,
                 .precision = precision,
                 .trace = " --ahead"});
    EXPECT_GT(replayed_.at("results").at(0).at("decode").at("prefetch").at("used"), 0);
  }
}

// A machine that nobody has measured with slices: a copy of either takes its share.
TEST_F(DeviceDecisions, SlicesOnAnyMachine) {
  fs::remove(file("c.trace"));
  ASSERT_EQ(run("trace " + sliced() + " -p Once -n 24 --ignore-eos --temp 0 --precision low --memory " +
                memory(40) + " -q -o " + file("c.trace"))
                .code,
            0);
  const std::string replay = "simulate --trace " + file("c.trace") +
                             " --machine dali-3090-fit --preset dali --prefetch none --placement device "
                             "--device-slots 6";
  const auto demand = [&](const std::string& rules) {
    const Json row = run_json(replay + rules).at("results").at(0);
    return row.at("decode").at("device").at("link").at("demand").get<double>();
  };
  const double low = demand(" --precision low"), high = demand(" --precision high"),
               dbsc = demand(" --precision dbsc");
  EXPECT_GT(low, 0);
  EXPECT_LT(low, dbsc);
  EXPECT_LE(dbsc, 1.2 * high);  // both slices of an expert may cross one by one
  EXPECT_NEAR(low / high, .5, .1);
}

TEST_F(DeviceDecisions, SlicesThatCannotBe) {
  const auto refused = [&](const std::string& command, const std::string& why) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << command << "\n" << outcome.err;
  };
  fs::remove(file("d.trace"));
  ASSERT_EQ(
      run("trace " + sliced() + " -p Once -n 3 --ignore-eos --precision high -q -o " + file("d.trace")).code,
      0);
  const std::string slots = " --placement device --device-slots 4", device = slots + " --device-cache lru",
                    bare = "run " + sliced() + " -p Once -n 2" + kDevice, ran = bare + device,
                    simulated = "simulate --trace " + file("d.trace") + " --machine ",
                    replayed = simulated + "dali-3090" + device;
  for (const std::string& command : {ran, replayed}) {
    refused(command + " --precision high --cache lru --tiers exclusive",
            "experts in slices do not come back from a device");
    refused(command + " --precision dbsc --cache slice-lru --lsb-miss skip", "no LSB slice may be skipped");
    refused(command + " --precision dbsc --cache lru", "holds MSB and LSB slices separately");
  }
  for (const char* const limit : {" --constraint hard --miss-rate 0.05", " --constraint adaptive"})
    refused(ran + " --precision dbsc --router cache-prior" + limit,
            "a limit on misses counts what the host reads");
  refused(replayed + " --precision high --constraint hard", "a limit on misses counts what the host reads");
  refused(ran + " --preset slicemoe", "a limit on misses counts what the host reads");
  for (const std::string& command : {bare, simulated + "dali-3090"})
    refused(command + slots + " --precision high --cache lru --device-cache slice-lru",
            "neither pools nor slices");
  refused(replayed + " --miss-rate 0.05", "no effect");
  refused(replayed + " --theta 0.5", "no effect");
  refused(replayed + " --device-keep full", "no effect");
  refused(replayed + " --precision high --capacity 20", "takes its capacity in bytes");
  refused(replayed + " --capacity 1MiB", "whose sizes depend on the precision");
  refused(simulated + profile_of(sliced(), " --precision low") + device, "needs a precision");
  const Outcome other =
      run(simulated + profile_of(sliced(), " --precision low") + device + " --cache lru --precision high");
  EXPECT_EQ(other.code, 0);
  EXPECT_NE(other.err.find("was measured with msb"), std::string::npos) << other.err;
  ASSERT_EQ(run("trace " + kModel + " -p Once -n 3 --ignore-eos -q -o " + file("e.trace")).code, 0);
  refused("simulate --trace " + file("e.trace") + " --machine dali-3090" + device + " --precision high",
          "the trace is of whole experts");
  const Outcome host = run("profile " + sliced() + " -o " + file("none.json"));
  EXPECT_NE(host.code, 0);
  EXPECT_NE(host.err.find("beside a device"), std::string::npos) << host.err;
}

TEST_F(DeviceDecisions, TiersThatExcludeEachOther) {
  const std::vector<std::string> caches = {"lru", "workload-ema", "fifo", "workload-window"},
                                 hosts = {"lru", "lfu", "fifo", "marking"};
  std::size_t next = 0, given = 0, adopted = 0;
  for (const std::size_t batch : {std::size_t{1}, std::size_t{4}, std::size_t{16}})
    for (int i = 0; i < 2; ++i, ++next) {
      const std::string policies = " --tiers exclusive --device-cache " + caches[next % caches.size()] +
                                   " --placement " + (next % 3 == 0 ? "device" : "ratio-prefix") +
                                   " --device-slots 5";
      expect_same({.model = kModel,
                   .policies = policies,
                   .host = " --capacity 5MiB --cache " + hosts[next % hosts.size()] +
                           (next % 2 == 0 ? "" : " --cache-scope layer") + " --memory " + memory(40),
                   .batch = batch,
                   .seed = static_cast<int>(next)});
      const std::string log = content_of(file("ran"));
      EXPECT_NE(log.find(" tiers=exclusive "), std::string::npos);
      given += log.find(" give ") != std::string::npos ? 1 : 0;
      adopted += log.find(" adopt ") != std::string::npos ? 1 : 0;
    }
  EXPECT_GE(given, 3u);  // a placement on both sides may leave few experts on the device
  EXPECT_GE(adopted, 3u);
  expect_same({.model = packable(),
               .policies = " --tiers exclusive --device-cache lru --placement device --device-slots 6",
               .host = " --cache lru --memory " + memory(44),
               .batch = 4,
               .keep = " --device-keep packed"});
}

TEST_F(DeviceDecisions, TiersThatNobodyNamed) {
  const std::string policies = " --device-cache lru --placement device --device-slots 5";
  const auto exclusive = [] {
    return content_of(file("ran")).find(" tiers=exclusive ") != std::string::npos;
  };
  for (const char* const scope : {"", " --cache-scope layer"}) {
    const std::string host = std::string(" --cache lru --memory ") + memory(64) + scope;
    expect_same({.model = kModel, .policies = policies, .host = host + " --capacity 5MiB"});
    EXPECT_TRUE(exclusive());
    expect_same({.model = kModel, .policies = policies, .host = host});
    EXPECT_FALSE(exclusive());
  }
}

TEST_F(DeviceDecisions, PopularExperts) {
  const std::string text = file("popular.trace");
  fs::remove(text);
  ASSERT_EQ(run("trace " + kModel + " -p 'The sea was calm' -n 20 --temp 0 -q -o " + text).code, 0);
  expect_same(
      {.model = kModel, .policies = " --preset d-fiddler --device-slots 6 --ranks-of " + text, .batch = 4});
  EXPECT_NE(content_of(file("ran")).find("\nstart "), std::string::npos);
}

// Run and replay see the same predictions, and count how they come true with one class.
TEST_F(DeviceDecisions, PredictionsAreCountedAlike) {
  for (const char* const prefetch : {"raw", "stream"})
    for (const std::size_t batch : {std::size_t{1}, std::size_t{4}}) {
      expect_same({.model = kModel,
                   .policies = std::string(" --device-cache lru --placement ratio-prefix --device-slots 5 "
                                           "--prefetch-size 3 --prefetch ") +
                               prefetch,
                   .batch = batch,
                   .trace = " --ahead"});
      const Json ran = run_json("run " + request_).at("experts").at("prefetch"),
                 row = replayed_.at("results").at(0);
      for (const char* const name : {"predicted", "active", "top"}) {
        const auto count = [&](const char* phase) {
          return row.at(phase).at("prefetch").at(name).get<std::uint64_t>();
        };
        EXPECT_EQ(ran.at(name), count("prefill") + count("decode")) << name;
      }
      EXPECT_EQ(ran.at("top_x"), 3);
      EXPECT_GT(ran.at("predicted"), 100);
      EXPECT_GE(ran.at("predicted"), ran.at("active"));
      EXPECT_GE(ran.at("active"), ran.at("top"));
      EXPECT_GT(ran.at("accuracy"), .3);  // three at random of 32 experts would be a tenth
      EXPECT_LE(ran.at("accuracy"), 1);
      std::cout << prefetch << ", B " << batch << ": " << ran.dump() << "\n";
    }
}

TEST_F(DeviceDecisions, TwoStartsDecideAlikeAndTheHashIsTold) {
  const std::string common = "run " + kModel + " -p 'Once upon a time' -n 16 --temp 0 --memory " +
                             memory(40) + kDevice + " --device-slots 5 --capacity 12MiB --profile " +
                             profile_of(kModel) + " --decisions ";
  const Json one = run_json(common + file("one"));
  run_json(common + file("two"));
  EXPECT_EQ(content_of(file("one")), content_of(file("two")));
  EXPECT_FALSE(one.at("profile").at("measured").get<bool>());
  EXPECT_NE(content_of(file("one")).find(" profile=" + one.at("profile").at("hash").get<std::string>()),
            std::string::npos);
}

TEST_F(DeviceDecisions, AStoreKeepsTheCostsOfItsDevice) {
  const std::string packed = file("kept.sluice");
  fs::copy(store(), packed, fs::copy_options::recursive);
  const std::string common =
      "run " + packed + " -p Once -n 4 --temp 0 --memory " + memory(40) + " --device-slots 4";
  const Json first = run_json(common + kDevice), again = run_json(common + kDevice);
  EXPECT_TRUE(first.at("profile").at("measured").get<bool>());
  EXPECT_FALSE(again.at("profile").at("measured").get<bool>());
  EXPECT_EQ(first.at("profile").at("hash"), again.at("profile").at("hash"));
  const Json other = run_json(common + " --device emulated:link=inf,compute=inf,latency=1us");
  EXPECT_TRUE(other.at("profile").at("measured").get<bool>());
  fs::remove_all(packed);
}

TEST_F(DeviceDecisions, RefusesWhatCannotBe) {
  const auto refused = [&](const std::string& command, const std::string& why) {
    const Outcome outcome = run(command);
    EXPECT_NE(outcome.code, 0) << command;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << command << "\n" << outcome.err;
  };
  ASSERT_EQ(run("profile " + kModel + " --repeats 1 -q -o " + file("host.json")).code, 0);
  const std::string request = "run " + kModel + " -p Once -n 2 --profile ";
  refused(request + file("host.json") + kDevice, "no costs of a device");
  refused(request + profile_of(kModel) + " --device emulated:link=1GB/s", "another device");
  fs::remove(file("b.trace"));
  ASSERT_EQ(run("trace " + kModel + " -p Once -p The -n 3 --ignore-eos -q -o " + file("b.trace")).code, 0);
  const std::string simulate = "simulate --trace " + file("b.trace") +
                               " --device-cache lru --placement greedy --device-slots 2 --machine ";
  refused(simulate + file("host.json"), "no costs of a device");
  refused(simulate + profile_of(kModel) + " --batch 2", "recorded in batches");
}

}  // namespace
