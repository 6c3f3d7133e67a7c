// Progress on standard error: for people at a terminal, and never between them and the result.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "base/files/scratch_directory.h"
#include "bundled_model.h"
#include "terminal.h"

namespace {

using sluice::program::kModel;
using sluice::program::lines_shown;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::program::run_on_terminal;
using sluice::testing::ScratchDirectory;

// Runs that are long enough for a line to be drawn between them.
std::vector<std::string> compare_words() {
  return {"compare",  kModel,
          "--preset", "z-basic-lru,z-accelerate",
          "--runs",   "3",
          "-n",       "24",
          "-p",       "Once upon a time",
          "--memory", memory(40),
          "--isa",    "scalar",
          "-t",       "1"};
}

TEST(Progress, JsonComesWithout) {
  const ScratchDirectory directory;
  const std::string store = directory.file("m.sluice"),
                    text = directory.write("text", "Once upon a time, and so on.");
  for (const std::string& call :
       {"pack " + kModel + " -o " + store, "verify " + store,
        "unpack " + store + " -o " + directory.file("unpacked"),
        "synth " + kModel + "/config.json -o " + directory.file("synth"),
        "quantise " + kModel + " -o " + directory.file("rounded"),
        "eval " + kModel + " -f " + text + " --memory " + memory(40),
        "trace " + kModel + " --tokens 1,2 -n 4 -o " + directory.file("trace") + " --memory " + memory(40),
        "compare " + store + " --preset zipmoe --runs 2 -n 4 -p Once --memory " + memory(40)}) {
    const Outcome outcome = run(call + " --json");
    EXPECT_EQ(outcome.code, 0) << call;
    EXPECT_EQ(outcome.err, "") << call;
    EXPECT_TRUE(sluice::Json::parse(outcome.out).is_object()) << outcome.out;
  }
}

TEST(Progress, AResultBeginsBelowTheBar) {
  const std::optional<Outcome> shown =
      run_on_terminal(compare_words(), "xterm", 200);  // a table in one piece
  if (!shown) GTEST_SKIP() << "PSEUDO-TERMINALS CANNOT BE MADE HERE: what a terminal shows is not checked";
  EXPECT_EQ(shown->code, 0) << shown->out;
  const std::vector<std::string> lines = lines_shown(shown->out);
  std::size_t bars = 0, heads = 0;
  for (const std::string& line : lines) {
    bars += line.starts_with("compare [");
    heads += line.starts_with("preset ");
    EXPECT_FALSE(line.starts_with("compare ") && line.find("tok/s") != std::string::npos) << line;
  }
  EXPECT_EQ(bars, 1u) << shown->out;
  EXPECT_EQ(heads, 1u) << shown->out;
}

TEST(Progress, ALineIsOfWholeWordsInAnyWidth) {
  const std::regex whole(
      R"((compare( \[[#.]{8,24}\])?  )? *\d+%(  \d+ of \d+)?(  \d+/s)?(  \d+:\d\d (left|in all))?)");
  for (const unsigned short columns : {20, 50, 80}) {
    const std::optional<Outcome> shown = run_on_terminal(compare_words(), "xterm", columns);
    if (!shown) GTEST_SKIP() << "PSEUDO-TERMINALS CANNOT BE MADE HERE: what a terminal shows is not checked";
    std::size_t drawn = 0;
    for (std::size_t at = 0; (at = shown->out.find("\x1b[36m", at)) != std::string::npos; ++drawn) {
      at += 5;
      const std::string line = shown->out.substr(at, shown->out.find('\x1b', at) - at);
      EXPECT_TRUE(std::regex_match(line, whole)) << columns << ": \"" << line << "\"";
      EXPECT_LT(line.size(), columns);
    }
    EXPECT_GT(drawn, 1u) << shown->out;
  }
}

}  // namespace
