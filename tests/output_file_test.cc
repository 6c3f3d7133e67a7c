// Files that commands write: whether they can be created is checked before anything is loaded, and a failure
// leaves nothing behind.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "bundled_model.h"
#include "scratch_test.h"

namespace {

namespace fs = std::filesystem;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::program::run_json;

// No process can create a file there, not even root.
const std::string kNowhere = "/proc/no-file-is-made-here";

class OutputFileTest : public sluice::testing::ScratchTest {
 protected:
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator()));
  }
};

// The model or the trace is also missing: a program that looked at it first would say so.
TEST_F(OutputFileTest, OneThatCannotBeMadeIsRefusedBeforeAnythingIsLoaded) {
  const std::string model = file("no-model"), trace = " --trace " + file("no.trace");
  for (const std::string& command :
       {"run " + model + " -p x -n 2 -o " + kNowhere, "run " + model + " -p x -n 2 --decisions " + kNowhere,
        "trace " + model + " -p x -n 2 -o " + kNowhere,
        "trace " + model + " -p x -n 2 -o " + file("a.trace") + " --decisions " + kNowhere,
        "profile " + model + " -o " + kNowhere, "forward " + model + " --tokens 1 -o " + kNowhere,
        "simulate" + trace + " --cache lru --capacity 4 --decisions " + kNowhere}) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 1) << command;
    EXPECT_NE(outcome.err.find(kNowhere), std::string::npos) << command << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find("choose another place"), std::string::npos) << outcome.err;
    EXPECT_EQ(files(), 0u) << command;
  }
}

// The model is missing, too, as above.
TEST_F(OutputFileTest, ADirectoryThatCannotBeMadeIsRefusedBeforeAnythingIsRead) {
  std::ofstream(file("old")) << "kept";
  const std::pair<std::string, std::string> places[] = {
      {kNowhere, kNowhere + ": the directory cannot be made; expected a directory that is there, where you "
                            "may write, found No such file or directory; choose another place"},
      {file("old"), file("old") + ": exists already; expected a name that nothing has, found a file"},
      {file("no/such"),
       file("no") + ": no such directory; expected a directory to write such in, found nothing"}};
  for (const auto& [place, message] : places)
    for (const std::string& command :
         {"pack " + file("no-model"), "unpack " + file("no-model"), "synth " + file("no-model/config.json"),
          "quantise " + file("no-model")}) {
      const Outcome outcome = run(command + " -o " + place);
      EXPECT_EQ(outcome.code, 1) << command;
      EXPECT_NE(outcome.err.find(message), std::string::npos) << command << "\n" << outcome.err;
      EXPECT_EQ(files(), 1u) << command;
    }
}

// A file system of 16 pages.
TEST_F(OutputFileTest, ACopyThatHasNoRoomIsToldBeforeTheWork) {
  const std::string place = file("small");
  fs::create_directory(place);
  std::ofstream(file("mount")) << "mount -t tmpfs -o size=64k none " << place << " || exit 99\n'"
                               << SLUICE_PROGRAM << "' quantise " << kModel << " -o " << place
                               << "/copy\necho $? $(ls " << place << ")\n";
  const Outcome outcome = sluice::program::run_command("unshare -rm sh " + file("mount"));
  if (outcome.code == 99 || outcome.err.starts_with("unshare"))
    GTEST_SKIP() << "FILE SYSTEMS CANNOT BE MOUNTED HERE: a small one is not checked";
  EXPECT_EQ(outcome.out, "1\n");
  EXPECT_NE(outcome.err.find("copy.partial: not enough free space; expected "), std::string::npos)
      << outcome.err;
}

TEST_F(OutputFileTest, OneThatIsThereAndIsNotReplacedIsRefusedBeforeAnythingIsLoaded) {
  std::ofstream(file("old")) << "kept";
  for (const std::string& command :
       {"run " + file("no-model") + " -p x --decisions " + file("old"),
        "trace " + file("no-model") + " -p x -o " + file("old"),
        "trace " + file("no-model") + " -p x -o " + file("new") + " --decisions " + file("old")}) {
    const Outcome outcome = run(command);
    EXPECT_NE(outcome.err.find("exists already"), std::string::npos) << command << "\n" << outcome.err;
    EXPECT_EQ(sluice::program::content_of(file("old")), "kept");
    EXPECT_EQ(files(), 1u) << command;
  }
  const Outcome outcome = run("trace " + file("no-model") + " -p x --append -o " + file("old"));
  EXPECT_NE(outcome.err.find("not a routing trace"), std::string::npos) << outcome.err;
}

TEST_F(OutputFileTest, AFailureBehindTheCheckLeavesNothing) {
  for (const std::string& command :
       {"run " + file("no-model") + " -p x -o " + file("text"),
        "trace " + file("no-model") + " -p x -o " + file("a.trace"),
        "profile " + file("no-model") + " -o " + file("a.json"),
        "reproduce zipmoe --quick --trace none --model " SLUICE_SOURCE_DIR "/tests -o " +
            file("deep/report")}) {
    EXPECT_EQ(run(command).code, 1) << command;
    EXPECT_EQ(files(), 0u) << command;
  }
  EXPECT_EQ(run("forward " + kModel + " --tokens 99999999 -o " + file("a.npy")).code, 2);
  EXPECT_EQ(files(), 0u);
}

// An error while a trace or a log is written also leaves nothing: a leftover would refuse the retry.
TEST_F(OutputFileTest, AFailedRunLeavesNoTraceAndNoLog) {
  for (const auto& [prompt, code] : {std::pair("--tokens 1,999999 -n 2", 2), std::pair("-p '' -n 2", 2)})
    for (const std::string& command :
         {"run " + kModel + " " + prompt + " --decisions " + file("log"),
          "trace " + kModel + " " + prompt + " -o " + file("a.trace") + " --decisions " + file("log")}) {
      EXPECT_EQ(run(command + " --memory " + memory(48)).code, code) << command;
      EXPECT_EQ(files(), 0u) << command;
    }
  const std::string store = file("damaged.sluice");
  const Outcome packed = run("pack " + kModel + " -q -o " + store);
  ASSERT_EQ(packed.code, 0) << packed.err;
  const std::string experts = store + "/experts-00000.bin";
  const auto size = std::filesystem::file_size(experts);
  std::filesystem::resize_file(experts, 0);
  std::filesystem::resize_file(experts, size);
  for (const std::string& command :
       {"run " + store + " --tokens 1,2 -n 2 --decisions " + file("log"),
        "trace " + store + " --tokens 1,2 -n 2 -o " + file("a.trace") + " --decisions " + file("log")}) {
    EXPECT_EQ(run(command + " --memory " + memory(48)).code, 1) << command;
    EXPECT_EQ(files(), 1u) << command;
  }
}

TEST_F(OutputFileTest, AReportsDirectoryIsTriedFirst) {
  const Outcome outcome =
      run("reproduce zipmoe --quick --trace none --model " + kModel + " -o " + kNowhere + " --quiet");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find(kNowhere), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("choose another place"), std::string::npos) << outcome.err;
}

// A store keeps its profile: if it cannot, the program says so before it measures.
TEST_F(OutputFileTest, AStoreThatCannotKeepItsProfileIsToldFirst) {
  ASSERT_EQ(run("pack " + kModel + " -q -o " + file("fable.sluice")).code, 0);
  std::filesystem::remove_all(file("fable.sluice/sidecar"));
  std::ofstream(file("fable.sluice/sidecar")) << "in the way";
  const Outcome outcome = run("profile " + file("fable.sluice") + " --repeats 1000 --memory " + memory(40));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("sidecar: no such directory"), std::string::npos) << outcome.err;
}

TEST_F(OutputFileTest, OnlyTheTextIsThereAfterARun) {
  std::ofstream(file("text")) << "old";
  EXPECT_EQ(
      run("run " + kModel + " -q --tokens 1,2,3 -n 2 --temp 0 -o " + file("text") + " --memory " + memory(40))
          .code,
      0);
  EXPECT_EQ(files(), 1u);
  EXPECT_NE(sluice::program::content_of(file("text")), "old");
}

}  // namespace
