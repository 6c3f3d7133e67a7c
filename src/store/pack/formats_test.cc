// Stores that require "formats": pieces with one extent for each plane of their format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "codec/slices/int8_matrix.h"
#include "codec/toy_formats.h"
#include "store/check/verify.h"
#include "store/pack/format_store.h"
#include "store/pack/unpack.h"
#include "store/source/store_checkpoint.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT: the helpers of testing.h
using codec::testing::kToys;
using codec::testing::toy_matrix;
using codec::testing::ToyMatrix;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A matrix of 200 × 256 in each toy format, as its source would have it.
std::vector<FormatMatrix> toy_matrices() {
  constexpr codec::MatrixShape kShape{200, 256};
  std::vector<float> numbers(kShape.elements());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 37) * 0.01f - 0.2f;
  std::vector<FormatMatrix> matrices;
  for (const codec::MatrixFormat* const format : kToys) {
    const ToyMatrix toy = toy_matrix(*format, kShape, numbers);
    FormatMatrix matrix{format, kShape, {}};
    const std::string name(format->name);
    matrix.planes.push_back({name + ".a", "U8", {200, toy.planes[0].size() / 200}, text_of(toy.planes[0])});
    if (toy.planes.size() > 1) matrix.planes.push_back({name + ".b", "F32", {2, 2}, text_of(toy.planes[1])});
    matrices.push_back(matrix);
  }
  return matrices;
}

// A matrix in each of two formats of the program.
std::vector<FormatMatrix> known_matrices() {
  constexpr codec::MatrixShape kShape{20, 100};
  return {{&codec::kFormatBf16, kShape, {{"words", "BF16", {20, 100}, random_bytes(4000, 1)}}},
          {&codec::kFormatInt8,
           kShape,
           {{"codes",
             "U8",
             {codec::kFormatInt8.bytes(kShape)},
             random_bytes(codec::kFormatInt8.bytes(kShape), 2)}}}};
}

std::string error_of(const std::string& text, std::span<const codec::MatrixFormat* const> more = {}) {
  try {
    parse_manifest(text, "manifest.json", more);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// The text with one replacement and a recomputed checksum.
std::string edited(std::string text, const std::string& from, const std::string& to) {
  text.resize(text.size() - kChecksumTailBytes);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  append_checksum(text);
  return text;
}

TEST(FormatStore, ItsManifestComesBackAsItWasWritten) {
  const TempDirectory temp;
  const std::string text =
      write_manifest(write_format_store(temp / "source", temp / "x.sluice", toy_matrices(), kToys));
  EXPECT_THAT(text, AllOf(HasSubstr("\"requires\":[\"formats\"]"),
                          HasSubstr("\"format\":\"toyfp8\",\"matrix\":[200,256],\"planes\":[[")));
  EXPECT_EQ(write_manifest(parse_manifest(text, "manifest.json", kToys)), text);
}

TEST(FormatStore, LocatesOneExtentForEachPlane) {
  const TempDirectory temp;
  const std::vector<FormatMatrix> matrices = toy_matrices();
  write_format_store(temp / "source", temp / "x.sluice", matrices, kToys);
  const auto checkpoint = open_store_checkpoint(temp / "x.sluice", kToys);
  const std::string file = read_file(checkpoint->weight_files().at(1));
  for (const FormatMatrix& matrix : matrices) {
    const StoredPiece piece = checkpoint->locate({matrix.planes[0].name, 0, 200 * 256});
    EXPECT_EQ(piece.format, matrix.format);
    EXPECT_EQ(piece.shape, matrix.shape);
    ASSERT_EQ(piece.plane_count(), matrix.planes.size());
    for (std::size_t plane = 0; plane < matrix.planes.size(); ++plane) {
      const Extent& extent = piece.planes[plane].extent;
      EXPECT_EQ(extent.offset % kPieceAlignment, 0u);
      EXPECT_EQ(file.substr(extent.offset, extent.length), matrix.planes[plane].bytes);
      EXPECT_EQ(piece.planes[plane].xxh3, xxh3(std::as_bytes(std::span(matrix.planes[plane].bytes))));
    }
  }
}

// As a model has them: by the shape of their numbers, and without planes of scales.
TEST(FormatStore, ListsTensorsAsNumbers) {
  const TempDirectory temp;
  const std::vector<FormatMatrix> matrices = toy_matrices();
  write_format_store(temp / "source", temp / "x.sluice", matrices, kToys);
  const auto checkpoint = open_store_checkpoint(temp / "x.sluice", kToys);
  EXPECT_EQ(checkpoint->tensors().size(), 1 + matrices.size());
  ASSERT_NE(checkpoint->find("norm"), nullptr);
  EXPECT_EQ(checkpoint->find("norm")->format, nullptr);
  EXPECT_EQ(checkpoint->find("toyfp8.b"), nullptr);
  for (const FormatMatrix& matrix : matrices) {
    const TensorInfo* const tensor = checkpoint->find(matrix.planes[0].name);
    ASSERT_NE(tensor, nullptr) << matrix.format->name;
    EXPECT_EQ(tensor->format, matrix.format);
    EXPECT_EQ(tensor->dtype, DType::kF32);
    EXPECT_EQ(tensor->shape, (std::vector<std::uint64_t>{200, 256}));
    const std::vector<Piece> pieces = checkpoint->pieces_of(tensor->name);
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_EQ(checkpoint->locate(pieces[0]).format, matrix.format);
  }
}

TEST(FormatStore, IsVerifiedAndUnpackedToItsSource) {
  const TempDirectory temp;
  const std::string store = temp / "x.sluice";
  write_format_store(temp / "source", store, known_matrices());
  for (const VerifyDepth depth : {VerifyDepth::kStored, VerifyDepth::kFull})
    EXPECT_TRUE(verify(store, {.depth = depth}).errors.empty());
  unpack(store, temp / "back", {});
  EXPECT_EQ(read_tree(temp / "back"), read_tree(temp / "source"));

  std::string experts = read_file(store + "/experts-00000.bin");
  experts[4100] ^= 1;  // in the codes of the second matrix
  write_file(store + "/experts-00000.bin", experts);
  EXPECT_FALSE(verify(store, {}).errors.empty());
  EXPECT_THROW(unpack(store, temp / "again", {}), Error);
}

TEST(FormatStore, UnknownFormatsAreRefusedByName) {
  const TempDirectory temp;
  const std::string text =
      write_manifest(write_format_store(temp / "source", temp / "x.sluice", toy_matrices(), kToys));
  EXPECT_THAT(error_of(text), AllOf(HasSubstr("format"), HasSubstr("\"toy8\"")));
  // A format whose planes have no fixed length cannot be stored so.
  EXPECT_THAT(error_of(edited(text, "\"toy8\"", "\"packed\""), kToys), HasSubstr("\"packed\""));
}

TEST(FormatStore, ContradictionsAreErrors) {
  const TempDirectory temp;
  const std::string text =
      write_manifest(write_format_store(temp / "source", temp / "x.sluice", toy_matrices(), kToys));
  const std::string first = "\"planes\":[[";
  const std::string planes = text.substr(text.find(first) + first.size(), 30);
  const std::vector<std::pair<std::string, std::string>> edits = {
      {"\"requires\":[\"formats\"]", "\"requires\":[]"},
      {"\"requires\":[\"formats\"]", "\"requires\":[\"native\",\"formats\"]"},
      {"\"matrix\":[200,256]", "\"matrix\":[200,255]"},  // other elements
      {"\"matrix\":[200,256]", "\"matrix\":[3200,16]"},  // no whole blocks
      {"\"format\":\"toyfp8\"", "\"format\":\"toy8\""},  // one plane too many
      {"\"format\":\"toy8\"", "\"format\":\"toyfp8\""},  // one plane too few
      {"\"format\":\"toy8\",", ""},
      {first + planes.substr(0, 1), first + "9"},  // no such tensor
      {",0,54400,\"", ",0,54336,\""},              // a wrong size
      {",0,54400,\"", ",64,54400,\""},             // not where it belongs
      {"\"family\":\"raw\"", "\"family\":\"split\""},
  };
  for (const auto& [from, to] : edits)
    EXPECT_NE(error_of(edited(text, from, to), kToys), "no error") << from << " -> " << to;
}

}  // namespace
}  // namespace sluice::store
