// Reasoning and answer are told apart in the same way however the text is cut.
#include "tokenizer/chat/reasoning.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace sluice::tokenizer {
namespace {

using Pieces = std::vector<AnswerPiece>;
constexpr AnswerPart kThought = AnswerPart::kReasoning, kSaid = AnswerPart::kContent;

// Neighbours of one part as one piece.
void join(Pieces& all, const Pieces& more) {
  for (const AnswerPiece& piece : more) {
    EXPECT_FALSE(piece.text.empty());
    if (!all.empty() && all.back().part == piece.part)
      all.back().text += piece.text;
    else
      all.push_back(piece);
  }
}

Pieces split(const std::string& family, const std::string& prompt, const std::vector<std::string>& text) {
  ReasoningSplitter splitter(reasoning_marks(family), prompt);
  Pieces all;
  for (const std::string& part : text) join(all, splitter.append(part));
  join(all, splitter.finish());
  return all;
}

struct Case {
  std::string family, prompt, text;
  Pieces expected;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {"{# none #}", "", "a <think>b</think> c", {{kSaid, "a <think>b</think> c"}}},
      {"<think>", "", "plain, \n", {{kSaid, "plain, \n"}}},
      {"<think>",
       "",
       "<think>\nOne.\n\nTwo.\n</think>\n\nThree. ",
       {{kThought, "One.\n\nTwo."}, {kSaid, "Three. "}}},
      {"</think>", "assistant\n<think>\n", "One.</think>Two.", {{kThought, "One."}, {kSaid, "Two."}}},
      {"<think>", "<think>\n\n</think>\n\n", "Two.", {{kSaid, "Two."}}},
      {"<think>", "<think>", "never ends \n", {{kThought, "never ends"}}},
      {"<think>", "", "1 <thin", {{kSaid, "1 <thin"}}},
      {"<think>", "", "<<think>x</think>", {{kSaid, "<"}, {kThought, "x"}}},
      {"<think>", "", "<think> </think>", {}},
      {"<think>", "", "</think>stays", {{kSaid, "</think>stays"}}},
      {"[THINK]", "", "[THINK]a[/THINK]b", {{kThought, "a"}, {kSaid, "b"}}},
      {"<|channel|>",
       "<|start|>assistant",
       "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
       {{kThought, "Hm."}, {kSaid, "Yes."}}},
      {"<|channel|>", "", "<|channel|>final<|message|>Yes.", {{kSaid, "Yes."}}},
  };
  return kCases;
}

TEST(Reasoning, IsToldFromTheAnswer) {
  for (const Case& one : cases())
    EXPECT_EQ(split(one.family, one.prompt, {one.text}), one.expected) << one.text;
}

TEST(Reasoning, IsTheSameInPieces) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.text);
    std::vector<std::string> bytes;
    for (const char byte : one.text) bytes.emplace_back(1, byte);
    EXPECT_EQ(split(one.family, one.prompt, bytes), one.expected);
    for (std::size_t cut = 0; cut <= one.text.size(); ++cut)
      EXPECT_EQ(split(one.family, one.prompt, {one.text.substr(0, cut), one.text.substr(cut)}), one.expected)
          << cut;
  }
}

// What was seen so far is never longer held back than a mark is.
TEST(Reasoning, ComesAtOnce) {
  ReasoningSplitter splitter(reasoning_marks("<think>"), "");
  EXPECT_EQ(splitter.append("Hello <"), (Pieces{{kSaid, "Hello "}}));
  EXPECT_EQ(splitter.append("b> "), (Pieces{{kSaid, "<b> "}}));
  EXPECT_EQ(splitter.append("<think>so"), (Pieces{{kThought, "so"}}));
}

// Random texts of marks and parts of marks: cut anywhere alike, and no letter is lost.
TEST(Reasoning, RandomTextsAreTheSameInPieces) {
  const std::vector<std::string> words = {"<think>", "</think>", "<think", "</", ">", "<", " ", "\n", "word"};
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::string text, letters, found;
    for (std::uint64_t count = random() % 12; count > 0; --count) text += words[random() % words.size()];
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < text.size();) {
      parts.push_back(text.substr(at, 1 + random() % 5));
      at += parts.back().size();
    }
    const Pieces whole = split("<think>", "", {text});
    EXPECT_EQ(split("<think>", "", parts), whole) << text;
    for (const AnswerPiece& piece : whole) found += piece.text;
    const auto count = [](const std::string& in) {
      std::size_t times = 0;
      for (std::size_t at = 0; (at = in.find("word", at)) != std::string::npos; ++at) ++times;
      return times;
    };
    EXPECT_EQ(count(found), count(text));
  }
}

}  // namespace
}  // namespace sluice::tokenizer
