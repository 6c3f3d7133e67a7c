// A second decoder, written only from docs/store-format.md (tools/store_reader.py), reads what was packed.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "codec/slices/int8_matrix.h"
#include "program.h"
#include "store/pack/format_store.h"
#include "store/pack/testing.h"
#include "store/source/hand_gguf.h"
#include "store/source/open_checkpoint.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT: the helpers of store/pack/testing.h
using program::Outcome, program::run_command;
using ::testing::HasSubstr;

Outcome read_with(const std::string& store, const std::string& flags) {
  return run_command(
      fmt::format("python3 '{}/tools/store_reader.py' '{}' {}", SLUICE_SOURCE_DIR, store, flags));
}

class StoreReader : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run_command("python3 --version").code != 0)
      GTEST_SKIP() << "python3 is not installed: the second decoder did not run";
  }
  const TempDirectory temp_;
};

TEST_F(StoreReader, ReadsWhatWasPacked) {
  const TinyModel model{.layers = 3, .experts = 4};
  const std::string source = temp_ / "source";
  write_sharded_tiny_model(source, model, 3);
  write_file(source + "/tokenizer/vocab.txt", random_bytes(9000, 4));
  const bool has_zstd = run_command("zstd --version").code == 0;
  for (const char* codec : {"none", "lz4", "zstd", "native"}) {
    if (codec == std::string("zstd") && !has_zstd) {
      std::fprintf(stderr,
                   "the zstd command is not installed: the second decoder did not read zstd chunks\n");
      continue;
    }
    const std::string store = temp_ / fmt::format("{}.sluice", codec);
    pack(source, store, tiny_plan(model), tiny_options(codec));
    const Outcome check = read_with(store, "--check");
    EXPECT_EQ(check.code, 0) << check.err;
    EXPECT_THAT(check.out, HasSubstr("6 files ok"));
    const Outcome tensor = read_with(store, "--tensor layers.1.experts.2.down");
    for (const TestTensor& wanted : tiny_tensors(model)) {
      if (wanted.name == "layers.1.experts.2.down") {
        EXPECT_EQ(tensor.out, wanted.bytes);
      }
    }
  }
}

TEST_F(StoreReader, ReadsThePlanesOfFormats) {
  const codec::MatrixShape shape{20, 100};
  const Bytes codes = codec::kFormatInt8.bytes(shape);
  write_format_store(temp_ / "source", temp_ / "formats.sluice",
                     {{&codec::kFormatBf16, shape, {{"words", "BF16", {20, 100}, random_bytes(4000, 1)}}},
                      {&codec::kFormatInt8, shape, {{"codes", "U8", {codes}, random_bytes(codes, 2)}}}});
  const Outcome check = read_with(temp_ / "formats.sluice", "--check");
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("1 files ok"));
}

// A GGUF file of a tensor of words and one of blocks, with bytes between and behind them.
TEST_F(StoreReader, RestoresAGgufFile) {
  const HandFile hand{.tensors = {{"norm", 0, {5}}, {"head", 8, {3, 64}}}, .trailing = 20};
  write_file(temp_ / "m.gguf", hand.bytes());
  pack(temp_ / "m.gguf", temp_ / "m.sluice", {.architecture = "tiny", .experts = {}}, tiny_options("native"));
  const Outcome check = read_with(temp_ / "m.sluice", "--check");
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("1 files ok"));
}

// The reader, written from the page, makes the same numbers from slices as the codec.
TEST_F(StoreReader, MakesTheSameNumbersOfSlices) {
  const TinyModel model{.layers = 1, .experts = 2, .hidden = 70, .width = 33};
  write_tiny_model(temp_ / "sliced", model);
  const auto floats = [](const std::string& bytes) {
    std::vector<float> values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), 4 * values.size());
    return values;
  };
  for (const codec::SliceBits bits : codec::kStoredSliceBits) {
    PackOptions options = tiny_options("native");
    options.slices = bits;
    options.dense = DenseRounding::kInt8;
    const std::string store = temp_ / fmt::format("{}.sluice", bits.high);
    pack(temp_ / "sliced", store, tiny_plan(model), options);
    const auto checkpoint = open_checkpoint(store);
    const auto read = [&](const Extent& extent) {
      const std::string file = read_file(checkpoint->weight_files()[extent.file]);
      const auto* const at = reinterpret_cast<const std::byte*>(file.data()) + extent.offset;
      return std::vector<std::byte>(at, at + extent.length);
    };
    for (const char* name : {"layers.0.experts.1.down", "layers.0.experts.0.up"}) {
      const StoredPiece piece = checkpoint->locate(checkpoint->pieces_of(name).at(0));
      const codec::SlicedShape shape{piece.cells(), bits};
      const std::vector<std::byte> msb = read(piece.first()), lsb = read(piece.planes[1].extent);
      for (const codec::SliceView view : {codec::SliceView::kHigh, codec::SliceView::kLow}) {
        const Outcome other = read_with(store, fmt::format("--tensor {} --view {}", name,
                                                           view == codec::SliceView::kHigh ? "high" : "low"));
        ASSERT_EQ(other.code, 0) << other.err;
        const std::vector<float> found = floats(other.out);
        ASSERT_EQ(found.size(), shape.rows * shape.columns);
        std::vector<float> row_values(shape.columns);
        for (std::uint64_t row = 0; row < shape.rows; ++row) {
          codec::dequantise_row(codec::sliced_view(shape, msb, lsb), view, row, row_values);
          for (std::uint64_t c = 0; c < shape.columns; ++c)
            ASSERT_EQ(found[row * shape.columns + c], row_values[c]) << name << " " << row << ", " << c;
        }
      }
    }
    const StoredPiece dense = checkpoint->locate(checkpoint->pieces_of("embed.weight").at(0));
    ASSERT_EQ(dense.format, &codec::kFormatInt8);
    const codec::Int8Shape shape{dense.cells()};
    const Outcome other = read_with(store, "--tensor embed.weight --view high");
    const std::vector<float> found = floats(other.out);
    ASSERT_EQ(found.size(), shape.rows * shape.columns) << other.err;
    const std::vector<std::byte> matrix = read(dense.first());
    std::vector<float> row_values(shape.columns);
    for (std::uint64_t row = 0; row < shape.rows; ++row) {
      codec::dequantise_int8_row(matrix, shape, row, row_values);
      ASSERT_TRUE(std::equal(row_values.begin(), row_values.end(),
                             found.begin() + static_cast<std::ptrdiff_t>(row * shape.columns)))
          << row;
    }
  }
}

}  // namespace
}  // namespace sluice::store
