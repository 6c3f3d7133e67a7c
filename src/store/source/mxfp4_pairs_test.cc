#include "store/source/mxfp4_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_of.h"
#include "store/pack/testing.h"
#include "store/source/directory_checkpoint.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT: the helpers of testing.h
using sluice::testing::error_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string bytes(std::size_t count, char first) {
  std::string all(count, first);
  for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<char>(first + i);
  return all;
}

// Two matrices of 3 rows and 64 columns: 96 bytes of codes and 6 scales each.
const TestTensor kCodes = {"e.up_blocks", "U8", {2, 3, 2, 16}, bytes(192, 1)};
const TestTensor kScales = {"e.up_scales", "U8", {2, 3, 2}, bytes(12, 100)};
const TestTensor kOther = {"e.up_bias", "BF16", {2, 3}, bytes(12, 0)};

class Mxfp4Pairs : public ::testing::Test {
 protected:
  std::unique_ptr<Checkpoint> open(const std::vector<TestTensor>& tensors) {
    write_file(temp_ / "model.safetensors", safetensors_bytes(tensors));
    return open_directory(temp_.path(), {});
  }
  static std::string at(const Checkpoint& checkpoint, const Extent& extent) {
    std::string content(extent.length, ' ');
    InputFile::open(checkpoint.weight_files()[extent.file])
        .read_at(extent.offset, std::as_writable_bytes(std::span(content)));
    return content;
  }
  TempDirectory temp_;
};

TEST_F(Mxfp4Pairs, AreOneTensorOfNumbers) {
  const auto checkpoint = open({kOther, kCodes, kScales});
  ASSERT_EQ(checkpoint->tensors().size(), 2u);
  EXPECT_EQ(checkpoint->find("e.up_blocks"), nullptr);
  EXPECT_EQ(checkpoint->find("e.up_bias")->format, nullptr);
  const TensorInfo* const up = checkpoint->find("e.up");
  ASSERT_NE(up, nullptr);
  EXPECT_EQ(up->dtype, DType::kF32);
  EXPECT_THAT(up->shape, ElementsAre(2, 3, 64));
  EXPECT_EQ(up->format, &codec::kFormatMxfp4Pair);
}

TEST_F(Mxfp4Pairs, AnExpertIsAPieceOfBothPlanes) {
  const auto checkpoint = open({kOther, kCodes, kScales});
  const StoredPiece second = checkpoint->locate({"e.up", 3 * 64, 3 * 64});
  EXPECT_EQ(second.format, &codec::kFormatMxfp4Pair);
  EXPECT_EQ(second.shape, (codec::MatrixShape{3, 64}));
  EXPECT_EQ(at(*checkpoint, second.planes[0].extent), kCodes.bytes.substr(96));
  EXPECT_EQ(at(*checkpoint, second.planes[1].extent), kScales.bytes.substr(6));
  const StoredPiece whole = checkpoint->locate({"e.up", 0, 2 * 3 * 64});
  EXPECT_EQ(at(*checkpoint, whole.planes[0].extent), kCodes.bytes);
  EXPECT_EQ(at(*checkpoint, whole.planes[1].extent), kScales.bytes);
  EXPECT_EQ(at(*checkpoint, checkpoint->locate({"e.up_bias", 0, 6}).first()), kOther.bytes);
}

TEST_F(Mxfp4Pairs, CodesNeedTheirScales) {
  EXPECT_THAT(
      error_of([&] { open({kCodes}); }),
      AllOf(HasSubstr("e.up_blocks"), HasSubstr("e.up_scales of type U8, [2, 3, 2]"), HasSubstr("no such")));
  TestTensor wrong = kScales;
  wrong.shape = {2, 6};
  EXPECT_THAT(error_of([&] {
                open({kCodes, wrong});
              }),
              AllOf(HasSubstr("[2, 3, 2]"), HasSubstr("U8, [2, 6]")));
  wrong = {"e.up_scales", "BF16", {2, 3, 1}, bytes(12, 0)};
  EXPECT_THAT(error_of([&] { open({kCodes, wrong}); }), HasSubstr("BF16, [2, 3, 1]"));
  EXPECT_THAT(error_of([&] { open({kCodes, kScales, {"e.up", "BF16", {2}, "1234"}}); }), HasSubstr("twice"));
}

// Other tensors of bytes are as they are.
TEST_F(Mxfp4Pairs, OtherNamesAndShapesAreNoPairs) {
  TestTensor flat = kCodes;
  flat.shape = {6, 32};
  const auto checkpoint = open({flat, kScales});
  EXPECT_EQ(checkpoint->find("e.up_blocks")->dtype, DType::kU8);
  EXPECT_NE(checkpoint->find("e.up_scales"), nullptr);
  // Rows without columns are nothing that could be located.
  const auto empty = open({{"e.up_blocks", "U8", {2, 3, 0, 16}, ""}});
  EXPECT_EQ(empty->find("e.up"), nullptr);
  EXPECT_EQ(empty->locate({"e.up_blocks", 0, 0}).first().length, 0u);
}

}  // namespace
}  // namespace sluice::store
