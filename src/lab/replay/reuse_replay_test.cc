// The cache `reuse` over recorded routing: what docs/cache-tournament.md says of the traces that are here.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "lab/replay/replay.h"

namespace sluice::lab {
namespace {

const std::string kRoutingData = SLUICE_SOURCE_DIR "/tests/data/routing/";

// The hits of a cache as a share of the way from those of LRU to Belady's.
struct Share {
  double lfu, reuse;
};

Share shares(const std::string& file, std::uint64_t capacity) {
  const auto trace = trace::open_trace(kRoutingData + file);
  const Requests requests = read_requests(*trace);
  const auto hits = [&](const char* cache) {
    return static_cast<double>(
        replay(requests, trace->header().layers, nullptr, {.cache = cache, .capacity = capacity}).total.hits);
  };
  const double lru = hits("lru"), gap = hits("belady") - lru;
  return {(hits("lfu") - lru) / gap, (hits("reuse") - lru) / gap};
}

TEST(ReuseReplay, ClosesMoreOfTheGapThanLfu) {
  const std::string deepseek = "dsv2lite.summary612.mrt.zst", qwen = "qwen.route.csv.zst";
  const struct {
    std::string file;
    std::uint64_t capacity;
    double least;
  } cases[] = {
      {deepseek, 16, .32}, {deepseek, 32, .28}, {deepseek, 48, .26}, {qwen, 32, .23}, {qwen, 64, .16}};
  for (const auto& one : cases) {
    const Share share = shares(one.file, one.capacity);
    EXPECT_GT(share.reuse, one.least) << one.file << ", " << one.capacity;
    EXPECT_GT(share.reuse, share.lfu) << one.file << ", " << one.capacity;
  }
}

// One cache for all layers compares their forecasts, and is no worse than LRU and LFU there.
TEST(ReuseReplay, IsAheadInOneCacheForAllLayers) {
  const auto trace = trace::open_trace(kRoutingData + "dsv2lite.summary612.mrt.zst");
  const Requests requests = read_requests(*trace);
  for (const std::uint64_t percent : {25, 50, 75}) {
    const auto hits = [&](const char* cache) {
      return replay(requests, trace->header().layers, nullptr,
                    {.cache = cache, .scope = Scope::kGlobal, .capacity = 26 * 64 * percent / 100})
          .total.hits;
    };
    EXPECT_GT(hits("reuse"), std::max(hits("lru"), hits("lfu"))) << percent;
  }
}

}  // namespace
}  // namespace sluice::lab
