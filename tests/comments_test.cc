// Comments that people can read: CONTRIBUTING.md has the rules. This test finds what a program can find: a
// sentence that begins with "Of", a banner that was cut in two, a comment behind a closing brace, a comment
// behind code that continues in the next line, and a line that is too long (clang-format breaks no comments).
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "source_text.h"

namespace {

using sluice::testing::each_source;
using sluice::testing::skip_literal;

constexpr std::size_t kColumns = 110;

// One line of a `//` comment.
struct Comment {
  std::size_t line = 0;    // from 1
  std::size_t column = 0;  // where the slashes are, from 0
  std::string code;        // what precedes it on its line, without blanks at the ends
  std::string text;        // without the slashes and blanks at the ends
  std::size_t end = 0;     // columns of the line
};

std::string trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return std::string(text);
}

// Characters, not bytes, of UTF-8.
std::size_t columns_of(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

std::vector<Comment> comments_of(std::string_view source) {
  std::vector<Comment> comments;
  std::size_t line = 1, begin = 0;
  for (std::size_t at = 0; at < source.size();) {
    if (source[at] == '\n') {
      ++line, begin = ++at;
    } else if (source.substr(at, 2) == "//") {
      const std::size_t end = std::min(source.size(), source.find('\n', at));
      comments.push_back(
          {line, columns_of(source.substr(begin, at - begin)), trimmed(source.substr(begin, at - begin)),
           trimmed(source.substr(at + 2, end - at - 2)), columns_of(source.substr(begin, end - begin))});
      at = end;
    } else if (const std::size_t end = skip_literal(source, at); end > at) {
      for (; at < std::min(end, source.size()); ++at)
        if (source[at] == '\n') ++line, begin = at + 1;
    } else {
      ++at;
    }
  }
  return comments;
}

// The fault of one comment line; `next`: the comment of the next line, if there is one. Empty: no fault.
std::string fault(const Comment& comment, const Comment* next) {
  static const std::regex of(R"((^|[.] )Of\b)"), dashes("-{4,}");
  if (std::regex_search(comment.text, of)) return "a sentence begins with \"Of\"";
  if (!comment.code.empty() && comment.text.starts_with("of ")) return "a comment begins with \"of\"";
  if (std::regex_match(comment.text, dashes)) return "a banner is cut in two";
  const bool names_its_scope = comment.text.starts_with("namespace") || comment.text.starts_with("NOLINT");
  if ((comment.code == "}" || comment.code == "};") && !names_its_scope)
    return "a comment stands behind a closing brace";
  if (comment.end > kColumns) return "the line is longer than " + std::to_string(kColumns) + " columns";
  if (!comment.code.empty() && next != nullptr && next->line == comment.line + 1 && next->code.empty() &&
      next->column == comment.column)
    return "a comment behind code goes on in the next line";
  return {};
}

TEST(Comments, CanBeRead) {
  const std::set<std::string> kinds = {".h", ".cc", ".cu"};
  std::size_t comments = 0;
  const std::size_t files = each_source(
      {"src", "apps", "bench", "tests", "tools"},
      [&](const std::filesystem::path& path) { return kinds.contains(path.extension()); },
      [&](const std::string& path, const std::string& source) {
        const std::vector<Comment> found = comments_of(source);
        comments += found.size();
        for (std::size_t i = 0; i < found.size(); ++i) {
          EXPECT_EQ(fault(found[i], i + 1 < found.size() ? &found[i + 1] : nullptr), "")
              << path << ":" << found[i].line << ": // " << found[i].text;
        }
      });
  std::printf("%zu lines of comments in %zu files\n", comments, files);
  EXPECT_GT(files, 800u);
  EXPECT_GT(comments, 7000u);
}

// What users read follows the same rule: helps, messages and labels of reports.
TEST(Comments, NoMessageBeginsWithOf) {
  std::size_t literals = 0;
  each_source(
      {"src", "apps"},
      [](const std::filesystem::path& path) {
        return path.extension() == ".h" ||
               (path.extension() == ".cc" && !path.stem().string().ends_with("_test"));
      },
      [&](const std::string& path, const std::string& source) {
        for (std::size_t at = 0; at < source.size();) {
          const std::size_t end = skip_literal(source, at);
          const std::string_view literal = std::string_view(source).substr(at, end - at);
          literals += literal.empty() ? 0 : 1;
          EXPECT_FALSE(literal.starts_with("\"Of ")) << path << ": " << literal;
          at = std::max(end, at + 1);
        }
      });
  EXPECT_GT(literals, 5000u);
}

// The test's own oracle: it must find what it is there to find, and nothing in literals.
TEST(CommentsRule, FindsEachFault) {
  const auto fault_of = [](std::string_view source) {
    const std::vector<Comment> found = comments_of(source);
    std::string all;
    for (std::size_t i = 0; i < found.size(); ++i)
      all += fault(found[i], i + 1 < found.size() ? &found[i + 1] : nullptr);
    return all;
  };
  EXPECT_EQ(fault_of("// The rest. Offered as it is, or\n// of course as it was.\nint a;  // offered\n"), "");
  EXPECT_NE(fault_of("int a;  // of the rest\n"), "");
  EXPECT_NE(fault_of("// Of the rest.\n"), "");
  EXPECT_NE(fault_of("// The rest. Of these none.\n"), "");
  EXPECT_EQ(fault_of("// ---- Banner\n"), "");
  EXPECT_NE(fault_of("// ---- Banner\n// -----------\n"), "");
  EXPECT_EQ(fault_of("}  // namespace sluice\n"), "");
  EXPECT_NE(fault_of("  }  // what it returns\n"), "");
  EXPECT_NE(fault_of("int a;  // a long\n        // story\n"), "");
  EXPECT_EQ(fault_of("int a;  // a short story\n// Another one.\n"), "");
  EXPECT_NE(fault_of("// " + std::string(kColumns, 'x') + "\n"), "");
  EXPECT_EQ(comments_of("a(\"// Of\", '\"', R\"(// Of \")\", 1'000);  // one\n").size(), 1u);
}

}  // namespace
