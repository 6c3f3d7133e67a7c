#include "store/check/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "store/format.h"
#include "store/manifest.h"
#include "store/pack/testing.h"
#include "store/pack/unpack.h"
#include "store/sidecar/sidecar.h"
#include "store/source/open_checkpoint.h"
#include "store/source/store_checkpoint.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT: the helpers of testing.h
using ::testing::HasSubstr;

class Verify : public ::testing::Test {
 protected:
  void SetUp() override {
    const TinyModel model{.layers = 1, .experts = 2, .hidden = 16, .width = 12};
    std::vector<TestTensor> tensors = tiny_tensors(model);
    tensors[0] = {
        "embed.weight", "BF16", {80, 16}, gaussian_bf16(1280, 5)};  // small, so that flips land everywhere
    write_file(temp_ / "source/model.safetensors", safetensors_bytes(tensors, 4));
    write_file(temp_ / "source/config.json", "{}");
    write_file(temp_ / "source/a/b.txt", "text");
    fs::create_directories(temp_ / "source/empty");
    pack(temp_ / "source", store_, tiny_plan(model), tiny_options("zstd"));
    files_ = read_tree(store_);
    for (const auto& [name, content] : files_) total_ += content.size();
  }
  VerifyReport run(VerifyDepth depth = VerifyDepth::kStored) {
    return verify(store_, {.depth = depth, .threads = 1});
  }
  void put(const std::string& name, const std::string& content) { write_file(store_ + "/" + name, content); }

  // The file, and the byte in it, at a place in all files placed one after another.
  std::pair<std::string, std::size_t> place(std::size_t at) {
    for (const auto& [name, content] : files_) {
      if (at < content.size()) return {name, at};
      at -= content.size();
    }
    throw std::logic_error("outside");
  }

  TempDirectory temp_;
  std::string store_ = temp_ / "x.sluice";
  std::map<std::string, std::string> files_;
  std::size_t total_ = 0;
};

TEST_F(Verify, ASoundStoreIsOk) {
  const VerifyReport report = run(VerifyDepth::kFull);
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.files, files_.size());
  EXPECT_EQ(report.bytes, total_);
}

TEST_F(Verify, ProgressAndReportCountTheSameBytes) {
  for (const bool sidecar : {false, true}) {
    SCOPED_TRACE(sidecar);
    if (sidecar) {
      fs::create_directory(store_ + "/" + std::string(kSidecarDirectory));
      put(std::string(kSidecarDirectory) + "/other", "a file that is looked at");
    }
    Bytes last = 0, total = 0;
    const VerifyReport report = verify(store_, {.threads = 1, .on_progress = [&](Bytes done, Bytes of) {
                                                  EXPECT_LE(done, of);
                                                  last = done;
                                                  total = of;
                                                }});
    EXPECT_EQ(last, total);
    EXPECT_EQ(report.bytes, total);
  }
}

// 10,000 single bits, spread over all files: each is found, in the right file, and unpack never hands out
// wrong bytes.
TEST_F(Verify, EveryFlippedBitIsFoundAndPlaced) {
  constexpr unsigned kSeed = 20260802;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  std::mt19937_64 random(kSeed);
  const auto source = read_tree(temp_ / "source");
  for (int i = 0; i < 10000; ++i) {
    const auto [name, at] = place(random() % total_);
    std::string bad = files_[name];
    bad[at] ^= static_cast<char>(1u << random() % 8);
    put(name, bad);
    const VerifyReport report = run();
    ASSERT_FALSE(report.ok()) << name << " " << at;
    ASSERT_EQ(report.errors.size(), 1u) << name << " " << at;
    EXPECT_EQ(report.errors[0].file, name);
    EXPECT_LE(report.errors[0].offset, at);
    EXPECT_NE(report.errors[0].expected, report.errors[0].found);
    if (i % 50 == 0) {
      try {
        unpack(store_, temp_ / "back", {.threads = 1});
        // Only padding may be wrong without anybody noticing.
        EXPECT_EQ(read_tree(temp_ / "back"), source) << name << " " << at;
        EXPECT_THAT(report.errors[0].message, HasSubstr("belongs to no part"));
        fs::remove_all(temp_ / "back");
      } catch (const Error& error) {
        EXPECT_FALSE(fs::exists(temp_ / "back"));
      }
    }
    put(name, files_[name]);
  }
  EXPECT_TRUE(run().ok());
}

// Files that describe the model are compared when a store is opened: a changed default or token would change
// texts.
TEST_F(Verify, AFlippedBitInAFileThatDescribesTheModelIsFoundBeforeItIsRead) {
  std::mt19937_64 random(20260804);
  int files = 0;
  for (const auto& [name, content] : files_) {
    if (!name.starts_with("files/") || !name.ends_with(".json") || content.empty()) continue;
    ++files;
    const auto checkpoint = open_store_checkpoint(store_);
    checkpoint->check_files();
    const std::string relative = name.substr(6);
    EXPECT_TRUE(checkpoint->find_file(relative));
    std::string bad = content;
    bad[random() % bad.size()] ^= static_cast<char>(1u << random() % 8);
    put(name, bad);
    for (const bool all : {true, false}) {
      try {
        if (all)
          checkpoint->check_files();
        else
          checkpoint->find_file(relative);
        ADD_FAILURE() << name;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
        EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
      }
    }
    put(name, content);
  }
  EXPECT_GE(files, 1);
}

TEST_F(Verify, EveryTruncationAndEveryGrowthIsFound) {
  constexpr unsigned kSeed = 20260803;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 1000; ++i) {
    const auto [name, at] = place(random() % total_);
    put(name, i % 10 == 0 ? files_[name] + std::string(1 + at % 5000, '\0') : files_[name].substr(0, at));
    const VerifyReport report = run();
    ASSERT_FALSE(report.ok()) << name << " " << at;
    EXPECT_EQ(report.errors[0].file, name);
    EXPECT_THROW(open_store(store_), Error) << name;  // sizes are checked on opening
    put(name, files_[name]);
  }
}

TEST_F(Verify, WhatIsFoundInsteadOfAManifestIsTold) {
  const auto told = [&] {
    const VerifyReport report = run();
    EXPECT_TRUE(report.only(VerifyKind::kDamage));
    return report.errors.size() == 1 && report.errors[0].file == "manifest.json" ? report.errors[0]
                                                                                 : VerifyError();
  };
  put("manifest.json", "<html>\n");
  EXPECT_EQ(told().message, "not the manifest of a packed store");
  EXPECT_EQ(told().found, "\"<html>?\"");
  EXPECT_THAT(told().fix, HasSubstr("copy the store again"));
  put("manifest.json", "");
  EXPECT_EQ(told().found, "an empty file");
  const std::string& whole = files_["manifest.json"];
  put("manifest.json", whole.substr(0, whole.size() / 2));
  EXPECT_THAT(told().message, HasSubstr("does not end with its checksum"));
  EXPECT_THAT(told().found, ::testing::Not(HasSubstr("else")));
  fs::remove(store_ + "/manifest.json");
  EXPECT_EQ(told().message, "a file of the store is missing");
  EXPECT_EQ(told().found, "no such file");
}

// Content that only a newer program knows is not called damage; a bit flipped there looks the same.
TEST_F(Verify, AnotherVersionIsNotCalledDamage) {
  std::string other = files_["manifest.json"];
  const std::size_t digit = kManifestStart.size();
  ASSERT_EQ(other[digit], '0' + static_cast<char>(kFormatVersion));
  other[digit] = '9';
  put("manifest.json", other);
  const VerifyReport report = run();
  EXPECT_TRUE(report.only(VerifyKind::kUnsupported));
  ASSERT_EQ(report.errors.size(), 1u);
  EXPECT_EQ(report.errors[0].offset, digit);
  EXPECT_EQ(report.errors[0].message, "the store has another format version");
  EXPECT_EQ(report.errors[0].found, "9");
  EXPECT_THAT(report.errors[0].fix, HasSubstr("the version of Sluice that packed it"));
  EXPECT_FALSE(run().only(VerifyKind::kDamage));
  put("manifest.json", files_["manifest.json"]);
  EXPECT_FALSE(run().only(VerifyKind::kUnsupported));  // there are no errors
}

TEST_F(Verify, UnknownCodecsAndFeaturesAreNotCalledDamage) {
  const std::string& whole = files_["manifest.json"];
  for (const auto& [known, unknown] :
       {std::pair("\"name\":\"zstd\"", "\"name\":\"zst9\""), {"\"requires\":[", "\"requires\":[\"warp\""}}) {
    std::string other = whole.substr(0, whole.size() - kChecksumTailBytes);
    const std::size_t at = other.find(known);
    ASSERT_NE(at, std::string::npos) << known;
    other.replace(at, std::string_view(known).size(), unknown);
    append_checksum(other);
    put("manifest.json", other);
    const VerifyReport report = run();
    EXPECT_TRUE(report.only(VerifyKind::kUnsupported)) << unknown;
    EXPECT_EQ(report.errors.at(0).fix, "use a newer version of Sluice");
  }
}

TEST_F(Verify, AnUnfinishedStoreIsNoDamagedOne) {
  put("journal", "?");
  fs::remove(store_ + "/manifest.json");
  EXPECT_THAT([&] { run(); }, ::testing::ThrowsMessage<Error>(HasSubstr("run the pack command again")));
}

// Chunks with correct checksums whose content has changed: a chunk that the decoder refuses is reported; the
// SHA-256 of the source finds every other change. Oracle: restoring, which merges words.
class VerifyChunks : public ::testing::TestWithParam<const char*> {};

TEST_P(VerifyChunks, AnImpossibleChunkIsFoundThoughItsChecksumIsRight) {
  constexpr unsigned kSeed = 20261122;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  std::mt19937_64 random(kSeed);
  const TempDirectory temp;
  const std::string store = temp / "x.sluice";
  const TinyModel model{.layers = 1, .experts = 1, .hidden = 128, .width = 64};
  write_tiny_model(temp / "source", model);
  pack(temp / "source", store, tiny_plan(model), tiny_options(GetParam()));
  const Manifest sound = parse_manifest(read_file(store + "/manifest.json"), "manifest.json");
  int refused = 0, taken = 0;
  for (int i = 0; i < 300; ++i) {
    Manifest manifest = sound;
    StoredChunk& chunk = manifest.chunks[random() % manifest.chunks.size()];
    const auto piece = std::ranges::find_if(manifest.pieces, [&](const PieceEntry& entry) {
      const auto at = static_cast<std::uint32_t>(&chunk - manifest.chunks.data());
      return at >= entry.first_chunk && at < entry.first_chunk + entry.chunk_count;
    });
    ASSERT_NE(piece, manifest.pieces.end());
    if (!chunk.coded) continue;
    const std::string name = manifest.data_files[piece->file].name;
    const std::string content = read_file(store + "/" + name);
    std::string bad = content;
    char* const first = bad.data() + chunk.bytes.offset;
    first[random() % chunk.bytes.length] ^= static_cast<char>(1u << random() % 8);
    chunk.xxh3 = xxh3(std::as_bytes(std::span(first, static_cast<std::size_t>(chunk.bytes.length))));
    write_file(store + "/" + name, bad);
    write_file(store + "/manifest.json", write_manifest(manifest));

    std::string restoring;
    try {
      unpack(store, temp / "back", {.threads = 1});
      fs::remove_all(temp / "back");
    } catch (const Error& error) {
      restoring = error.what();
    }
    const bool can_be_decoded = restoring.empty() || restoring.find("SHA-256") != std::string::npos;
    const VerifyReport report = verify(store, {.threads = 1});
    EXPECT_EQ(report.ok(), can_be_decoded) << i << ": " << restoring;
    ++(can_be_decoded ? taken : refused);
    if (!report.ok()) {
      EXPECT_EQ(report.errors.size(), 1u);
      EXPECT_EQ(report.errors[0].file, name);
      EXPECT_EQ(report.errors[0].offset, chunk.bytes.offset);
      EXPECT_THAT(report.errors[0].message, HasSubstr("chunk"));
      EXPECT_NE(report.errors[0].fix, "");
    }
    EXPECT_FALSE(verify(store, {.depth = VerifyDepth::kFull, .threads = 1}).ok() && !restoring.empty());
    write_file(store + "/" + name, content);
  }
  EXPECT_GT(refused, 5);
  EXPECT_GT(taken, 10);
}

INSTANTIATE_TEST_SUITE_P(Codecs, VerifyChunks, ::testing::Values("native", "zstd", "lz4"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(Verify, MissingAndForeignFiles) {
  for (const auto& [name, content] : files_) {
    fs::remove(store_ + "/" + name);
    const VerifyReport report = run();
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.errors[0].file, name);
    put(name, content);
  }
  for (const char* name :
       {"notes.txt", "files/extra", "experts-00009.bin", "journal", "sidecar/deep/x.json", "sidecar/x.txt"}) {
    put(name, "?");
    const VerifyReport report = run();
    ASSERT_EQ(report.errors.size(), 1u) << name;
    EXPECT_EQ(report.errors[0].file, name);
    EXPECT_THAT(report.errors[0].message, HasSubstr("does not belong"));
    EXPECT_EQ(report.errors[0].fix, "remove it");
    EXPECT_TRUE(report.only(VerifyKind::kBeside));
    fs::remove(store_ + "/" + name);
    fs::remove_all(store_ + "/sidecar");
  }
  fs::create_directory(store_ + "/strange");
  EXPECT_EQ(run().errors.at(0).file, "strange");
  fs::remove(store_ + "/strange");
  fs::create_symlink("nowhere", store_ + "/link");
  EXPECT_EQ(run().errors.at(0).file, "link");
}

TEST_F(Verify, NotAStore) {
  EXPECT_THROW(verify(temp_ / "nowhere", {}), Error);
  EXPECT_THROW(verify(temp_ / "source/config.json", {}), Error);
  EXPECT_THROW(verify(temp_ / "source", {}), Error);
}

TEST_F(Verify, SidecarsAreNeverForeign) {
  write_sidecar(store_, "profile", "profile", {{"u", 1.5}, {"list", {1, 2}}});
  EXPECT_TRUE(run().ok());
  EXPECT_EQ(read_sidecar(store_, "profile", "profile").value()["u"], 1.5);
  EXPECT_FALSE(read_sidecar(store_, "profile", "calibration"));
  EXPECT_FALSE(read_sidecar(store_, "other", "profile"));

  const std::string good = read_file(store_ + "/sidecar/profile.json");
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] ^= static_cast<char>(1u << bit % 8);
    put("sidecar/profile.json", bad);
    const VerifyReport report = run();
    ASSERT_EQ(report.errors.size(), 1u) << bit;
    EXPECT_EQ(report.errors[0].file, "sidecar/profile.json");
    EXPECT_THAT(report.errors[0].fix, HasSubstr("remove it")) << bit;
    EXPECT_TRUE(report.only(VerifyKind::kBeside));
  }
  // A sidecar of another store: verify reports it, and a reader ignores it.
  std::string other = good.substr(0, good.size() - kChecksumTailBytes);
  other[kSidecarStart.size()] = other[kSidecarStart.size()] == '0' ? '1' : '0';
  append_checksum(other);
  put("sidecar/profile.json", other);
  EXPECT_EQ(run().errors.size(), 1u);
  EXPECT_FALSE(read_sidecar(store_, "profile", "profile"));
}

TEST_F(Verify, SidecarsOfTablesAreCheckedByteByByte) {
  const std::vector<std::uint32_t> numbers = {1, 2, 3};
  const std::string text = "abc";
  const NamedTable tables[] = {named_table("numbers", std::span<const std::uint32_t>(numbers)),
                               named_table("text", std::span<const char>(text)),
                               {"nothing", {}}};
  write_tables(store_, "thing", {"thing", 3}, tables);
  EXPECT_TRUE(run().ok());
  EXPECT_FALSE(read_tables(store_, "other", {"thing", 3}));
  EXPECT_THAT(
      [&] {
        read_tables(store_, "thing", {"thing", 2});
      },
      ::testing::ThrowsMessage<Error>(
          HasSubstr("another version of this program; expected version 2, found version 3; remove it")));
  EXPECT_THAT(
      [&] {
        read_tables(store_, "thing", {"other", 3});
      },
      ::testing::ThrowsMessage<Error>(HasSubstr("expected other, found thing")));
  {
    const auto read = read_tables(store_, "thing", {"thing", 3});
    ASSERT_TRUE(read);
    EXPECT_EQ(read->read<std::uint32_t>("numbers"), numbers);
    EXPECT_EQ(read->read_text("text"), text);
    EXPECT_EQ(read->read_text("nothing"), "");
    EXPECT_THROW(read->read_text("more"), Error);
    EXPECT_THROW(read->read<std::uint64_t>("numbers"), Error);
  }
  const std::string good = read_file(store_ + "/sidecar/thing.bin");
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] ^= static_cast<char>(1u << bit % 8);
    put("sidecar/thing.bin", bad);
    const VerifyReport report = run();
    ASSERT_EQ(report.errors.size(), 1u) << bit;
    EXPECT_EQ(report.errors[0].file, "sidecar/thing.bin");
  }
  put("sidecar/thing.bin", write_tables({"thing", 3}, 1, tables));  // from another store
  EXPECT_EQ(run().errors.size(), 1u);
  EXPECT_FALSE(read_tables(store_, "thing", {"thing", 3}));
}

TEST_F(Verify, StoresMayBeLinkedTogether) {
  fs::create_directories(temp_ / "linked");
  for (const auto& [name, content] : files_) {
    fs::create_directories(fs::path(temp_ / ("linked/" + name)).parent_path());
    fs::create_symlink(store_ + "/" + name, temp_ / ("linked/" + name));
  }
  EXPECT_TRUE(verify(temp_ / "linked", {.depth = VerifyDepth::kFull}).ok());
  EXPECT_TRUE(open_checkpoint(temp_ / "linked")->packed());
}

TEST_F(Verify, CanBeInterrupted) {
  EXPECT_THROW(verify(store_, {.interrupted = [] { return true; }}), Error);
}

}  // namespace
}  // namespace sluice::store
