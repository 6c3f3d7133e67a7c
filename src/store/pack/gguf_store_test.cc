// Stores of GGUF files, and of matrices in MXFP4 that two tensors hold: packed, restored, damaged.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/error_of.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "store/check/verify.h"
#include "store/format.h"
#include "store/pack/pack.h"
#include "store/pack/testing.h"
#include "store/pack/unpack.h"
#include "store/source/gguf.h"
#include "store/source/hand_gguf.h"
#include "store/source/open_checkpoint.h"
#include "store/source/store_checkpoint.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT: the helpers of testing.h
using sluice::testing::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint32_t kF32 = 0, kF16 = 1, kQ80 = 8, kQ4K = 12, kQ6K = 14, kI32 = 26, kBf16 = 30;

// Three experts of one layer. A tensor of each kind that readers treat differently.
std::vector<HandTensor> experts_tensors(std::uint32_t gate, std::uint32_t up, std::uint32_t down) {
  return {{"norm", kF32, {5}},      {"gate", gate, {3, 2, 512}}, {"ids", kI32, {3}},
          {"up", up, {3, 2, 512}},  {"head", kQ6K, {7, 256}},    {"halves", kQ80, {2, 3, 64}},
          {"embed", kF16, {9, 33}}, {"down", down, {3, 4, 256}}, {"scale", kQ80, {32}},
          {"last", kF32, {1}}};
}
PackPlan experts_plan() {
  PackPlan plan{.architecture = "tiny", .experts = {}};
  for (std::uint32_t e = 0; e < 3; ++e)
    plan.experts.push_back(
        {0, e, {{"gate", e * 1024ull, 1024}, {"up", e * 1024ull, 1024}, {"down", e * 1024ull, 1024}}});
  for (std::uint64_t row = 0; row < 9; row += 4)
    plan.ranges.push_back({"embed", row * 33, std::min<std::uint64_t>(4, 9 - row) * 33});
  return plan;
}

std::string bytes_at(const Checkpoint& checkpoint, const Extent& extent) {
  std::string bytes(extent.length, '\0');
  InputFile::open(checkpoint.weight_files()[extent.file])
      .read_at(extent.offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

// The same tensors, and of each piece the same bytes, in a format of the same name.
void expect_same_pieces(const Checkpoint& source, const Checkpoint& store, const PackPlan& plan) {
  ASSERT_EQ(source.tensors().size(), store.tensors().size());
  std::vector<Piece> pieces = plan.ranges;
  for (const ExpertPlan& expert : plan.experts)
    pieces.insert(pieces.end(), expert.pieces.begin(), expert.pieces.end());
  for (std::size_t i = 0; i < source.tensors().size(); ++i) {
    const TensorInfo &a = source.tensors()[i], &b = store.tensors()[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.dtype, b.dtype) << a.name;
    EXPECT_EQ(a.shape, b.shape) << a.name;
    EXPECT_EQ(a.format, b.format) << a.name;
    if (std::ranges::none_of(pieces, [&](const Piece& piece) { return piece.tensor == a.name; }))
      pieces.push_back({a.name, 0, a.elements()});
  }
  for (const Piece& piece : pieces) {
    const StoredPiece from = source.locate(piece), to = store.locate(piece);
    if (to.coded()) continue;
    EXPECT_EQ(from.format, to.format) << piece.tensor;
    EXPECT_EQ(from.shape, to.shape) << piece.tensor;
    EXPECT_EQ(from.dtype, to.dtype) << piece.tensor;
    EXPECT_EQ(from.elements, to.elements) << piece.tensor;
    for (std::size_t plane = 0; plane < from.plane_count(); ++plane) {
      const std::string bytes = bytes_at(store, to.planes[plane].extent);
      EXPECT_EQ(bytes_at(source, from.planes[plane].extent), bytes) << piece.tensor;
      EXPECT_EQ(to.planes[plane].xxh3, xxh3(std::as_bytes(std::span(bytes)))) << piece.tensor;
      EXPECT_EQ(to.planes[plane].extent.offset % kPieceAlignment, 0u) << piece.tensor;
    }
  }
}

void expect_restored(const std::string& store, const std::string& back,
                     const std::map<std::string, std::string>& source) {
  const VerifyReport report = verify(store, {.depth = VerifyDepth::kFull});
  for (const VerifyError& error : report.errors)
    ADD_FAILURE() << error.file << " " << error.offset << " " << error.message << " " << error.expected << " "
                  << error.found;
  EXPECT_EQ(unpack(store, back, {.memory = kMiB}).files, source.size());
  EXPECT_EQ(read_tree(back), source);
}

struct StoreCase {
  std::string name;
  std::uint32_t gate = kQ4K, up = kQ80, down = kQ4K;
  std::string codec = "native";
  std::string family = "raw", requires_ = "[\"formats\",\"gguf\"]";
};
void PrintTo(const StoreCase& one, std::ostream* out) { *out << one.name; }

class GgufStore : public ::testing::TestWithParam<StoreCase> {
 protected:
  HandFile file() const { return {experts_tensors(GetParam().gate, GetParam().up, GetParam().down), {}}; }
  PackOptions options() const { return tiny_options(GetParam().codec); }
  const TempDirectory temp_;
};

TEST_P(GgufStore, GivesTheFileBackWhateverLiesBetweenItsTensors) {
  int number = 0;
  for (const Bytes alignment : {Bytes{1}, Bytes{8}, Bytes{32}, Bytes{64}, Bytes{4096}})
    for (const Bytes trailing : {Bytes{0}, Bytes{1}, Bytes{777}}) {
      SCOPED_TRACE(fmt::format("alignment {}, {} bytes behind the last tensor", alignment, trailing));
      HandFile hand = file();
      hand.alignment = alignment;
      hand.trailing = trailing;
      hand.seed = static_cast<std::uint64_t>(++number);
      const std::string path = temp_ / fmt::format("{}/model.gguf", number);
      write_file(path, hand.bytes());
      const std::string store = temp_ / fmt::format("{}.sluice", number);
      const PackResult result = pack(path, store, experts_plan(), options());
      EXPECT_EQ(result.experts, 3u);
      EXPECT_EQ(family_name(result.family), GetParam().family);
      EXPECT_EQ(result.source_bytes, hand.bytes().size());
      const std::string manifest = read_file(store + "/manifest.json");
      EXPECT_THAT(manifest, HasSubstr("\"requires\":" + GetParam().requires_));
      EXPECT_THAT(manifest, HasSubstr("\"family\":\"" + GetParam().family + "\""));
      EXPECT_EQ(write_manifest(parse_manifest(manifest, "manifest.json")), manifest);
      expect_restored(store, temp_ / fmt::format("{}.back", number), {{"model.gguf", hand.bytes()}});
      const auto source = open_checkpoint(path), packed = open_checkpoint(store);
      EXPECT_EQ(packed->codec(), result.codec);
      expect_same_pieces(*source, *packed, experts_plan());
    }
}

TEST_P(GgufStore, HasTheKeysOfTheFile) {
  HandFile hand = file();
  hand.keys = {gguf_text("general.name") + gguf_u32(8) + gguf_text("a model"),
               gguf_number_key("x.block_count", 7)};
  write_file(temp_ / "m.gguf", hand.bytes());
  pack(temp_ / "m.gguf", temp_ / "m.sluice", experts_plan(), options());
  const auto source = open_checkpoint(temp_ / "m.gguf")->gguf(),
             found = open_checkpoint(temp_ / "m.sluice/")->gguf();
  ASSERT_NE(found, nullptr);
  ASSERT_EQ(found->keys.size(), source->keys.size());
  for (std::size_t i = 0; i < source->keys.size(); ++i) {
    EXPECT_EQ(found->keys[i].name, source->keys[i].name);
    EXPECT_EQ(found->keys[i].value, source->keys[i].value);
  }
  ASSERT_EQ(found->tensors.size(), source->tensors.size());
  for (std::size_t i = 0; i < source->tensors.size(); ++i) {
    EXPECT_EQ(found->tensors[i].name, source->tensors[i].name);
    EXPECT_EQ(found->tensors[i].offset, source->tensors[i].offset);
  }
}

TEST_P(GgufStore, AnExpertIsOneAlignedExtent) {
  write_file(temp_ / "m.gguf", file().bytes());
  pack(temp_ / "m.gguf", temp_ / "m.sluice", experts_plan(), options());
  const Manifest manifest = open_store(temp_ / "m.sluice");
  ASSERT_EQ(manifest.experts.size(), 3u);
  for (const ExpertEntry& expert : manifest.experts) {
    Bytes begin = ~Bytes{0}, end = 0, inside = 0;
    for (const auto& [name, region] : kExpertRegions) {
      const Region& part = expert.*region;
      if (part.length == 0) continue;
      EXPECT_EQ(part.offset % kRegionAlignment, 0u);
      begin = std::min(begin, part.offset);
      end = std::max(end, part.end());
      inside += part.length;
    }
    EXPECT_LE(end - begin, inside + 2 * kRegionAlignment) << "nothing of another expert lies between";
  }
}

// Each part is a source of its own; the first has the keys, and may have no tensors.
TEST_P(GgufStore, GivesEveryPartBack) {
  const std::vector<HandTensor> all = file().tensors;
  std::map<std::string, std::string> source;
  for (std::uint32_t part = 0; part < 3; ++part) {
    HandFile hand;
    for (std::size_t i = part; part > 0 && i <= all.size(); i += 2) hand.tensors.push_back(all[i - 1]);
    hand.keys = {gguf_number_key("split.no", part), gguf_number_key("split.count", 3),
                 gguf_number_key("split.tensors.count", static_cast<std::uint32_t>(all.size()))};
    if (part == 0) hand.keys.push_back(gguf_number_key("x.block_count", 7));
    hand.trailing = 3 * part;
    hand.seed = part;
    const std::string name = fmt::format("m-{:05}-of-00003.gguf", part + 1);
    source[name] = hand.bytes();
    write_file(temp_ / ("parts/" + name), source[name]);
  }
  write_file(temp_ / "parts/another.gguf", "not a part of it");
  const std::string first = temp_ / "parts/m-00001-of-00003.gguf";
  const PackResult result = pack(first, temp_ / "m.sluice", experts_plan(), options());
  EXPECT_EQ(result.tensors, all.size());
  expect_restored(temp_ / "m.sluice", temp_ / "back", source);
  const auto packed = open_checkpoint(temp_ / "m.sluice");
  expect_same_pieces(*open_checkpoint(first), *packed, experts_plan());
  EXPECT_NE(packed->gguf()->find("x.block_count"), nullptr);
}

TEST_P(GgufStore, GoesOnWhereItWasInterrupted) {
  write_file(temp_ / "m.gguf", file().bytes());
  pack(temp_ / "m.gguf", temp_ / "whole.sluice", experts_plan(), options());
  const auto whole = read_tree(temp_ / "whole.sluice");
  int interrupted = 0, resumed = 0;
  for (int stop_at = 1; stop_at < 60; ++stop_at) {
    const std::string store = temp_ / fmt::format("at{}.sluice", stop_at);
    PackOptions cut = options();
    int polls = 0;
    cut.interrupted = [&] { return ++polls == stop_at; };
    if (error_of([&] { pack(temp_ / "m.gguf", store, experts_plan(), cut); }) == "no error") break;
    ++interrupted;
    resumed += pack(temp_ / "m.gguf", store, experts_plan(), options()).resumed_bytes > 0;
    EXPECT_EQ(read_tree(store), whole) << stop_at;
    fs::remove_all(store);
  }
  EXPECT_GT(interrupted, 3);
  EXPECT_GT(resumed, 0);
}

TEST_P(GgufStore, IsNotResumedOfAnotherFile) {
  write_file(temp_ / "m.gguf", file().bytes());
  PackOptions cut = options();
  int polls = 0;
  cut.interrupted = [&] { return ++polls == 8; };
  ASSERT_THAT(error_of([&] { pack(temp_ / "m.gguf", temp_ / "m.sluice", experts_plan(), cut); }),
              HasSubstr("interrupted"));
  HandFile other = file();
  other.seed = 9;
  write_file(temp_ / "m.gguf", other.bytes());
  EXPECT_THAT(error_of([&] { pack(temp_ / "m.gguf", temp_ / "m.sluice", experts_plan(), options()); }),
              HasSubstr("m.gguf was changed"));
}

// Whatever bit is wrong, nothing wrong is handed out.
TEST_P(GgufStore, EveryFlippedBitIsFound) {
  constexpr unsigned kSeed = 5;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  HandFile hand = file();
  hand.trailing = 50;
  write_file(temp_ / "m.gguf", hand.bytes());
  const std::string store = temp_ / "m.sluice";
  pack(temp_ / "m.gguf", store, experts_plan(), options());
  for (const auto& [name, content] : read_tree(store)) {
    if (content.empty()) continue;
    for (int i = 0; i < 150; ++i) {
      const std::size_t at = random() % content.size();
      std::string bad = content;
      bad[at] ^= static_cast<char>(1u << random() % 8);
      write_file(store + "/" + name, bad);
      EXPECT_FALSE(verify(store, {.threads = 1}).ok()) << name << " " << at;
      if (name == kHeadersName) {
        EXPECT_THAT(error_of([&] { open_checkpoint(store)->gguf(); }), HasSubstr("damaged"));
      }
      if (i % 10 == 0) {
        try {
          unpack(store, temp_ / "back", {.threads = 1});
          EXPECT_EQ(read_file(temp_ / "back/m.gguf"), hand.bytes()) << name << " " << at;
          fs::remove_all(temp_ / "back");
        } catch (const Error&) {
          EXPECT_FALSE(fs::exists(temp_ / "back"));
        }
      }
    }
    write_file(store + "/" + name, content);
  }
  EXPECT_TRUE(verify(store, {}).ok());
}

INSTANTIATE_TEST_SUITE_P(Kinds, GgufStore,
                         ::testing::Values(StoreCase{"Blocks"},
                                           StoreCase{.name = "Mixed",
                                                     .gate = kBf16,
                                                     .up = kQ80,
                                                     .down = kBf16,
                                                     .family = "split",
                                                     .requires_ = "[\"formats\",\"gguf\",\"native\"]"},
                                           StoreCase{.name = "MixedLz4",
                                                     .gate = kBf16,
                                                     .up = kQ80,
                                                     .down = kF16,
                                                     .codec = "lz4",
                                                     .family = "split"},
                                           StoreCase{.name = "MixedAsItIs", .gate = kBf16, .codec = "none"}),
                         [](const auto& info) { return info.param.name; });

// ---- What is refused

class GgufStoreRefusal : public ::testing::Test {
 protected:
  GgufStoreRefusal() { write_file(path_, HandFile{experts_tensors(kQ4K, kQ80, kBf16), {}}.bytes()); }
  std::string refused(const PackOptions& options, const PackPlan& plan = experts_plan()) {
    std::string error = error_of([&] { pack(path_, temp_ / "m.sluice", plan, options); });
    EXPECT_FALSE(fs::exists(temp_ / "m.sluice.partial"));
    return error;
  }
  const TempDirectory temp_;
  const std::string path_ = temp_ / "m.gguf";
};

TEST_F(GgufStoreRefusal, SlicesOfBlocksAreRefusedByName) {
  PackOptions options = tiny_options("native");
  options.slices = codec::kStoredSliceBits[0];
  EXPECT_THAT(refused(options),
              AllOf(HasSubstr("tensor \"gate\""), HasSubstr("found q4_k"), HasSubstr("slices")));
}

TEST_F(GgufStoreRefusal, PatternsAreRefused) {
  PackOptions options = tiny_options("native");
  options.exclude = {"*.txt"};
  EXPECT_THAT(refused(options), AllOf(HasSubstr("nothing can be left out"), HasSubstr("*.txt")));
}

TEST_F(GgufStoreRefusal, PartsOfRowsAreRefused) {
  PackPlan plan = experts_plan();
  plan.experts[1].pieces[0].elements -= 256;
  EXPECT_THAT(refused(tiny_options("native"), plan), AllOf(HasSubstr("a part of a row of tensor \"gate\"")));
  plan = experts_plan();
  plan.experts[1].pieces[0].tensor = "down";
  EXPECT_THAT(refused(tiny_options("native"), plan), HasSubstr("share elements of tensor \"down\""));
}

TEST_F(GgufStoreRefusal, WhatIsGoneIsTold) {
  PackOptions options = tiny_options("native");
  options.on_progress = [&](const PackProgress& now) {
    if (now.done == now.total) fs::remove(path_);
  };
  EXPECT_THAT(error_of([&] { pack(path_, temp_ / "m.sluice", experts_plan(), options); }),
              HasSubstr("m.gguf"));
}

// The text of a manifest with one replacement and a recomputed checksum.
std::string with_edit(std::string text, const std::string& from, const std::string& to) {
  text.resize(text.size() - kChecksumTailBytes);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  append_checksum(text);
  return text;
}

TEST_F(GgufStoreRefusal, ManifestsThatContradictThemselvesAreErrors) {
  pack(path_, temp_ / "m.sluice", experts_plan(), tiny_options("native"));
  const std::string text = read_file(temp_ / "m.sluice/manifest.json");
  const Manifest manifest = parse_manifest(text, "manifest.json");
  const auto place = [&](std::string_view name) {
    for (std::size_t i = 0; i < manifest.tensors.size(); ++i)
      if (manifest.tensors[i].name == name) return manifest.places[i].offset;
    return Bytes{0};
  };
  const Bytes header = manifest.sources[0].header.length;
  const std::string extent = fmt::format("\"gguf\":[0,{},", header),
                    last = fmt::format("[\"last\",\"F32\",[1],0,{}]", place("last"));
  const auto last_at = [&](Bytes offset) { return fmt::format("[\"last\",\"F32\",[1],0,{}]", offset); };
  const std::vector<std::pair<std::string, std::string>> edits = {
      {"\"formats\",\"gguf\",\"native\"", "\"formats\",\"native\""},
      {"\"formats\",\"gguf\",\"native\"", "\"gguf\",\"formats\",\"native\""},
      {"\"formats\",\"gguf\",\"native\"", "\"gguf\",\"native\""},
      {"\"gguf\":[0,", "\"header\":[0,"},
      {extent, fmt::format("\"header\":[0,1,\"0000000000000000\"],\"gguf\":[0,{},", header)},
      {extent, fmt::format("\"gguf\":[0,{},", header + 1)},
      {extent, fmt::format("\"gguf\":[0,{},", header - 1)},
      {extent, fmt::format("\"gguf\":[1,{},", header)},
      {last, last_at(place("last") - 64)},  // within the tensor before it
      {last, last_at(manifest.sources[0].size - 3)},
      {last, last_at(~Bytes{0} - 1)},
      {"[\"gate\",\"U8\",[3,2,288]", "[\"gate\",\"U8\",[3,2,287]"},
      {"\"format\":\"q4_k\",\"matrix\":[2,512]", "\"format\":\"q4_k\",\"matrix\":[8,128]"},
      {"\"format\":\"q4_k\",\"matrix\":[2,512]", "\"format\":\"q5_k\",\"matrix\":[2,512]"},
      {"\"format\":\"q4_k\",\"matrix\":[2,512]", "\"format\":\"q9_z\",\"matrix\":[2,512]"},
      {"\"format\":\"q4_k\",\"matrix\":[2,512],\"planes\":[[",
       "\"format\":\"q4_k\",\"matrix\":[2,512],\"planes\":[[9"},
  };
  for (const auto& [from, to] : edits) {
    const std::string edited = with_edit(text, from, to);
    EXPECT_NE(error_of([&] { parse_manifest(edited, "manifest.json"); }), "no error") << from << " -> " << to;
  }
}

// Any digit may be another: an error, or a manifest that is written as it was read and whose store is found
// to be another.
TEST_F(GgufStoreRefusal, OtherNumbersInTheManifestAreFound) {
  pack(path_, temp_ / "m.sluice", experts_plan(), tiny_options("native"));
  const std::string name = temp_ / "m.sluice/manifest.json", text = read_file(name);
  constexpr unsigned kSeed = 11;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  const std::size_t begin = text.find("\"sources\":"), end = text.size() - kChecksumTailBytes;
  int refused = 0, found = 0;
  for (int i = 0; i < 600; ++i) {
    std::string bad = text.substr(0, end);
    std::size_t at = 0;
    do at = begin + random() % (end - begin);
    while (bad[at] < '0' || bad[at] > '9');
    const char digit = static_cast<char>('0' + (bad[at] - '0' + 1 + random() % 9) % 10);
    if (digit == '0' && !(bad[at - 1] >= '0' && bad[at - 1] <= '9')) continue;  // a number with a 0 before it
    bad[at] = digit;
    append_checksum(bad);
    write_file(name, bad);
    SCOPED_TRACE(bad.substr(at - 40, 80));
    try {
      EXPECT_EQ(write_manifest(open_store(temp_ / "m.sluice")), bad);
      open_checkpoint(temp_ / "m.sluice")->gguf();
      const bool whole = verify(temp_ / "m.sluice", {.depth = VerifyDepth::kFull}).ok();
      if (whole) {  // a name of a piece, or a layer's number: the file still comes back
        unpack(temp_ / "m.sluice", temp_ / "back", {});
        EXPECT_EQ(read_file(temp_ / "back/m.gguf"), read_file(path_));
        fs::remove_all(temp_ / "back");
      }
      found += !whole;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 200);
  EXPECT_GT(found, 5);
}

// ---- Codes and scales in two tensors

class Mxfp4Store : public ::testing::Test {
 protected:
  Mxfp4Store() {
    write_file(source_ + "/model.safetensors",
               safetensors_bytes({{"norm", "BF16", {5}, random_bytes(10, 1)},
                                  {"up_scales", "U8", {3, 4, 2}, random_bytes(24, 2)},
                                  {"dense_blocks", "U8", {4, 3, 16}, random_bytes(192, 3)},
                                  {"up_blocks", "U8", {3, 4, 2, 16}, random_bytes(384, 4)},
                                  {"head", "BF16", {300, 200}, gaussian_bf16(60000, 5)},
                                  {"dense_scales", "U8", {4, 3}, random_bytes(12, 6)}},
                                 3));
    write_file(source_ + "/config.json", "{}");
    for (std::uint32_t e = 0; e < 3; ++e) plan_.experts.push_back({0, e, {{"up", e * 256ull, 256}}});
  }
  const TempDirectory temp_;
  const std::string source_ = temp_ / "source";
  PackPlan plan_{.architecture = "tiny", .experts = {}};
};

TEST_F(Mxfp4Store, IsRestoredAndReadAsTheDirectory) {
  for (const std::string codec : {"none", "native", "zstd"}) {
    const std::string store = temp_ / (codec + ".sluice");
    const PackResult result = pack(source_, store, plan_, tiny_options(codec));
    EXPECT_EQ(result.codec, codec);
    EXPECT_THAT(read_file(store + "/manifest.json"),
                HasSubstr("\"format\":\"mxfp4_pair\",\"matrix\":[4,64],\"planes\":[["));
    expect_restored(store, temp_ / (codec + ".back"), read_tree(source_));
    const auto source = open_checkpoint(source_), packed = open_checkpoint(store);
    ASSERT_NE(packed->find("up"), nullptr);
    EXPECT_EQ(packed->find("up_blocks"), nullptr);
    EXPECT_EQ(packed->find("up")->shape, (std::vector<std::uint64_t>{3, 4, 64}));
    EXPECT_EQ(packed->pieces_of("up").size(), 3u);
    EXPECT_EQ(packed->gguf(), nullptr);
    expect_same_pieces(*source, *packed, plan_);
  }
}

// A tensor of the name that the numbers have would be there twice.
TEST_F(Mxfp4Store, ANameThatIsTakenIsRefused) {
  const std::string store = temp_ / "x.sluice";
  pack(source_, store, plan_, tiny_options("none"));
  const std::string name = store + "/manifest.json";
  write_file(name, with_edit(read_file(name), "[\"norm\",", "[\"up\","));
  EXPECT_THAT(error_of([&] { open_checkpoint(store); }), HasSubstr("twice"));
}

}  // namespace
}  // namespace sluice::store
