#include "base/shown_text.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sluice {
namespace {

TEST(ShownText, WhatSteersATerminalIsEscaped) {
  const struct {
    std::string_view text, on_one_line, on_lines;
  } cases[] = {
      {"", "", ""},
      {"plain – text", "plain – text", "plain – text"},
      {"a\x1b[2J", "a\\x1b[2J", "a\\x1b[2J"},                   // clears the screen
      {"a\x1b]0;b\x07", "a\\x1b]0;b\\x07", "a\\x1b]0;b\\x07"},  // renames the window
      {"a\rb", "a\\x0db", "a\\x0db"},                           // writes over the line
      {"a\b\x7f", "a\\x08\\x7f", "a\\x08\\x7f"},
      {"\xc2\x9b", "\\xc2\\x9b", "\\xc2\\x9b"},                // U+009B begins a command, too
      {"\xe2\x80\xae", "\\xe2\\x80\\xae", "\\xe2\\x80\\xae"},  // U+202E turns the line
      {"\xff", "\\xff", "\\xff"},
      {"a\n\tb\n", "a\\x0a\\x09b\\x0a", "a\n\tb\n"},
      {"\n\x1bM\n", "\\x0a\\x1bM\\x0a", "\n\\x1bM\n"},
  };
  for (const auto& [text, on_one_line, on_lines] : cases) {
    EXPECT_EQ(escaped_text(text), on_one_line);
    EXPECT_EQ(escaped_lines(text), on_lines);
    EXPECT_EQ(escaped_lines(on_lines), on_lines);
  }
}

}  // namespace
}  // namespace sluice
