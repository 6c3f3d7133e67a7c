#include "codec/tiles.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace sluice::codec {
namespace {

std::vector<std::byte> counted_words(std::size_t count, unsigned first) {
  std::vector<std::byte> words(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned w = static_cast<unsigned>(i) * 40'503u + first;  // odd: 65,536 in a row are all different
    words[2 * i] = static_cast<std::byte>(w);
    words[2 * i + 1] = static_cast<std::byte>(w >> 8);
  }
  return words;
}

TEST(Tiles, PlacesAndColumnsOfALineAreABijection) {
  std::array<bool, kTileColumns> seen{};
  for (std::size_t c = 0; c < kTileColumns; ++c) {
    const std::size_t p = place_of_column(c);
    ASSERT_LT(p, kTileColumns);
    EXPECT_FALSE(seen[p]);
    seen[p] = true;
    EXPECT_EQ(column_of_place(p), c);
  }
}

// The line of docs/store-format.md: columns 0–7, 32–39, 8–15, 40–47, 16–23, 48–55, 24–31, 56–63.
TEST(Tiles, ALineIsRunsOfEightColumns) {
  const std::size_t firsts[] = {0, 32, 8, 40, 16, 48, 24, 56};
  for (std::size_t run = 0; run < 8; ++run) {
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(column_of_place(8 * run + i), firsts[run] + i);
  }
}

// Oracle: the formula of the page for every element, and zeros where no element stands.
TEST(Tiles, PutsEveryElementWhereThePageSays) {
  const TileShape shapes[] = {{1, 1}, {8, 64}, {7, 63}, {9, 65}, {16, 128}, {3, 200}, {40, 700}, {1024, 64}};
  for (const TileShape shape : shapes) {
    SCOPED_TRACE(std::to_string(shape.rows) + " x " + std::to_string(shape.columns));
    const auto words = counted_words(shape.rows * shape.columns, 77);
    std::vector<std::byte> e(shape.places(), std::byte{0xa5}), sm(e);
    split_tiles(words, shape, e, sm);
    std::vector<std::byte> expected_e(shape.places()), expected_sm(shape.places());
    const std::size_t blocks = (shape.columns + 63) / 64;
    for (std::size_t r = 0; r < shape.rows; ++r) {
      for (std::size_t c = 0; c < shape.columns; ++c) {
        const std::size_t place =
            ((r / 8 * blocks + c / 64) * 8 + r % 8) * 64 + 16 * (c % 32 / 8) + 8 * (c % 64 / 32) + c % 8;
        const std::size_t i = r * shape.columns + c;
        const unsigned word =
            std::to_integer<unsigned>(words[2 * i]) | std::to_integer<unsigned>(words[2 * i + 1]) << 8;
        expected_e.at(place) = static_cast<std::byte>(word >> 7);
        expected_sm.at(place) = static_cast<std::byte>((word >> 15) << 7 | (word & 0x7f));
      }
    }
    EXPECT_TRUE(e == expected_e);
    EXPECT_TRUE(sm == expected_sm);
  }
}

TEST(Tiles, ColumnsOfTheLastBlock) {
  EXPECT_EQ(columns_in_block({1, 64}, 0), 64u);
  EXPECT_EQ(columns_in_block({1, 65}, 0), 64u);
  EXPECT_EQ(columns_in_block({1, 65}, 1), 1u);
  EXPECT_EQ(columns_in_block({1, 1}, 0), 1u);
}

TEST(TilesDeathTest, PlanesOfOtherSizesAreOurBug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::vector<std::byte> words(2 * 64), e(512), sm(511);
  EXPECT_DEATH(split_tiles(words, {1, 64}, e, sm), "internal error");
  EXPECT_DEATH(split_tiles(words, {1, 63}, e, e), "internal error");
}

}  // namespace
}  // namespace sluice::codec
