// pack, unpack, verify and the store's checkpoint together, on tiny models. Tests that need processes,
// signals and limits are in tests/store_pack_test.cc.
#include "store/pack/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

#include "base/error.h"
#include "base/error_of.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "codec/exponents/bf16_split.h"
#include "codec/exponents/exponent_codec.h"
#include "codec/exponents/plane_decoder.h"
#include "codec/native/native_chunk.h"
#include "codec/native/tiles.h"
#include "store/check/verify.h"
#include "store/format.h"
#include "store/pack/testing.h"
#include "store/pack/unpack.h"
#include "store/sidecar/sidecar.h"
#include "store/source/open_checkpoint.h"
#include "store/source/store_checkpoint.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT: the helpers of testing.h
using sluice::testing::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The piece's bytes as the tensor has them, through the public interface only.
std::string read_piece(const Checkpoint& checkpoint, const Piece& piece) {
  const StoredPiece stored = checkpoint.locate(piece);
  const auto read = [&](const Extent& extent) {
    std::string bytes(extent.length, '\0');
    InputFile::open(checkpoint.weight_files()[extent.file])
        .read_at(extent.offset, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
    return bytes;
  };
  const auto bytes_of = [](std::string& text) {
    return std::as_writable_bytes(std::span(text.data(), text.size()));
  };
  if (stored.raw()) {
    std::string raw = read(stored.first());
    if (stored.planes[0].xxh3) {
      EXPECT_EQ(xxh3(bytes_of(raw)), *stored.planes[0].xxh3);
    }
    return raw;
  }
  const codec::PlaneDecoder decoder(checkpoint.codec(), best_isa());
  std::string sm = read(stored.first()), words;
  EXPECT_EQ(xxh3(bytes_of(sm)), stored.planes[0].xxh3);
  for (const ExponentChunk& chunk : stored.exponents) {
    std::string coded = read(chunk.extent);
    EXPECT_EQ(xxh3(bytes_of(coded)), chunk.xxh3);
    codec::TileShape tiles;
    if (stored.tiled()) tiles = codec::tile_rows(stored.tiles(), chunk.first_element, chunk.elements).shape;
    std::string part(2 * (stored.tiled() ? tiles.rows * tiles.columns : chunk.elements), '\0');
    decoder.words(chunk.coded ? codec::ChunkKind::kCodec : codec::ChunkKind::kRaw, bytes_of(coded),
                  bytes_of(sm).subspan(chunk.first_element, chunk.elements), tiles, bytes_of(part));
    words += part;
  }
  return words;
}

class PackCodec : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, PackCodec, ::testing::Values("none", "zstd", "lz4", "native"));

TEST_P(PackCodec, UnpacksToTheSameBytesAndVerifies) {
  const TempDirectory temp;
  write_tiny_model(temp / "source", {});
  write_file(temp / "source/sub/deep/notes.txt", "kept");
  write_file(temp / "source/empty.bin.txt", "");
  fs::create_directories(temp / "source/nothing/here");
  const PackResult result = pack(temp / "source", temp / "x.sluice", tiny_plan({}), tiny_options(GetParam()));
  EXPECT_EQ(result.experts, 6u);
  EXPECT_FALSE(fs::exists(temp / "x.sluice.partial"));

  const VerifyReport report = verify(temp / "x.sluice", {.depth = VerifyDepth::kFull});
  for (const VerifyError& error : report.errors)
    ADD_FAILURE() << error.file << " " << error.offset << " " << error.expected << " " << error.found;
  Bytes bytes = 0;
  for (const auto& [name, content] : read_tree(temp / "x.sluice")) bytes += content.size();
  EXPECT_EQ(report.bytes, bytes);
  EXPECT_EQ(result.stored_bytes, bytes);

  const UnpackResult unpacked = unpack(temp / "x.sluice", temp / "back", {});
  EXPECT_EQ(unpacked.files, 4u);
  EXPECT_EQ(read_tree(temp / "source"), read_tree(temp / "back"));
}

TEST_P(PackCodec, CheckpointsOfDirectoryAndStoreReadTheSame) {
  const TempDirectory temp;
  write_sharded_tiny_model(temp / "source", {}, 3);
  pack(temp / "source", temp / "x.sluice", tiny_plan({}), tiny_options(GetParam()));
  const auto from = open_checkpoint(temp / "source"), to = open_checkpoint(temp / "x.sluice");
  EXPECT_FALSE(from->packed());
  EXPECT_TRUE(to->packed());
  EXPECT_EQ(to->codec(), GetParam());
  ASSERT_EQ(from->tensors().size(), to->tensors().size());
  for (std::size_t i = 0; i < from->tensors().size(); ++i) {
    EXPECT_EQ(from->tensors()[i].name, to->tensors()[i].name);
    EXPECT_EQ(from->tensors()[i].shape, to->tensors()[i].shape);
    const Piece whole{from->tensors()[i].name, 0, from->tensors()[i].elements()};
    EXPECT_EQ(read_piece(*from, whole), read_piece(*to, whole)) << whole.tensor;
  }
  EXPECT_EQ(read_file(*to->find_file("config.json")), read_file(temp / "source/config.json"));
  EXPECT_FALSE(to->find_file("../source/config.json"));
  EXPECT_FALSE(to->find_file("model-00001-of-00003.safetensors"));
  EXPECT_THAT(error_of([&] { to->locate({"nobody", 0, 1}); }), HasSubstr("no tensor \"nobody\""));
  EXPECT_THAT(error_of([&] { to->locate({"embed.weight", 1, 5}); }), HasSubstr("as one piece"));
}

TEST_P(PackCodec, StackedTensorsAreSlicedIntoExpertsAndTheRestIsDense) {
  const TempDirectory temp;
  // 5 experts of 2×(7·300) elements; the plan takes 1..3, so both ends of the tensor are dense.
  write_file(temp / "source/model.safetensors",
             safetensors_bytes({{"gate_up", "BF16", {5, 14, 300}, gaussian_bf16(21000, 3)},
                                {"down", "BF16", {5, 300, 7}, gaussian_bf16(10500, 4)}}));
  PackPlan plan{"stacked", {}};
  for (std::uint32_t e = 1; e < 4; ++e) {
    plan.experts.push_back({0,
                            e,
                            {{"gate_up", e * 4200ull, 2100},
                             {"gate_up", e * 4200ull + 2100, 2100},
                             {"down", e * 2100ull, 2100}}});
  }
  pack(temp / "source", temp / "x.sluice", plan, tiny_options(GetParam()));
  EXPECT_TRUE(verify(temp / "x.sluice", {.depth = VerifyDepth::kFull}).ok());
  unpack(temp / "x.sluice", temp / "back", {});
  EXPECT_EQ(read_tree(temp / "source"), read_tree(temp / "back"));

  const auto checkpoint = open_checkpoint(temp / "x.sluice");
  const auto source = open_checkpoint(temp / "source");
  for (const ExpertPlan& expert : plan.experts) {
    for (const Piece& piece : expert.pieces)
      EXPECT_EQ(read_piece(*checkpoint, piece), read_piece(*source, piece));
  }
}

// The example of docs/store-format.md, section 8, matches its description.
TEST(Pack, TheDocumentedExampleIsTrue) {
  const TempDirectory temp;
  std::string words;
  for (int i = 0; i < 100; ++i) {
    words.push_back(static_cast<char>(i));
    words.push_back(0x3F);
  }
  write_file(
      temp / "source/model.safetensors",
      safetensors_bytes({{"e", "BF16", {100}, words}, {"n", "F32", {1}, std::string("\0\0\x80\x3f", 4)}}, 1));
  write_file(temp / "source/config.json", "{}");
  PackOptions options;
  options.codec = "lz4";
  options.chunks = 2;
  pack(temp / "source", temp / "x.sluice", {"tiny", {{0, 0, {{"e", 0, 100}}}}}, options);
  std::string indented;
  for (const char c : "\n" + read_file(temp / "x.sluice/manifest.json")) {
    indented += c;
    if (c == '\n') indented += "    ";
  }
  EXPECT_THAT(read_file(SLUICE_SOURCE_DIR "/docs/store-format.md"),
              HasSubstr(indented.substr(0, indented.size() - 4)));
}

TEST(Pack, AnExpertIsOneAlignedExtent) {
  const TempDirectory temp;
  write_tiny_model(temp / "source", {});
  pack(temp / "source", temp / "x.sluice", tiny_plan({}), tiny_options("zstd"));
  const Manifest manifest = open_store(temp / "x.sluice");
  EXPECT_GE(manifest.data_files.size(), 3u);
  for (const ExpertEntry& expert : manifest.experts) {
    EXPECT_EQ(expert.full.length, 0u);
    EXPECT_EQ(expert.sm.offset % kBlockBytes, 0u);
    EXPECT_EQ(expert.exp.offset, round_up(expert.sm.end(), kBlockBytes));
    EXPECT_EQ(expert.piece_count, 3u);
  }
}

TEST(Pack, BytesDoNotDependOnThreadsOrMemory) {
  const TempDirectory temp;
  write_sharded_tiny_model(temp / "source", {}, 2);
  std::map<std::string, std::string> first;
  for (const unsigned threads : {1u, 2u, 5u}) {
    PackOptions options = tiny_options("zstd");
    options.threads = threads;
    options.memory = threads == 5 ? 1 : kMiB;
    const std::string store = temp / fmt::format("t{}.sluice", threads);
    pack(temp / "source", store, tiny_plan({}), options);
    if (first.empty()) first = read_tree(store);
    EXPECT_EQ(read_tree(store), first);
  }
}

// Whoever has a store need not pack it again, and whoever packs gets the store that others have: these sums
// only change with the version of the format. zstd and lz4 may write other bytes in their next version.
TEST(Pack, WritesTheBytesThatItHasAlwaysWritten) {
  struct Store {
    std::string codec;
    std::optional<codec::SliceBits> slices;
    std::uint64_t sum;
  };
  for (const Store& known :
       {Store{"none", {}, 12682274580216792212u}, Store{"native", {}, 13127784128723329831u},
        Store{"none", {{8, 4}}, 2699784834865134864u}}) {
    const TempDirectory temp;
    write_tiny_model(temp / "source", {});
    PackOptions options = tiny_options(known.codec);
    options.slices = known.slices;
    pack(temp / "source", temp / "x.sluice", tiny_plan({}), options);
    std::string all;
    for (const auto& [name, content] : read_tree(temp / "x.sluice"))
      all += fmt::format("{} {} {}", name, content.size(), content);
    EXPECT_EQ(xxh3(std::as_bytes(std::span(all))), known.sum)
        << known.codec << (known.slices ? " in slices" : "");
  }
}

TEST(Pack, NonBf16ExpertsAreRaw) {
  const TempDirectory temp;
  for (const char* dtype : {"F16", "F32"}) {
    const TinyModel model{.expert_dtype = dtype};
    write_tiny_model(temp / "source", model);
    const std::string store = temp / fmt::format("{}.sluice", dtype);
    pack(temp / "source", store, tiny_plan(model), tiny_options("lz4"));
    for (const ExpertEntry& expert : open_store(store).experts) {
      EXPECT_GT(expert.full.length, 0u);
      EXPECT_EQ(expert.sm.length + expert.exp.length, 0u);
    }
    EXPECT_TRUE(verify(store, {.depth = VerifyDepth::kFull}).ok());
  }
}

TEST(Pack, ChunksThatDoNotShrinkAreStoredRaw) {
  const TempDirectory temp;
  write_file(temp / "source/model.safetensors",
             safetensors_bytes({{"e", "BF16", {5000}, random_bytes(10000, 9)}, {"one", "BF16", {1}, "ab"}}));
  pack(temp / "source", temp / "x.sluice", {"odd", {{0, 0, {{"e", 0, 5000}}}, {0, 1, {{"one", 0, 1}}}}},
       tiny_options("zstd"));
  const auto checkpoint = open_checkpoint(temp / "x.sluice");
  EXPECT_FALSE(checkpoint->locate({"e", 0, 5000}).exponents.at(0).coded);
  EXPECT_EQ(checkpoint->locate({"one", 0, 1}).exponents.size(),
            1u);  // 1 element, 3 chunks wanted: empty chunks are left out
  unpack(temp / "x.sluice", temp / "back", {});
  EXPECT_EQ(read_tree(temp / "source"), read_tree(temp / "back"));
}

TEST(Pack, ManyChunksAndOneChunk) {
  const TempDirectory temp;
  write_tiny_model(temp / "source", {});
  for (const unsigned chunks : {1u, 256u}) {
    PackOptions options = tiny_options("zstd");
    options.chunks = chunks;
    const std::string store = temp / fmt::format("{}.sluice", chunks);
    pack(temp / "source", store, tiny_plan({}), options);
    EXPECT_EQ(open_checkpoint(store)->locate({"layers.0.experts.0.up", 0, 480}).exponents.size(), chunks);
    EXPECT_TRUE(verify(store, {.depth = VerifyDepth::kFull}).ok());
  }
}

TEST(Pack, RefusesWhatItCannotDo) {
  const TempDirectory temp;
  write_tiny_model(temp / "source", {});
  const auto attempt = [&](const std::string& target, PackPlan plan, PackOptions options) {
    return error_of([&] { pack(temp / "source", target, plan, options); });
  };
  const PackPlan plan = tiny_plan({});
  fs::create_directories(temp / "there.sluice");
  EXPECT_THAT(attempt(temp / "there.sluice", plan, tiny_options("zstd")), HasSubstr("exists already"));
  EXPECT_THAT(attempt(temp / "source/in.sluice", plan, tiny_options("zstd")), HasSubstr("inside its source"));
  EXPECT_THAT(
      attempt(temp / "no/such/x.sluice", plan, tiny_options("zstd")),
      HasSubstr("no/such: no such directory; expected a directory to write x.sluice in, found nothing; make "
                "it first, or choose another place"));
  PackOptions levels = tiny_options("native");
  levels.level = 1;
  EXPECT_THAT(attempt(temp / "x.sluice", plan, levels), HasSubstr("native has no levels"));
  EXPECT_THAT(attempt(temp / "x.sluice", plan, tiny_options("brotli")), HasSubstr("brotli"));
  PackOptions chunks = tiny_options("zstd");
  chunks.chunks = 257;
  EXPECT_THAT(attempt(temp / "x.sluice", plan, chunks), HasSubstr("--chunks"));
  PackPlan overlap = plan;
  overlap.experts[1].pieces[0] = overlap.experts[0].pieces[0];
  EXPECT_THAT(attempt(temp / "x.sluice", overlap, tiny_options("zstd")), HasSubstr("share elements"));
  PackPlan twice = plan;
  twice.experts[1].index = 0;
  EXPECT_THAT(attempt(temp / "x.sluice", twice, tiny_options("zstd")), HasSubstr("listed twice"));
  PackPlan outside = plan;
  outside.experts[0].pieces[0].elements++;
  EXPECT_THAT(attempt(temp / "x.sluice", outside, tiny_options("zstd")), HasSubstr("outside of tensor"));
  EXPECT_FALSE(fs::exists(temp / "x.sluice"));
  EXPECT_FALSE(fs::exists(temp / "x.sluice.partial"));
  write_file(temp / "x.sluice.partial/precious.txt", "do not lose me");
  EXPECT_THAT(attempt(temp / "x.sluice", plan, tiny_options("zstd")), HasSubstr("precious.txt"));
  EXPECT_EQ(read_file(temp / "x.sluice.partial/precious.txt"), "do not lose me");
}

TEST(Pack, RefusesAStoreAsSource) {
  const TempDirectory temp;
  write_tiny_model(temp / "source", {});
  pack(temp / "source", temp / "x.sluice", tiny_plan({}), tiny_options("none"));
  EXPECT_THAT(error_of([&] { pack(temp / "x.sluice", temp / "y.sluice", {}, {}); }),
              HasSubstr("this is a packed store"));
}

// Interrupts at every poll in turn, then continues to the end.
TEST(Pack, GoesOnWhereItWasInterrupted) {
  const TempDirectory temp;
  write_sharded_tiny_model(temp / "source", {}, 2);
  write_file(temp / "source/vocab.txt", random_bytes(5000, 1));
  pack(temp / "source", temp / "whole.sluice", tiny_plan({}), tiny_options("zstd"));
  const auto whole = read_tree(temp / "whole.sluice");
  for (int stop_at = 1; stop_at < 40; stop_at += 3) {
    const std::string store = temp / fmt::format("at{}.sluice", stop_at);
    PackOptions options = tiny_options("zstd");
    int polls = 0;
    options.interrupted = [&] { return ++polls == stop_at; };
    const std::string message = error_of([&] { pack(temp / "source", store, tiny_plan({}), options); });
    if (message == "no error") break;
    EXPECT_THAT(message, HasSubstr("interrupted"));
    EXPECT_THAT(error_of([&] { open_checkpoint(store + ".partial"); }), HasSubstr("not finished"));
    const PackResult result = pack(temp / "source", store, tiny_plan({}), tiny_options("zstd"));
    if (stop_at > 6) {
      EXPECT_GT(result.resumed_bytes, 0u);
    }
    EXPECT_EQ(read_tree(store), whole);
  }
}

// A store never has its name without what is to lie beside it: neither after a stop while that is written,
// nor after one just behind it.
TEST(Pack, SidecarsAppearWithTheStore) {
  const TempDirectory temp;
  write_tiny_model(temp / "source", {});
  const std::string store = temp / "m.sluice";
  PackOptions options = tiny_options("zstd");
  int calls = 0;
  bool written = false, stop_behind = false;
  options.add_sidecars = [&](const std::string& directory) {
    EXPECT_FALSE(fs::exists(store));
    EXPECT_FALSE(fs::exists(directory + "/sidecar")) << "of the run that was stopped";
    ++calls;
    write_sidecar(directory, calls == 1 ? "first" : "second", "kind", {{"call", calls}});
    if (calls == 1) throw Error(ErrorKind::kInterrupted, "stopped");
    written = true;
    stop_behind = calls == 2;
  };
  options.interrupted = [&] { return written && stop_behind; };
  for (int stopped = 1; stopped <= 2; ++stopped) {
    EXPECT_NE(error_of([&] { pack(temp / "source", store, tiny_plan({}), options); }), "no error") << stopped;
    EXPECT_FALSE(fs::exists(store)) << stopped;
    EXPECT_TRUE(fs::exists(store + ".partial/journal")) << stopped;
  }
  stop_behind = false;  // nobody stops the third run, whenever it asks
  EXPECT_GT(pack(temp / "source", store, tiny_plan({}), options).resumed_bytes, 0u);
  EXPECT_EQ(calls, 3);
  EXPECT_FALSE(fs::exists(store + "/sidecar/first.json"));
  EXPECT_EQ(read_sidecar(store, "second", "kind").value().at("call"), 3);
  EXPECT_TRUE(verify(store, {.depth = VerifyDepth::kFull}).ok());
}

// Sidecars may take a second, and so may the manifest of a large model: a stop between both waits for
// neither.
TEST(Pack, StopsBeforeSidecarsAreWritten) {
  const TempDirectory temp;
  write_tiny_model(temp / "source", {});
  const std::string store = temp / "m.sluice";
  PackOptions options = tiny_options("zstd");
  int calls = 0;
  options.add_sidecars = [&](const std::string&) { ++calls; };
  options.interrupted = [&] { return fs::exists(store + ".partial/manifest.json"); };
  EXPECT_THAT(error_of([&] { pack(temp / "source", store, tiny_plan({}), options); }),
              HasSubstr("what is packed so far is kept"));
  EXPECT_EQ(calls, 0);
  options.interrupted = {};
  EXPECT_GT(pack(temp / "source", store, tiny_plan({}), options).resumed_bytes, 0u);
  EXPECT_EQ(calls, 1);
}

// Few bytes that take long are also kept, even if the run is killed, which leaves no time for a last commit.
TEST(Pack, KeepsWeightsWhenInterruptedAndAfterSomeTime) {
  const TempDirectory temp;
  write_sharded_tiny_model(temp / "source", {}, 2);
  write_file(temp / "source/vocab.txt", random_bytes(5000, 1));
  pack(temp / "source", temp / "whole.sluice", tiny_plan({}), tiny_options("zstd"));
  Bytes small_files = 0;
  for (const auto& [name, bytes] : read_tree(temp / "source"))
    if (!name.ends_with(".safetensors")) small_files += bytes.size();
  struct Killed {};
  for (const bool killed : {false, true}) {
    SCOPED_TRACE(killed);
    const std::string store = temp / fmt::format("killed{}.sluice", killed);
    PackOptions options = tiny_options("zstd");
    options.journal_bytes = kGiB;
    options.journal_time = killed ? std::chrono::milliseconds(0) : std::chrono::hours(1);
    Bytes done = 0, total = 1;
    options.on_progress = [&](const PackProgress& now) { done = now.done, total = now.total; };
    options.interrupted = [&] {
      if (2 * done < total) return false;
      if (killed) throw Killed();
      return true;
    };
    if (killed) {
      EXPECT_THROW(pack(temp / "source", store, tiny_plan({}), options), Killed);
    } else {
      EXPECT_THAT(error_of([&] { pack(temp / "source", store, tiny_plan({}), options); }),
                  HasSubstr("what is packed so far is kept"));
    }
    const PackResult result = pack(temp / "source", store, tiny_plan({}), tiny_options("zstd"));
    EXPECT_GT(result.resumed_bytes, small_files);
    EXPECT_EQ(read_tree(store), read_tree(temp / "whole.sluice"));
  }
}

// 32 columns: stored as rows of more columns, unless they are kept; the words come back either way.
TEST(PackNative, NarrowMatricesAreStoredInAnotherShape) {
  const TempDirectory temp;
  const TinyModel model{.hidden = 32, .width = 128};
  write_tiny_model(temp / "source", model);
  for (const bool keep : {false, true}) {
    const std::string store = temp / (keep ? "kept.sluice" : "x.sluice");
    PackOptions options = tiny_options("native");
    options.keep_columns = keep;
    pack(temp / "source", store, tiny_plan(model), options);
    const auto checkpoint = open_checkpoint(store), source = open_checkpoint(temp / "source");
    for (const auto& [name, columns] : {std::pair{"up", 32u}, std::pair{"down", 128u}}) {
      SCOPED_TRACE(name);
      const Piece piece{std::string("layers.0.experts.0.") + name, 0, 32 * 128};
      const StoredPiece stored = checkpoint->locate(piece);
      ASSERT_TRUE(stored.tiled());
      EXPECT_EQ(stored.own_columns, keep || columns == 128);
      EXPECT_EQ(stored.tiles().columns == columns, stored.own_columns);
      EXPECT_EQ(stored.tiles().rows * stored.tiles().columns, piece.elements);
      EXPECT_EQ(read_piece(*checkpoint, piece), read_piece(*source, piece));
    }
  }
  EXPECT_LT(fs::file_size(temp / "x.sluice/experts-00000.bin"),
            fs::file_size(temp / "kept.sluice/experts-00000.bin"));
}

// An expert whose matrices are several steps of reading and of merging, the last step shorter, in one chunk
// each or in two; `noise` does not shrink, so that its chunks are raw.
class LongChunks : public ::testing::TestWithParam<std::tuple<const char*, unsigned>> {
 protected:
  void SetUp() override {
    const auto& [codec, chunks] = GetParam();
    write_file(temp_ / "source/model.safetensors",
               safetensors_bytes({{"noise", "BF16", {kRows, kColumns}, random_bytes(2 * kElements, 3)},
                                  {"weights", "BF16", {kRows, kColumns}, gaussian_bf16(kElements, 4)}}));
    plan_ = {"odd", {{0, 0, {{"weights", 0, kElements}, {"noise", 0, kElements}}}}};
    options_ = tiny_options(codec);
    options_.chunks = chunks;
  }
  static std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
  }

  static constexpr std::uint64_t kRows = 2500, kColumns = 1000, kElements = kRows * kColumns;
  TempDirectory temp_;
  std::string store_ = temp_ / "x.sluice";
  PackPlan plan_;
  PackOptions options_;
};
INSTANTIATE_TEST_SUITE_P(All, LongChunks,
                         ::testing::Combine(::testing::Values("native", "zstd"), ::testing::Values(1u, 2u)));

TEST_P(LongChunks, HaveTheBytesOfWordsThatAreSplitAllAtOnce) {
  pack(temp_ / "source", store_, plan_, options_);
  const auto source = open_checkpoint(temp_ / "source"), packed = open_checkpoint(store_);
  const std::string file = read_file(packed->weight_files().at(1));
  for (const char* name : {"weights", "noise"}) {
    SCOPED_TRACE(name);
    const Piece piece{name, 0, kElements};
    const StoredPiece stored = packed->locate(piece);
    const std::string words = read_piece(*source, piece);
    const std::uint64_t places = stored.first().length;
    std::string exponents(places, '\0'), sm(places, '\0');
    const auto bytes = [](std::string& text) { return std::as_writable_bytes(std::span(text)); };
    if (stored.tiled())
      codec::split_tiles(bytes_of(words), stored.tiles(), bytes(exponents), bytes(sm), best_isa());
    else
      codec::split_bf16(bytes_of(words), bytes(exponents), bytes(sm), best_isa());
    EXPECT_EQ(file.substr(stored.first().offset, places), sm);
    EXPECT_EQ(stored.exponents.size(), options_.chunks);
    for (const ExponentChunk& chunk : stored.exponents) {
      const std::string plain = exponents.substr(chunk.first_element, chunk.elements);
      std::vector<std::byte> coded =
          stored.tiled() ? codec::encode_native(
                               bytes_of(plain),
                               codec::tile_rows(stored.tiles(), chunk.first_element, chunk.elements).shape)
                         : codec::make_exponent_codec("zstd")->encode(bytes_of(plain)).bytes;
      if (coded.empty()) coded.assign(bytes_of(plain).begin(), bytes_of(plain).end());
      EXPECT_EQ(chunk.coded, std::string_view(name) == "weights");
      EXPECT_EQ(file.substr(chunk.extent.offset, chunk.extent.length),
                std::string(reinterpret_cast<const char*>(coded.data()), coded.size()));
    }
    EXPECT_EQ(read_piece(*packed, piece), words);  // decoded chunk by chunk
  }
}

TEST_P(LongChunks, ComeBackWhateverTheMemoryAndTheThreads) {
  pack(temp_ / "source", store_, plan_, options_);
  const auto source = read_tree(temp_ / "source");
  for (const auto& [memory, threads] :
       {std::pair{Bytes{1}, 1u}, {Bytes{1}, 3u}, {16 * kMiB, 2u}, {512 * kMiB, 5u}}) {
    SCOPED_TRACE(fmt::format("{} bytes, {} threads", memory, threads));
    EXPECT_TRUE(
        verify(store_, {.depth = VerifyDepth::kFull, .threads = threads, .memory = memory}).errors.empty());
    unpack(store_, temp_ / "back", {.threads = threads, .memory = memory});
    EXPECT_EQ(read_tree(temp_ / "back"), source);
    fs::remove_all(temp_ / "back");
  }
}

// A pack needs more than two bytes a place of the longest chunk, unpack as much only where a codec has no
// groups; each asks before it leaves anything behind.
TEST_P(LongChunks, TheLeastMemoryIsAskedForFirst) {
  Bytes least = 0;
  const MemoryCheck refuse = [&](Bytes bytes) {
    least = bytes;
    throw Error(ErrorKind::kUsage, "too little memory");
  };
  const Bytes chunk = kElements / options_.chunks;
  options_.check_memory = refuse;
  EXPECT_THROW(pack(temp_ / "source", store_, plan_, options_), Error);
  EXPECT_GT(least, 2 * chunk);
  EXPECT_LT(least, 5 * chunk + 4 * kMiB);
  EXPECT_EQ(read_tree(temp_.path()).size(), 1u);  // the source

  options_.check_memory = {};
  pack(temp_ / "source", store_, plan_, options_);
  const std::size_t files = read_tree(temp_.path()).size();
  EXPECT_THROW(unpack(store_, temp_ / "back", {.check_memory = refuse}), Error);
  EXPECT_EQ(read_tree(temp_.path()).size(), files);
  // `noise` is stored as it is: a chunk's bytes are its places.
  if (options_.codec == "native") {
    EXPECT_LT(least, chunk + chunk / 20 + 4 * kMiB);
  } else {
    EXPECT_GT(least, 3 * chunk);
  }
  const Bytes unpacking = least;
  for (const VerifyDepth depth : {VerifyDepth::kStored, VerifyDepth::kFull}) {
    EXPECT_THROW(verify(store_, {.depth = depth, .check_memory = refuse}), Error);
    EXPECT_EQ(least == unpacking, depth == VerifyDepth::kFull) << least;
  }
}

// The manifest of a native store with one replacement and a recomputed checksum.
TEST(PackNative, ManifestsThatContradictTheirTilesAreRefused) {
  const TempDirectory temp;
  write_tiny_model(temp / "source", {});
  pack(temp / "source", temp / "x.sluice", tiny_plan({}), tiny_options("native"));
  const std::string good = read_file(temp / "x.sluice/manifest.json");
  const std::size_t at = good.find("\"tiles\":[");
  ASSERT_NE(at, std::string::npos);
  const std::string tiles = good.substr(at, good.find(']', at) + 1 - at);
  const std::string rows = tiles.substr(9, tiles.find(',') - 9), columns = tiles.substr(tiles.find(',') + 1);
  const auto error_with = [&](const std::string& from, const std::string& to) {
    std::string text = good.substr(0, good.size() - kChecksumTailBytes);
    const std::size_t place = text.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    text.replace(place, from.size(), to);
    append_checksum(text);
    return error_of([&] { parse_manifest(text, "manifest.json"); });
  };
  EXPECT_EQ(error_with(tiles, tiles), "no error");
  EXPECT_THAT(error_with(tiles, "\"tiles\":[" + rows + "0," + columns), HasSubstr("tiles do not fit"));
  EXPECT_THAT(error_with(tiles, "\"tiles\":[1," + columns), HasSubstr("tiles do not fit"));
  EXPECT_THAT(error_with(tiles, "\"tiles\":[0," + columns), HasSubstr("tiles of nothing"));
  EXPECT_THAT(error_with(tiles + ",", ""), HasSubstr("has tiles, or lacks them"));
  EXPECT_THAT(error_with("\"requires\":[\"native\"]", "\"requires\":[]"), HasSubstr("do not fit"));
  EXPECT_THAT(error_with("[\"native\"]", "[\"native\",\"native\"]"), HasSubstr("needs a feature"));
  EXPECT_THAT(error_with("\"name\":\"native\"", "\"name\":\"zstd\""), HasSubstr("do not fit"));
}

class ResumeRefusal : public ::testing::Test {
 protected:
  void SetUp() override {
    write_tiny_model(temp_ / "source", {});
    PackOptions options = tiny_options("zstd");
    int polls = 0;
    options.interrupted = [&] { return ++polls == 12; };
    EXPECT_THAT(error_of([&] { pack(temp_ / "source", temp_ / "x.sluice", tiny_plan({}), options); }),
                HasSubstr("run the same command again"));
  }
  std::string resume(const PackOptions& options, const PackPlan& plan = tiny_plan({})) {
    return error_of([&] { pack(temp_ / "source", temp_ / "x.sluice", plan, options); });
  }
  TempDirectory temp_;
};

TEST_F(ResumeRefusal, OtherOptions) {
  PackOptions options = tiny_options("zstd");
  options.chunks = 5;
  EXPECT_THAT(resume(options), HasSubstr("other options"));
  EXPECT_THAT(resume(tiny_options("lz4")), AllOf(HasSubstr("other options"), HasSubstr("expected codec lz4"),
                                                 HasSubstr("found codec zstd")));
  EXPECT_EQ(resume(tiny_options("zstd")), "no error");
}

TEST_F(ResumeRefusal, ChangedSource) {
  std::string bytes = read_file(temp_ / "source/model.safetensors");
  bytes.back() ^= 1;
  write_file(temp_ / "source/model.safetensors", bytes);
  EXPECT_THAT(resume(tiny_options("zstd")), HasSubstr("model.safetensors was changed"));
}

TEST_F(ResumeRefusal, NotForFilesBesideTheWeightsWhichAreCopiedAgain) {
  write_file(temp_ / "source/config.json", "{\"model_type\": \"tiny\", \"changed\": true}\n");
  EXPECT_EQ(resume(tiny_options("zstd")), "no error");
  EXPECT_EQ(read_file(temp_ / "x.sluice/files/config.json"), read_file(temp_ / "source/config.json"));
  pack(temp_ / "source", temp_ / "whole.sluice", tiny_plan({}), tiny_options("zstd"));
  EXPECT_EQ(read_tree(temp_ / "x.sluice"), read_tree(temp_ / "whole.sluice"));
}

TEST_F(ResumeRefusal, NewAndLostFiles) {
  write_file(temp_ / "source/new.txt", "x");
  EXPECT_THAT(resume(tiny_options("zstd")), HasSubstr("new.txt is new"));
  fs::remove(temp_ / "source/new.txt");
  fs::remove(temp_ / "source/config.json");
  EXPECT_THAT(resume(tiny_options("zstd")), HasSubstr("config.json is gone"));
}

TEST_F(ResumeRefusal, OtherPlan) {
  PackPlan plan = tiny_plan({});
  plan.experts.pop_back();
  EXPECT_THAT(resume(tiny_options("zstd"), plan), HasSubstr("other experts"));
}

TEST_F(ResumeRefusal, ShortenedDataFile) {
  fs::resize_file(temp_ / "x.sluice.partial/dense.bin", 100);
  EXPECT_THAT(resume(tiny_options("zstd")), HasSubstr("shorter than its journal says"));
}

TEST_F(ResumeRefusal, TornJournalLosesOnlyItsTail) {
  const std::string journal = temp_ / "x.sluice.partial/journal";
  fs::resize_file(journal, fs::file_size(journal) - 3);
  EXPECT_EQ(resume(tiny_options("zstd")), "no error");
  pack(temp_ / "source", temp_ / "y.sluice", tiny_plan({}), tiny_options("zstd"));
  EXPECT_EQ(read_tree(temp_ / "x.sluice"), read_tree(temp_ / "y.sluice"));
}

TEST_F(ResumeRefusal, WithoutAValidJournalItBeginsAnew) {
  write_file(temp_ / "x.sluice.partial/journal", "0123456789abcdef {\"jour");
  EXPECT_EQ(resume(tiny_options("zstd")), "no error");
  EXPECT_TRUE(verify(temp_ / "x.sluice", {.depth = VerifyDepth::kFull}).ok());
}

TEST_F(ResumeRefusal, WithoutAnyJournalItIsNotOurs) {
  fs::remove(temp_ / "x.sluice.partial/journal");
  EXPECT_THAT(resume(tiny_options("zstd")), HasSubstr("not an unfinished store"));
  write_file(temp_ / "x.sluice.partial/manifest.json", "{}");  // complete except for the rename
  EXPECT_EQ(resume(tiny_options("zstd")), "no error");
  EXPECT_TRUE(verify(temp_ / "x.sluice", {.depth = VerifyDepth::kFull}).ok());
}

TEST(Pack, ProgressEndsAtTheTotal) {
  const TempDirectory temp;
  write_tiny_model(temp / "source", {});
  PackOptions options = tiny_options("lz4");
  PackProgress last;
  options.on_progress = [&](const PackProgress& progress) {
    EXPECT_GE(progress.done, last.done);
    EXPECT_LE(progress.done, progress.total);
    last = progress;
  };
  const PackResult result = pack(temp / "source", temp / "x.sluice", tiny_plan({}), options);
  EXPECT_EQ(last.done, last.total);
  EXPECT_EQ(last.total, result.source_bytes);
}

TEST(Unpack, RefusesAndCleansUp) {
  const TempDirectory temp;
  write_tiny_model(temp / "source", {});
  pack(temp / "source", temp / "x.sluice", tiny_plan({}), tiny_options("zstd"));
  fs::create_directories(temp / "there");
  EXPECT_THAT(error_of([&] { unpack(temp / "x.sluice", temp / "there", {}); }), HasSubstr("exists already"));
  EXPECT_THAT(error_of([&] { unpack(temp / "nowhere", temp / "a", {}); }), HasSubstr("no such store"));
  EXPECT_THAT(error_of([&] { unpack(temp / "source", temp / "a", {}); }), HasSubstr("not a packed store"));
  EXPECT_THAT(error_of([&] { unpack(temp / "x.sluice", temp / "x.sluice/back", {}); }),
              HasSubstr("inside its source"));
  EXPECT_THAT(error_of([&] { unpack(temp / "x.sluice", temp / "a", {.interrupted = [] { return true; }}); }),
              HasSubstr("interrupted"));
  EXPECT_FALSE(fs::exists(temp / "a"));
  EXPECT_FALSE(fs::exists(temp / "a.partial"));

  // A flipped bit: the error names its place, and nothing is left.
  std::string bytes = read_file(temp / "x.sluice/experts-00000.bin");
  bytes[10] ^= 0x10;
  write_file(temp / "x.sluice/experts-00000.bin", bytes);
  const std::string message = error_of([&] { unpack(temp / "x.sluice", temp / "a", {}); });
  EXPECT_THAT(message, HasSubstr("experts-00000.bin at byte 0"));
  EXPECT_THAT(message, HasSubstr("expected"));
  EXPECT_FALSE(fs::exists(temp / "a"));
  EXPECT_FALSE(fs::exists(temp / "a.partial"));
}

TEST(Unpack, TakesOverWhatAKilledOneLeft) {
  const TempDirectory temp;
  write_tiny_model(temp / "source", {});
  pack(temp / "source", temp / "x.sluice", tiny_plan({}), tiny_options("zstd"));
  write_file(temp / "a.partial/.sluice-unpack", "");
  write_file(temp / "a.partial/config.json", "half of i");
  unpack(temp / "x.sluice", temp / "a", {});
  EXPECT_EQ(read_tree(temp / "source"), read_tree(temp / "a"));
  write_file(temp / "b.partial/thesis.doc", "years of work");
  EXPECT_THAT(error_of([&] { unpack(temp / "x.sluice", temp / "b", {}); }), HasSubstr("thesis.doc"));
  EXPECT_EQ(read_file(temp / "b.partial/thesis.doc"), "years of work");
  write_file(temp / "c.partial/config.json", "mine");
  EXPECT_THAT(error_of([&] { unpack(temp / "x.sluice", temp / "c", {}); }),
              HasSubstr("not an unfinished unpack"));
  EXPECT_EQ(read_file(temp / "c.partial/config.json"), "mine");
}

}  // namespace
}  // namespace sluice::store
