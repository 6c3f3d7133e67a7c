// The folders whose code is easiest to make unreadable keep their files and functions short.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "source_text.h"

namespace sluice {
namespace {

constexpr std::size_t kMostLinesOfFile = 350, kMostLinesOfFunction = 60;

struct Function {
  std::size_t line, lines;  // where it begins, and how many it has
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Functions as the formatter lays them out: the closing brace stands alone, below the first line of the head,
// whose other lines are indented further. Blocks within functions are found, too, and are shorter than these.
std::vector<Function> functions_of(const std::vector<std::string>& lines) {
  std::vector<Function> functions;
  for (std::size_t end = 0; end < lines.size(); ++end) {
    const std::size_t indent = lines[end].find_first_not_of(' ');
    if (indent == std::string::npos || lines[end].substr(indent) != "}") continue;
    for (std::size_t head = end; head-- > 0;) {
      if (lines[head].find_first_not_of(' ') != indent || lines[head][indent] == '#') continue;
      functions.push_back({head + 1, end - head + 1});
      break;
    }
  }
  return functions;
}

TEST(Sizes, ALongFunctionIsSeen) {
  std::string text =
      "namespace a {\nclass C {\n  struct D {\n    int g() {\n      return 1;\n    }\n  };\n};\n\nint f(int "
      "x,\n"
      "      int y) {\n";
  for (int i = 0; i < 60; ++i) text += "  x += y;\n";
  text += "}\n\n}  // namespace a\n";
  const std::vector<Function> found = functions_of(lines_of(text));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].lines, 3u);
  EXPECT_EQ(found[1].line, 10u);
  EXPECT_EQ(found[1].lines, 63u);
}

TEST(Sizes, EngineAndFetchKeepFilesAndFunctionsShort) {
  std::size_t functions = 0;
  const std::size_t files = testing::each_source(
      {"src/engine", "src/fetch"},
      [](const std::filesystem::path& path) {
        const std::string stem = path.stem();
        return (path.extension() == ".cc" || path.extension() == ".h") && !stem.ends_with("_test");
      },
      [&](const std::string& path, const std::string& text) {
        const std::vector<std::string> lines = lines_of(text);
        EXPECT_LE(lines.size(), kMostLinesOfFile) << path << ": make two files, each with a noun of its own";
        for (const Function& function : functions_of(lines)) {
          ++functions;
          EXPECT_LE(function.lines, kMostLinesOfFunction) << path << ":" << function.line << ": divide it";
        }
      });
  EXPECT_GT(files, 100u);
  EXPECT_GT(functions, 500u);
}

// What a caller of the engine must know: its public functions, overloads of one name counted each.
TEST(Sizes, TheEngineHasFewCalls) {
  constexpr std::size_t kMostCalls = 20;
  std::vector<std::string> calls;
  testing::each_source(
      {"src/engine"}, [](const std::filesystem::path& path) { return path.filename() == "engine.h"; },
      [&](const std::string&, const std::string& text) {
        const std::size_t begin = text.find(" public:"), end = text.find(" private:");
        ASSERT_LT(begin, end);
        const std::regex call(R"(\n  (?!//)[\w:<>&*, ]*[ &*]([a-z]\w*)\()");
        const std::string part = text.substr(begin, end - begin);
        for (auto it = std::sregex_iterator(part.begin(), part.end(), call); it != std::sregex_iterator();
             ++it)
          calls.push_back((*it)[1]);
      });
  EXPECT_LE(calls.size(), kMostCalls);
  for (const char* known : {"checkpoint", "observe", "new_sequence", "begin", "step", "decode"})
    EXPECT_NE(std::ranges::find(calls, known), calls.end()) << known;
}

}  // namespace
}  // namespace sluice
