#include "store/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "base/error.h"
#include "base/machine/system_memory.h"
#include "store/format.h"
#include "store/pack/testing.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT: the helpers of testing.h
using ::testing::AllOf;
using ::testing::HasSubstr;

// One dense tensor of 10 F32 and `experts` experts of one matrix of 200 words in two chunks.
Manifest small_manifest(std::uint32_t experts = 2) {
  Manifest m;
  m.architecture = "tiny \"x\"";
  m.codec = {"zstd", 1, 2};
  m.sources = {{"config.json", 3, std::string(64, 'a'), false, {}, 0},
               {"model.safetensors", 100 + 40 + 400ull * experts, std::string(64, 'b'), true, {0, 100}, 5}};
  m.empty_directories = {"e/f"};
  m.tensors = {{"dense", DType::kF32, {10}}, {"experts", DType::kBF16, {experts, 200}}};
  m.places = {{1, 100}, {1, 140}};
  m.data_files = {{"dense.bin", 4096}, {"experts-00000.bin", 8192ull * experts}};
  m.pieces.push_back({.tensor = 0,
                      .file = 0,
                      .first = 0,
                      .count = 10,
                      .encoding = Encoding::kRaw,
                      .bytes = {0, 40},
                      .xxh3 = 1});
  m.dense_pieces = 1;
  for (std::uint32_t e = 0; e < experts; ++e) {
    const Bytes at = 8192ull * e;
    const auto chunk = static_cast<std::uint32_t>(m.chunks.size());
    m.chunks.push_back({.bytes = {at + 4096, 60}, .first = 0, .count = 100, .xxh3 = 2, .coded = true});
    m.chunks.push_back({.bytes = {at + 4156, 100}, .first = 100, .count = 100, .xxh3 = 3, .coded = false});
    m.experts.push_back({.layer = 0,
                         .index = e,
                         .file = 1,
                         .full = {},
                         .sm = {at, 200},
                         .exp = {at + 4096, 160},
                         .first_piece = static_cast<std::uint32_t>(m.pieces.size()),
                         .piece_count = 1});
    m.pieces.push_back({.tensor = 1,
                        .file = 1,
                        .first = 200ull * e,
                        .count = 200,
                        .encoding = Encoding::kSplit,
                        .bytes = {at, 200},
                        .xxh3 = 4,
                        .first_chunk = chunk,
                        .chunk_count = 2});
  }
  return m;
}

std::string error_of(const std::string& text) {
  try {
    parse_manifest(text, "manifest.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// The text with one replacement and a recomputed checksum.
std::string edited(const std::string& from, const std::string& to) {
  std::string text = write_manifest(small_manifest());
  text.resize(text.size() - kChecksumTailBytes);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  append_checksum(text);
  return text;
}

TEST(Manifest, ComesBackAsItWasWritten) {
  const std::string text = write_manifest(small_manifest());
  EXPECT_TRUE(text.starts_with("{\"format\":\"sluice\",\"version\":1,"));
  const Manifest m = parse_manifest(text, "manifest.json");
  EXPECT_EQ(write_manifest(m), text);
  EXPECT_EQ(m.architecture, "tiny \"x\"");
  EXPECT_EQ(m.headers_bytes(), 100u);
  EXPECT_EQ(m.experts.at(1).sm.offset, 8192u);
  EXPECT_EQ(m.chunks.at(3).count, 100u);
}

TEST(Manifest, UnknownThingsAreRefusedByName) {
  EXPECT_THAT(error_of(edited("\"version\":1", "\"version\":2")),
              AllOf(HasSubstr("another format version"), HasSubstr("expected 1, found 2")));
  EXPECT_THAT(error_of(edited("\"version\":1", "\"version\":11")), HasSubstr("found 11"));
  EXPECT_THAT(error_of(edited("\"requires\":[]", "\"requires\":[\"stirred\"]")),
              AllOf(HasSubstr("needs a feature"), HasSubstr("stirred")));
  EXPECT_THAT(error_of(edited("\"architecture\":", "\"tokenizer\":[],\"architecture\":")),
              AllOf(HasSubstr("member"), HasSubstr("\"tokenizer\"")));
  EXPECT_THAT(error_of(edited("\"name\":\"zstd\"", "\"name\":\"native\"")),
              AllOf(HasSubstr("codec"), HasSubstr("native")));
  EXPECT_THAT(error_of(edited("\"family\":\"split\"", "\"family\":\"stirred\"")), HasSubstr("stirred"));
  EXPECT_THAT(error_of(edited("\"F32\"", "\"F7\"")), HasSubstr("F7"));
  EXPECT_THAT(error_of(edited("\"raw\":[", "\"rest\":[")), HasSubstr("\"rest\""));
  EXPECT_THAT(error_of(edited("\"sm\":[0,200]", "\"mid\":[0,200]")), HasSubstr("\"mid\""));
  EXPECT_THAT(error_of(edited(",0,100,1,\"", ",0,100,2,\"")), HasSubstr("unknown coding"));
}

TEST(Manifest, ContradictionsAreErrors) {
  const std::vector<std::pair<std::string, std::string>> edits = {
      {"\"elements\":[0,10]", "\"elements\":[0,9]"},   // does not cover
      {"\"elements\":[0,10]", "\"elements\":[0,11]"},  // larger than the tensor
      {"\"raw\":[0,40", "\"raw\":[0,41"},              // wrong size
      {"\"raw\":[0,40", "\"raw\":[64,40"},             // not aligned
      {"\"raw\":[0,40", "\"raw\":[4096,40"},           // outside
      {"\"raw\":[0,40", "\"raw\":[18446744073709551615,40"},
      {"[4096,60,0,100", "[4096,60,0,101"},      // elements
      {"[4096,60,0,100", "[4095,60,0,100"},      // not the start of the region
      {"[4096,60,0,100,1", "[4096,60,0,100,0"},  // raw with another size
      {"\"sm\":[0,200]", "\"sm\":[0,201]"},      // region
      {"\"exp\":[4096,160]", "\"exp\":[4096,161]"},
      {"\"exp\":[4096,160]", "\"full\":[4096,160]"},
      {"\"file\":1", "\"file\":0"},
      {"\"file\":1", "\"file\":2"},
      {"\"index\":1", "\"index\":0"},  // the same expert twice
      {"[\"dense.bin\",4096]", "[\"dense.bin\",4097]"},
      {"\"dense.bin\"", "\"../dense.bin\""},
      {"\"config.json\"", "\"../config.json\""},
      {"\"config.json\"", "\"/config.json\""},
      {"\"config.json\"", "\"zzz\""},  // not in order
      {"\"e/f\"", "\"e/..\""},
      {"\"e/f\"", "\"config.json/f\""},  // below a file
      {"\"header\":[0,100", "\"header\":[1,100"},
      {"[10],1,100]", "[10],0,100]"},  // in no weight file
      {"[10],1,100]", "[10],1,101]"},
      {"[10],1,100]", "[9223372036854775808,4],1,100]"},
      {"\"dense\",", "\"f\","},  // names not in order
      {"\"sha256\":\"aa", "\"sha256\":\"zz"},
      {"\"level\":1", "\"level\":1,\"level\":1"},  // twice
      {"\"level\":1,", ""},                        // missing
      {"\"family\":\"split\"", "\"family\":\"raw\""},
      {"\"family\":\"split\"", "\"family\":\"sliced\""},
      {"\"requires\":[]", "\"requires\":[\"sliced\"]"},
      {"\"raw\":[0,40", "\"matrix\":[1,10],\"int8\":[0,40"},
      {"\"sm\":[0,200]", "\"msb\":[0,200]"},
      {"\"layer\":0", "\"layer\":4294967296"},
      {"\"version\":1", "\"version\":1,\"version\":1"},
  };
  for (const auto& [from, to] : edits) {
    const std::string error = error_of(edited(from, to));
    EXPECT_THAT(error, HasSubstr("manifest.json")) << from << " → " << to;
  }
}

TEST(Manifest, EveryFlippedBitAndEveryCutIsFound) {
  const std::string text = write_manifest(small_manifest());
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string bad = text;
    bad[bit / 8] ^= static_cast<char>(1u << bit % 8);
    EXPECT_NE(error_of(bad), "no error") << bit;
  }
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_NE(error_of(text.substr(0, length)), "no error") << length;
  EXPECT_NE(error_of(text + "\n"), "no error");
}

// Damage behind a correct checksum: an error or a manifest that passes every check, never a crash.
TEST(Manifest, SurvivesRandomDamage) {
  constexpr unsigned kSeed = 11;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  std::mt19937 random(kSeed);
  const std::string text = write_manifest(small_manifest());
  for (int i = 0; i < 5000; ++i) {
    std::string bad = text.substr(0, text.size() - kChecksumTailBytes);
    bad[kManifestStart.size() + 1 + random() % (bad.size() - kManifestStart.size() - 1)] =
        "0123456789,[]{}\"x"[random() % 17];
    append_checksum(bad);
    error_of(bad);
  }
}

// 18,432 matrices of 4 chunks, like a model of 6,144 experts.
TEST(Manifest, LargeOnesAreReadCompactly) {
  const std::string text = write_manifest(small_manifest(18432));
  const Bytes before = heap_in_use();
  const Manifest m = parse_manifest(text, "manifest.json");
  EXPECT_EQ(m.experts.size(), 18432u);
  EXPECT_LT(heap_in_use() - before, 2 * text.size());
  RecordProperty("bytes", static_cast<int>(text.size()));
}

}  // namespace
}  // namespace sluice::store
