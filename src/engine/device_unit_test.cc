// Experts on a device: whatever is assigned to it, and whatever stays there, logits have the bits of the host
// alone.
#include <gtest/gtest.h>

#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "engine/device_unit_fixture.h"
#include "engine/plan/engine_plan.h"
#include "experts/registry.h"

namespace sluice::engine {
namespace {

TEST_P(DeviceUnitTest, RandomPlacementsHaveTheHostsBits) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  for (const std::size_t sequences : {1, 3})
    for (const Math math : {Math::kF32, Math::kAuto}) {
      const std::vector<float> host = run(sequences, math, nullptr);
      ASSERT_FALSE(host.empty());
      for (const DeviceSetup& setup :
           {DeviceSetup{.share = 0.5, .slots = 3, .seed = seed},
            DeviceSetup{.share = 1, .slots = 0, .threads = 2, .seed = seed},
            DeviceSetup{.share = 0.7, .slots = 64, .staging = 3, .seed = seed + 1}}) {
        SCOPED_TRACE(std::to_string(sequences) + (math == Math::kF32 ? " f32" : " auto") + ", slots " +
                     std::to_string(setup.slots));
        DeviceFor device(setup);
        EXPECT_EQ(run(sequences, math, &device), host);
        if (model_.config.moe.experts > 1 && !model_.experts.empty()) {
          const fetch::DeviceStoreCounters& counters = device.counters;
          EXPECT_GT(counters.loads + counters.streamed, 0u);
          if (setup.slots == 0) {
            EXPECT_EQ(counters.loads, 0u);
          }
          // Experts without biases that are there already share a launch.
          if (setup.slots == 64 && GetParam().find("gpt_oss") == std::string::npos) {
            EXPECT_LT(device.device().computed().pieces, counters.hits + counters.loads + counters.streamed);
          }
        }
      }
    }
}

// Every prefetch that needs no other text, to the host and to the device.
TEST_P(DeviceUnitTest, PrefetchesHaveTheHostsBits) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  const bool prefetched =
      model_.config.moe.experts > 1 && model_.config.sparse_layers() > 1 && !model_.config.has_encoder();
  std::uint64_t copies = 0, used = 0;
  int failed = 0;
  for (const std::size_t sequences : {1, 3}) {
    const std::vector<float> host = run(sequences, Math::kF32, nullptr);
    for (const experts::PrefetchPolicy& policy : experts::prefetch_policies()) {
      if (policy.needs != experts::PrefetchNeeds::kNothing) continue;
      const std::string name(policy.name);
      for (const DeviceSetup& setup :
           {DeviceSetup{.share = 1, .slots = 0, .staging = 4, .prefetch = name},
            DeviceSetup{.share = 0.5, .slots = 3, .staging = 3, .prefetch = name, .prefetch_size = 1},
            DeviceSetup{
                .share = 0.7, .slots = 5, .staging = 6, .threads = 2, .prefetch = name, .prefetch_size = 9},
            DeviceSetup{.share = 0.7, .slots = 3, .staging = 5, .prefetch = name, .faults = 0.05}}) {
        SCOPED_TRACE(std::to_string(sequences) + " " + name + ", slots " + std::to_string(setup.slots) +
                     (setup.faults > 0 ? ", faults" : ""));
        DeviceSetup seeded = setup;
        seeded.seed = seed;
        DeviceFor device(seeded);
        EXPECT_EQ(run(sequences, Math::kF32, &device, name), host);
        copies += device.counters.prefetches;
        used += device.counters.useful + device.counters.late;
        failed += device.failed_steps;
      }
    }
  }
  std::cout << copies << " prefetches, " << used << " used; " << failed << " steps failed\n";
  if (prefetched) {
    EXPECT_GT(copies, 0u);
    EXPECT_GT(used, 0u);
    EXPECT_GT(failed, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(AllModels, DeviceUnitTest,
                         ::testing::ValuesIn(sluice::testing::golden_model_names()));

class PackedSlots : private PackedStore, public DeviceUnitTest {
 protected:
  PackedSlots() : PackedStore(GetParam()), DeviceUnitTest(PackedStore::path_) {}
};

// Slots too small for words, and the host's bits: those of words, and those of packed experts.
TEST_P(PackedSlots, HaveTheHostsBits) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  ASSERT_TRUE(facts_of(*checkpoint_, model_).packable);
  std::uint64_t copies = 0;
  int failed = 0;
  for (const Math math : {Math::kF32, Math::kAuto}) {
    const std::vector<float> host = run(2, math, nullptr);
    for (const DeviceSetup& setup :
         {DeviceSetup{.share = 0.5, .slots = 3, .packed = true},
          DeviceSetup{.share = 1, .slots = 0, .threads = 2, .packed = true},
          DeviceSetup{.share = 0.7, .slots = 64, .staging = 5, .prefetch = "raw", .packed = true},
          DeviceSetup{.share = 1, .slots = 3, .staging = 4, .faults = 0.05, .packed = true}}) {
      SCOPED_TRACE(std::string(math == Math::kF32 ? "f32" : "auto") + ", slots " +
                   std::to_string(setup.slots) + (setup.faults > 0 ? ", faults" : ""));
      DeviceSetup seeded = setup;
      seeded.seed = seed;
      DeviceFor device(seeded);
      EXPECT_EQ(run(2, math, &device, setup.prefetch.empty() ? "none" : setup.prefetch), host);
      copies += device.counters.loads + device.counters.streamed;
      failed += device.failed_steps;
    }
  }
  EXPECT_GT(copies, 0u);
  EXPECT_GT(failed, 0);
}

INSTANTIATE_TEST_SUITE_P(SomeModels, PackedSlots,
                         ::testing::Values("qwen2_moe_b", "mixtral_a", "deepseek_v2_a", "olmoe_b"));

}  // namespace
}  // namespace sluice::engine
