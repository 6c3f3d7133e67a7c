// Tiers that exclude each other: experts go down to a device and come back, and logits keep the bits of the
// host alone.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "engine/device_unit_fixture.h"
#include "engine/plan/engine_plan.h"
#include "engine/run_report.h"
#include "experts/registry.h"

namespace sluice::engine {
namespace {

using experts::Tiers;

struct Moved {
  std::uint64_t runs = 0, begun = 0, complete = 0, late = 0, lost = 0;
  int failed_steps = 0;
  void add(const DeviceFor& device) {
    ++runs;
    begun += device.returns.begun;
    complete += device.returns.complete;
    late += device.returns.late;
    lost += device.returns.lost;
    failed_steps += device.failed_steps;
  }
};

std::ostream& operator<<(std::ostream& out, const Moved& moved) {
  return out << moved.runs << " runs, " << moved.begun << " returns begun, " << moved.complete
             << " complete, " << moved.late << " of them waited for, " << moved.lost << " lost; "
             << moved.failed_steps << " steps failed\n";
}

class ExclusiveTiers : public DeviceUnitTest {};

// Every cache of the host that adopts beside some of the device, with rooms from nothing to all.
TEST_P(ExclusiveTiers, HaveTheHostsBits) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  Moved moved;
  for (const std::size_t sequences : {1, 3}) {
    const std::vector<float> host = run(sequences, Math::kF32, nullptr);
    ASSERT_FALSE(host.empty());
    for (const experts::CachePolicy& policy : experts::cache_policies()) {
      if (!policy.adopts) continue;
      for (const char* cache : {"lru", "fifo", "workload-window-unconditional"}) {
        DeviceSetup setup{.share = random() % 2 == 0 ? 1 : .6,
                          .slots = static_cast<std::uint32_t>(1 + random() % 6),
                          .staging = static_cast<std::uint32_t>(2 + random() % 2),
                          .seed = seed,
                          .tiers = Tiers::kExclusive,
                          .cache = cache,
                          .host_cache = std::string(policy.name)};
        if (policy.keeps) setup.host_experts = static_cast<std::uint32_t>(1 + random() % 7);
        SCOPED_TRACE(std::to_string(sequences) + " " + setup.host_cache + " of " +
                     std::to_string(setup.host_experts.value_or(0)) + ", " + cache + " of " +
                     std::to_string(setup.slots) + ", staging " + std::to_string(setup.staging));
        DeviceFor device(setup);
        EXPECT_EQ(run(sequences, Math::kF32, &device), host);
        moved.add(device);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
  std::cout << moved;
  if (model_.config.moe.experts > 1 && !model_.experts.empty()) {
    EXPECT_GT(moved.complete, 10u);
  }
}

// Copies of all kinds fail: a step whose own copies fail is repeated, a return that fails is read again.
TEST_P(ExclusiveTiers, SurviveFailedCopies) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  Moved moved;
  const std::vector<float> host = run(2, Math::kAuto, nullptr);
  for (const double faults : {.02, .1})
    for (const char* prefetch : {"", "raw"})
      for (const std::uint32_t host_experts : {2u, 5u}) {
        SCOPED_TRACE(std::to_string(faults) + " " + prefetch + " " + std::to_string(host_experts));
        DeviceFor device({.share = .8,
                          .slots = 3,
                          .staging = prefetch[0] != 0 ? 4u : 2u,
                          .seed = seed,
                          .prefetch = prefetch,
                          .faults = faults,
                          .tiers = Tiers::kExclusive,
                          .host_cache = "lru",
                          .host_experts = host_experts});
        EXPECT_EQ(run(2, Math::kAuto, &device, prefetch[0] != 0 ? prefetch : "none"), host);
        moved.add(device);
        if (::testing::Test::HasFailure()) return;
      }
  std::cout << moved;
  if (model_.config.moe.experts > 1 && !model_.experts.empty()) {
    if (moved.begun >= 300) {  // 6 % of copies fail
      EXPECT_GT(moved.lost, 0u);
    }
    EXPECT_GT(moved.failed_steps, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(AllModels, ExclusiveTiers,
                         ::testing::ValuesIn(sluice::testing::golden_model_names()));

class PackedTiers : private PackedStore, public DeviceUnitTest {
 protected:
  PackedTiers() : PackedStore(GetParam()), DeviceUnitTest(PackedStore::path_) {}
};

// Words and planes come back in the form in which the host keeps them.
TEST_P(PackedTiers, HaveTheHostsBits) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  Moved moved;
  const std::vector<float> host = run(2, Math::kF32, nullptr);
  for (const bool packed : {false, true})
    for (const double faults : {0.0, .1}) {
      SCOPED_TRACE(std::string(packed ? "packed" : "full") + (faults > 0 ? ", faults" : ""));
      DeviceFor device({.share = .8,
                        .slots = 3,
                        .seed = seed,
                        .faults = faults,
                        .packed = packed,
                        .tiers = Tiers::kExclusive,
                        .host_cache = "lru",
                        .host_experts = 4});
      EXPECT_EQ(run(2, Math::kF32, &device), host);
      moved.add(device);
    }
  std::cout << moved;
  EXPECT_GT(moved.complete, 0u);
}

INSTANTIATE_TEST_SUITE_P(SomeModels, PackedTiers,
                         ::testing::Values("qwen2_moe_b", "mixtral_a", "deepseek_v2_a", "olmoe_b"));

}  // namespace
}  // namespace sluice::engine
