#include "tokenizer/gguf/gguf_patterns.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tokenizer/stages/pre_tokenizer.h"
#include "tokenizer/text/regex.h"

namespace sluice::tokenizer {
namespace {

using Pieces = std::vector<std::string>;

const GgufPatterns& row_of(std::string_view name) {
  for (const GgufPatterns& row : gguf_patterns())
    for (const std::string_view own : row.names)
      if (own == name) return row;
  throw std::out_of_range(std::string(name));
}

Pieces cut(std::string_view name, std::string_view text) {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  for (const std::string_view pattern : row_of(name).patterns)
    steps.push_back(split_pre_tokenizer(regex_pattern(pattern, std::string(name)), SplitBehavior::kIsolated,
                                        Invert::kNo));
  Pieces pieces;
  sequence_pre_tokenizer(std::move(steps))->split({text, true}, [&](const Piece& piece) {
    pieces.emplace_back(piece.text);
  });
  return pieces;
}

struct Case {
  const char* name;
  const char* text;
  Pieces pieces;
};

TEST(GgufPatterns, CutTexts) {
  const Case cases[] = {
      {"gpt-2", "She'll say  12345!\n\n x", {"She", "'ll", " say", " ", " 12345", "!", "\n\n", " x"}},
      {"gpt-2", "IT'S", {"IT", "'", "S"}},
      {"llama-bpe", "IT'S 12345!\n\n x", {"IT", "'S", " ", "123", "45", "!\n\n", " x"}},
      {"dbrx", "a(b) 1234", {"a", "(b", ")", " ", "123", "4"}},
      {"glm4", "a\tb  c", {"a", "\tb", " ", " c"}},
      {"qwen2", "IT'S 123", {"IT", "'S", " ", "1", "2", "3"}},
      {"qwen2", "e\xCC\x81t", {"e", "\xCC\x81t"}},
      {"qwen35", "e\xCC\x81t 12", {"e\xCC\x81t", " ", "1", "2"}},
      {"gpt-4o",
       "HelloWorld'LL ABc 1234 a/b//\n",
       {"Hello", "World'LL", " ABc", " ", "123", "4", " a", "/b", "//\n"}},
      {"tekken", "HelloWorld's 12", {"Hello", "World", "'s", " ", "1", "2"}},
      {"deepseek-v3", "a1234b", {"a", "123", "4", "b"}},
      {"deepseek-v3",
       "abc\xE4\xB8\xAD\xE3\x81\x82.com ?!\n",
       {"abc", "\xE4\xB8\xAD\xE3\x81\x82", ".com", " ?!\n"}},
      {"deepseek-llm", "ab 12\ncd.  ", {"ab", " ", "12", "\n", "cd", ".", "  "}},
      {"deepseek-coder", "ab 12, c\n", {"ab", " ", "1", "2", ",", " c", "\n"}},
      {"kimi-k2", "\xE4\xB8\xAD\xE6\x96\x87word Word", {"\xE4\xB8\xAD\xE6\x96\x87", "word", " Word"}},
      {"kimi-k2", "a\xE4\xB8\xAD 1234", {"a", "\xE4\xB8\xAD", " ", "123", "4"}},
      {"bailingmoe", "I'LL do 12?\n\nx", {"I", "'LL", " do", " ", "1", "2", "?\n\n", "x"}},
      {"bailingmoe", "a\n\n\nb", {"a", "\n\n\n", "b"}},
      {"smollm", "ab 12x", {"ab", " ", "1", "2", "x"}},
      {"falcon", "a+b 12345", {"a", "+", "b", " ", "123", "45"}},
  };
  for (const Case& one : cases)
    EXPECT_EQ(cut(one.name, one.text), one.pieces) << one.name << ": " << one.text;
}

TEST(GgufPatterns, EveryRowCutsAndEveryNameStandsOnce) {
  std::set<std::string_view> names;
  for (const GgufPatterns& row : gguf_patterns()) {
    EXPECT_FALSE(row.patterns.empty());
    for (const std::string_view name : row.names) EXPECT_TRUE(names.insert(name).second) << name;
    Pieces pieces = cut(row.names.front(), "One two, 3 four\n");
    std::string joined;
    for (const std::string& piece : pieces) joined += piece;
    EXPECT_EQ(joined, "One two, 3 four\n");
    EXPECT_GT(pieces.size(), 4u) << row.names.front();
  }
}

}  // namespace
}  // namespace sluice::tokenizer
