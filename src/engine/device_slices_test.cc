// Experts in slices on a device: with the same precisions logits have the bits of the host alone, wherever
// experts are computed and whatever their slots hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "engine/device_unit_fixture.h"
#include "engine/plan/engine_plan.h"
#include "experts/device_slices.h"

namespace sluice::engine::device_slices_test {
namespace {

using experts::Part;
using experts::Parts;
using experts::PrecisionMode;

constexpr Parts kBoth = Part::kMsb | Part::kLsb;

// A model as a store in slices.
class SlicedModel {
 protected:
  explicit SlicedModel(const std::string& name) : path_(scratch_.file(name + ".sluice")) {
    store::PackOptions options;
    options.slices = codec::SliceBits{8, 4};
    const fs::path model = kModels / name;
    store::pack(model, path_, model::pack_plan(*store::open_checkpoint(model)), options);
  }
  const sluice::testing::ScratchDirectory scratch_;
  const std::string path_;
};

class SlicesInSlots : private SlicedModel, public DeviceUnitTest {
 protected:
  SlicesInSlots() : SlicedModel(GetParam()), DeviceUnitTest(SlicedModel::path_) {}

  struct Way {
    PrecisionMode precision = PrecisionMode::kHigh;
    Math math = Math::kAuto;
    std::size_t sequences = 1;
    unsigned threads = 2;  // threads of the host
  };
  std::vector<float> logits(const Way& way, DeviceFor* device, const std::string& prefetch = "none") {
    adjust_ = [way](EngineOptions& options) {
      options.precision = way.precision;
      options.threads = way.threads;
      if (way.precision == PrecisionMode::kDbsc) options.cache_bytes = 0;  // the host upgrades nothing
    };
    return run(way.sequences, way.math, device, prefetch);
  }
  std::uint32_t all_experts() const {
    return static_cast<std::uint32_t>(model_.config.moe.experts) * model_.config.sparse_layers();
  }
};

TEST_P(SlicesInSlots, HaveTheHostsBits) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::uint64_t loads = 0, streamed = 0, hits = 0;
  for (const PrecisionMode precision : {PrecisionMode::kHigh, PrecisionMode::kLow})
    for (const std::size_t sequences : {1, 4})
      for (const unsigned threads : {1u, 2u}) {
        const Way way{precision, threads == 1 ? Math::kF32 : Math::kAuto, sequences, threads};
        const std::vector<float> host = logits(way, nullptr);
        for (const Parts room : {kBoth, Parts(Part::kMsb)})
          for (const std::uint32_t slots : {0u, 3u, all_experts()}) {
            SCOPED_TRACE(std::string(experts::precision_name(precision)) + ", " + std::to_string(sequences) +
                         " sequences, " + std::to_string(slots) +
                         (room == kBoth ? " slots" : " slots of MSBs"));
            DeviceFor device({.share = slots == 0 ? 1 : 0.7,
                              .slots = slots,
                              .threads = threads,
                              .seed = seed,
                              .slot_slices = room});
            EXPECT_EQ(logits(way, &device), host);
            loads += device.counters.loads;
            streamed += device.counters.streamed;
            hits += device.counters.hits;
          }
      }
  EXPECT_NE(logits({PrecisionMode::kHigh}, nullptr), logits({PrecisionMode::kLow}, nullptr));
  for (const std::uint64_t count : {loads, streamed, hits}) EXPECT_GT(count, 0u);
}

// Where neither memory has an LSB that nobody asked for, precisions are those that were asked for.
TEST_P(SlicesInSlots, HaveTheHostsBitsByCriticalityWhereNothingStays) {
  const Way way{PrecisionMode::kDbsc, Math::kAuto, 3};
  const std::vector<float> host = logits(way, nullptr);
  for (const double share : {0.5, 1.0}) {
    DeviceFor device({.share = share, .slots = 0});
    EXPECT_EQ(logits(way, &device), host) << share;
  }
  EXPECT_NE(host, logits({PrecisionMode::kLow, Math::kAuto, 3}, nullptr));
}

TEST_P(SlicesInSlots, PrefetchesAndFailedCopiesChangeNoBit) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::uint64_t copies = 0;
  int failed = 0;
  for (const PrecisionMode precision : {PrecisionMode::kHigh, PrecisionMode::kLow}) {
    const Way way{precision, Math::kAuto, 2};
    const std::vector<float> host = logits(way, nullptr);
    for (const Parts room : {kBoth, Parts(Part::kMsb)})
      for (const DeviceSetup& setup :
           {DeviceSetup{.share = 0.7, .slots = 4, .staging = 5, .prefetch = "raw"},
            DeviceSetup{
                .share = 0.7, .slots = 6, .staging = 4, .prefetch = "stream", .cache = "workload-ema"},
            DeviceSetup{.share = 1, .slots = 3, .staging = 4, .prefetch = "raw", .faults = 0.05},
            DeviceSetup{.share = 1, .slots = 3, .faults = 0.05}}) {
        SCOPED_TRACE(std::string(experts::precision_name(precision)) + ", " + setup.cache + " " +
                     setup.prefetch + (room == kBoth ? "" : ", slots of MSBs") +
                     (setup.faults > 0 ? ", faults" : ""));
        DeviceSetup one = setup;
        one.seed = seed;
        one.slot_slices = room;
        DeviceFor device(one);
        EXPECT_EQ(logits(way, &device, setup.prefetch.empty() ? "none" : setup.prefetch), host);
        copies += device.counters.prefetches;
        failed += device.failed_steps;
      }
  }
  EXPECT_GT(copies, 0u);
  EXPECT_GT(failed, 0);
}

INSTANTIATE_TEST_SUITE_P(SomeModels, SlicesInSlots,
                         ::testing::Values("qwen2_moe_b", "mixtral_a", "deepseek_v2_a", "olmoe_b"));

}  // namespace
}  // namespace sluice::engine::device_slices_test
