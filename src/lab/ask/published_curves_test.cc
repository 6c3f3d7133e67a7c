// Hit rates that the authors of a trace computed from it with their own program
// (tests/data/routing/README.md; docs/replay.md maps their settings to ours and says why LRU and LFU differ
// in the last digit).
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "base/files/file.h"
#include "lab/replay/replay.h"

namespace sluice::lab {
namespace {

const std::string kData = SLUICE_SOURCE_DIR "/tests/data/routing/";
constexpr double kPoints = 0.05;

TEST(PublishedCurves, LruLfuAndBeladyOverTheQwen3TraceAreTheirs) {
  const auto trace = trace::open_trace(kData + "qwen.route.csv.zst");
  const Requests requests = read_requests(*trace);
  std::istringstream curve(read_text_file(kData + "qwen-curve.csv", kMiB));
  std::string line;
  std::getline(curve, line);
  ASSERT_EQ(line, "budget_mib,policy,hit_pct_cum,hit_pct_decode,read_mib");
  int points = 0;
  while (std::getline(curve, line)) {
    std::istringstream fields(line);
    std::string budget, policy, all, decode, read;
    std::getline(fields, budget, ',');
    std::getline(fields, policy, ',');
    std::getline(fields, all, ',');
    std::getline(fields, decode, ',');
    std::getline(fields, read, ',');
    if (policy != "lru" && policy != "lfu" && policy != "belady") continue;
    SCOPED_TRACE(line);
    const ReplayResult ours = replay(requests, trace->header().layers, &*trace->header().sizes,
                                     {.cache = policy,
                                      .scope = Scope::kGlobal,
                                      .unit = CapacityUnit::kBytes,
                                      .capacity = std::stoull(budget) * kMiB});
    // Belady has no ties that matter: equal to the last printed digit.
    const double points_apart = policy == "belady" ? 0.000501 : kPoints;
    EXPECT_NEAR(100 * ours.total.hit_rate(), std::stod(all), points_apart);
    EXPECT_NEAR(100 * ours.decode.hit_rate(), std::stod(decode), points_apart);
    EXPECT_NEAR(static_cast<double>(*ours.bytes_read) / kMiB, std::stod(read),
                policy == "belady" ? 0.0501 : 0.0005 * 107715);
    ++points;
  }
  EXPECT_EQ(points, 33);
}

}  // namespace
}  // namespace sluice::lab
