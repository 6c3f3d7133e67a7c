// Family `sliced`: pack, verify, open and refuse. The oracle of the numbers is codec::quantise_affine(); the
// oracle of the bytes, a reader written from docs/store-format.md, is in tests/store_pack_test.cc
// (tools/store_reader.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/error.h"
#include "base/error_of.h"
#include "base/files/file.h"
#include "base/float16.h"
#include "base/hash.h"
#include "codec/slices/affine_group.h"
#include "codec/slices/int8_matrix.h"
#include "store/check/verify.h"
#include "store/format.h"
#include "store/pack/pack.h"
#include "store/pack/testing.h"
#include "store/pack/unpack.h"
#include "store/source/open_checkpoint.h"
#include "store/source/store_checkpoint.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT: the helpers of testing.h
using sluice::testing::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

PackOptions sliced_options(codec::SliceBits bits, const std::string& codec = "none",
                           DenseRounding dense = DenseRounding::kExact) {
  PackOptions options = tiny_options(codec);
  options.slices = bits;
  options.dense = dense;
  options.least_split_dense = 2048;
  return options;
}

std::vector<std::byte> read(const Checkpoint& checkpoint, const Extent& extent, std::uint64_t xxh3_wanted) {
  std::vector<std::byte> bytes(extent.length);
  InputFile::open(checkpoint.weight_files()[extent.file]).read_at(extent.offset, bytes);
  EXPECT_EQ(xxh3(bytes), xxh3_wanted);
  return bytes;
}

std::vector<double> source_values(const Checkpoint& source, const Piece& piece) {
  const StoredPiece stored = source.locate(piece);
  std::vector<std::byte> bytes(stored.first().length);
  InputFile::open(source.weight_files()[stored.first().file]).read_at(stored.first().offset, bytes);
  std::vector<double> values;
  const std::size_t width = dtype_bytes(stored.dtype);
  for (std::size_t at = 0; at < bytes.size(); at += width) {
    std::uint16_t word = 0;
    float value = 0;
    std::memcpy(&word, bytes.data() + at, 2);
    if (stored.dtype == DType::kF32) std::memcpy(&value, bytes.data() + at, 4);
    if (stored.dtype == DType::kBF16) value = bf16_to_float(word);
    if (stored.dtype == DType::kF16) value = fp16_to_float(word);
    values.push_back(value);
  }
  return values;
}

// Every weight of the piece in both views.
void expect_sliced(const Checkpoint& source, const Checkpoint& store, const Piece& piece,
                   std::uint64_t columns) {
  const StoredPiece stored = store.locate(piece);
  ASSERT_TRUE(stored.format->slices) << piece.tensor;
  ASSERT_EQ(stored.cells(), (codec::CellShape{piece.elements / columns, columns}));
  const codec::SlicedShape shape{stored.cells(), *store.slices()};
  const std::vector<std::byte> msb = read(store, stored.first(), *stored.planes[0].xxh3),
                               lsb = read(store, stored.planes[1].extent, *stored.planes[1].xxh3);
  const std::vector<double> values = source_values(source, piece);
  std::vector<float> high(columns), low(columns);
  for (std::uint64_t row = 0; row < shape.rows; ++row) {
    codec::dequantise_row(codec::sliced_view(shape, msb, lsb), codec::SliceView::kHigh, row, high);
    codec::dequantise_row(codec::sliced_view(shape, msb, {}), codec::SliceView::kLow, row, low);
    for (std::uint64_t first = 0; first < columns; first += 32) {
      const std::uint64_t count = std::min<std::uint64_t>(32, columns - first);
      const codec::AffineGroup group = codec::quantise_affine(
          std::span(values).subspan(row * columns + first, count), shape.bits.high, codec::ScaleType::kFp16);
      for (std::uint64_t c = 0; c < count; ++c) {
        ASSERT_EQ(static_cast<double>(high[first + c]), codec::high_view(group, group.codes[c]));
        ASSERT_EQ(static_cast<double>(low[first + c]),
                  codec::low_view(group, group.codes[c], shape.bits.shift()));
      }
    }
  }
}

void expect_verified(const std::string& store) {
  for (const VerifyDepth depth : {VerifyDepth::kStored, VerifyDepth::kFull}) {
    const VerifyReport report = verify(store, {.depth = depth});
    for (const VerifyError& error : report.errors)
      ADD_FAILURE() << error.file << " " << error.offset << " " << error.expected << " " << error.found;
    Bytes bytes = 0;
    for (const auto& [name, content] : read_tree(store)) bytes += content.size();
    EXPECT_EQ(report.bytes, bytes);
  }
}

TEST(SlicedStore, HoldsEveryExpertInTwoSlices) {
  for (const codec::SliceBits bits : codec::kStoredSliceBits) {
    const TempDirectory temp;
    const TinyModel model{.hidden = 72, .width = 40};
    write_tiny_model(temp / "source", model);
    const PackResult result =
        pack(temp / "source", temp / "x.sluice", tiny_plan(model), sliced_options(bits, "native"));
    EXPECT_EQ(result.experts, 6u);
    expect_verified(temp / "x.sluice");
    const auto source = open_checkpoint(temp / "source"), store = open_checkpoint(temp / "x.sluice");
    EXPECT_EQ(store->family(), Family::kSliced);
    EXPECT_EQ(store->slices(), bits);
    EXPECT_FALSE(source->slices());
    for (const ExpertPlan& expert : tiny_plan(model).experts) {
      for (const Piece& piece : expert.pieces)
        expect_sliced(*source, *store, piece, piece.tensor.ends_with("down") ? model.width : model.hidden);
    }
    // All other tensors are stored by the codec.
    EXPECT_TRUE(store->locate({"embed.weight", 0, 1200ull * 80}).coded());
    EXPECT_TRUE(store->locate({"layers.0.norm", 0, model.hidden}).raw());
  }
}

TEST(SlicedStore, EachSliceOfAnExpertIsOneAlignedExtent) {
  const TempDirectory temp;
  const TinyModel model{.hidden = 200, .width = 150};
  write_tiny_model(temp / "source", model);
  pack(temp / "source", temp / "x.sluice", tiny_plan(model), sliced_options({8, 4}));
  const Manifest manifest = open_store(temp / "x.sluice");
  const codec::SlicedShape gate{{150, 200}, {8, 4}}, down{{200, 150}, {8, 4}};
  for (const ExpertEntry& expert : manifest.experts) {
    EXPECT_EQ(expert.full.length + expert.sm.length + expert.exp.length, 0u);
    EXPECT_EQ(expert.msb.offset % kBlockBytes, 0u);
    EXPECT_EQ(expert.lsb.offset, round_up(expert.msb.end(), kBlockBytes));
    EXPECT_LE(2 * gate.msb_bytes() + down.msb_bytes(), expert.msb.length);
    EXPECT_LT(expert.msb.length, 2 * gate.msb_bytes() + down.msb_bytes() + 3 * kPieceAlignment);
    EXPECT_EQ(expert.lsb.length, 2 * gate.lsb_bytes() + down.lsb_bytes());  // multiples of 64
  }
}

TEST(SlicedStore, DenseMatricesOfEightBits) {
  const TempDirectory temp;
  const TinyModel model{.hidden = 24, .width = 20};
  write_tiny_model(temp / "source", model);
  PackPlan plan = tiny_plan(model);
  plan.ranges = {{"embed.weight", 0, 320}};  // with 32 columns: rows of its own
  pack(temp / "source", temp / "x.sluice", plan, sliced_options({6, 3}, "zstd", DenseRounding::kInt8));
  expect_verified(temp / "x.sluice");
  const auto source = open_checkpoint(temp / "source"), store = open_checkpoint(temp / "x.sluice");
  EXPECT_TRUE(store->locate(plan.ranges[0]).raw());
  const Piece rest{"embed.weight", 320, 1190 * 32};
  const StoredPiece stored = store->locate(rest);
  ASSERT_EQ(stored.format, &codec::kFormatInt8);
  const codec::Int8Shape shape{stored.cells()};
  ASSERT_EQ(shape, (codec::Int8Shape{{1190, 32}}));
  const std::vector<std::byte> matrix = read(*store, stored.first(), *stored.planes[0].xxh3);
  const std::vector<double> all = source_values(*source, {"embed.weight", 0, 1200 * 32});
  std::vector<float> row_values(32);
  for (std::uint64_t row = 0; row < shape.rows; ++row) {
    codec::dequantise_int8_row(matrix, shape, row, row_values);
    const std::span<const double> values = std::span(all).subspan(320 + row * 32, 32);
    double largest = 0;
    for (const double value : values) largest = std::max(largest, std::fabs(value));
    const double scale = codec::fp16_scale(largest / 127);
    for (std::size_t c = 0; c < 32; ++c)
      ASSERT_EQ(static_cast<double>(row_values[c]),
                scale * std::clamp(codec::round_half_up(values[c] / scale), -127.0, 127.0));
  }
  // A tensor that is named exact is not rounded.
  plan.exact = {"embed.weight"};
  pack(temp / "source", temp / "exact.sluice", plan, sliced_options({6, 3}, "zstd", DenseRounding::kInt8));
  EXPECT_TRUE(open_checkpoint(temp / "exact.sluice")->locate(rest).coded());
}

// Other element types, slices of stacked tensors, and the rest of such tensors.
TEST(SlicedStore, StackedTensorsOfOtherTypes) {
  for (const char* dtype : {"F32", "F16"}) {
    const TempDirectory temp;
    std::mt19937_64 random(3);
    std::normal_distribution<float> normal;
    std::string bytes;
    for (int i = 0; i < 3 * 34 * 65; ++i) {
      const float value = normal(random);
      const std::uint16_t word = double_to_fp16(value);
      bytes.append(dtype == std::string("F32") ? reinterpret_cast<const char*>(&value)
                                               : reinterpret_cast<const char*>(&word),
                   dtype == std::string("F32") ? 4 : 2);
    }
    write_file(temp / "source/model.safetensors", safetensors_bytes({{"e", dtype, {3, 34, 65}, bytes}}));
    PackPlan plan{"stacked", {}};
    for (std::uint32_t e = 1; e < 3; ++e)
      plan.experts.push_back({0, e, {{"e", e * 2210ull, 1105}, {"e", e * 2210ull + 1105, 1105}}});
    pack(temp / "source", temp / "x.sluice", plan, sliced_options({4, 2}, "native", DenseRounding::kInt8));
    expect_verified(temp / "x.sluice");
    const auto source = open_checkpoint(temp / "source"), store = open_checkpoint(temp / "x.sluice");
    for (const ExpertPlan& expert : plan.experts)
      for (const Piece& piece : expert.pieces) expect_sliced(*source, *store, piece, 65);
    EXPECT_EQ(store->locate({"e", 0, 2210}).format, &codec::kFormatInt8);
  }
}

TEST(SlicedStore, BytesDoNotDependOnThreadsOrMemory) {
  const TempDirectory temp;
  write_sharded_tiny_model(temp / "source", {}, 2);
  std::map<std::string, std::string> first;
  for (const unsigned threads : {1u, 3u}) {
    PackOptions options = sliced_options({8, 4}, "zstd", DenseRounding::kInt8);
    options.threads = threads;
    options.memory = threads == 3 ? 1 : kMiB;
    const std::string store = temp / fmt::format("t{}.sluice", threads);
    pack(temp / "source", store, tiny_plan({}), options);
    if (first.empty()) first = read_tree(store);
    EXPECT_EQ(read_tree(store), first);
  }
}

// Interrupted at every poll in turn; then the pack continues to the end, but not with other slices.
TEST(SlicedStore, GoesOnWhereItWasInterrupted) {
  const TempDirectory temp;
  write_sharded_tiny_model(temp / "source", {.hidden = 64, .width = 48}, 2);
  const PackPlan plan = tiny_plan({.hidden = 64, .width = 48});
  const PackOptions whole_options = sliced_options({8, 4}, "native", DenseRounding::kInt8);
  pack(temp / "source", temp / "whole.sluice", plan, whole_options);
  const auto whole = read_tree(temp / "whole.sluice");
  int resumed = 0;
  for (int stop_at = 1; stop_at < 60; stop_at += 2) {
    const std::string store = temp / fmt::format("at{}.sluice", stop_at);
    PackOptions options = whole_options;
    int polls = 0;
    options.interrupted = [&] { return ++polls == stop_at; };
    const std::string message = error_of([&] { pack(temp / "source", store, plan, options); });
    if (message == "no error") break;
    EXPECT_THAT(message, HasSubstr("interrupted"));
    EXPECT_THAT(error_of([&] {
                  pack(temp / "source", store, plan, sliced_options({6, 3}, "native", DenseRounding::kInt8));
                }),
                AllOf(HasSubstr("other options"), HasSubstr("6/3")));
    EXPECT_THAT(error_of([&] {
                  pack(temp / "source", store, plan, sliced_options({8, 4}, "native"));
                }),
                HasSubstr("dense int8"));
    resumed += pack(temp / "source", store, plan, whole_options).resumed_bytes > 0;
    EXPECT_EQ(read_tree(store), whole);
  }
  EXPECT_GT(resumed, 3);
}

TEST(SlicedStore, CannotBeUnpacked) {
  const TempDirectory temp;
  write_tiny_model(temp / "source", {});
  pack(temp / "source", temp / "x.sluice", tiny_plan({}), sliced_options({8, 4}));
  EXPECT_THAT(
      error_of([&] { unpack(temp / "x.sluice", temp / "back", {}); }),
      AllOf(HasSubstr("cannot be unpacked"), HasSubstr("8/4"), HasSubstr("keep the model directory")));
  EXPECT_FALSE(fs::exists(temp / "back"));
  EXPECT_FALSE(fs::exists(temp / "back.partial"));
}

TEST(SlicedStore, WhatCannotBeRoundedIsRefusedByName) {
  const TempDirectory temp;
  const auto attempt = [&](const TestTensor& tensor, const PackPlan& plan) {
    write_file(temp / "source/model.safetensors", safetensors_bytes({tensor}));
    const std::string error = error_of([&] {
      pack(temp / "source", temp / "x.sluice", plan, sliced_options({8, 4}));
    });
    EXPECT_FALSE(fs::exists(temp / "x.sluice"));
    fs::remove_all(temp / "x.sluice.partial");
    return error;
  };
  std::string words = gaussian_bf16(40 * 70, 1);
  const PackPlan plan{"one", {{0, 0, {{"the.expert", 0, 2800}}}}};
  write_file(temp / "source/model.safetensors", safetensors_bytes({{"the.expert", "BF16", {40, 70}, words}}));
  pack(temp / "source", temp / "good.sluice", plan, sliced_options({8, 4}));
  for (const std::uint16_t bad : {0x7f80, 0xff80, 0x7fc0, 0x7f81}) {
    std::string damaged = words;
    std::memcpy(damaged.data() + 2 * (33 * 70 + 69), &bad, 2);
    EXPECT_THAT(attempt({"the.expert", "BF16", {40, 70}, damaged}, plan),
                AllOf(HasSubstr("model.safetensors"), HasSubstr("the.expert"), HasSubstr("row 33, column 69"),
                      HasSubstr(bad == 0xff80   ? "-infinity"
                                : bad == 0x7f80 ? "infinity"
                                                : "NaN")));
  }
  EXPECT_THAT(attempt({"the.expert", "BF16", {2800}, words}, plan),
              AllOf(HasSubstr("the.expert"), HasSubstr("BF16 [2800]"), HasSubstr("--slices")));
  EXPECT_THAT(attempt({"the.expert", "I16", {40, 70}, words}, plan), HasSubstr("I16 [40, 70]"));
  EXPECT_THAT(attempt({"the.expert", "BF16", {40, 70}, words}, {"one", {{0, 0, {{"the.expert", 5, 700}}}}}),
              HasSubstr("cannot be stored in slices"));
  PackOptions dense = tiny_options("zstd");
  dense.dense = DenseRounding::kInt8;
  EXPECT_THAT(error_of([&] { pack(temp / "source", temp / "x.sluice", plan, dense); }), HasSubstr("--dense"));
}

TEST(SlicedStore, VerifyFindsDamageOfEitherSlice) {
  const TempDirectory temp;
  write_tiny_model(temp / "source", {});
  const std::string store = temp / "x.sluice";
  pack(temp / "source", store, tiny_plan({}), sliced_options({8, 4}, "none", DenseRounding::kInt8));
  const Manifest manifest = open_store(store);
  const ExpertEntry& expert = manifest.experts.at(3);
  const std::string name = manifest.data_files[expert.file].name, path = store + "/" + name;
  const std::string good = read_file(path);
  const auto lsb_of = [&](std::uint32_t piece) {
    return manifest.chunks[manifest.pieces[expert.first_piece + piece].first_chunk].bytes;
  };
  const PieceEntry& second = manifest.pieces[expert.first_piece + 1];
  for (const auto& [at, part] :
       std::vector<std::pair<Bytes, Bytes>>{{expert.msb.offset, expert.msb.offset},
                                            {second.bytes.end() - 1, second.bytes.offset},  // a zero point
                                            {lsb_of(1).offset + 5, lsb_of(1).offset},
                                            {expert.lsb.end() - 1, lsb_of(2).offset},
                                            {expert.msb.end(), expert.msb.end()}}) {  // padding
    std::string bad = good;
    bad[at] ^= 0x10;
    write_file(path, bad);
    const VerifyReport report = verify(store, {});
    ASSERT_EQ(report.errors.size(), 1u) << at;
    EXPECT_EQ(report.errors[0].file, name);
    EXPECT_EQ(report.errors[0].offset, part);
  }
  write_file(path, good.substr(0, good.size() - 1));
  EXPECT_FALSE(verify(store, {}).ok());
  EXPECT_THAT(error_of([&] { open_checkpoint(store); }), AllOf(HasSubstr(name), HasSubstr("wrong size")));
  fs::remove(path);
  EXPECT_THAT(error_of([&] { open_checkpoint(store); }), HasSubstr("missing"));
}

// ---- Manifests

// Text of a real manifest with one replacement and a recomputed checksum.
class SlicedManifest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_tiny_model(temp_ / "source", {.layers = 1, .experts = 2});
    PackOptions options = sliced_options({8, 4}, "none", DenseRounding::kInt8);
    options.expert_file_bytes = kGiB;
    pack(temp_ / "source", temp_ / "x.sluice", tiny_plan({.layers = 1, .experts = 2}), options);
    text_ = read_file(temp_ / "x.sluice/manifest.json");
  }
  std::string error_after(const std::string& from, const std::string& to) const {
    std::string text = text_.substr(0, text_.size() - kChecksumTailBytes);
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in\n" << text;
    if (at == std::string::npos) return "";
    text.replace(at, from.size(), to);
    append_checksum(text);
    return error_of([&] { parse_manifest(text, "manifest.json"); });
  }

  const TempDirectory temp_;
  std::string text_;
};

TEST_F(SlicedManifest, ComesBackAsItWasWritten) {
  EXPECT_EQ(write_manifest(parse_manifest(text_, "m")), text_);
  EXPECT_THAT(text_, AllOf(HasSubstr("\"requires\":[\"sliced\"]"), HasSubstr("\"family\":\"sliced\""),
                           HasSubstr("\"slices\":{\"quantiser\":\"amat\",\"high\":8,\"low\":4}")));
}

TEST_F(SlicedManifest, UnknownThingsAreRefusedByName) {
  EXPECT_THAT(error_after("\"amat\"", "\"best\""), HasSubstr("best"));
  EXPECT_THAT(error_after("\"high\":8", "\"high\":7"), HasSubstr("7 and 4 bits"));
  EXPECT_THAT(error_after("\"low\":4", "\"low\":8"), HasSubstr("8 and 8 bits"));
  EXPECT_THAT(error_after("\"low\":4", "\"low\":4,\"middle\":6"), HasSubstr("middle"));
  EXPECT_THAT(error_after("[\"sliced\"]", "[\"sliced\",\"sliced\"]"), HasSubstr("needs a feature"));
  EXPECT_THAT(error_after("[\"sliced\"]", "[\"sliced\",\"native\"]"), HasSubstr("needs a feature"));
}

TEST_F(SlicedManifest, ContradictionsAreErrors) {
  const std::vector<std::pair<std::string, std::string>> edits = {
      {"[\"sliced\"]", "[]"},
      {"[\"sliced\"]", "[\"native\",\"sliced\"]"},
      {"\"family\":\"sliced\"", "\"family\":\"raw\""},
      {"\"family\":\"sliced\"", "\"family\":\"split\""},
      {",\n\"slices\":{\"quantiser\":\"amat\",\"high\":8,\"low\":4}", ""},
      {"\"high\":8,\"low\":4", "\"high\":6,\"low\":3"},  // other sizes
      {"\"high\":8,", ""},
      {"\"high\":8", "\"high\":8,\"high\":8"},
      {"\"matrix\":[20,24],", ""},
      {"\"matrix\":[20,24]", "\"matrix\":[24,20]"},
      {"\"matrix\":[20,24]", "\"matrix\":[40,12]"},  // differs from the tensor's columns
      {"\"matrix\":[20,24]", "\"matrix\":[21,24]"},
      {"\"matrix\":[20,24]", "\"matrix\":[0,24]"},
      {"\"matrix\":[20,24]", "\"matrix\":[18446744073709551615,24]"},
      {"\"matrix\":[20,24]", "\"tiles\":[20,24]"},
      {"\"matrix\":[20,24]", "\"matrix\":[20,24],\"tiles\":[20,24]"},
      {"\"msb\":[0,608,", "\"msb\":[0,609,"},
      {"\"msb\":[0,608,", "\"msb\":[64,608,"},
      {"\"msb\":[0,608,", "\"int8\":[0,608,"},
      {"\"msb\":[0,608,", "\"raw\":[0,608,"},
      {"\"msb\":[0,608,", "\"msb\":[18446744073709551615,608,"},
      {"\"lsb\":[4096,512,", "\"lsb\":[4096,511,"},
      {"\"lsb\":[4096,512,", "\"lsb\":[4160,512,"},
      {"\"lsb\":[4096,512,", "\"lsb\":[18446744073709551615,512,"},
      {"\"parts\":{\"msb\":[0,", "\"parts\":{\"full\":[0,"},
      {"\"parts\":{\"msb\":[0,1888]", "\"parts\":{\"msb\":[0,1889]"},
      {"\"int8\":[", "\"raw\":["},
      {"\"int8\":[", "\"msb\":["},
  };
  for (const auto& [from, to] : edits)
    EXPECT_THAT(error_after(from, to), HasSubstr("manifest.json")) << from << " → " << to;
}

// Damage behind a correct checksum: an error or a manifest that passes every check, never a crash.
TEST_F(SlicedManifest, SurvivesRandomDamage) {
  constexpr unsigned kSeed = 12;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  std::mt19937 random(kSeed);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bad = text_.substr(0, text_.size() - kChecksumTailBytes);
    bad[kManifestStart.size() + 1 + random() % (bad.size() - kManifestStart.size() - 1)] =
        "0123456789,[]{}\"x"[random() % 17];
    append_checksum(bad);
    refused += error_of([&] { parse_manifest(bad, "manifest.json"); }) != "no error";
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace sluice::store
