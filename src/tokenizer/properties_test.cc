// Properties of every tokenizer for any input.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "tokenizer/test_files.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

std::string random_text(std::mt19937& random) {
  std::string text;
  for (int i = 0; i < 200; ++i) {
    switch (random() % 6) {
      case 0:
        append_utf8(text, 0x20 + random() % 95);
        break;
      case 1:
        append_utf8(text, random() % 0x20);
        break;
      case 2:
        append_utf8(text, 0x4E00 + random() % 0x5000);
        break;
      case 3:
        append_utf8(text, 0x1F300 + random() % 0x600);
        break;
      case 4:
        append_utf8(text, random() % 0xD800);
        break;
      default:
        text += "the ";
    }
  }
  return text;
}

class EveryTokenizer : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    tokenizer_ = test::load_golden_tokenizer(GetParam());
    ASSERT_NE(tokenizer_, nullptr);
  }
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(EveryTokenizer, StreamedTextIsTheDecodedTextInWholeCharacters) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::size_t range =
        seed % 2 == 0 ? tokenizer_->vocab_size() : std::min<std::size_t>(tokenizer_->vocab_size(), 300);
    std::vector<TokenId> ids;
    while (ids.size() < 80) {
      const auto id = static_cast<TokenId>(random() % range);
      ids.push_back(id);
    }
    for (const ShowSpecial special : {ShowSpecial::kNo, ShowSpecial::kYes}) {
      StreamDecoder decoder(*tokenizer_, special);
      std::string text;
      for (const TokenId id : ids) {
        text += decoder.append(id);
        ASSERT_FALSE(find_invalid_utf8(text));
      }
      text += decoder.finish();
      EXPECT_EQ(text, tokenizer_->decode(ids, special));
    }
  }
}

TEST_P(EveryTokenizer, HostileTextTakesLinearTime) {
  std::string marks, pairs;
  for (int i = 0; i < 100'000; ++i) {
    marks += i % 2 == 0 ? "\xCC\xA3" : "\xCC\x81";
    pairs += " \n";
  }
  const std::string cases[] = {std::string(400'000, 'a'),
                               std::string(400'000, ' ') + "x",
                               std::string(300'000, '\n'),
                               std::string(500'000, ' ') + "\xE4\xB8\xAD",
                               marks,
                               pairs};
  for (const std::string& text : cases) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_NO_THROW(tokenizer_->encode(text, AddSpecial::kYes));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60))
        << text.substr(0, 10);  // quadratic code takes hours
  }
}

TEST_P(EveryTokenizer, BytesOfTokensJoinedAreTheText) {
  std::size_t parts = 0;  // tokens that are no characters by themselves
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::vector<TokenId> ids = tokenizer_->encode("a" + random_text(random), AddSpecial::kNo);
    std::string joined;
    for (const TokenId id : ids) {
      const std::string bytes = tokenizer_->bytes_of(id);
      parts += find_invalid_utf8(bytes) ? 1 : 0;
      joined += bytes;
    }
    const std::string text = tokenizer_->decode(ids, ShowSpecial::kYes);
    EXPECT_EQ(joined.substr(joined.size() == text.size() + 1 && joined[0] == ' ' ? 1 : 0), text);
  }
  const std::string name = GetParam();
  EXPECT_TRUE(parts > 0 || (name != "fable" && name != "qwen3" && name != "mistral_v1"));
}

INSTANTIATE_TEST_SUITE_P(All, EveryTokenizer,
                         testing::Values("fable", "qwen3", "olmoe", "mistral_v1", "mistral_v3", "deepseek",
                                         "llama_spm", "metaspace", "normalized", "llama3", "o200k",
                                         "sp_collapse", "sp_plain", "sp_unused"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ByteLevelTokenizers, GiveBackAnyTextWithoutNormalizer) {
  for (const char* name : {"deepseek", "llama3"}) {
    const auto tokenizer = test::load_golden_tokenizer(name);
    for (unsigned seed = 0; seed < 100; ++seed) {
      std::mt19937 random(seed);
      const std::string text = random_text(random);
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, AddSpecial::kNo), ShowSpecial::kYes), text)
          << name << " " << seed;
    }
  }
}

// With NFC the second round trip changes nothing.
TEST(ByteLevelTokenizers, EncodeTheDecodedTextToItself) {
  for (const char* name : {"fable", "qwen3", "olmoe"}) {
    const auto tokenizer = test::load_golden_tokenizer(name);
    for (unsigned seed = 0; seed < 50; ++seed) {
      std::mt19937 random(seed);
      const auto ids = tokenizer->encode(random_text(random), AddSpecial::kNo);
      const std::string text = tokenizer->decode(ids, ShowSpecial::kYes);
      EXPECT_EQ(tokenizer->encode(text, AddSpecial::kNo), ids) << name << " " << seed;
      EXPECT_EQ(tokenizer->decode(ids, ShowSpecial::kYes), text);
    }
  }
}

TEST(Tokenizer, IsSharedBetweenThreads) {
  const auto tokenizer = test::load_golden_tokenizer("fable");
  std::mt19937 random(1);
  const std::string text = random_text(random);
  const auto expected = tokenizer->encode(text, AddSpecial::kNo);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) EXPECT_EQ(tokenizer->encode(text, AddSpecial::kNo), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace sluice::tokenizer
