// Ids and texts from Hugging Face tokenizers and sentencepiece (tools/oracle/make_tokenizer_golden.py).
#include <gtest/gtest.h>

#include <random>

#include "tokenizer/test_files.h"

namespace sluice::tokenizer {
namespace {

class TokenizerGolden : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    golden_ = test::golden(GetParam());
    tokenizer_ = test::load_golden_tokenizer(GetParam());
    ASSERT_NE(tokenizer_, nullptr);
  }
  std::string streamed(const std::vector<TokenId>& ids, ShowSpecial special) const {
    StreamDecoder decoder(*tokenizer_, special);
    std::string text;
    for (const TokenId id : ids) text += decoder.append(id);
    return text + decoder.finish();
  }

  Json golden_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(TokenizerGolden, EncodesAndDecodesAsTheReference) {
  ASSERT_GT(golden_["encode"].size(), 100u);
  for (const Json& item : golden_["encode"]) {
    const auto& text = item["text"].get_ref<const std::string&>();
    SCOPED_TRACE(item.dump().substr(0, 200));
    const auto ids = item["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer_->encode(text, AddSpecial::kNo), ids);
    const auto with_special = item.value("special_ids", item["ids"]).get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer_->encode(text, AddSpecial::kYes), with_special);
    EXPECT_EQ(tokenizer_->decode(ids, ShowSpecial::kNo), item["decoded"].get<std::string>());
    if (!golden_["decode"][0].contains("shown")) continue;
    EXPECT_EQ(tokenizer_->decode(ids, ShowSpecial::kYes),
              item.value("shown", item["decoded"]).get<std::string>());
  }
}

TEST_P(TokenizerGolden, DecodesAnyIdsAsTheReference) {
  for (const Json& item : golden_["decode"]) {
    SCOPED_TRACE(item.dump().substr(0, 200));
    const auto ids = item["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer_->decode(ids, ShowSpecial::kNo), item["decoded"].get<std::string>());
    EXPECT_EQ(streamed(ids, ShowSpecial::kNo), item["decoded"].get<std::string>());
    if (!item.contains("shown")) continue;
    EXPECT_EQ(tokenizer_->decode(ids, ShowSpecial::kYes), item["shown"].get<std::string>());
    EXPECT_EQ(streamed(ids, ShowSpecial::kYes), item["shown"].get<std::string>());
  }
}

TEST_P(TokenizerGolden, KnowsTheSizeOfItsVocabulary) {
  EXPECT_EQ(tokenizer_->vocab_size(), golden_["vocab_size"].get<std::size_t>());
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerGolden,
                         testing::Values("fable", "qwen3", "qwen2_vocab_merges", "olmoe", "mistral_v1",
                                         "mistral_v2", "mistral_v3", "deepseek", "llama_spm", "metaspace",
                                         "normalized", "llama3", "o200k", "sp_collapse", "sp_plain",
                                         "sp_unused", "unigram", "switch"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::tokenizer
