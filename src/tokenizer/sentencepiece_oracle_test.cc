// T5's tokenizer.json against libsentencepiece with the spiece.model it was made from. The two differ in
// places (white space, characters that only one of them maps), so these texts are ones that both promise to
// treat alike.
#if __has_include(<sentencepiece_processor.h>)
#include <sentencepiece_processor.h>

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tokenizer/test_files.h"

namespace sluice::tokenizer {
namespace {

class SentencePieceOracle : public testing::Test {
 protected:
  void SetUp() override {
    const test::TemporaryDirectory directory;
    ours_ = load_tokenizer(directory.write(
        "tokenizer.json", test::unpack_zstd("tests/data/tokenizers/switch.tokenizer.json.zst")));
    ASSERT_TRUE(
        theirs_.LoadFromSerializedProto(test::unpack_zstd("tests/data/tokenizers/switch.spiece.model.zst"))
            .ok());
  }
  void expect_same(const std::string& text) const {
    std::vector<int> expected;
    ASSERT_TRUE(theirs_.Encode(text, &expected).ok());
    EXPECT_EQ(ours_->encode(text, AddSpecial::kNo), expected) << text;
  }
  std::unique_ptr<Tokenizer> ours_;
  sentencepiece::SentencePieceProcessor theirs_;
};

TEST_F(SentencePieceOracle, PlainTexts) {
  for (const char* const text :
       {"", "Hello, world!", "translate English to German: The house is wonderful.", "  two  spaces ",
        "Straße, naïve café, œuvre", "Ein Mann ging über die Brücke.", "C'est déjà l'été.",
        "În România, ţările şi oraşele", "Привет, мир", "日本語", "ﬁne ½ ① ² ™ …", "ａｂｃ１２３", "😀 a 中 b",
        "x=3.14159, y<=2e-8; f(x)->{z}"}) {
    expect_same(text);
  }
}

TEST_F(SentencePieceOracle, RandomWords) {
  const std::uint64_t seed = 20240612;
  std::mt19937_64 random(seed);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int words = 1 + static_cast<int>(random() % 8); words > 0; --words) {
      for (int n = 1 + static_cast<int>(random() % 12); n > 0; --n) {
        constexpr const char* kOther[] = {"é", "ß", "ț", "œ", "ü", "Ж", "中", "½",
                                          "ﬁ", "'", "-", ".", "’", "“", "€"};
        if (random() % 8 == 0)
          text += kOther[random() % std::size(kOther)];
        else
          text += static_cast<char>('!' + random() % ('~' - '!' + 1));
      }
      if (words > 1) text += ' ';
    }
    SCOPED_TRACE(seed);
    expect_same(text);
  }
}

}  // namespace
}  // namespace sluice::tokenizer
#endif
