// Normalizers, pre-tokenizers, decoders and character classes one by one, against Hugging Face tokenizers
// (tools/oracle/make_tokenizer_golden.py); the classes and normalizers over every code point.
#include <gtest/gtest.h>

#include <span>

#include "base/hash.h"
#include "tokenizer/json/component_json.h"
#include "tokenizer/test_files.h"
#include "tokenizer/text/regex.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

const Json& components() {
  static const Json json = test::golden("components");
  return json;
}

template <class Visit>
void for_each_code_point(Visit visit) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(text, c);
    visit(text);
  }
}

void update(Sha256Stream& hash, std::string_view text) {
  hash.update(std::as_bytes(std::span(text.data(), text.size())));
}

TEST(TokenizerComponents, CharacterClassesHoldTheSameCodePoints) {
  ASSERT_FALSE(components()["classes"].empty());
  for (const Json& item : components()["classes"]) {
    const auto pattern = regex_pattern(item["pattern"].get<std::string>(), "class");
    Sha256Stream hash;
    std::string members;
    for_each_code_point([&](const std::string& text) {
      char member = 0;
      pattern->find(text, [&](const Match& match) { member = match.matched ? 1 : 0; });
      members += member;
    });
    update(hash, members);
    EXPECT_EQ(hash.hex_digest(), item["sha256"].get<std::string>()) << item["pattern"];
  }
}

TEST(TokenizerComponents, NormalizersGiveTheSameText) {
  ASSERT_FALSE(components()["normalizers"].empty());
  const Json& texts = components()["texts"];
  for (const Json& item : components()["normalizers"]) {
    SCOPED_TRACE(item["config"].dump());
    const auto normalizer = read_normalizer(&item["config"], "normalizer");
    std::vector<std::string> expected = texts.get<std::vector<std::string>>();
    for (const Json& changed : item["cases"])
      expected[changed[0].get<std::size_t>()] = changed[1].get<std::string>();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      std::string text = texts[i].get<std::string>();
      normalizer->normalize(text);
      EXPECT_EQ(text, expected[i]) << texts[i];
    }
  }
}

TEST(TokenizerComponents, NormalizersTreatEveryCodePointAlike) {
  for (const Json& item : components()["normalizers"]) {
    const std::string expected = item["sha256"].get<std::string>();
    if (expected.empty()) continue;
    const auto normalizer = read_normalizer(&item["config"], "normalizer");
    Sha256Stream hash;
    for_each_code_point([&](const std::string& c) {
      std::string text = "a" + c + "\xCC\x81\xCC\xA3";
      normalizer->normalize(text);
      update(hash, text);
      update(hash, std::string_view("\0", 1));
    });
    EXPECT_EQ(hash.hex_digest(), expected) << item["config"];
  }
}

TEST(TokenizerComponents, PreTokenizersCutAtTheSamePlaces) {
  ASSERT_FALSE(components()["pre_tokenizers"].empty());
  const auto texts = components()["texts"].get<std::vector<std::string>>();
  for (const Json& item : components()["pre_tokenizers"]) {
    SCOPED_TRACE(item["config"].dump());
    const auto pre_tokenizer = read_pre_tokenizer(&item["config"], "pre_tokenizer");
    std::vector<std::vector<std::string>> expected;
    for (const std::string& text : texts) expected.push_back({text});
    for (const Json& changed : item["cases"]) {
      expected[changed[0].get<std::size_t>()] = changed[1].get<std::vector<std::string>>();
    }
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (texts[i].empty()) continue;
      std::vector<std::string> pieces;
      pre_tokenizer->split({texts[i], true}, [&](const Piece& piece) { pieces.emplace_back(piece.text); });
      EXPECT_EQ(pieces, expected[i]) << Json(texts[i]);
    }
  }
}

class Collected final : public TokenSink {
 public:
  void part(std::string_view text, TokenEnds) override { text_ += text; }
  void finish() override {}
  std::string text_;
};

TEST(TokenizerComponents, DecodersGiveTheSameText) {
  ASSERT_FALSE(components()["decoders"].empty());
  for (const Json& item : components()["decoders"]) {
    SCOPED_TRACE(item["config"].dump());
    const auto decoder = read_decoder(&item["config"], "decoder");
    for (const Json& tokens : item["cases"]) {
      Collected text;
      const auto sink = decoder->start(text);
      for (const Json& token : tokens[0]) sink->part(token.get_ref<const std::string&>(), TokenEnds::kYes);
      sink->finish();
      EXPECT_EQ(text.text_, tokens[1].get<std::string>()) << tokens[0];
    }
  }
}

}  // namespace
}  // namespace sluice::tokenizer
