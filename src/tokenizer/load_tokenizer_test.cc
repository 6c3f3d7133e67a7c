#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "tokenizer/test_files.h"

namespace sluice::tokenizer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kJson = R"({"added_tokens":[{"id":3,"content":"<s>","special":true}],
  "model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})";

ErrorKind kind_of(const std::string& path, std::string_view part) {
  try {
    load_tokenizer(path);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(std::string(part)));
    return error.kind();
  }
  ADD_FAILURE() << "no error for " << path;
  return ErrorKind::kUsage;
}

TEST(LoadTokenizer, DirectoryWithoutOneGivesNull) {
  const test::TemporaryDirectory directory;
  EXPECT_EQ(load_tokenizer(directory.path()), nullptr);
  directory.write("tokenizer_config.json", "{}");
  directory.write("vocab.json", "{}");  // without merges.txt
  EXPECT_EQ(load_tokenizer(directory.path()), nullptr);
}

TEST(LoadTokenizer, PathsThatAreNoTokenizerAreErrors) {
  const test::TemporaryDirectory directory;
  EXPECT_EQ(kind_of(directory.path() + "/nothing", "nothing"), ErrorKind::kNotFound);
  EXPECT_EQ(kind_of(directory.write("a.txt", "x"), "a.txt"), ErrorKind::kUnsupported);
  EXPECT_EQ(kind_of(directory.write("tokenizer.model", "x"), "tokenizer.model"), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(directory.write("tokenizer.json", "{}"), "tokenizer.json"), ErrorKind::kInvalid);
}

TEST(LoadTokenizer, ConfigBesideAddsTokensAndBos) {
  const test::TemporaryDirectory directory;
  const std::string json = directory.write("tokenizer.json", kJson);
  EXPECT_THAT(load_tokenizer(json)->encode("<s>ab<x>", AddSpecial::kYes), ElementsAre(3, 2));
  directory.write("tokenizer_config.json",
                  R"({"tokenizer_class":"LlamaTokenizerFast","bos_token":{"content":"<s>"},
    "added_tokens_decoder":{"3":{"content":"<s>","special":true},"4":{"content":"<x>","special":false}}})");
  for (const std::string& path : {directory.path(), json}) {
    EXPECT_THAT(load_tokenizer(path)->encode("ab<x>", AddSpecial::kYes), ElementsAre(3, 2, 4));
  }
}

// Models pad their vocabulary to a round number; tokenizers drops such ids before it decodes.
TEST(LoadTokenizer, RowsThatAreNoTokenDecodeToNothing) {
  const test::TemporaryDirectory directory;
  const auto decode = [&](std::vector<TokenId> ids) {
    const auto tokenizer = load_tokenizer(directory.path());
    const std::string text = tokenizer->decode(ids, ShowSpecial::kNo);
    StreamDecoder stream(*tokenizer, ShowSpecial::kNo);
    std::string streamed;
    for (const TokenId id : ids) streamed += stream.append(id);
    EXPECT_EQ(streamed + stream.finish(), text);
    return text;
  };
  directory.write("tokenizer.json", R"({"model":{"type":"BPE","vocab":{"a":0,"b":3},"merges":[]}})");
  EXPECT_EQ(decode({0, 1, 2, 3}), "a b");  // gaps give no text
  EXPECT_THROW(decode({0, 4}), Error);
  directory.write("config.json", R"({"vocab_size":8})");
  EXPECT_EQ(decode({4, 0, 7, 3, 5}), "a b");
  EXPECT_THROW(decode({8}), Error);
  EXPECT_THROW(decode({-1}), Error);
  // Fewer rows than tokens: the tokenizer's count applies
  directory.write("config.json", R"({"vocab_size":2})");
  EXPECT_EQ(decode({0, 3}), "a b");
  directory.write("config.json", R"({"vocab_size":"8"})");
  EXPECT_EQ(kind_of(directory.path(), "vocab_size"), ErrorKind::kInvalid);
}

TEST(LoadTokenizer, RowsThatAreNoPieceDecodeToNothing) {
  const test::TemporaryDirectory directory;
  directory.write("tokenizer.model.v1",
                  test::unpack_zstd("tests/data/tokenizers/mistral.tokenizer.model.v1.zst"));
  const std::vector<TokenId> ids =
      load_tokenizer(directory.path())->encode("caf\u00e9 \u2603!", AddSpecial::kNo);
  std::vector<TokenId> padded;
  for (const TokenId id : ids) padded.insert(padded.end(), {id, 32000, 32001});
  EXPECT_THROW(load_tokenizer(directory.path())->decode(padded, ShowSpecial::kNo), Error);
  directory.write("config.json", R"({"vocab_size":32002})");
  EXPECT_EQ(load_tokenizer(directory.path())->decode(padded, ShowSpecial::kNo), "caf\u00e9 \u2603!");
  EXPECT_THROW(load_tokenizer(directory.path())->decode(std::vector<TokenId>{32002}, ShowSpecial::kNo),
               Error);
}

TEST(LoadTokenizer, BrokenConfigsNameTheField) {
  const test::TemporaryDirectory directory;
  directory.write("tokenizer.json", kJson);
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "tokenizer_config.json"},
      {R"({"add_bos_token":"yes"})", "add_bos_token"},
      {R"({"bos_token":5})", "bos_token"},
      {R"({"tokenizer_class":5})", "tokenizer_class"},
      {R"({"added_tokens_decoder":[]})", "added_tokens_decoder"},
      {R"({"added_tokens_decoder":{"x":{"content":"<y>"}}})", "added_tokens_decoder"},
      {R"({"added_tokens_decoder":{"4":{"special":true}}})", "content"},
      {R"({"added_tokens_decoder":{"9":{"content":"<y>"}}})", "added_tokens_decoder"},
      {R"({"additional_special_tokens":"x"})", "additional_special_tokens"},
      {R"({"additional_special_tokens":[1]})", "additional_special_tokens"}};
  for (const auto& [config, field] : cases) {
    directory.write("tokenizer_config.json", config);
    EXPECT_EQ(kind_of(directory.path(), field), ErrorKind::kInvalid) << config;
  }
}

class VocabMerges : public testing::Test {
 protected:
  void write(const std::string& vocab, const std::string& merges, const std::string& config) {
    directory_.write("vocab.json", vocab);
    directory_.write("merges.txt", merges);
    directory_.write("tokenizer_config.json", config);
  }
  test::TemporaryDirectory directory_;
};

TEST_F(VocabMerges, ClassDecidesThePattern) {
  const std::string vocab = R"({"1":0,"2":1,"12":2,"Ġ":3,"a":4})";
  const std::string merges = "#version: 0.2\r\n1 2\r\n";
  write(vocab, merges, R"({"tokenizer_class":"Qwen2Tokenizer","eos_token":"<end>"})");
  EXPECT_THAT(load_tokenizer(directory_.path())->encode("12<end>", AddSpecial::kYes), ElementsAre(0, 1, 5));
  write(vocab, merges, R"({"tokenizer_class":"GPT2TokenizerFast","bos_token":"<end>","add_bos_token":true})");
  const auto gpt2 = load_tokenizer(directory_.path());
  EXPECT_THAT(gpt2->encode("12 a", AddSpecial::kYes), ElementsAre(5, 2, 3, 4));
  EXPECT_TRUE(gpt2->is_special(5));
  EXPECT_EQ(gpt2->decode(std::vector<TokenId>{5, 2, 3, 4}, ShowSpecial::kNo), "12 a");
  write(vocab, merges, R"({"tokenizer_class":"GPTNeoXTokenizer","add_prefix_space":true})");
  EXPECT_THAT(load_tokenizer(directory_.path())->encode("a", AddSpecial::kYes), ElementsAre(3, 4));
}

TEST_F(VocabMerges, OtherClassesAreUnsupported) {
  write(R"({"a":0})", "", R"({"tokenizer_class":"CLIPTokenizer"})");
  EXPECT_EQ(kind_of(directory_.path(), "CLIPTokenizer"), ErrorKind::kUnsupported);
  write(R"({"a":0})", "", "{}");
  EXPECT_EQ(kind_of(directory_.path(), "tokenizer_class"), ErrorKind::kUnsupported);
}

TEST_F(VocabMerges, BrokenFilesNameFileAndLine) {
  const std::string config = R"({"tokenizer_class":"Qwen2Tokenizer"})";
  const std::pair<std::pair<const char*, const char*>, const char*> cases[] = {
      {{"[]", ""}, "vocab.json"},
      {{"{\"a\":0", ""}, "vocab.json at byte"},
      {{R"({"a":"x"})", ""}, "vocab.json"},
      {{R"({"a":0,"b":0})", ""}, "two tokens have one id"},
      {{R"({"a":0,"b":1})", "a b\n"}, "merges.txt"},
      {{R"({"a":0,"b":1,"ab":2})", "a b\na\n"}, "line 2"},
      {{R"({"a":0,"b":1,"ab":2})", "a b c\n"}, "line 1"},
      {{R"({"a":0,"b":1,"ab":2})", "a b\n\na b\n"}, "line 2"}};
  for (const auto& [files, part] : cases) {
    write(files.first, files.second, config);
    EXPECT_EQ(kind_of(directory_.path(), part), ErrorKind::kInvalid) << files.first << files.second;
  }
}

TEST(LoadTokenizer, PrefersJsonThenMergesThenTheNewestModel) {
  const test::TemporaryDirectory directory;
  directory.write("tokenizer.model.v1",
                  test::unpack_zstd("tests/data/tokenizers/mistral.tokenizer.model.v1.zst"));
  EXPECT_EQ(load_tokenizer(directory.path())->vocab_size(), 32000u);
  directory.write("mistral_instruct_tokenizer_240323.model.v3",
                  test::unpack_zstd("tests/data/tokenizers/mistral.tokenizer.model.v3.zst"));
  EXPECT_EQ(load_tokenizer(directory.path())->vocab_size(), 32768u);
  directory.write("tokenizer.json", kJson);
  EXPECT_EQ(load_tokenizer(directory.path())->vocab_size(), 4u);
}

// Reading one takes longer than who presses Ctrl-C wants to wait.
TEST(LoadTokenizer, AsksWhetherToStopAllAlong) {
  const test::TemporaryDirectory directory;
  const std::string json =
      directory.write("tokenizer.json", test::unpack_zstd("tests/data/tokenizers/qwen3.tokenizer.json.zst"));
  std::size_t asked = 0;
  const auto whole = load_tokenizer(json, [&] { return ++asked == 0; });
  EXPECT_GT(asked, 50u);  // a vocabulary of 151,643 tokens, as many rules of two, and the table of the rules
  EXPECT_EQ(whole->vocab_size(), load_tokenizer(json)->vocab_size());
  for (const std::size_t stop_at : {std::size_t{1}, asked / 2, asked}) {
    std::size_t calls = 0;
    try {
      load_tokenizer(json, [&] { return ++calls == stop_at; });
      ADD_FAILURE() << "not stopped";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInterrupted) << error.what();
    }
    EXPECT_EQ(calls, stop_at);
  }
}

}  // namespace
}  // namespace sluice::tokenizer
