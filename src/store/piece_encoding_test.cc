#include "store/piece_encoding.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace sluice::store {
namespace {

constexpr Encoding kAll[] = {Encoding::kRaw, Encoding::kSplit, Encoding::kSliced, Encoding::kInt8,
                             Encoding::kFormat};

std::uint32_t bits_of(Encoding encoding) {
  std::uint32_t bits = 3;  // `tensor` and `elements`
  for (const PieceMember member : encoding_of(encoding).members)
    bits |= std::uint32_t{1} << static_cast<unsigned>(member);
  return bits;
}

// One tensor of 20 × 100 BF16 words, in a store whose slices have 6 and 3 bits.
Manifest manifest_of_one_tensor() {
  Manifest manifest;
  manifest.slices = codec::SliceBits{6, 3};
  manifest.tensors = {{"words", DType::kBF16, {20, 100}}};
  return manifest;
}

PieceEntry whole(Encoding encoding, codec::TileShape tiles = {}) {
  PieceEntry piece;
  piece.count = 2000;
  piece.encoding = encoding;
  piece.tiles = tiles;
  return piece;
}

TEST(PieceEncoding, IsFoundByItsMembersAndByNoOthers) {
  for (const Encoding encoding : kAll) EXPECT_EQ(encoding_with(bits_of(encoding)), encoding);
  std::size_t found = 0;
  for (std::uint32_t members = 0; members < 1u << kPieceMembers; ++members)
    found += encoding_with(members).has_value();
  EXPECT_EQ(found, std::size(kAll) + 1);  // a split piece may have no tiles
}

TEST(PieceEncoding, SizesAreThoseOfTheFormat) {
  const Manifest manifest = manifest_of_one_tensor();
  const codec::MatrixShape shape{20, 100};
  const auto size = [&](const PieceEntry& piece, std::size_t plane = 0) {
    return plane_bytes(manifest, piece, plane);
  };
  EXPECT_EQ(size(whole(Encoding::kRaw)), codec::kFormatBf16.bytes(shape));
  EXPECT_EQ(size(whole(Encoding::kSplit)), 2000u);
  EXPECT_EQ(size(whole(Encoding::kSplit, {20, 100})), codec::kFormatPacked.plane_bytes(shape, 0));
  EXPECT_EQ(size(whole(Encoding::kSliced, {20, 100})), codec::kFormatSlices63.plane_bytes(shape, 0));
  EXPECT_EQ(size(whole(Encoding::kSliced, {20, 100}), 1), codec::kFormatSlices63.plane_bytes(shape, 1));
  EXPECT_EQ(size(whole(Encoding::kInt8, {20, 100})), codec::kFormatInt8.bytes(shape));
}

// No kernel computes with them, so no format has their size.
TEST(PieceEncoding, ElementsOfOtherTypesHaveTheSizeOfTheirType) {
  Manifest manifest = manifest_of_one_tensor();
  manifest.tensors[0].dtype = DType::kI64;
  EXPECT_EQ(matrix_of(manifest, whole(Encoding::kRaw)).format, nullptr);
  EXPECT_EQ(plane_bytes(manifest, whole(Encoding::kRaw), 0), 16000u);
}

TEST(PieceEncoding, PlanesOfAFormatAreRangesOfTheirOwnTensors) {
  Manifest manifest = manifest_of_one_tensor();
  manifest.chunks = {{.bytes = {64, 10}, .first = 1, .count = 5, .xxh3 = 7, .coded = false, .tensor = 3},
                     {.bytes = {128, 20}, .first = 0, .count = 9, .xxh3 = 8, .coded = false, .tensor = 4}};
  PieceEntry piece = whole(Encoding::kFormat, {20, 100});
  piece.chunk_count = 2;
  std::vector<std::uint32_t> tensors;
  each_source_range(manifest, piece, [&](const SourceRange& range) { tensors.push_back(range.tensor); });
  EXPECT_EQ(tensors, (std::vector<std::uint32_t>{3, 4}));

  piece.encoding = Encoding::kSliced;  // the LSB slice is no range of the source
  tensors.clear();
  each_source_range(manifest, piece, [&](const SourceRange& range) { tensors.push_back(range.tensor); });
  EXPECT_EQ(tensors, (std::vector<std::uint32_t>{0}));
}

TEST(PieceEncoding, PiecesOfAnExpertHaveRegionsInTheManifestsOrder) {
  std::set<std::string_view> regions;
  for (const Encoding encoding : kAll) {
    const PieceEncoding& row = encoding_of(encoding);
    EXPECT_EQ(row.runs == Runs::kNone, row.runs_region == nullptr);
    for (const auto& [name, region] : kExpertRegions)
      if (row.region == region || row.runs_region == region) regions.insert(name);
  }
  EXPECT_EQ(regions.size(), kExpertRegions.size());
}

}  // namespace
}  // namespace sluice::store
