// Costs of a device, measured with every kind of expert.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/error_of.h"
#include "base/files/scratch_directory.h"
#include "engine/engine.h"
#include "engine/engine_device.h"
#include "engine/forward/common/measure_profile.h"
#include "engine/plan/profile.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "experts/decision_log.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "model/pack_plan.h"
#include "store/pack/pack.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine {
namespace {

namespace fs = std::filesystem;
using sluice::testing::error_of;
using ::testing::HasSubstr;

const fs::path kModels = sluice::testing::kGoldenModels;
const std::string kFable = SLUICE_SOURCE_DIR "/models/fable-moe-18m";
const std::string kUnpaced = "emulated:link=inf,compute=inf,latency=0us";

class Opened {
 public:
  explicit Opened(const std::string& path)
      : checkpoint_(store::open_checkpoint(path)), model_(model::describe_model(*checkpoint_)) {}

  std::unique_ptr<Engine> engine(const std::string& device, std::optional<Profile> profile = {},
                                 const std::function<void(EngineOptions&)>& change = {}) const {
    EngineOptions options;
    options.threads = 2;
    options.memory = kGiB;
    options.positions = 16;
    options.chunk = 8;
    options.device = device;
    options.device_slots = 1;
    options.profile = std::move(profile);
    options.fetch.io = fetch::IoMode::kBuffered;
    if (change) change(options);
    return std::make_unique<Engine>(*checkpoint_, model_, resolve(options, *checkpoint_, model_));
  }

 private:
  std::unique_ptr<store::Checkpoint> checkpoint_;
  model::Model model_;
};

void check(const DeviceProfile& device) {
  for (const TimesOfTokens* times : {&device.host, &device.run, &device.attention}) {
    ASSERT_EQ(times->size(), 4u);  // 1, 2, 4, 8: the chunk has room for eight
    double least = 0;
    for (const auto& [tokens, time] : *times) {
      EXPECT_GT(time.median, 0);
      EXPECT_GE(time.median, least);
      least = time.median;
    }
  }
  for (const LinkSpeed* link : {&device.idle, &device.busy}) EXPECT_GT(link->bytes_per_s, 0);
  EXPECT_GT(device.sync.median, 0);
  EXPECT_GT(device.predict.median, 0);
}

TEST(MeasureDevice, EveryModelHasCosts) {
  int models = 0;
  for (const std::string& name : sluice::testing::golden_model_names()) {
    SCOPED_TRACE(name);
    const Opened model(kModels / name);
    const auto engine = model.engine(kUnpaced);
    const Profile profile = *engine->report().profile;
    check(profile.device.value());
    EXPECT_GT(profile.device->expert, 0);
    EXPECT_LE(profile.device->expert,
              profile.model.full);  // experts of a directory begin anywhere in a block
    EXPECT_EQ(to_json(profile_from_json(to_json(profile), "again")), to_json(profile));
    ++models;
  }
  EXPECT_GE(models, 14);
}

// Experts cross the link as words; packed where the host keeps them so and computes with them so.
TEST(MeasureDevice, ExpertsAreInTheViewThatIsComputedWith) {
  const sluice::testing::ScratchDirectory directory;
  for (const std::string codec : {"native", "zstd"}) {
    SCOPED_TRACE(codec);
    const std::string store = directory.file(codec + ".sluice");
    store::PackOptions options;
    options.codec = codec;
    options.keep_columns = true;
    store::pack(kFable, store, model::pack_plan(*store::open_checkpoint(kFable)), options);
    const auto engine = Opened(store).engine(kUnpaced);
    const Profile profile = *engine->report().profile;
    check(profile.device.value());
    const Bytes packed = profile.model.sm + profile.model.exp;
    EXPECT_EQ(profile.device->view, "words");
    EXPECT_EQ(profile.device->expert, profile.model.full);
    if (codec != "native") continue;
    const auto as_packed =
        Opened(store).engine(kUnpaced, {}, [](EngineOptions& options) { options.keep = Keep::kPacked; });
    const Profile other = *as_packed->report().profile;
    ASSERT_TRUE(as_packed->report().experts.facts().can_be_packed);
    EXPECT_EQ(other.device->view, "packed");
    EXPECT_LE(other.device->expert, packed);  // which is that of the largest
    EXPECT_GT(other.device->expert, packed * 9 / 10);
    EXPECT_LT(packed, profile.model.full * 4 / 5);  // these have blocks of 4 KiB to fill
    EXPECT_LT(as_packed->report().device->memory().expert, engine->report().device->memory().expert * 4 / 5);
    // Costs of the other view do not decide.
    EXPECT_THAT(error_of([&] { Opened(store).engine(kUnpaced, other); }),
                HasSubstr("cross the link otherwise"));
  }
}

// A paced host takes at least its modelled time, less what a late wake-up before it may be made up for.
TEST(MeasureDevice, SeesThePaceOfTheHost) {
  const auto engine = Opened(kFable).engine("emulated:link=inf,compute=inf,latency=0us,host=40MB/s,dilate=2");
  const Profile profile = *engine->report().profile;
  const double each = 2 * static_cast<double>(profile.device.value().expert) / 40e6;
  ASSERT_EQ(profile.device->host.size(), 4u);
  for (const auto& [tokens, time] : profile.device->host) EXPECT_GE(time.median, tokens * each - 3.1e-4);
  EXPECT_EQ(engine->report().device->host_computed().pieces, 0u);  // what was measured is not counted
}

TEST(MeasureDevice, WhatWasMeasuredIsNotCountedAndGivenCostsAreKept) {
  const Opened model(kFable);
  const auto engine = model.engine(kUnpaced);
  const RunReport report = engine->report();
  EXPECT_EQ(report.device->link_bytes(device::Traffic::kDemand), 0);
  EXPECT_EQ(report.device->link_busy_s(), 0);
  EXPECT_EQ(report.device->computed().pieces, 0u);
  EXPECT_EQ(report.device->computed().busy_s, 0);
  EXPECT_EQ(report.statistics.total().accesses, 0u);

  Profile given = *report.profile;
  given.device->host = {{1, {1, 0}}, {8, {2, 0}}};
  const auto again = model.engine(kUnpaced, given);
  EXPECT_EQ(again->report().profile->device, given.device);
  EXPECT_EQ(again->report().device->computed().pieces, 0u);  // nothing was measured
  const auto hash = [](const Engine& one) { return experts::hash_of(one.report().decider.policies().costs); };
  EXPECT_EQ(hash(*again), experts::hash_of(given.device_costs()));
  EXPECT_NE(hash(*again), hash(*engine));

  EXPECT_THAT(error_of([&] { model.engine("emulated", given); }), HasSubstr("another device"));
  given.device.reset();
  EXPECT_THAT(error_of([&] { model.engine(kUnpaced, given); }), HasSubstr("no costs of a device"));
}

// Costs of both units are measured here, which takes most of the time in which an engine begins.
TEST(MeasureDevice, AnEngineThatIsToldToStopBeginsNoMore) {
  const Opened model(kFable);
  std::size_t asked = 0, allowed = 0;
  const auto begin = [&](std::size_t times) {
    asked = 0;
    allowed = times;
    return model.engine(kUnpaced, {},
                        [&](EngineOptions& options) { options.stop = [&] { return asked++ == allowed; }; });
  };
  EXPECT_NE(begin(100'000), nullptr);
  const std::size_t whole = asked;
  ASSERT_GT(whole, 40u);  // loading, and each repeat of both measurements
  for (const std::size_t times : {std::size_t{0}, std::size_t{1}, whole / 3, whole - 1}) {
    SCOPED_TRACE(times);
    try {
      begin(times);
      FAIL() << "the engine has begun";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInterrupted) << error.what();
    }
    EXPECT_EQ(asked, times + 1);
  }
}

}  // namespace
}  // namespace sluice::engine
