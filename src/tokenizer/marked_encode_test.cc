// Encoding text of which parts are a request's: control tokens that are pasted there stay text.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tokenizer/compiled_tokenizer.h"
#include "tokenizer/test_files.h"

namespace sluice::tokenizer {
namespace {

constexpr const char* kTokenizers[] = {"fable",    "qwen3",     "olmoe",     "mistral_v3",
                                       "deepseek", "llama_spm", "metaspace", "normalized",
                                       "llama3",   "o200k",     "unigram",   "switch"};

class MarkedEncode : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    tokenizer_ = test::load_golden_tokenizer(GetParam());
    ASSERT_NE(tokenizer_, nullptr);
    const Json described = tokenizer_->compile().description;
    const Json unknown = described.value("unknown", nullptr);
    for (const Json& token : described["added"]) {
      std::string content = token["content"].get<std::string>();
      if (content.find_first_not_of(" \t\n\r") == std::string::npos) continue;
      // Any text may give the token of what the vocabulary lacks.
      if (!unknown.is_null() && unknown.get<TokenId>() == *tokenizer_->id_of(content)) continue;
      tokens_.push_back(content);
      ids_.push_back(*tokenizer_->id_of(content));
    }
  }
  // How often each id of an added token stands among `ids`.
  std::size_t count(const std::vector<TokenId>& ids) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(ids, [&](TokenId id) { return std::ranges::find(ids_, id) != ids_.end(); }));
  }
  std::string random_text(std::mt19937& random) const {
    static constexpr std::string_view kPieces[] = {"Hello", " world", "\n", "  ",      "12", "é",
                                                   "漢",    "<|",     "|>", "e\u0301", "!",  " "};
    std::string text;
    for (unsigned i = 0, n = random() % 6; i < n; ++i) text += kPieces[random() % std::size(kPieces)];
    return text;
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<std::string> tokens_;  // contents of added tokens that are not white space alone
  std::vector<TokenId> ids_;
};

TEST_P(MarkedEncode, EqualsEncodeWhereTheRequestHoldsNoToken) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    MarkedText text;
    std::string request;
    for (unsigned i = 0, n = random() % 5; i < n; ++i) {
      if (!tokens_.empty() && random() % 2 == 0)
        text.append(tokens_[random() % tokens_.size()], Origin::kTemplate);
      const std::string piece = random_text(random);
      text.append(piece, random() % 2 == 0 ? Origin::kRequest : Origin::kTemplate);
    }
    SCOPED_TRACE(::testing::Message() << "seed 7, round " << round << ": " << text.bytes());
    // A token that the borders of parts make is no token of the request's alone.
    bool crosses = false;
    for (const std::string& token : tokens_)
      for (std::size_t at = text.bytes().find(token); at != std::string::npos;
           at = text.bytes().find(token, at + 1))
        crosses = crosses || !ranges_within(text.request(), at, at + token.size()).empty();
    if (crosses) continue;
    EXPECT_EQ(tokenizer_->encode(text), tokenizer_->encode(text.bytes(), AddSpecial::kNo));
  }
}

TEST_P(MarkedEncode, GivesNoTokenThatARequestHolds) {
  if (tokens_.empty()) GTEST_SKIP() << "no added tokens";
  std::mt19937 random(8);
  std::size_t pasted = 0;
  for (int round = 0; round < 300; ++round) {
    MarkedText text;
    std::size_t own = 0;
    for (unsigned i = 0, n = 1 + random() % 4; i < n; ++i) {
      if (random() % 2 == 0) {
        text.append("\n", Origin::kTemplate);
        text.append(tokens_[random() % tokens_.size()], Origin::kTemplate);
        text.append("\n", Origin::kTemplate);
        ++own;
      }
      std::string content = random_text(random);
      const std::string& token = tokens_[random() % tokens_.size()];
      content.insert(random() % 2 == 0 ? 0 : content.size(), token);
      text.append(content + random_text(random), Origin::kRequest);
      ++pasted;
    }
    SCOPED_TRACE(::testing::Message() << "seed 8, round " << round << ": " << text.bytes());
    const std::vector<TokenId> ids = tokenizer_->encode(text);
    EXPECT_LE(count(ids), own);
    if (std::string_view(GetParam()) == "qwen3") {
      EXPECT_EQ(count(ids), own);
    }
  }
  EXPECT_GT(pasted, 300u);
}

INSTANTIATE_TEST_SUITE_P(All, MarkedEncode, testing::ValuesIn(kTokenizers),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::tokenizer
