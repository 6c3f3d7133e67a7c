#include "codec/native/tiles.h"

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
  const TileShape shapes[] = {{1, 1},   {8, 64},   {7, 63},    {9, 65},    {16, 128},
                              {3, 200}, {40, 700}, {1024, 64}, {64, 1024}, {9, 1041}};
  for (const TileShape shape : shapes) {
    SCOPED_TRACE(std::to_string(shape.rows) + " x " + std::to_string(shape.columns));
    const auto words = counted_words(shape.rows * shape.columns, 77);
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
    for (const Isa isa : available_isas()) {
      SCOPED_TRACE(isa_name(isa));
      std::vector<std::byte> e(shape.places(), std::byte{0xa5}), sm(e), sm_alone(e);
      split_tiles(words, shape, e, sm, isa);
      EXPECT_TRUE(e == expected_e);
      EXPECT_TRUE(sm == expected_sm);
      sign_mantissa_tiles(words, shape, sm_alone, isa);
      EXPECT_TRUE(sm_alone == expected_sm);
    }
  }
}

TEST(Tiles, MatricesThatPaddingWouldFillAreStoredInAnotherShape) {
  const auto expect = [](TileShape matrix, TileShape stored) {
    const TileShape found = stored_shape(matrix);
    EXPECT_TRUE(found == stored) << matrix.rows << " x " << matrix.columns << ": " << found.rows << " x "
                                 << found.columns;
    EXPECT_LE(found.places(), matrix.places());
  };
  expect({256, 96}, {48, 512});   // a third would be padding
  expect({64, 900}, {150, 384});  // 6.7 %; 64 columns would leave less padding, but six times the groups
  expect({100, 80}, {125, 64});   // 320 columns would leave seven of 32 rows
  expect({1, 512}, {8, 64});      // seven of eight rows
  expect({1408, 2048}, {1408, 2048});
  expect({1408, 2000}, {1408, 2000});  // 2.4 %
  expect({63, 950}, {63, 950});        // no other shape divides it well
  expect({3, 64}, {3, 64});            // nothing is better
  expect({1, 1}, {1, 1});
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
