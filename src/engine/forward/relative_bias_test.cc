#include "engine/forward/relative_bias.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::engine {
namespace {

// The published code's own answers (transformers 5.23, _relative_position_bucket).
TEST(RelativeBias, BucketsAreThePublishedOnes) {
  const model::RelativeBiasConfig t5{32, 128};
  const std::vector<std::pair<int, std::uint32_t>> both = {
      {-5000, 15}, {-128, 15}, {-127, 15}, {-91, 15}, {-90, 14}, {-64, 14}, {-46, 13}, {-45, 12}, {-32, 12},
      {-31, 11},   {-23, 11},  {-22, 10},  {-16, 10}, {-15, 9},  {-12, 9},  {-11, 8},  {-9, 8},   {-8, 8},
      {-7, 7},     {-1, 1},    {0, 0},     {1, 17},   {7, 23},   {8, 24},   {11, 24},  {12, 25},  {15, 25},
      {16, 26},    {22, 26},   {23, 27},   {31, 27},  {32, 28},  {45, 28},  {46, 29},  {63, 29},  {64, 30},
      {90, 30},    {91, 31},   {127, 31},  {128, 31}, {4000, 31}};
  for (const auto& [distance, bucket] : both)
    EXPECT_EQ(relative_bucket(distance, Directions::kBoth, t5), bucket) << distance;
  const std::vector<std::pair<int, std::uint32_t>> back = {
      {-5000, 31}, {-128, 31}, {-127, 31}, {-113, 31}, {-112, 30}, {-98, 29}, {-87, 29}, {-86, 28},
      {-64, 26},   {-63, 26},  {-57, 25},  {-32, 21},  {-31, 21},  {-21, 18}, {-20, 17}, {-18, 16},
      {-17, 16},   {-16, 16},  {-15, 15},  {-1, 1},    {0, 0},     {1, 0},    {30, 0}};
  for (const auto& [distance, bucket] : back)
    EXPECT_EQ(relative_bucket(distance, Directions::kBack, t5), bucket) << distance;
  const model::RelativeBiasConfig odd{11, 20};
  const std::vector<std::pair<int, std::uint32_t>> odd_both = {
      {-40, 4}, {-20, 4}, {-19, 4}, {-10, 4}, {-9, 3}, {-5, 3}, {-4, 2}, {-3, 2}, {-2, 2}, {-1, 1}, {0, 0},
      {1, 6},   {2, 7},   {3, 7},   {4, 7},   {5, 8},  {8, 8},  {9, 8},  {14, 9}, {19, 9}, {20, 9}};
  for (const auto& [distance, bucket] : odd_both)
    EXPECT_EQ(relative_bucket(distance, Directions::kBoth, odd), bucket) << distance;
}

TEST(RelativeBias, BucketsGrowWithTheDistanceAndEndWithTheTable) {
  for (std::uint32_t buckets = 4; buckets < 70; ++buckets) {
    for (const std::uint32_t most : {buckets / 2 + 1, buckets + 3, 300u}) {
      const model::RelativeBiasConfig config{buckets, most};
      std::uint32_t last = 0;
      for (std::int64_t distance = 0; distance > -1000; --distance) {
        const std::uint32_t bucket = relative_bucket(distance, Directions::kBack, config);
        EXPECT_GE(bucket, last);
        EXPECT_LT(bucket, buckets);
        last = bucket;
        EXPECT_LT(relative_bucket(-distance, Directions::kBoth, config), buckets);
        EXPECT_LT(relative_bucket(distance, Directions::kBoth, config), buckets / 2);
      }
      EXPECT_EQ(last, buckets - 1);
      EXPECT_EQ(relative_bucket(INT32_MAX, Directions::kBack, config), 0u);
    }
  }
}

TEST(RelativeBias, SpreadsARowForEveryHead) {
  const model::RelativeBiasConfig config{4, 4};
  const std::vector<float> table = {1, 10, 2, 20, 3, 30, 4, 40};  // (4 buckets, 2 heads)
  const codec::MatrixRef weight =
      codec::word_matrix(reinterpret_cast<const std::byte*>(table.data()), DType::kF32, 4, 2);
  std::vector<float> back(2 * 5);
  spread_relative_bias(weight, Directions::kBack, config, 4, 5, back.data());
  EXPECT_EQ(back, (std::vector<float>{4, 4, 3, 2, 1, 40, 40, 30, 20, 10}));
  std::vector<float> both(2 * 5);
  spread_relative_bias(weight, Directions::kBoth, config, 2, 5, both.data());
  EXPECT_EQ(both, (std::vector<float>{2, 2, 1, 4, 4, 20, 20, 10, 40, 40}));
}

}  // namespace
}  // namespace sluice::engine
