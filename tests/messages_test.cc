// Errors, warnings and notes on standard error: broken between words on a terminal, one line elsewhere, and
// never with bytes of others that steer a terminal or pass for a flag.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/files/scratch_directory.h"
#include "base/shown_text.h"
#include "base/wrapped_text.h"
#include "bundled_model.h"
#include "source_text.h"
#include "terminal.h"

namespace messages_test {
namespace {

using sluice::text_columns;
using sluice::program::kModel;
using sluice::program::lines_shown;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::program::run_on_terminal;
using sluice::testing::ScratchDirectory;

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
  return all;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream source(text);
  std::vector<std::string> words;
  for (std::string word; source >> word;) words.push_back(word);
  return words;
}

std::string quoted(const std::vector<std::string>& words) { return "'" + joined(words, "' '") + "'"; }

// One form for all commands: "WHERE: interrupted; what is left". A device's own events, which no user sees,
// are given up for other reasons, too.
TEST(Interruption, IsWordedInOnePlace) {
  const std::string made = "Error(ErrorKind::kInterrupted,", form = "src/base/stop_request.h";
  bool has_form = false;
  const auto wanted = [](const std::filesystem::path& path) {
    const std::string name = path.filename().string();
    return (name.ends_with(".cc") || name.ends_with(".h")) && !name.ends_with("_test.cc") &&
           path.string().find("/src/device/") == std::string::npos;
  };
  sluice::testing::each_source(
      {"src", "apps"}, wanted, [&](const std::string& path, const std::string& text) {
        EXPECT_EQ(text.find(made), std::string::npos) << path << " does not use interrupted_error()";
        has_form |= path == form && text.find("{ErrorKind::kInterrupted,") != std::string::npos;
      });
  EXPECT_TRUE(has_form) << form;
}

// Commands that say something on standard error, and nothing on standard output.
class Messages : public ::testing::Test {
 protected:
  std::vector<std::vector<std::string>> commands() {
    const std::string store = directory_.file("a.sluice"), trace = directory_.file("cut-off.trace");
    if (!std::filesystem::exists(store)) {
      EXPECT_EQ(run("pack " + kModel + " -q -o " + store).code, 0);
      std::filesystem::resize_file(store + "/dense.bin", 100);
      EXPECT_EQ(run("trace " + kModel + " -q --tokens 1,2 -n 4 -o " + trace).code, 0);
      std::filesystem::resize_file(trace, std::filesystem::file_size(trace) - 5);
    }
    const std::string long_path = "/no/such/directory/whose/name/is/longer/than/the/terminal/is/wide/model";
    return {
        {"run", long_path, "-p", "a"},
        {"run", kModel, "-p", "a", "--tokens", "1"},
        {"run", kModel, "-p", "a", "--capacity", "100"},
        {"run", kModel, "-p", "a", "--cache", "belady"},
        {"simulate", "--trace", "x", "--cache", "lru", "--capacity", "4", "--prefill", "3"},
        {"verify", store, "-q"},
        {"forward", kModel, "--tokens", "1,2", "-o", directory_.file("logits.npy"), "--memory", memory(40)},
        {"run", kModel, "-q", "-p", "Once", "-n", "0", "--temp", "0", "-o", long_path},
    };
  }
  std::string cut_off_trace() { return directory_.file("cut-off.trace"); }
  ScratchDirectory directory_;
};

TEST_F(Messages, AreBrokenBetweenWordsOnATerminal) {
  std::size_t broken = 0, seen = 0;
  for (const std::vector<std::string>& words : commands()) {
    const Outcome elsewhere = run(quoted(words));
    for (const unsigned short columns : {40, 50, 80, 200}) {
      const auto terminal = run_on_terminal(words, "xterm", columns);
      if (!terminal) GTEST_SKIP() << "TERMINALS CANNOT BE MADE HERE: lines of messages are not checked";
      EXPECT_EQ(terminal->code, elsewhere.code);
      ++seen;
      for (const std::string& line : lines_shown(terminal->out)) {
        const bool one_word = words_of(line).size() == 1;
        EXPECT_TRUE(text_columns(line) <= columns || one_word) << columns << ": " << line;
        if (line.starts_with("  ")) ++broken;
      }
      if (columns == 200) continue;  // progress stands beside notes
      const std::string shown = joined(words_of(joined(lines_shown(terminal->out), "\n")), " ");
      const std::string said = joined(words_of(elsewhere.err), " ");
      EXPECT_NE(shown.find(said), std::string::npos) << columns << "\n" << shown << "\n" << said;
    }
  }
  EXPECT_EQ(seen, 4 * commands().size());
  EXPECT_GT(broken, seen);
}

TEST_F(Messages, AreOneLineElsewhereWhateverTheColumns) {
  for (const std::vector<std::string>& words : commands()) {
    const Outcome usual = run(quoted(words));
    const Outcome narrow = sluice::program::run_command("COLUMNS=40 '" SLUICE_PROGRAM "' " + quoted(words));
    EXPECT_EQ(narrow.err, usual.err);
    std::istringstream lines(usual.err);
    for (std::string line; std::getline(lines, line);)
      EXPECT_TRUE(line.starts_with("sluice: ") || line.starts_with("wrote ")) << line;
    EXPECT_NE(usual.err, "") << quoted(words);
  }
}

TEST_F(Messages, WarningsAreBrokenToo) {
  commands();
  const std::vector<std::string> words = {"simulate",   "--trace", cut_off_trace(), "--cache", "lru",
                                          "--capacity", "4"};
  const auto terminal = run_on_terminal(words, "xterm", 40);
  if (!terminal) GTEST_SKIP() << "TERMINALS CANNOT BE MADE HERE: lines of warnings are not checked";
  EXPECT_NE(terminal->out.find("sluice: warning:\r\n  " + cut_off_trace() + "\r\n  was cut off; its last"),
            std::string::npos)
      << terminal->out;
  EXPECT_NE(
      run(quoted(words)).err.find("sluice: warning: " + cut_off_trace() + " was cut off; its last record"),
      std::string::npos);
}

// Bytes that once stood for a flag in texts of ours, those that begin a terminal's commands, a line break.
constexpr const char* kForeign =
    "a\x1e"
    "aa\x1f\x1b[31m\n\xff\xc2\x9b";
constexpr const char* kShown = "a\\x1eaa\\x1f\\x1b[31m\\x0a\\xff\\xc2\\x9b";

bool steers(const std::string& text) {
  return std::ranges::any_of(text, [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == '\x7f'; });
}

TEST_F(Messages, ShowForeignBytesEscaped) {
  commands();
  const std::string foreign = kForeign, directory = directory_.file(foreign);
  std::filesystem::create_directory(directory);
  std::filesystem::copy_file(cut_off_trace(), directory + "/a.trace");
  std::ofstream(directory + "/config.json") << "{";
  const std::string missing = directory + "/no";
  const std::vector<std::vector<std::string>> calls = {
      {foreign},
      {"run", foreign, "-p", "a"},
      {"run", missing, "-p", "a"},
      {"run", "-m", foreign, "-p", "a"},
      {"run", directory, "-p", "a"},
      {"run", kModel, foreign, "-p", "a"},
      {"run", kModel, "-p", "a", "--" + foreign},
      {"run", kModel, "-p", "a", "--memory", foreign},
      {"run", kModel, "-p", "a", "-n", foreign},
      {"run", kModel, "-p", "a", "--seed", foreign},
      {"run", kModel, "-p", "a", "--preset", foreign},
      {"run", kModel, "-p", "a", "--cache", foreign},
      {"run", kModel, "-p", "a", "--device", foreign},
      {"run", kModel, "-p", "a", "--profile", missing},
      {"run", kModel, "-p", "a", "-n", "0", "--temp", "0", "-q", "-o", missing + "/b"},
      {"run", kModel, "--tokens", foreign},
      {"run", kModel, "-f", missing},
      {"run", kModel, "-p", "a", "--temp", foreign, "--temp", "1"},
      {"tokenize", missing, "-p", "a"},
      {"tokenize", directory + "/config.json", "-p", "a"},
      {"detokenize", missing, "--tokens", "1"},
      {"eval", kModel, "-f", missing},
      {"plan", missing},
      {"inspect", directory},
      {"verify", directory},
      {"unpack", missing, "-o", directory + "/b"},
      {"pack", missing, "-o", directory + "/b"},
      {"pack", kModel, "-o", missing + "/b"},
      {"quantise", missing, "-o", directory + "/b"},
      {"calibrate", missing, "--reference", kModel, "-f", kModel + "/eval.txt"},
      {"synth", directory + "/config.json", "-o", directory + "/b"},
      {"compare", kModel, "-p", "a", "--preset", foreign},
      {"reproduce", foreign},
      {"lab", foreign},
      {"lab", "evict", "-f", missing},
      {"doctor", missing},
      {"simulate", "--trace", missing, "--cache", "lru", "--capacity", "4"},
      {"simulate", "--trace", directory + "/a.trace", "--cache", foreign, "--capacity", "4"},
      {"simulate", "--trace", directory + "/a.trace", "--cache", "lru", "--capacity", "4"},  // a warning
      {"simulate", "--trace", directory + "/a.trace", "--machine", foreign, "--memory-experts", "1MiB"},
      {"forward", kModel, "--tokens", "1", "-o", directory + "/logits.npy", "--memory",
       memory(40)},  // a note
      {"trace", kModel, "--tokens", "1", "-o", missing + "/b"},
      {"profile", missing},
  };
  for (const std::vector<std::string>& words : calls) {
    const Outcome outcome = run(quoted(words));
    const std::string call = sluice::escaped_text(quoted(words));
    EXPECT_FALSE(steers(outcome.out + outcome.err)) << call << "\n" << outcome.out << outcome.err;
    const bool once = std::ranges::count(outcome.err, '\n') == 1;
    EXPECT_TRUE(once) << call << "\n" << outcome.err;
    const bool escaped = outcome.err.find(kShown) != std::string::npos;
    EXPECT_TRUE(escaped) << call << "\n" << outcome.err;
  }
  EXPECT_GT(calls.size(), 40u);
}

}  // namespace
}  // namespace messages_test
