// What becomes of standard output and standard error when nobody takes them any more: a reader that has gone,
// a full disk, a closed file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/files/scratch_directory.h"
#include "bundled_model.h"
#include "own_disk.h"

namespace {

namespace fs = std::filesystem;
using sluice::program::content_of;
using sluice::program::kModel;
using sluice::program::kNoDisks;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::program::run_command;
using sluice::program::run_on_own_disk;
using sluice::testing::ScratchDirectory;

constexpr int kFailed = 1, kReaderGone = 141;

const std::string kFull =
    "sluice: standard output: write failed, and the result is not complete; expected a file, pipe or "
    "terminal that takes all of it, found No space left on device; free some space, or choose another "
    "place\n";

const std::string kClosed =
    "sluice: standard output: the result cannot be written; expected a file, pipe or terminal that is open "
    "for "
    "writing, found one that is closed, or open for reading alone; open it, or send it to /dev/null if "
    "nobody "
    "wants it\n";

// The end of a pipe that nobody reads, for children to write to.
class DeadPipe {
 public:
  DeadPipe() {
    EXPECT_EQ(::pipe(ends_), 0);
    ::close(ends_[0]);
  }
  ~DeadPipe() { ::close(ends_[1]); }
  DeadPipe(const DeadPipe&) = delete;
  DeadPipe& operator=(const DeadPipe&) = delete;
  // As a shell names it.
  std::string name() const { return "&" + std::to_string(ends_[1]); }

 private:
  int ends_[2] = {-1, -1};
};

class StandardStreams : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new ScratchDirectory;
    ASSERT_EQ(run("pack " + kModel + " -q -o " + store()).code, 0);
    ASSERT_EQ(
        run("trace " + kModel + " -q --tokens 1,2,3 -n 4 -o " + file("a.trace") + " --memory " + memory(40))
            .code,
        0);
    std::ofstream(file("question")) << R"({"policy":"lru","capacity":2,"requests":[1,2,3,1],"seed":0})"
                                    << "\n";
    std::ofstream(file("text")) << "Once upon a time there was an old king who had three sons.";
  }
  static void TearDownTestSuite() {
    delete directory_;
    directory_ = nullptr;
  }
  static std::string file(const std::string& name) { return directory_->file(name); }
  static std::string store() { return file("fable.sluice"); }

  // Every command that is not slow by nature, as text and as JSON, and every help. What they make is "made".
  static std::vector<std::string> calls() {
    const std::string budget = " --memory " + memory(40), made = " -o " + file("made");
    std::vector<std::string> calls = {"--help",   "--version",       "help run",
                                      "lab list", "lab list --json", "lab evict -f " + file("question")};
    for (const std::string& call :
         {std::string("version"), "doctor " + directory_->path(), "inspect " + kModel,
          "tokenize " + kModel + " -p a", "detokenize " + kModel + " --tokens 1",
          "template " + kModel + " --chat-template chatml -p a",
          "run " + kModel + " -q -p Once -n 4 --temp 0" + budget,
          "run " + kModel + " -q -p Once -p A -n 4 --temp 0" + budget,
          "eval " + kModel + " -q -f " + file("text") + budget, "plan " + kModel + budget,
          "profile " + kModel + " --repeats 1" + made + budget, "verify " + store(),
          "compare " + store() + " -q --runs 1 -n 2 --preset zipmoe -p Once" + budget,
          "pack " + kModel + made, "unpack " + store() + made, "synth " + kModel + "/config.json" + made,
          "trace " + kModel + " --tokens 1,2 -n 2" + made + budget,
          "simulate --trace " + file("a.trace") + " --cache lru --capacity 4",
          "quantise " + kModel + made + " --quantiser amat"}) {
      calls.push_back(call);
      calls.push_back(call + " --json");
    }
    calls.push_back("forward " + kModel + " --tokens 1,2 --json" + made + budget);  // says nothing else
    for (const std::string command :
         {"run",    "forward",  "eval",      "profile",   "plan",       "inspect",  "pack",  "unpack",
          "verify", "quantise", "calibrate", "tokenize",  "detokenize", "template", "trace", "simulate",
          "lab",    "synth",    "compare",   "reproduce", "doctor",     "version"})
      calls.push_back(command + " --help");
    return calls;
  }

 private:
  static inline ScratchDirectory* directory_ = nullptr;
};

TEST_F(StandardStreams, AFullDiskIsOneErrorThatSaysWhatWasFound) {
  for (const std::string& call : calls()) {
    const Outcome outcome = run(call + " >/dev/full");
    EXPECT_EQ(outcome.code, kFailed) << call;
    EXPECT_TRUE(outcome.err.ends_with(kFull)) << call << "\n" << outcome.err;
    EXPECT_EQ(outcome.err.find("sluice:"), outcome.err.rfind("sluice:")) << call << "\n" << outcome.err;
    fs::remove_all(file("made"));
  }
}

TEST_F(StandardStreams, AReaderThatHasGoneEndsACommandWithoutAMessage) {
  const DeadPipe pipe;
  for (const std::string& call : calls()) {
    const Outcome outcome = run(call + " >" + pipe.name());
    EXPECT_EQ(outcome.code, kReaderGone) << call;
    EXPECT_EQ(outcome.err.find("sluice:"), std::string::npos) << call << "\n" << outcome.err;
    fs::remove_all(file("made"));
  }
}

TEST_F(StandardStreams, FilesAreMadeThoughNobodyReadsWhatIsSaidOfThem) {
  const DeadPipe pipe;
  for (const std::string& call : {"pack " + kModel, "unpack " + store(), "synth " + kModel + "/config.json",
                                  "quantise " + kModel + " --quantiser amat"}) {
    EXPECT_EQ(run(call + " -o " + file("made") + " >" + pipe.name()).code, kReaderGone) << call;
    EXPECT_TRUE(fs::exists(file("made"))) << call;
    EXPECT_FALSE(fs::exists(file("made.partial"))) << call;
    fs::remove_all(file("made"));
  }
}

// What is written at the end of long work is tried at its start: a run of 4000 tokens, a score of a long text
// and hundreds of comparisons would take the plainest code many minutes.
TEST_F(StandardStreams, AFullDiskIsToldBeforeTheWork) {
  const std::string slow = " --threads 1 --isa scalar --memory " + memory(40);
  const std::string answer = " -n 4000 --ignore-eos --temp 0" + slow;
  for (const std::string& call :
       {"run " + kModel + " -p Once" + answer + " --json", "run " + kModel + " -p Once -p A" + answer,
        "run " + kModel + " -p Once" + answer, "eval " + kModel + " -f " + kModel + "/eval.txt" + slow,
        "eval " + kModel + " -f " + kModel + "/eval.txt --json" + slow,
        "compare " + kModel + " -p Once -n 1000 --runs 1000 --preset auto" + slow,
        "trace " + kModel + " -p Once -n 4000 --ignore-eos --json -o " + file("made") + slow,
        "profile " + kModel + " --repeats 1000 --json -o " + file("made") + slow,
        "calibrate " + store() + " --residual -f " + kModel + "/eval.txt --json -o " + file("made") + slow,
        "pack " + kModel + " --json -o " + file("made"), "unpack " + store() + " --json -o " + file("made"),
        "synth " + kModel + "/config.json --json -o " + file("made"),
        "quantise " + kModel + " --json -o " + file("made"),
        "forward " + kModel + " --tokens 1,2 --json -o " + file("made") + slow}) {
    const Outcome full = run_command("timeout 30 '" SLUICE_PROGRAM "' " + call + " -q >/dev/full");
    EXPECT_EQ(full.code, kFailed) << call;
    EXPECT_EQ(full.err, kFull) << call;
    // What has begun would have left something.
    for (const char* const made : {"made", "made.partial"}) EXPECT_FALSE(fs::exists(file(made))) << call;
  }
}

// A file system of one page, which a file fills.
TEST_F(StandardStreams, AFileOnAFullDiskIsToldBeforeTheWork) {
  const std::string place = file("full");
  const auto outcome = run_on_own_disk(
      place, "size=4k",
      "head -c 4096 /dev/zero >" + place + "/page && exec timeout 30 '" SLUICE_PROGRAM "' run " + kModel +
          " -p Once -n 4000 --ignore-eos --temp 0 --threads 1 --isa scalar --json >" + place + "/result");
  if (!outcome) GTEST_SKIP() << kNoDisks;
  EXPECT_EQ(outcome->code, kFailed);
  EXPECT_EQ(outcome->err, kFull);
}

// A context of 4096 tokens takes the plainest code minutes. What -o and --decisions name is whole or is not
// there, and then one line says so.
TEST_F(StandardStreams, AGenerationEndsAtTheTextThatNobodyReads) {
  const std::string request =
      "'" SLUICE_PROGRAM "' run " + kModel +
      " -p 'Once upon a time' -n 4000 --ignore-eos --temp 0 --threads 1 --isa scalar --memory " + memory(40) +
      " -o " + file("answer") + " --decisions " + file("decisions");
  const std::string unwritten = "sluice: warning: " + file("answer") + ", " + file("decisions") +
                                ": not written, since nobody reads standard output any more\n";
  std::ofstream(file("script")) << "{ " << request << "; echo $? >" << file("code") << "; } | head -c 3\n";
  const Outcome text = run_command("sh " + file("script"));
  EXPECT_EQ(text.out.size(), 3u);
  EXPECT_EQ(text.err, unwritten);
  EXPECT_EQ(content_of(file("code")), "141\n");
  EXPECT_FALSE(fs::exists(file("answer")) || fs::exists(file("decisions")));

  const DeadPipe pipe;  // JSON is written at the end; that nobody reads it is seen before
  const Outcome json = run_command(request + " --json >" + pipe.name());
  EXPECT_EQ(json.code, kReaderGone);
  EXPECT_EQ(json.err, unwritten);
  EXPECT_FALSE(fs::exists(file("answer")) || fs::exists(file("decisions")));
}

// Space on a disk is no remedy there.
TEST_F(StandardStreams, AClosedStandardOutputIsOneErrorThatSaysThatItIsClosed) {
  std::vector<std::string> closed = {"version 1</dev/null"};
  for (const std::string& call : calls()) closed.push_back(call + " >&-");
  for (const std::string& call : closed) {
    const Outcome outcome = run(call);
    EXPECT_EQ(outcome.code, kFailed) << call;
    EXPECT_TRUE(outcome.err.ends_with(kClosed)) << call << "\n" << outcome.err;
    EXPECT_EQ(outcome.err.find("sluice:"), outcome.err.rfind("sluice:")) << call << "\n" << outcome.err;
    fs::remove_all(file("made"));
  }
}

TEST_F(StandardStreams, AnErrorBesideAFullDiskIsTheOneThatIsTold) {
  const Outcome outcome = run("run /no/such/model -p a >/dev/full");
  EXPECT_EQ(outcome.code, kFailed);
  EXPECT_NE(outcome.err.find("/no/such/model"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("standard output"), std::string::npos) << outcome.err;
}

TEST_F(StandardStreams, MessagesThatNobodyTakesChangeNothingElse) {
  const DeadPipe pipe;
  const std::string answer = " --tokens 1,2,3 -n 4 --temp 0 --memory " + memory(40);
  const std::string expected = run("run " + kModel + answer).out;
  ASSERT_NE(expected, "");
  for (const std::string& where : {std::string("/dev/full"), std::string("&-"), pipe.name()}) {
    EXPECT_EQ(run("run /no/such/model -p a 2>" + where).code, kFailed) << where;
    EXPECT_EQ(run("frobnicate 2>" + where).code, 2) << where;
    const Outcome outcome = run("run " + kModel + answer + " 2>" + where);
    EXPECT_EQ(outcome.code, 0) << where;
    EXPECT_EQ(outcome.out, expected) << where;
  }
}

// Else a write could fail unseen, or a message be written into a line of progress.
TEST(StandardStreamsSources, OneFileWritesToEachStream) {
  const std::regex elsewhere(
      R"(\b(stdout|stderr|cerr|printf|fmt::print|puts)\b|write(_text)?\(STD(OUT|ERR)_FILENO)");
  const std::vector<std::string> may = {"standard_output.cc",
                                        "standard_error.cc",
                                        "main.cc",       // opens them
                                        "interrupt.cc",  // ends at the second Ctrl-C
                                        "live_text.cc",
                                        "progress.cc",       // ask what they are
                                        "edited_lines.cc"};  // hands them to the editor
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(SLUICE_SOURCE_DIR "/apps/sluice")) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".cc") && !name.ends_with(".h")) continue;
    ++files;
    if (std::ranges::find(may, name) != may.end()) continue;
    std::istringstream lines(content_of(entry.path()));
    for (std::string line; std::getline(lines, line);) {
      const std::string code = line.substr(0, line.find("//"));
      EXPECT_FALSE(std::regex_search(code, elsewhere)) << name << ": " << line;
    }
  }
  EXPECT_GT(files, 50u);
  std::printf("%zu files\n", files);
}

}  // namespace
