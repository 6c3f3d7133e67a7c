#include "base/wrapped_text.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace sluice {
namespace {

TEST(Breakable, HasABlankBehindEachComma) {
  EXPECT_EQ(breakable("a:b=1,c=2"), "a:b=1, c=2");
  EXPECT_EQ(breakable(""), "");
}

TEST(WrappedText, BreaksAtBlanksAndNeverInsideAWord) {
  EXPECT_EQ(wrapped_text("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrapped_text("one two three", 8), "one two\nthree");
  EXPECT_EQ(wrapped_text("one two three", 13), "one two three");
  EXPECT_EQ(wrapped_text("a incomprehensible b", 5), "a\nincomprehensible\nb");
  EXPECT_EQ(wrapped_text("", 10), "");
}

TEST(WrappedText, KeepsSeveralBlanksBetweenWordsOfOneLine) {
  EXPECT_EQ(wrapped_text("a  b   c", 8), "a  b   c");
  EXPECT_EQ(wrapped_text("a  b   c", 7), "a  b\nc");
  EXPECT_EQ(wrapped_text("a  b   c", 3), "a\nb\nc");
  EXPECT_EQ(wrapped_text("a  1 MiB", 8), "a  1 MiB");
  EXPECT_EQ(wrapped_text("a  1 MiB", 7), "a\n1 MiB");
  EXPECT_EQ(wrapped_text("a \n b ", 8), "a\nb");
}

TEST(WrappedText, IndentsAllLinesButTheFirst) {
  EXPECT_EQ(wrapped_text("one two three four", 12, 4, 4), "one two\n    three\n    four");
  EXPECT_EQ(wrapped_text("one\ntwo three", 6, 0, 2), "one\n  two\n  three");
}

TEST(WrappedText, KeepsNumbersAndTheirUnitsTogether) {
  EXPECT_EQ(wrapped_text("peak 39.9 MiB, of 40 MiB", 10), "peak\n39.9 MiB,\nof 40 MiB");
  EXPECT_EQ(wrapped_text("p 6.51 µs; rest", 7), "p\n6.51 µs;\nrest");
  EXPECT_EQ(wrapped_text("layer 3 steps", 7), "layer 3\nsteps");
}

TEST(WrappedText, KeepsLettersAndTheirNumbersAndFlagsAndTheirValuesTogether) {
  EXPECT_EQ(wrapped_text("C 0 B, S 0 B, E 28 KiB", 16), "C 0 B, S 0 B,\nE 28 KiB");
  EXPECT_EQ(wrapped_text("S 0.25, E 0.75", 10), "S 0.25,\nE 0.75");
  EXPECT_EQ(wrapped_text("Plan B or a 4", 11), "Plan B or a\n4") << "a small letter is a word";
  EXPECT_EQ(wrapped_text("give (`--tokens N`) a number", 13), "give\n(`--tokens N`)\na number");
  EXPECT_EQ(wrapped_text("give --tokens N, or more", 14), "give\n--tokens N, or\nmore");
  EXPECT_EQ(wrapped_text("--quiet or not", 9), "--quiet\nor not");
}

TEST(WrappedText, CountsCharactersAndNotBytes) {
  EXPECT_EQ(text_columns("±µ·"), 3u);
  EXPECT_EQ(wrapped_text("µµµ µµµ", 7), "µµµ µµµ");
  EXPECT_EQ(wrapped_text("µµµ µµµ", 6), "µµµ\nµµµ");
}

TEST(WrappedText, KeepsEveryWordAtEveryWidth) {
  const std::string text = "peak 39.9 MiB of 40.00 MiB, and what a longer row says besides\nin two lines";
  for (std::size_t columns = 1; columns < 90; ++columns) {
    std::istringstream words(text), lines(wrapped_text(text, columns, 0, 3));
    for (std::string word, kept; words >> word;) {
      ASSERT_TRUE(lines >> kept) << columns;
      EXPECT_EQ(kept, word) << columns;
    }
    std::istringstream again(wrapped_text(text, columns, 0, 3));
    for (std::string line; std::getline(again, line);) {
      const std::string words = line.substr(line.find_first_not_of(' '));
      const bool one = words.find(' ') == std::string::npos || words == "39.9 MiB" || words == "40.00 MiB,";
      EXPECT_TRUE(line.size() <= columns || one) << columns << ": " << line;
    }
  }
}

TEST(WrappedText, RowsOfReportsStandBelowTheirNameWhereItIsNarrow) {
  EXPECT_EQ(report_row("memory", "peak 1 MiB of 2 MiB", 80), "  memory            peak 1 MiB of 2 MiB\n");
  EXPECT_EQ(report_row("memory", "peak 1 MiB of 2 MiB", 50), "  memory\n      peak 1 MiB of 2 MiB\n");
  EXPECT_EQ(report_row("", "dense 1 MiB", 80), "                    dense 1 MiB\n");
  EXPECT_EQ(report_row("", "dense 1 MiB", 50), "      dense 1 MiB\n");
}

}  // namespace
}  // namespace sluice
