#include "eval/tasks/python_text.h"

#include <gtest/gtest.h>

namespace sluice::eval {
namespace {

// Expected values come from Python 3.11.
TEST(PythonText, IsAsPythonHasIt) {
  EXPECT_EQ(strip(" \t\n\xC2\xA0\xE2\x80\x83 a b \x1F\xE3\x80\x80"), "a b");
  EXPECT_EQ(strip("\xE2\x80\x8B x"), "\xE2\x80\x8B x");  // U+200B is not a space
  EXPECT_EQ(rstrip(" a \xC2\x85"), " a");
  EXPECT_EQ(strip(" \n "), "");
  EXPECT_EQ(capitalize("hELLO wORLD"), "Hello world");
  EXPECT_EQ(capitalize("\xC3\xA9T\xC3\x89"), "\xC3\x89t\xC3\xA9");  // é, T, É
  EXPECT_EQ(capitalize("\xC7\x86X"), "\xC7\x85x");  // U+01C6 has a title case of its own, U+01C5
  EXPECT_EQ(capitalize(", THE man"), ", the man");
  EXPECT_EQ(capitalize(""), "");
  EXPECT_EQ(replace("a   b", "  ", " "), "a  b");
  EXPECT_EQ(replace("aaa", "aa", "b"), "ba");
  EXPECT_EQ(length("a\xC3\xA9\xF0\x9F\x98\x80"), 3u);
}

}  // namespace
}  // namespace sluice::eval
