#include "fetch/extract_planes.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "codec/native/tiles.h"

namespace sluice::fetch {
namespace {

// One matrix in tiles whose planes and words both begin at the start of their regions.
ExpertLayout layout_of(codec::TileShape tiles) {
  ExpertLayout layout;
  layout.rules = &experts::part_rules(experts::Family::kSplit);
  PiecePlace piece;
  piece.format = &codec::kFormatPacked;
  piece.shape = {tiles.rows, tiles.columns};
  piece.elements = tiles.rows * tiles.columns;
  layout.pieces = {piece};
  layout.base.bytes = tiles.places();
  layout.view_bytes = piece.view_bytes();
  return layout;
}

TEST(ExtractPlanes, GivesTheTilesOfTheStoreInPlaceOrBeside) {
  std::mt19937 random(9);
  bool any_in_place = false, any_beside = false;
  std::vector<std::byte> scratch;
  for (const codec::TileShape tiles :
       {codec::TileShape{16, 128}, {24, 96}, {9, 200}, {64, 33}, {3, 512}, {40, 7}}) {
    const ExpertLayout layout = layout_of(tiles);
    std::vector<std::byte> words(layout.view_bytes);
    for (std::byte& byte : words) byte = static_cast<std::byte>(random());
    std::vector<std::byte> exponents(tiles.places()), expected(tiles.places()), found(tiles.places());
    codec::split_tiles(words, tiles, exponents, expected);
    const bool in_place = planes_fit_in_place(layout);
    (in_place ? any_in_place : any_beside) = true;
    extract_planes(layout, words.data(), found.data(), scratch);
    EXPECT_EQ(found, expected) << tiles.rows << 'x' << tiles.columns;
    if (!in_place) continue;
    extract_planes(layout, words.data(), words.data(), scratch);
    words.resize(tiles.places());
    EXPECT_EQ(words, expected) << tiles.rows << 'x' << tiles.columns;
  }
  EXPECT_TRUE(any_in_place);
  EXPECT_TRUE(any_beside);
}

}  // namespace
}  // namespace sluice::fetch
