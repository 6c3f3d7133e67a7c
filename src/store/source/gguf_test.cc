// Headers of GGUF files: those that another program wrote (tests/data/formats), and damage of every kind.
#include "store/source/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <random>

#include "base/error.h"
#include "base/files/scratch_directory.h"
#include "base/json/json.h"

namespace sluice::store {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kData = SLUICE_SOURCE_DIR "/tests/data/formats/";

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A value as JSON has it.
Json json_of(const GgufValue& value) {
  return std::visit([](const auto& one) { return Json(one); }, value);
}

TEST(Gguf, ReadsWhatAnotherProgramWrote) {
  const Json expected = read_json_file(kData + "container.json");
  std::size_t tensors = 0, keys = 0;
  for (const auto& [name, file] : expected.items()) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(looks_like_gguf(kData + name));
    const GgufHeader header = read_gguf(InputFile::open(kData + name));
    EXPECT_EQ(header.version, 3u);
    for (const auto& [key, value] : file.at("values").items()) {
      const GgufValue* const found = header.find(key);
      ASSERT_NE(found, nullptr) << key;
      EXPECT_EQ(json_of(*found), value) << key;
      ++keys;
    }
    EXPECT_EQ(header.find("no.such.key"), nullptr);
    ASSERT_EQ(header.tensors.size(), file.at("tensors").size());
    for (std::size_t i = 0; i < header.tensors.size(); ++i) {
      const GgufTensor& tensor = header.tensors[i];
      const Json& as_written = file["tensors"][i];
      EXPECT_EQ(tensor.name, as_written.at("name"));
      EXPECT_EQ(tensor.type->name, as_written.at("type"));
      EXPECT_EQ(tensor.offset, as_written.at("offset_in_file"));
      EXPECT_EQ(tensor.length, as_written.at("bytes"));
      const std::vector<std::uint64_t> reversed(tensor.shape.rbegin(), tensor.shape.rend());
      EXPECT_EQ(Json(reversed), as_written.at("ne"));
      ++tensors;
    }
  }
  EXPECT_EQ(tensors, 8u);
  EXPECT_GE(keys, 16u);
}

// The table of types by the table of formats.
// Elements and bytes of a block as ggml publishes them.
struct PublishedType {
  const char* name;
  std::uint64_t elements;
  Bytes bytes;
};
constexpr PublishedType kPublished[] = {
    {"F32", 1, 4},      {"F16", 1, 2},      {"Q4_0", 32, 18},     {"Q4_1", 32, 20},    {"Q5_0", 32, 22},
    {"Q5_1", 32, 24},   {"Q8_0", 32, 34},   {"Q2_K", 256, 84},    {"Q3_K", 256, 110},  {"Q4_K", 256, 144},
    {"Q5_K", 256, 176}, {"Q6_K", 256, 210}, {"IQ2_XXS", 256, 66}, {"IQ2_XS", 256, 74}, {"IQ3_XXS", 256, 98},
    {"IQ1_S", 256, 50}, {"IQ4_NL", 32, 18}, {"IQ3_S", 256, 110},  {"IQ2_S", 256, 82},  {"IQ4_XS", 256, 136},
    {"I8", 1, 1},       {"I16", 1, 2},      {"I32", 1, 4},        {"I64", 1, 8},       {"F64", 1, 8},
    {"IQ1_M", 256, 56}, {"BF16", 1, 2},     {"TQ1_0", 256, 54},   {"TQ2_0", 256, 66},  {"MXFP4", 32, 17},
    {"NVFP4", 64, 36},  {"Q1_0", 128, 18},  {"Q2_0", 64, 18}};

TEST(Gguf, TypesHaveTheSizesThatArePublished) {
  std::size_t known = 0, computed = 0;
  for (std::uint32_t number = 0; number < 64; ++number) {
    const GgufType* const type = gguf_type(number);
    if (type == nullptr) continue;
    EXPECT_EQ(type->number, number);
    computed += type->format != nullptr ? 1 : 0;
    ASSERT_LT(known, std::size(kPublished));
    const PublishedType& published = kPublished[known++];
    EXPECT_EQ(type->name, published.name);
    EXPECT_EQ(type->elements, published.elements) << type->name;
    EXPECT_EQ(type->bytes, published.bytes) << type->name;
  }
  EXPECT_EQ(known, std::size(kPublished));
  EXPECT_EQ(known, 33u);
  EXPECT_EQ(computed, 16u);
  for (const std::uint32_t gone : {4u, 5u, 9u, 15u, 31u, 32u, 33u, 36u, 37u, 38u, 43u, 4000000000u})
    EXPECT_EQ(gguf_type(gone), nullptr) << gone;
}

// Builds headers by hand.
std::string u32(std::uint32_t value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }
std::string u64(std::uint64_t value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }
std::string text(std::string_view value) { return u64(value.size()) + std::string(value); }
std::string head(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3) {
  return "GGUF" + u32(version) + u64(tensors) + u64(keys);
}
std::string tensor(std::string_view name, const std::vector<std::uint64_t>& ne, std::uint32_t type,
                   Bytes place) {
  std::string bytes = text(name) + u32(static_cast<std::uint32_t>(ne.size()));
  for (const std::uint64_t dimension : ne) bytes += u64(dimension);
  return bytes + u32(type) + u64(place);
}
// The header up to the alignment of 32, then data.
std::string with_data(std::string bytes, Bytes data) {
  bytes.resize((bytes.size() + 31) / 32 * 32);
  return bytes + std::string(data, 'd');
}

class GgufFile : public ::testing::Test {
 protected:
  GgufFile() { EXPECT_EQ(::symlink(in_memory_.c_str(), named_.c_str()), 0); }
  ~GgufFile() override { ::close(memory_); }
  // A file in memory, under a name of its own: thousands of files on a disk take minutes.
  std::string write(const std::string& bytes) {
    EXPECT_EQ(::ftruncate(memory_, 0), 0);
    EXPECT_EQ(::pwrite(memory_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return named_;
  }
  std::string error_of(const std::string& bytes) {
    try {
      read_gguf(InputFile::open(write(bytes)));
    } catch (const Error& error) {
      EXPECT_FALSE(error.fix_text().empty()) << error.what();
      return error.what();
    }
    return "no error";
  }
  const testing::ScratchDirectory scratch_;
  const int memory_ = ::memfd_create("m.gguf", 0);
  const std::string in_memory_ = "/proc/self/fd/" + std::to_string(memory_),
                    named_ = scratch_.path() + "/m.gguf";
};

TEST_F(GgufFile, TensorsFollowEachOther) {
  const std::string two = head(2, 0) + tensor("a", {3, 2}, 0, 0) + tensor("b", {32}, 8, 32);
  const GgufHeader header = read_gguf(InputFile::open(write(with_data(two, 66))));
  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors[0].shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(header.tensors[0].length, 24u);
  EXPECT_EQ(header.tensors[1].offset, header.data + 32);
  EXPECT_EQ(header.tensors[1].length, 34u);
  EXPECT_EQ(header.data % 32, 0u);
  // A file may do without tensors, as the first of several parts does.
  EXPECT_TRUE(read_gguf(InputFile::open(write(head(0, 0, 2)))).tensors.empty());
}

TEST_F(GgufFile, BadFilesAreRefused) {
  const auto refused = [&](const std::string& bytes, const std::string& why) {
    EXPECT_THAT(error_of(bytes), AllOf(HasSubstr("m.gguf"), HasSubstr(why)));
  };
  refused("", "the file ends within the magic");
  refused("GGML" + head(0, 0).substr(4), "no GGUF file");
  refused(head(0, 0, 1), "another version of GGUF");
  refused(head(0, 0, 0x03000000), "big-endian");
  refused(head(0, 0).substr(0, 20), "the file ends within the number of keys");
  refused(head(1 << 21, 0), "the number of tensors is too large");
  refused(head(0, ~0ull), "the number of keys is too large");
  const std::string key = head(0, 1);
  refused(key + u64(1ull << 40) + "k", "a key is too long");
  refused(key + text("") + u32(4) + u32(1), "a key without a name");
  refused(head(0, 2) + text("k") + u32(4) + u32(1) + text("k") + u32(4) + u32(1), "a key stands twice");
  refused(key + text("k") + u32(13), "the type of a value is unknown");
  refused(key + text("k") + u32(8) + u64(1ull << 50), "a value is too long");
  refused(key + text("k") + u32(9) + u32(9) + u64(1), "an array of arrays");
  refused(key + text("k") + u32(9) + u32(99) + u64(1), "type of an array's entries is unknown");
  refused(key + text("k") + u32(9) + u32(0) + u64(1ull << 60), "an array is too long");
  refused(key + text("k") + u32(9) + u32(8) + u64(100) + std::string(90, '\0'), "an array is too long");
  refused(key + text("general.alignment") + u32(4) + u32(48), "general.alignment is no alignment");
  refused(key + text("general.alignment") + u32(4) + u32(0), "general.alignment is no alignment");
  refused(key + text("general.alignment") + u32(8) + text("32"), "general.alignment is no alignment");
  const auto of_tensor = [&](const std::string& one, Bytes data, const std::string& why) {
    refused(with_data(head(1, 0) + one, data), why);
  };
  of_tensor(tensor(std::string(64, 'n'), {1}, 0, 0), 4, "a tensor's name is too long");
  of_tensor(tensor("", {1}, 0, 0), 4, "a tensor without a name");
  of_tensor(tensor("a", {}, 0, 0), 4, "wrong number of dimensions");
  of_tensor(tensor("a", {1, 1, 1, 1, 1}, 0, 0), 4, "wrong number of dimensions");
  of_tensor(tensor("a", {4, 0}, 0, 0), 4, "is no size");
  of_tensor(tensor("a", {~0ull}, 0, 0), 4, "is no size");
  of_tensor(tensor("a", {1}, 4, 0), 4, "unknown type");
  of_tensor(tensor("a", {31}, 2, 0), 18, "not whole blocks");
  of_tensor(tensor("a", {1ull << 40, 1ull << 40}, 0, 0), 4, "larger than the file");
  of_tensor(tensor("a", {1ull << 20}, 0, 0), 4, "larger than what is left of the file");
  of_tensor(tensor("a", {1}, 0, 32), 36, "does not lie behind the one before it");
  of_tensor(tensor("a", {8}, 0, 0), 31, "the file ends within tensor");
  refused(with_data(head(2, 0) + tensor("a", {1}, 0, 0) + tensor("a", {1}, 0, 32), 36),
          "a tensor stands twice");
  refused(with_data(head(2, 0) + tensor("a", {1}, 0, 0) + tensor("b", {1}, 0, 4), 36), "does not lie behind");
  EXPECT_FALSE(looks_like_gguf(write("GGU")));
  EXPECT_FALSE(looks_like_gguf(scratch_.path() + "/absent"));
}

// Each bit, each end, and random bytes: the file is refused, or read; nothing outside it is.
TEST_F(GgufFile, SurvivesEveryDamage) {
  const std::string whole = content_of(kData + "container.gguf");
  ASSERT_EQ(whole.size(), 2528u);
  std::size_t refused = 0, read = 0;
  const auto attempt = [&](const std::string& bytes) {
    try {
      const GgufHeader header = read_gguf(InputFile::open(write(bytes)));
      for (const GgufTensor& one : header.tensors) ASSERT_LE(one.offset + one.length, bytes.size());
      ++read;
    } catch (const Error&) {
      ++refused;
    }
  };
  for (std::size_t i = 0; i < 768; ++i)  // the header
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ 1 << bit);
      attempt(bytes);
    }
  for (std::size_t length = 0; length < whole.size(); length += length < 768 ? 1 : 37)
    attempt(whole.substr(0, length));
  const std::uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = whole;
    for (std::uint64_t n = 1 + random() % 8; n > 0; --n) {
      const std::uint64_t at = random() % 760;
      const std::uint64_t word = random() % 3 == 0 ? ~0ull : random();
      std::memcpy(&bytes[at], &word, 1 + random() % 8);
    }
    attempt(bytes);
  }
  EXPECT_GT(refused, 3000u);
  EXPECT_GT(read, 1000u);
}

}  // namespace
}  // namespace sluice::store
