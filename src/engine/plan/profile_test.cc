#include "engine/plan/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/error_of.h"
#include "base/json/json_pointer.h"
#include "base/machine/cpu.h"
#include "engine/engine.h"
#include "engine/forward/common/measure_profile.h"
#include "engine/plan/engine_plan.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "experts/decision_log.h"
#include "fetch/fetch_options.h"
#include "fetch/memory/expert_store.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine {
namespace {

using sluice::testing::error_of;
using ::testing::HasSubstr;

Profile example() {
  Profile profile;
  profile.model = {"qwen2_moe", "zstd", 24, 60, 4, 3, 4, 17301504, 8650752, 3000000};
  profile.machine = {"A CPU", "avx512", "direct", 2};
  profile.u = {2e-3, 1e-4};
  profile.v = {2e-4, 1e-5};
  profile.c = {5e-4, 2e-5};
  profile.merge = {1e-4, 1e-6};
  profile.p = {1e-3, 1e-5};
  profile.latency = {3e-4, 2e-5};
  profile.rest = {5e-2, 1e-3};
  profile.p_of_tokens = {{1, {1e-3, 1e-5}}, {4, {1.3e-3, 1e-5}}};
  return profile;
}

DeviceProfile example_device() {
  return {.device = "emulated:link=1000000B/s",
          .expert = 1000,
          .row = 64,
          .host = {{1, {3e-3, 1e-4}}, {4, {5e-3, 1e-4}}},
          .run = {{1, {1e-3, 1e-5}}, {4, {1e-3, 1e-5}}, {16, {2e-3, 0}}},
          .idle = {2e6, 1e-5},
          .busy = {1e6, 2e-5},
          .attention = {{1, {1e-4, 0}}},
          .predict = {5e-6, 0},
          .sync = {3e-5, 1e-6}};
}

TEST(Measured, IsMedianAndHalfTheMiddleEightTenths) {
  const Measured nine = measured({5, 1, 9, 3, 7, 2, 8, 4, 6});
  EXPECT_EQ(nine.median, 5);
  EXPECT_EQ(nine.spread, 3);  // from 2 to 8
  EXPECT_EQ(measured({4}).median, 4);
  EXPECT_EQ(measured({4}).spread, 0);
}

TEST(Profile, ComesBackFromItsJson) {
  const Json json = to_json(example());
  const Profile back = profile_from_json(json, "p.json");
  EXPECT_EQ(to_json(back), json);
  EXPECT_EQ(back.model, example().model);
  EXPECT_EQ(back.machine, example().machine);
  const experts::ExpertCosts costs = back.costs();
  EXPECT_EQ(costs.fetch.chunks, 4u);
  EXPECT_EQ(costs.fetch.workers, 2u);
  EXPECT_NEAR(costs.run.of(1), 1e-3, 1e-12);
  EXPECT_NEAR(costs.run.of(4), 1.3e-3, 1e-12);
}

TEST(Profile, KeepsWhatWasPlayed) {
  EXPECT_FALSE(to_json(example()).contains("played"));
  EXPECT_EQ(profile_from_json(to_json(example()), "p.json").played, "");
  Profile profile = example();
  profile.ranks.assign(profile.model.experts, .5);
  profile.played = "recorded from a.trace";
  const Profile back = profile_from_json(to_json(profile), "p.json");
  EXPECT_EQ(back.played, profile.played);
  EXPECT_EQ(back.ranks, profile.ranks);
  Json json = to_json(profile);
  json["played"] = "a\x1b[2J";
  EXPECT_EQ(profile_from_json(json, "p.json").played, "a\\x1b[2J");
  json["played"] = 1;
  EXPECT_THAT(error_of([&] { profile_from_json(json, "p.json"); }), HasSubstr("played"));
}

TEST(Profile, ComesBackWithItsDevice) {
  Profile profile = example();
  profile.device = example_device();
  const Json json = to_json(profile);
  const Profile back = profile_from_json(json, "p.json");
  EXPECT_EQ(to_json(back), json);
  EXPECT_EQ(back.device, profile.device);
  const experts::ExpertCosts costs = back.device_costs();
  EXPECT_EQ(costs.run.of(1), 3e-3);
  EXPECT_NEAR(costs.run.of(2), 3e-3 + 2e-3 / 3, 1e-15);
  EXPECT_EQ(costs.device.run.of(4), 1e-3);
  EXPECT_NEAR(costs.device.transfer, 2e-5 + 1e-3, 1e-15);
  EXPECT_NEAR(costs.device.row, 64e-6, 1e-15);
  EXPECT_EQ(costs.device.gate.of(7), 1e-4);
  EXPECT_EQ(costs.device.predict, 5e-6);
  EXPECT_EQ(costs.device.sync, 3e-5);
  EXPECT_NEAR(profile.costs().run.of(1), 1e-3, 1e-12);  // without the device: as it was
}

TEST(Profile, ComesBackWithADeviceThatHasSlices) {
  for (const auto& [view, msb, lsb] : {std::tuple(kSlicesView, 0.6, 0.4), std::tuple(kMsbView, 1.0, 0.4)}) {
    Profile profile = example();
    profile.device = example_device();
    profile.device->view = view;
    profile.device->lsb = 400;
    const Json json = to_json(profile);
    const Profile back = profile_from_json(json, "p.json");
    EXPECT_EQ(back.device, profile.device);
    const experts::DeviceCosts costs = back.device_costs().device;
    EXPECT_NEAR(costs.msb, msb, 1e-12) << view;
    EXPECT_NEAR(costs.lsb, lsb, 1e-12) << view;
    EXPECT_NEAR(costs.transfer_of(experts::Part::kLsb), lsb * costs.transfer, 1e-12);
    Json without = json;
    without["device"].erase("lsb");
    EXPECT_THAT(error_of([&] { profile_from_json(without, "p.json"); }), HasSubstr("lsb"));
  }
}

TEST(Profile, OfVersionOneIsRead) {
  Json json = to_json(example());
  json["profile"] = 1;
  const Profile back = profile_from_json(json, "p.json");
  EXPECT_FALSE(back.device);
  EXPECT_EQ(to_json(back), to_json(example()));
}

TEST(Profile, ADeviceThatIsWrongIsOneErrorThatNamesTheField) {
  Profile profile = example();
  profile.device = example_device();
  for (const char* key : {"name", "expert", "row", "host", "run", "link", "attention", "predict", "sync"}) {
    Json json = to_json(profile);
    json["device"].erase(key);
    EXPECT_THAT(error_of([&] { profile_from_json(json, "p.json"); }), HasSubstr(key));
  }
  const auto with = [&](const char* pointer, const Json& value) {
    Json json = to_json(profile);
    at_pointer(json, pointer) = value;
    return error_of([&] { profile_from_json(json, "p.json"); });
  };
  EXPECT_THAT(with("/device/host/1/median", 1e-3), HasSubstr("below"));
  EXPECT_THAT(with("/device/run/2/tokens", 4), HasSubstr("ascending"));
  EXPECT_THAT(with("/device/link/busy/bytes_per_s", 0), HasSubstr("bytes_per_s"));
  EXPECT_THAT(with("/device/link/idle/latency_s", -1), HasSubstr("latency_s"));
  EXPECT_THAT(with("/device/host", Json::array()), HasSubstr("at least one"));
  EXPECT_THAT(with("/device/view", "bits"), HasSubstr("words, packed"));
  EXPECT_THAT(with("/device/link/duplex", "both"), HasSubstr("full or half"));
}

TEST(Profile, OneThatReadsInPlaceSaysSo) {
  Profile profile = example();
  profile.device = example_device();
  EXPECT_FALSE(to_json(profile)["device"]["link"].contains("in_place"));
  const std::uint64_t copies = experts::hash_of(profile.device_costs());
  profile.device->in_place = true;
  const Profile back = profile_from_json(to_json(profile), "p.json");
  EXPECT_EQ(back.device, profile.device);
  EXPECT_TRUE(back.device_costs().device.in_place);
  EXPECT_NE(experts::hash_of(back.device_costs()), copies);
}

TEST(Profile, ADeviceWithoutKernelsForTheExpertsHasNoTimesOfThem) {
  Profile profile = example();
  profile.device = example_device();
  EXPECT_TRUE(profile.device->computes_experts());
  profile.device->run.clear();
  const Profile back = profile_from_json(to_json(profile), "p.json");
  EXPECT_EQ(back.device, profile.device);
  EXPECT_FALSE(back.device->computes_experts());
}

TEST(TimesOfTokens, NoiseIsMadeMonotone) {
  TimesOfTokens times = {{1, {3, 0}}, {2, {2, 0}}, {4, {4, 0}}, {8, {3.5, 0}}};
  make_monotone(times);
  EXPECT_EQ(times, (TimesOfTokens{{1, {3, 0}}, {2, {3, 0}}, {4, {4, 0}}, {8, {4, 0}}}));
}

TEST(Profile, OfBeforeLatencyWasMeasuredIsRead) {
  Json json = to_json(example());
  json.erase("latency");
  EXPECT_EQ(profile_from_json(json, "p.json").latency.median, 0);
}

TEST(Profile, ThePackedViewReplacesTheMerge) {
  Profile profile = example();
  EXPECT_NEAR(profile.costs().fetch.c, 5e-4 + 1e-4 / 4, 1e-12);
  profile.p_packed = {1.3e-3, 1e-5};  // 0.3 ms longer, on 2 threads, of 3 tensors in 4 chunks
  EXPECT_NEAR(profile.costs().fetch.c, 5e-4 + 3e-4 * 2 / 12, 1e-12);
  const Json json = to_json(profile);
  EXPECT_EQ(to_json(profile_from_json(json, "p.json")), json);
  EXPECT_EQ(json.at("p_packed").at("median"), 1.3e-3);
  profile.p_packed = {0.9e-3, 1e-5};  // shorter: decoding costs nothing extra
  EXPECT_NEAR(profile.costs().fetch.c, 5e-4, 1e-12);
}

TEST(Profile, AnythingWrongIsOneErrorThatNamesTheField) {
  const auto without = [](const char* key) {
    Json json = to_json(example());
    json.erase(key);
    return error_of([&] { profile_from_json(json, "p.json"); });
  };
  for (const char* key : {"profile", "model", "machine", "u", "v", "c", "p", "merge", "rest", "p_of_tokens"})
    EXPECT_THAT(without(key), HasSubstr(key));
  const auto with = [](const char* pointer, const Json& value) {
    Json json = to_json(example());
    at_pointer(json, pointer) = value;
    return error_of([&] { profile_from_json(json, "p.json"); });
  };
  EXPECT_THAT(with("/u/median", -1.0), HasSubstr("median"));
  EXPECT_THAT(with("/c/spread", std::numeric_limits<double>::quiet_NaN()), HasSubstr("spread"));
  EXPECT_THAT(with("/profile", 3), HasSubstr("another version"));
  EXPECT_THAT(with("/p_of_tokens/1/tokens", 1), HasSubstr("ascending"));
  EXPECT_THAT(with("/model/layers", "x"), HasSubstr("layers"));
  EXPECT_THAT(with("/machine/threads", 0), HasSubstr("threads"));
}

TEST(Profile, OfAnotherModelStoreOrMachineIsRefused) {
  const Profile profile = example();
  EXPECT_NO_THROW(check_profile(profile, profile.model, profile.machine, "p.json"));
  ProfiledModel model = profile.model;
  model.chunks = 2;
  EXPECT_THAT(error_of([&] { check_profile(profile, model, profile.machine, "p.json"); }),
              HasSubstr("another model or store"));
  ProfiledMachine machine = profile.machine;
  machine.cpu = "Another CPU";
  EXPECT_THAT(error_of([&] { check_profile(profile, profile.model, machine, "p.json"); }),
              HasSubstr("another machine"));
  machine = profile.machine;
  machine.threads = 4;
  EXPECT_THAT(error_of([&] { check_profile(profile, profile.model, machine, "p.json"); }),
              HasSubstr("threads"));
}

TEST(Profile, IsMeasuredWithoutLeavingATrace) {
  const std::string path = sluice::testing::kGoldenModels + "/qwen2_moe_b";
  const auto checkpoint = store::open_checkpoint(path);
  const model::Model model = model::describe_model(*checkpoint);
  EngineOptions options;
  options.threads = 2;
  options.memory = 256 * kMiB;
  options.positions = 16;
  Engine engine(*checkpoint, model, resolve(options, *checkpoint, model));
  const Bytes used = engine.report().accountant.used();
  const Profile profile = engine.measure({.repeats = 3, .seed = 5, .sample_bytes = kMiB});
  EXPECT_GT(profile.u.median, 0);
  EXPECT_GT(profile.p.median, 0);
  EXPECT_GT(profile.rest.median, 0);
  EXPECT_EQ(profile.v.median, 0);  // a directory has no exponent chunks
  EXPECT_EQ(profile.p_of_tokens.size(), 5u);
  EXPECT_EQ(engine.report().accountant.used(), used);
  EXPECT_EQ(engine.statistics().total().accesses, 0u);
  EXPECT_EQ(engine.report().experts.counters().demand_reads, 0u);
  const ProfiledMachine here{cpu_info().model, std::string(isa_name(engine.report().isa)),
                             std::string(fetch::io_mode_name(engine.plan().fetch.io)),
                             engine.report().threads};
  check_profile(profile, profile.model, here, "measured");
}

}  // namespace
}  // namespace sluice::engine
