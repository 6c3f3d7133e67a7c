#include "base/compared_bytes.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice {
namespace {

TEST(ComparedBytes, BytesStandWhereTheSizesWouldReadTheSame) {
  const ComparedBytes same = compared_bytes(24'000'000, 24'000'001);
  EXPECT_EQ(same.expected, "22.89 MiB (24000000 bytes)");
  EXPECT_EQ(same.found, "22.89 MiB (24000001 bytes)");
  const ComparedBytes other = compared_bytes(64 * kMiB, kKiB);
  EXPECT_EQ(other.expected, "64.00 MiB");
  EXPECT_EQ(other.found, "1.00 KiB");
  EXPECT_EQ(compared_bytes(kMiB, kMiB).found, "1.00 MiB");
}

TEST(ComparedBytes, DifferentSizesNeverReadTheSame) {
  constexpr unsigned kSeed = 20261122;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 10000; ++i) {
    const Bytes a = random() >> random() % 64, b = a + random() % 2000 - 1000;
    const ComparedBytes texts = compared_bytes(a, b);
    EXPECT_EQ(texts.expected == texts.found, a == b) << a << " " << b;
  }
}

}  // namespace
}  // namespace sluice
