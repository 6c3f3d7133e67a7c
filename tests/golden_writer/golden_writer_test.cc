// The tiny golden models are made from seeds by two programs: tools/oracle, when goldens are made, and this
// folder's, when tests are built. The words here and the hashes beside the goldens are from the former.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error_of.h"
#include "base/files/scratch_directory.h"
#include "base/hash.h"
#include "base/json/json.h"
#include "golden_writer/checkpoint_files.h"
#include "golden_writer/seeded_noise.h"
#include "golden_writer/weights_list.h"
#include "model/golden_models.h"

namespace sluice::golden {
namespace {

namespace fs = std::filesystem;
using sluice::testing::error_of;
using sluice::testing::golden_model_names;
using sluice::testing::kGoldenModels;
using sluice::testing::kGoldens;
using sluice::testing::ScratchDirectory;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<int> noise(std::uint64_t seed, const char* key, int count) {
  SeededNoise numbers(seed, key);
  std::vector<int> parts;  // multiples of 2^-16
  for (int i = 0; i < count; ++i) parts.push_back(static_cast<int>(65536 * numbers.next()));
  return parts;
}

TEST(SeededNoise, HashesNamesAsPublished) {  // the FNV authors' test vectors
  EXPECT_EQ(fnv1a64(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a64("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a64("foobar"), 0x85944171f73967e8u);
}

TEST(SeededNoise, IsThatOfTheOracle) {
  EXPECT_THAT(noise(7, "model.norm.weight", 6), ElementsAre(-59498, 60272, 96138, 140075, -55740, 69247));
  EXPECT_THAT(noise(0x7fffffffffffffff, "lm_head.weight", 3), ElementsAre(55086, -113515, -64865));
}

TEST(SeededNoise, HasMeanZeroAndDeviationOne) {
  constexpr int kCount = 100000;
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    SeededNoise numbers(seed, "x");
    double sum = 0, squares = 0, fourths = 0;
    for (int i = 0; i < kCount; ++i) {
      const double value = numbers.next();
      sum += value, squares += value * value, fourths += std::pow(value, 4);
    }
    const double five_errors = 5 / std::sqrt(kCount);
    EXPECT_NEAR(sum / kCount, 0, five_errors);
    EXPECT_NEAR(squares / kCount, 1, std::sqrt(2) * five_errors);
    EXPECT_NEAR(fourths / kCount, 2.9, std::sqrt(96) * five_errors);  // a normal number's is 3
  }
}

std::string hex_of(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

TEST(StoredBytes, AreThoseOfTheOracleInEveryType) {
  const std::map<std::string, std::vector<std::string>> expected = {
      {"BF16", {"873f8e3f813f763f773f6f3f", "863f833f993f863f6c3f8b3f", "583f7b3f723f833f763f493f"}},
      {"F16", {"3a3c6d3c053caf3bb63b783b", "333c1a3cc43c2e3c5c3b5c3c", "c23ad63b903b1b3cb03b453a"}},
      {"F32",
       {"2645873ff3a58d3f8da2803f1ad8753f33b5763fe6ff6e3f",
        "c06f863f664f833fcd8f983f8dbf853f008c6b3f667e8b3f",
        "9a3d583f4dc67a3f66fe713f1a5e833f8007763f80a5483f"}},
  };
  const ScratchDirectory scratch;
  for (const auto& [dtype, bytes] : expected) {
    const WeightsList list = read_weights_list(scratch.write(
        "weights.json",
        fmt::format(
            R"({{"seed":7,"dtype":"{}","tensors":[{{"name":"a.{{0,2-3}}.b","shape":[2,3],"mean":1.0,"scale":0.1}}]}})",
            dtype)));
    ASSERT_EQ(list.tensors.size(), bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_EQ(list.tensors[i].name, (std::vector<std::string>{"a.0.b", "a.2.b", "a.3.b"})[i]);
      EXPECT_EQ(hex_of(stored_bytes(list.tensors[i], list.seed)), bytes[i]) << dtype << " " << i;
    }
  }
}

TEST(StoredBytes, AreRoundedToNearestEven) {
  ListedTensor tensor;
  tensor.shape = {3};
  tensor.values = {1 + 0x1p-8, 1 + 0x3p-8, -1 - 0x1.01p-8};
  EXPECT_EQ(hex_of(stored_bytes(tensor, 1)), "803f823f81bf");
  tensor.dtype = DType::kF16;
  tensor.values = {1 + 0x1p-11, 1 + 0x3p-11, -1 - 0x1.01p-11};
  EXPECT_EQ(hex_of(stored_bytes(tensor, 1)), "003c023c01bc");
  tensor.dtype = DType::kF32;
  tensor.values = {1 + 0x1p-24, 1 + 0x3p-24, -1 - 0x1.01p-24};
  EXPECT_EQ(hex_of(stored_bytes(tensor, 1)), "0000803f0200803f010080bf");
}

TEST(ExpandedNames, AreAllCombinations) {
  EXPECT_THAT(expanded_names("lm_head.weight", ""), ElementsAre("lm_head.weight"));
  EXPECT_THAT(expanded_names("l.{0-1,5}.e.{2,8}.w", ""),
              ElementsAre("l.0.e.2.w", "l.0.e.8.w", "l.1.e.2.w", "l.1.e.8.w", "l.5.e.2.w", "l.5.e.8.w"));
  for (const char* wrong : {"l.{}", "l.{a}", "l.{3-1}", "l.{1,}", "l.{1", "l.{1-}", "l.{-1}"})
    EXPECT_THAT(error_of([&] { expanded_names(wrong, "list"); }),
                AllOf(HasSubstr("list: "), HasSubstr(wrong)));
}

TEST(WeightsList, WhatIsWrongIsNamed) {
  const ScratchDirectory scratch;
  const auto error = [&](const std::string& tensors) {
    const std::string path = scratch.write("weights.json", R"({"seed":1,"tensors":[)" + tensors + "]}");
    return error_of([&] { read_weights_list(path); });
  };
  EXPECT_EQ(error(R"({"name":"a","shape":[2],"scale":1})"), "no error");
  EXPECT_THAT(error(R"({"name":"a","scale":1})"), HasSubstr("tensors[0]: shape"));
  EXPECT_THAT(error(R"({"name":"a","shape":[2]})"), HasSubstr("tensors[0]: scale"));
  EXPECT_THAT(error(R"({"name":"a","shape":[2],"scale":1,"dtype":"I8"})"), HasSubstr("tensors[0]: dtype"));
  EXPECT_THAT(error(R"({"name":"a","shape":[2],"values":[1]})"), HasSubstr("tensors[0]: values"));
  EXPECT_THAT(error(R"({"name":"a.{0-1}","shape":[2],"scale":1},{"name":"a.1","shape":[2],"scale":1})"),
              AllOf(HasSubstr("tensors[1]"), HasSubstr("listed twice"), HasSubstr("a.1")));
}

TEST(WriteCheckpoint, ListAndIndexMustNameTheSameTensors) {
  const ScratchDirectory scratch;
  scratch.write("source/weights.json", R"({"seed":1,"tensors":[{"name":"a.{0-1}","shape":[2],"scale":1}]})");
  const auto error = [&](const std::string& weight_map) {
    scratch.write("source/model.safetensors.index.json", R"({"weight_map":{)" + weight_map + "}}");
    fs::remove_all(scratch.file("out"));
    return error_of([&] { write_checkpoint(scratch.file("source"), scratch.file("out")); });
  };
  EXPECT_EQ(error(R"("a.0":"x.safetensors","a.1":"y.safetensors")"), "no error");
  EXPECT_TRUE(fs::exists(scratch.file("out/y.safetensors")));
  EXPECT_FALSE(fs::exists(scratch.file("out/weights.json")));
  EXPECT_THAT(error(R"("a.0":"x.safetensors")"), HasSubstr("a.1"));
  EXPECT_THAT(error(R"("a.0":"x","a.1":"x","b":"x")"), HasSubstr("3 tensors"));
}

class WrittenModel : public ::testing::TestWithParam<std::string> {};

// Every byte of every weight file, and no other file than the published ones.
TEST_P(WrittenModel, HasTheFilesThatTheOracleWrote) {
  const fs::path built = fs::path(kGoldenModels) / GetParam(), source = fs::path(kGoldens) / GetParam();
  const auto expected = read_json_file(source.string() + ".golden/golden.json")
                            .at("sha256")
                            .get<std::map<std::string, std::string>>();
  std::map<std::string, std::string> found;
  for (const auto& entry : fs::directory_iterator(built)) {
    const std::string name = entry.path().filename(), content = content_of(entry.path());
    if (name.ends_with(".safetensors"))
      found[name] = sha256_hex(std::as_bytes(std::span(content)));
    else
      EXPECT_EQ(content, content_of(source / name));
  }
  EXPECT_EQ(found, expected);
  EXPECT_TRUE(fs::exists(built / "config.json"));
}

INSTANTIATE_TEST_SUITE_P(All, WrittenModel, ::testing::ValuesIn(golden_model_names()),
                         [](const auto& info) { return info.param; });

// A model that is committed is also built, and none that is gone.
TEST(WrittenModels, AreTheCommittedOnes) {
  std::vector<std::string> committed;
  for (const auto& entry : fs::directory_iterator(kGoldens))
    if (entry.path().extension() == ".golden") committed.push_back(entry.path().stem());
  std::ranges::sort(committed);
  EXPECT_EQ(golden_model_names(), committed);
  EXPECT_GE(committed.size(), 16u);
}

}  // namespace
}  // namespace sluice::golden
