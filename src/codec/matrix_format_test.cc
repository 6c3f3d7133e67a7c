#include "codec/matrix_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "base/float16.h"
#include "codec/native/native_chunk.h"
#include "codec/native/tiles.h"
#include "codec/slices/int8_matrix.h"
#include "device/space.h"

namespace sluice::codec {
namespace {

device::Address address(const std::vector<std::byte>& bytes) {
  return device::host_space().address(bytes.data());
}

TEST(MatrixFormats, HaveNamesOfTheirOwnAndPlanesWithoutGaps) {
  std::set<std::string_view> names;
  for (const MatrixFormat* const format : matrix_formats()) {
    EXPECT_TRUE(names.insert(format->name).second) << format->name;
    EXPECT_EQ(find_format(format->name), format);
    EXPECT_GE(format->plane_count(), 1u) << format->name;
    for (std::size_t plane = 0; plane < kMostPlanes; ++plane)
      EXPECT_EQ(format->planes[plane].name.empty(), plane >= format->plane_count()) << format->name;
    EXPECT_EQ(format->input.has_value(), format->row != nullptr)
        << format->name << ": kernels compute with what can be decoded, and with nothing else";
  }
  EXPECT_EQ(find_format("toy8"), nullptr);
}

TEST(MatrixFormats, OfACheckpointAreFoundAfterOurs) {
  static constexpr MatrixFormat kOwn = {.name = "own"}, kDouble = {.name = "f32"};
  const MatrixFormat* const more[] = {&kDouble, &kOwn};
  EXPECT_EQ(find_format("own", more), &kOwn);
  EXPECT_EQ(find_format("f32", more), &kFormatF32);
}

// The sizes of docs/store-format.md, section 4, written out.
TEST(MatrixFormats, SizesAreThoseOfTheStore) {
  const MatrixShape shape{50, 100};  // 7 groups of tiles by 2 blocks; 4 strips by 4 cells
  EXPECT_EQ(kFormatF32.bytes(shape), 20000u);
  EXPECT_EQ(kFormatF16.bytes(shape), 10000u);
  EXPECT_EQ(kFormatBf16.bytes(shape), 10000u);
  EXPECT_EQ(kFormatSplit.plane_bytes(shape, 0), 5000u);
  EXPECT_EQ(kFormatPacked.plane_bytes(shape, 0), 7u * 2 * 512);
  EXPECT_EQ(kFormatSlices84.plane_bytes(shape, 0), 16u * (4 * 64 + 48));
  EXPECT_EQ(kFormatSlices84.plane_bytes(shape, 1), 16u * 4 * 64);
  EXPECT_EQ(kFormatSlices63.plane_bytes(shape, 0), 16u * (3 * 64 + 48));
  EXPECT_EQ(kFormatSlices42.plane_bytes(shape, 1), 16u * 2 * 64);
  EXPECT_EQ(kFormatInt8.bytes(shape), 16u * 512 + 4 * 32);
  EXPECT_FALSE(kFormatPacked.fixed_size());
  EXPECT_TRUE(kFormatInt8.fixed_size());
}

TEST(MatrixFormats, BlocksAreCountedToTheirRaggedEnd) {
  constexpr auto kScales = bytes_in_blocks<128, 128, 4>;
  EXPECT_EQ(kScales({128, 128}), 4u);
  EXPECT_EQ(kScales({129, 300}), 2u * 3 * 4);
  static constexpr MatrixFormat kWhole = {.name = "whole", .block = {1, 32}, .ragged = false};
  EXPECT_TRUE(kWhole.fits({3, 64}));
  EXPECT_FALSE(kWhole.fits({3, 65}));
  EXPECT_TRUE(kFormatInt8.fits({3, 65}));
}

TEST(MatrixFormats, WordsAreFoundByTheirType) {
  EXPECT_EQ(word_format(DType::kBF16), &kFormatBf16);
  EXPECT_EQ(word_format(DType::kF16), &kFormatF16);
  EXPECT_EQ(word_format(DType::kF32), &kFormatF32);
  EXPECT_EQ(word_format(DType::kI8), nullptr);
  EXPECT_EQ(&slices_format({6, 3}), &kFormatSlices63);
}

class Rows : public testing::Test {
 protected:
  std::mt19937_64 random_{[] {
    const std::uint64_t seed = std::random_device{}();
    std::cout << "seed " << seed << std::endl;
    return seed;
  }()};
  std::vector<std::byte> bf16(std::uint64_t count) {
    std::normal_distribution<float> normal;
    std::vector<std::byte> words(2 * count);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint16_t word = float_to_bf16(normal(random_));
      std::memcpy(&words[2 * i], &word, sizeof(word));
    }
    return words;
  }
};

TEST_F(Rows, OfWordsAreTheWords) {
  const std::vector<std::byte> words = bf16(5 * 70);
  const MatrixRef matrix = word_matrix(words.data(), DType::kBF16, 5, 70);
  std::vector<float> row(70);
  row_to_float(matrix, 3, row.data());
  for (std::size_t c = 0; c < 70; ++c) {
    std::uint16_t word;
    std::memcpy(&word, &words[2 * (3 * 70 + c)], sizeof(word));
    EXPECT_EQ(row[c], bf16_to_float(word));
  }
  std::vector<float> same(70);
  row_to_float(rows_of(matrix, 2, 2), 1, same.data());
  EXPECT_EQ(same, row);
}

TEST_F(Rows, OfPackedPlanesAreTheWordsThatWerePacked) {
  const TileShape tiles{21, 100};
  const std::vector<std::byte> words = bf16(21 * 100);
  std::vector<std::byte> exponents(tiles.places()), sm(tiles.places()), stored;
  split_tiles(words, tiles, exponents, sm);
  // A coded chunk of two groups, then the last group as it is.
  const std::uint64_t first = 2 * tiles.group_places();
  stored = encode_native(std::span(exponents).first(first), tile_rows(tiles, 0, first).shape);
  ASSERT_FALSE(stored.empty());
  const PlaneChunk chunks[] = {{0, stored.size(), 0, first, 0, true},
                               {stored.size(), tiles.group_places(), first, tiles.group_places(), 0, false}};
  stored.insert(stored.end(), exponents.begin() + static_cast<std::ptrdiff_t>(first), exponents.end());
  const MatrixRef packed{&kFormatPacked, {21, 100}, {address(sm), address(stored)}, chunks};
  const MatrixRef expected = word_matrix(words.data(), DType::kBF16, 21, 100);
  for (std::uint64_t r = 0; r < 21; ++r) {
    std::vector<float> row(100), same(100);
    row_to_float(packed, r, row.data());
    row_to_float(expected, r, same.data());
    EXPECT_EQ(row, same) << r;
  }
}

TEST_F(Rows, OfCodesAreThoseOfTheirDecoders) {
  const std::vector<std::byte> words = bf16(20 * 130);
  std::vector<float> row(130), same(130);
  for (const SliceBits bits : kStoredSliceBits) {
    const SlicedShape shape{{20, 130}, bits};
    std::vector<std::byte> msb(shape.msb_bytes()), lsb(shape.lsb_bytes());
    quantise_sliced(words, DType::kBF16, shape,
                    {msb.data(), &msb[shape.scales_offset()], &msb[shape.zeros_offset()], lsb.data()});
    const SlicedView slices = sliced_view(shape, msb, lsb);
    for (const SliceView view : {SliceView::kHigh, SliceView::kLow, SliceView::kCenter}) {
      dequantise_row(slices, view, 17, row);
      row_to_float(sliced_ref(slices, view), 17, same.data());
      EXPECT_EQ(row, same);
    }
    const SlicedView back = slices_of(sliced_ref(slices, SliceView::kHigh));
    EXPECT_EQ(back.shape, slices.shape);
    EXPECT_EQ(back.msb, slices.msb);
    EXPECT_EQ(back.scales, slices.scales);
    EXPECT_EQ(back.zeros, slices.zeros);
    EXPECT_EQ(back.lsb, slices.lsb);
  }
  const Int8Shape shape{{20, 130}};
  std::vector<std::byte> codes(shape.bytes());
  quantise_int8(words, DType::kBF16, shape, codes.data(), &codes[shape.scales_offset()]);
  dequantise_int8_row(codes, shape, 19, row);
  row_to_float(int8_ref({20, 130}, codes.data()), 19, same.data());
  EXPECT_EQ(row, same);
}

}  // namespace
}  // namespace sluice::codec
