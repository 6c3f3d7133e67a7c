#include "codec/exponents/shards.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "base/setting.h"

namespace sluice::codec {
namespace {

TEST(ShardRange, CoversTheElementsInOrderWithSizesThatDifferByOne) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const unsigned chunks = 1 + static_cast<unsigned>(random() % kMaxChunks);
    const std::uint64_t elements = i < 300 ? static_cast<std::uint64_t>(i) : random() >> random() % 64;
    std::uint64_t at = 0;
    for (unsigned x = 0; x < chunks; ++x) {
      const ElementRange range = shard_range(elements, chunks, x);
      ASSERT_EQ(range.begin, at);
      ASSERT_GE(range.size(), elements / chunks);
      ASSERT_LE(range.size(), elements / chunks + (elements % chunks != 0));
      at = range.end;
    }
    ASSERT_EQ(at, elements);
  }
}

TEST(ShardRange, IsTheFormulaOfTheSpecification) {
  EXPECT_EQ(shard_range(10, 4, 0).begin, 0u);
  EXPECT_EQ(shard_range(10, 4, 1).begin, 2u);
  EXPECT_EQ(shard_range(10, 4, 2).begin, 5u);
  EXPECT_EQ(shard_range(10, 4, 3).begin, 7u);
  EXPECT_EQ(shard_range(2, 3, 0).size(), 0u) << "fewer elements than chunks: some are empty";
  EXPECT_EQ(shard_range(0, 256, 255).size(), 0u);
  EXPECT_EQ(shard_range(~std::uint64_t{0}, 256, 255).end, ~std::uint64_t{0}) << "no product wraps round";
}

TEST(ChunkCount, OutsideOf1To256IsAUsageError) {
  EXPECT_EQ(check_chunk_count(1, Setting::kChunks), 1u);
  EXPECT_EQ(check_chunk_count(256, Setting::kChunks), 256u);
  for (const std::int64_t bad :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{257}, INT64_MAX, INT64_MIN}) {
    try {
      check_chunk_count(bad, Setting::kChunks);
      ADD_FAILURE() << bad;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUsage);
      EXPECT_EQ(with_names(e.where()), "--chunks");
    }
  }
}

}  // namespace
}  // namespace sluice::codec
