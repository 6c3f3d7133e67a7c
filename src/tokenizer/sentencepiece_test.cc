#include "tokenizer/sentencepiece_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "tokenizer/test_files.h"

namespace sluice::tokenizer::sentencepiece_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(0x80 | (value & 0x7F));
  return out + static_cast<char>(value);
}
std::string bytes_field(unsigned field, std::string_view content) {
  return varint(field << 3 | 2) + varint(content.size()) + std::string(content);
}
std::string number_field(unsigned field, std::uint64_t value) { return varint(field << 3) + varint(value); }
std::string piece(std::string_view content, unsigned type = 1) {
  return bytes_field(1, bytes_field(1, content) + std::string("\x15\0\0\0\0", 5) + number_field(3, type));
}
const std::string kBpeTrainer = bytes_field(2, number_field(3, 2));

ErrorKind kind_of(const std::string& data, const std::string& part) {
  try {
    load_sentencepiece(data, "m.model");
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("m.model"));
    EXPECT_THAT(error.what(), HasSubstr(part));
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::kUsage;
}

TEST(SentencePiece, LoadsTheSmallestModel) {
  const auto tokenizer = load_sentencepiece(
      piece("<unk>", 2) + piece("<s>", 3) + piece("a") + piece("\xE2\x96\x81") + kBpeTrainer, "m.model");
  EXPECT_THAT(tokenizer->encode("aa x a", AddSpecial::kYes), ElementsAre(1, 3, 2, 2, 3, 0, 3, 2));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{1, 3, 2, 0}, ShowSpecial::kNo), "a \xE2\x81\x87 ");
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{1, 3, 2}, ShowSpecial::kYes), "<s>a");
  EXPECT_TRUE(tokenizer->is_special(1));
  EXPECT_FALSE(tokenizer->is_special(2));
  EXPECT_EQ(tokenizer->id_of("<s>"), 1);
  EXPECT_THROW(tokenizer->decode(std::vector<TokenId>{4}, ShowSpecial::kNo), Error);
  EXPECT_THROW(tokenizer->encode("\xC0", AddSpecial::kNo), Error);
}

TEST(SentencePiece, ConfigDecidesAboutBosEosAndAddedTokens) {
  const std::string data = piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3) + piece("a") +
                           piece("\xE2\x96\x81") + kBpeTrainer;
  TokenizerConfig config;
  config.add_bos = false;
  config.add_eos = true;
  EXPECT_THAT(load_sentencepiece(data, "m", config)->encode("a", AddSpecial::kYes), ElementsAre(4, 3, 2));
  AddedToken token;
  token.content = "<x>";
  token.id = 5;
  config.added = {token};
  EXPECT_THAT(load_sentencepiece(data, "m", config)->encode("a<x>a", AddSpecial::kNo),
              ElementsAre(4, 3, 5, 4, 3));
  config.added[0].id = 3;
  EXPECT_THROW(load_sentencepiece(data, "m", config), Error);
}

TEST(SentencePiece, BrokenModelsAreErrors) {
  const std::string unk = piece("<unk>", 2);
  EXPECT_EQ(kind_of("", "not a SentencePiece model"), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of("\xFF", "the file ends inside a field"), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(std::string(11, '\xFF'), "more than ten bytes"), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of("\x0F", "unknown wire type"), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(std::string("\0\0", 2), "field number"), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of("\x08\x01", "another type"), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of("\x0A\xFF\xFF\xFF\xFF\x0F", "the file ends inside a field"), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(unk, "type that is not supported"), ErrorKind::kUnsupported);  // unigram is the default
  EXPECT_EQ(kind_of(piece("a") + kBpeTrainer, "no unknown piece"), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(unk + unk + kBpeTrainer, "twice"), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(unk + piece("<unk2>", 2) + kBpeTrainer, "two unknown"), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(unk + piece("a") + piece("a") + kBpeTrainer, "twice"), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(unk + piece("") + kBpeTrainer, "empty or too long"), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(unk + piece(std::string(9000, 'x')) + kBpeTrainer, "empty or too long"),
            ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(unk + piece("\xFF") + kBpeTrainer, "not UTF-8"), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(unk + piece("a", 7) + kBpeTrainer, "unknown type"), ErrorKind::kInvalid);
  EXPECT_EQ(
      kind_of(unk + bytes_field(1, bytes_field(1, "a") + std::string("\x15\0\0\xC0\x7F", 5)) + kBpeTrainer,
              "not a number"),
      ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(unk + piece("<0x41>", 6) + kBpeTrainer, "byte"), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(unk + piece("<0xZZ>", 6) + kBpeTrainer, "names no byte"), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(unk + bytes_field(2, number_field(3, 2) + number_field(35, 1)), "byte_fallback"),
            ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(unk + bytes_field(2, number_field(3, 2) + varint(24 << 3) + varint(1)), "suffix"),
            ErrorKind::kUnsupported);
  EXPECT_EQ(kind_of(unk + kBpeTrainer + bytes_field(3, bytes_field(2, "map")), "character map"),
            ErrorKind::kUnsupported);
}

TEST(SentencePiece, EveryPrefixOfAModelIsAnErrorOrAModel) {
  const std::string data =
      read_text_file(test::source_path("tests/data/tokenizers/synthetic/sp_collapse.model"), kMiB);
  std::size_t loaded = 0;
  for (std::size_t length = 0; length < data.size(); ++length) {
    try {
      load_sentencepiece(data.substr(0, length), "m.model")->encode("the word", AddSpecial::kYes);
      ++loaded;
    } catch (const Error& error) {
      ASSERT_NE(error.where().find("m.model"), std::string::npos);
    }
  }
  EXPECT_LT(loaded, 20u);
}

}  // namespace
}  // namespace sluice::tokenizer::sentencepiece_test
