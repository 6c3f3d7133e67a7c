// Three tiers: a device and the host's memory that exclude each other, above a disk. Recorded routing.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>

#include "base/error.h"
#include "lab/machine/hybrid_machine.h"
#include "lab/replay/hybrid_replay.h"
#include "trace/routing_trace.h"

namespace sluice::lab {
namespace {

const std::string kRecorded = SLUICE_SOURCE_DIR "/tests/data/routing/";

RoutedSteps steps_of(const std::string& name) {
  return read_routed_steps(*trace::open_trace(kRecorded + name), {.prefill = 0});
}

// What the host reads from disk, in experts. `share`s are of all experts of the trace.
struct ThreeTiers {
  const RoutedSteps& steps;
  std::string placement = "device";

  HybridResult run(double host, double device, experts::Tiers tiers) const {
    HybridSettings settings{.placement = placement,
                            .device_cache = device > 0 ? "lru" : "none",
                            .slots = static_cast<std::uint32_t>(device * steps.experts),
                            .tiers = tiers,
                            .costs = find_hybrid_machine("dali-3090").costs};
    settings.host.capacity = static_cast<Bytes>(host * steps.layers * steps.experts);
    return replay_hybrid(steps, settings);
  }
};

std::uint64_t misses(const HybridResult& result) {
  return result.prefill.host.misses() + result.decode.host.misses();
}

// The host holds a quarter of all experts and the device 15 %: they read at most 1.05 times what the host
// alone reads that holds 40 %.
TEST(ExclusiveTiersReplay, ReadLittleMoreThanOneMemoryOfTheirCommonSize) {
  for (const char* trace : {"dsv2lite.summary612.mrt.zst", "qwen.route.csv.zst"}) {
    const RoutedSteps steps = steps_of(trace);
    const std::uint64_t alone = misses(ThreeTiers{steps, "cpu"}.run(.40, 0, experts::Tiers::kInclusive));
    ASSERT_GT(alone, 1000u);
    for (const char* placement : {"device", "ratio-prefix", "greedy"}) {
      SCOPED_TRACE(std::string(trace) + " " + placement);
      const ThreeTiers tiers{steps, placement};
      const HybridResult exclusive = tiers.run(.25, .15, experts::Tiers::kExclusive);
      const std::uint64_t inclusive = misses(tiers.run(.25, .15, experts::Tiers::kInclusive));
      const auto ratio = [&](std::uint64_t reads) {
        return static_cast<double>(reads) / static_cast<double>(alone);
      };
      const experts::DeviceCounts& counts = exclusive.decode.counts;
      std::cout << trace << " " << placement << ": alone " << alone << ", exclusive "
                << ratio(misses(exclusive)) << ", inclusive " << ratio(inclusive) << " of that; "
                << counts.returns << " of " << counts.dropped << " went back, " << counts.late_returns
                << " waited for, " << counts.there_alone << " kept there\n";
      EXPECT_LE(ratio(misses(exclusive)), 1.05);
      EXPECT_GT(inclusive, misses(exclusive));
      EXPECT_GT(counts.returns, 0u);
      EXPECT_LE(counts.returns, counts.dropped);
    }
  }
}

// With a host that holds all, nothing is read twice, wherever experts go.
TEST(ExclusiveTiersReplay, NothingIsLostWhereThereIsRoomForAll) {
  const RoutedSteps steps = steps_of("dsv2lite.first48.mrt.zst");
  for (const char* placement : {"device", "greedy", "cpu"}) {
    const ThreeTiers tiers{steps, placement};
    EXPECT_EQ(misses(tiers.run(1, .1, experts::Tiers::kExclusive)),
              misses(ThreeTiers{steps, "cpu"}.run(1, 0, experts::Tiers::kInclusive)))
        << placement;
  }
}

TEST(ExclusiveTiersReplay, RefuseAHostThatCannotAdopt) {
  const RoutedSteps steps = steps_of("dsv2lite.first48.mrt.zst");
  HybridSettings settings{.slots = 4, .tiers = experts::Tiers::kExclusive};
  for (const char* cache : {"static", "workload-ema", "hybrimoe"}) {
    settings.host.cache = cache;
    try {
      replay_hybrid(steps, settings);
      ADD_FAILURE() << cache;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("can take in nothing that leaves a device"), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace sluice::lab
