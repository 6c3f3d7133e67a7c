#include "store/source/weight_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "store/pack/testing.h"
#include "store/source/directory_checkpoint.h"
#include "store/source/open_checkpoint.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT: the helpers of testing.h
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kTensorA = safetensors_bytes({{"a", "BF16", {2}, "1234"}});
const std::string kTensorB = safetensors_bytes({{"b", "BF16", {2}, "1234"}});

std::string index_of(const std::string& map) {
  return "{\"metadata\":{\"total_size\":8,\"x\":[1.5,null]},\"weight_map\":{" + map + "}}";
}

class WeightFiles : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) { write_file(temp_ / name, content); }
  std::string error(OtherWeights others, const std::vector<std::string>& exclude = {}) {
    try {
      const SourceDirectory directory = scan_directory(temp_.path(), exclude, Depth::kTree);
      const WeightSet set = select_weights(directory, others);
      files_ = set.files;
      read_weights(directory.path, set);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  std::string error_to_pack(const std::vector<std::string>& exclude = {}) {
    return error(OtherWeights::kRefuse, exclude);
  }
  std::string error_to_run() { return error(OtherWeights::kIgnore); }
  TempDirectory temp_;
  std::vector<std::string> files_;
};

TEST_F(WeightFiles, OneFileUnderAnyName) {
  put("weights.safetensors", kTensorA);
  EXPECT_EQ(error_to_pack(), "no error");
  EXPECT_THAT(files_, ElementsAre("weights.safetensors"));
}

TEST_F(WeightFiles, AnEmptyFileIsNoSecondSetWhateverItsName) {
  put("weights.safetensors", kTensorA);
  put("pytorch_model.bin", "");
  EXPECT_EQ(error_to_pack(), "no error");
  put("pytorch_model.bin", "x");
  EXPECT_NE(error_to_pack(), "no error");
}

TEST_F(WeightFiles, ShardsOfAnIndex) {
  put("model.safetensors.index.json", index_of("\"a\":\"one.safetensors\",\"b\":\"two.safetensors\""));
  put("one.safetensors", kTensorA);
  put("two.safetensors", kTensorB);
  EXPECT_EQ(error_to_pack(), "no error");
  EXPECT_THAT(files_, ElementsAre("one.safetensors", "two.safetensors"));
}

TEST_F(WeightFiles, AnIndexThatDoesNotFitItsFiles) {
  put("one.safetensors", kTensorA);
  put("model.safetensors.index.json", index_of("\"a\":\"one.safetensors\",\"b\":\"two.safetensors\""));
  EXPECT_THAT(error_to_pack(),
              AllOf(HasSubstr("names a file that is not there"), HasSubstr("two.safetensors")));
  put("two.safetensors", safetensors_bytes({{"b", "BF16", {2}, "1234"}, {"c", "BF16", {2}, "1234"}}));
  EXPECT_THAT(error_to_pack(),
              AllOf(HasSubstr("tensor \"c\" is not in the shard index"), HasSubstr("two.safetensors")));
  put("two.safetensors", safetensors_bytes({{"a", "BF16", {2}, "1234"}, {"b", "BF16", {2}, "1234"}}));
  EXPECT_THAT(error_to_pack(), HasSubstr("tensor \"a\" stands in two files"));
  put("two.safetensors", safetensors_bytes({{"z", "BF16", {2}, "1234"}}));
  put("model.safetensors.index.json",
      index_of("\"a\":\"one.safetensors\",\"b\":\"one.safetensors\",\"z\":\"two.safetensors\""));
  EXPECT_THAT(error_to_pack(), HasSubstr("names tensor \"b\", which its file lacks"));
  put("model.safetensors.index.json",
      index_of("\"a\":\"two.safetensors\",\"z\":\"two.safetensors\",\"q\":\"one.safetensors\""));
  EXPECT_THAT(error_to_pack(), HasSubstr("has tensor \"a\" in another file"));
}

TEST_F(WeightFiles, ABadIndex) {
  put("one.safetensors", kTensorA);
  const auto with = [&](const std::string& text) {
    put("model.safetensors.index.json", text);
    return error_to_pack();
  };
  EXPECT_THAT(with("{}"), HasSubstr("no weight_map"));
  EXPECT_THAT(with(""), HasSubstr("model.safetensors.index.json at byte 0"));
  EXPECT_THAT(with(index_of("\"a\":\"../one.safetensors\"")), HasSubstr("illegal file name"));
  EXPECT_THAT(with(index_of("\"a\":\"/etc/passwd\"")), HasSubstr("illegal file name"));
  EXPECT_THAT(with(index_of("\"a\":\"one.safetensors\",\"a\":\"one.safetensors\"")),
              HasSubstr("listed twice"));
  EXPECT_THAT(with(index_of("\"a\":1")), HasSubstr("a string"));
}

// A directory is no GGUF model; the file in it is.
TEST_F(WeightFiles, TheOneGgufModelOfADirectoryIsToldByName) {
  put("a-00001-of-00002.gguf", "GGUF");
  put("a-00002-of-00002.gguf", "GGUF");
  put("mmproj-f16.gguf", "GGUF");
  const std::string named =
      "name the file, not its directory: sluice run " + temp_.path() + "/a-00001-of-00002.gguf";
  EXPECT_THAT(error_to_run(), HasSubstr(named));
  put("pytorch_model.bin", "x");
  EXPECT_THAT(error_to_run(), HasSubstr(named));
  put("b.gguf", "GGUF");
  EXPECT_THAT(error_to_run(), HasSubstr("name one of its GGUF files"));
  for (const char* name : {"a-00001-of-00002.gguf", "a-00002-of-00002.gguf", "mmproj-f16.gguf", "b.gguf"})
    fs::remove(temp_ / name);
  EXPECT_THAT(error_to_run(), HasSubstr("use the safetensors version"));
}

TEST_F(WeightFiles, ASecondSetMustBeLeftOutToPackAndDoesNotMatterToRun) {
  put("model.safetensors", kTensorA);
  for (const char* other : {"pytorch_model.bin", "weights.bin", "model-q4.gguf", "consolidated.00.pth",
                            "consolidated.safetensors", "original/consolidated.00.pth",
                            "original/model.safetensors", "tf_model.h5"}) {
    put(other, kTensorB);
    EXPECT_THAT(error_to_pack(),
                AllOf(HasSubstr("second set of weights"), HasSubstr("--exclude"), HasSubstr(other)));
    EXPECT_EQ(error_to_pack({fs::path(other).parent_path().empty() ? other : "original"}), "no error")
        << other;
    EXPECT_EQ(error_to_run(), "no error");
    EXPECT_THAT(files_, ElementsAre("model.safetensors"));
    fs::remove(temp_ / other);
  }
  for (const char* name : {"training_args.bin", "vocab.bin", "sub/data.bin", "figures/a.bin"})
    put(name, "not weights");
  put("pytorch_model.bin.index.json", "{}");
  EXPECT_EQ(error_to_pack(), "no error");
  fs::resize_file(temp_ / "vocab.bin", 64 * kMiB);  // a hole
  EXPECT_THAT(error_to_pack(), HasSubstr("vocab.bin"));
  fs::rename(temp_ / "vocab.bin", temp_ / "VOCAB.BIN");
  EXPECT_THAT(error_to_pack(), HasSubstr("VOCAB.BIN"));
}

TEST_F(WeightFiles, NoSafetensors) {
  EXPECT_THAT(error_to_run(), HasSubstr("no weights here"));
  put("pytorch_model.bin", "x");
  EXPECT_THAT(error_to_run(), AllOf(HasSubstr("no safetensors weights"), HasSubstr("pytorch_model.bin")));
}

TEST_F(WeightFiles, SeveralFilesNeedAnIndex) {
  put("model-00001-of-00002.safetensors", kTensorA);
  put("model-00002-of-00002.safetensors", kTensorB);
  EXPECT_THAT(error_to_run(), HasSubstr("several safetensors files and no index"));
}

TEST_F(WeightFiles, DirectoryCheckpointLocatesPieces) {
  put("model.safetensors",
      safetensors_bytes({{"s", "F32", {3, 2}, random_bytes(24, 1)}, {"t", "BF16", {4}, "12345678"}}));
  put("config.json", "{}");
  const auto checkpoint = open_checkpoint(temp_.path() + "/");
  EXPECT_EQ(checkpoint->path(), temp_.path() + "/");
  EXPECT_EQ(checkpoint->codec(), "none");
  ASSERT_NE(checkpoint->find("t"), nullptr);
  EXPECT_EQ(checkpoint->find("u"), nullptr);
  const StoredPiece piece = checkpoint->locate({"s", 2, 2});
  EXPECT_EQ(piece.first().length, 8u);
  EXPECT_FALSE(piece.planes[0].xxh3);
  EXPECT_EQ(read_file(checkpoint->weight_files()[piece.first().file]).size() - piece.first().offset,
            24u + 8 - 8);
  EXPECT_THROW(checkpoint->locate({"s", 5, 2}), Error);
  EXPECT_THROW(checkpoint->locate({"s", 1, ~0ull}), Error);
  EXPECT_TRUE(checkpoint->find_file("config.json"));
  EXPECT_FALSE(checkpoint->find_file("tokenizer.json"));
  EXPECT_FALSE(checkpoint->find_file("../" + fs::path(temp_.path()).filename().string() + "/config.json"));
}

TEST_F(WeightFiles, HubCacheOfLinks) {
  put("blobs/1", kTensorA);
  fs::create_directories(temp_ / "snap");
  fs::create_symlink("../blobs/1", temp_ / "snap/model.safetensors");
  EXPECT_NE(open_checkpoint(temp_ / "snap")->find("a"), nullptr);
}

}  // namespace
}  // namespace sluice::store
