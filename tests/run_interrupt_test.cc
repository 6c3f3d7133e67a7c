// Ctrl-C while `run` generates.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "packed_model.h"

namespace {

using sluice::program::kModel;
using sluice::program::Outcome;
using sluice::program::PackedModelTest;
using sluice::program::Running;

class RunInterrupt : public PackedModelTest {};

TEST_F(RunInterrupt, CtrlCEndsAGenerationWithItsStatistics) {
  Running program({"run", store(), "-p", "The old king", "-n", "100000", "--temp", "0", "--ignore-eos"});
  ASSERT_NE(program.read(), "");  // the text has begun
  program.interrupt();
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 130);
  for (const char* row : {"generated", "(interrupted)", "experts", "disk"})
    EXPECT_NE(outcome.out.find(row), std::string::npos) << outcome.out;
}

// One interruption is for all sequences.
TEST_F(RunInterrupt, CtrlCEndsAllSequencesOfABatch) {
  Running program({"run", store(), "-p", "The old king", "-p", "Once", "-p", "A", "-n", "4000", "--temp", "0",
                   "--ignore-eos", "--json"});
  // The program generates by then, or still loads: the answer is the same.
  std::this_thread::sleep_for(std::chrono::seconds(2));
  program.interrupt();
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 130);
  std::size_t interrupted = 0;
  const std::string reason = "\"stop_reason\":\"interrupted\"";
  for (std::size_t at = 0; (at = outcome.out.find(reason, at)) != std::string::npos; ++at) ++interrupted;
  EXPECT_EQ(interrupted, 3u) << outcome.out;
}

TEST_F(RunInterrupt, CtrlCBeforeAnyTextPrintsNothing) {
  std::string prompt = "1";
  for (int i = 0; i < 4000; ++i) prompt += ",7";
  Running program({"run", store(), "--tokens", prompt, "-n", "5", "-q", "--threads", "1"});
  program.interrupt();
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.out, "");
}

// The file that -o names always holds a whole answer: an interrupted run leaves the previous one.
TEST_F(RunInterrupt, AnInterruptedRunWritesNoAnswer) {
  const std::string out = file("answer.txt");
  std::ofstream(out) << "an earlier answer";
  Running program({"run", kModel, "-p", "Once", "-n", "4000", "--ignore-eos", "--temp", "0", "--isa",
                   "scalar", "--threads", "1", "-o", out});
  ASSERT_FALSE(program.read().empty());  // the run is under way
  program.interrupt();
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 130) << "it was finished before the signal came";
  EXPECT_NE(outcome.out.find(out + ": interrupted; the answer is not written"), std::string::npos)
      << outcome.out;
  std::ifstream kept(out);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), "an earlier answer");
}

}  // namespace
