// Requests, budgets and files that `run` refuses, and what it says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

#include "packed_model.h"

namespace run_refusal_test {
namespace {

namespace fs = std::filesystem;
using sluice::program::content_of;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::PackedModelTest;
using sluice::program::run;

class RunRefusal : public PackedModelTest {};

// The resident set after the start differs by some pages from start to start.
TEST_F(RunRefusal, TheLeastBudgetThatARefusalStatesWorksEveryTime) {
  for (const std::string& model : {kModel, store()}) {
    const std::string request = "run " + model + " -q -p 'Once upon a time' -n 8 --temp 0 --memory ";
    const std::string refusal = run(request + "1MiB").err;
    const std::size_t at = refusal.find("at least ");
    ASSERT_NE(at, std::string::npos) << refusal;
    const std::size_t begin = at + std::string("at least ").size();
    const std::string least = refusal.substr(begin, refusal.find(' ', begin) - begin);
    for (int i = 0; i < 20; ++i) {
      const Outcome outcome = run(request + least);
      ASSERT_EQ(outcome.code, 0) << model << " " << least << ", time " << i + 1 << "\n" << outcome.err;
    }
  }
}

TEST_F(RunRefusal, ARefusedValueEndsWithWhatToDo) {
  const Outcome outcome = run("run " + store() + " -p Once --temp -1");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(
      outcome.err,
      "sluice: --temp: value out of range; expected 0 or more, found -1; `sluice run --help` explains it\n");
}

TEST_F(RunRefusal, AStoreWithoutItsManifestIsNamedSo) {
  const std::string store = file("headless.sluice");
  ASSERT_EQ(run("pack " + kModel + " -o " + store + " -q").code, 0);
  fs::remove(store + "/manifest.json");
  const Outcome outcome = run("run " + store + " -p Once -n 1");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("manifest.json: a file of the store is missing"), std::string::npos)
      << outcome.err;
}

// The store's profile is bound to the manifest, and is looked at first.
TEST_F(RunRefusal, ADamagedManifestIsToldOnce) {
  const std::string broken = file("manifest.sluice");
  fs::copy(store(), broken, fs::copy_options::recursive);
  ASSERT_EQ(run("profile " + broken + " --repeats 1 -q").code, 0);
  ASSERT_TRUE(fs::exists(broken + "/sidecar/profile.json"));
  const std::string good = content_of(broken + "/manifest.json");
  std::string flipped = good;
  flipped[good.size() - 5] ^= 1;
  for (const std::string& damaged : {flipped, good.substr(0, good.size() / 2), std::string()}) {
    std::ofstream(broken + "/manifest.json", std::ios::binary) << damaged;
    const Outcome outcome = run("run " + broken + " -p Once -n 1 --memory " + memory(40));
    EXPECT_EQ(outcome.code, 1);
    EXPECT_TRUE(outcome.err.starts_with("sluice: " + broken + "/manifest.json")) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  fs::remove_all(broken);
}

TEST_F(RunRefusal, SlicesAreForModelsThatHaveThem) {
  const Outcome refused = run("run " + kModel + " -p Once --cache slice-lru");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("--cache"), std::string::npos) << refused.err;
}

TEST_F(RunRefusal, RequestsThatMakeNoSenseAreRefusedWithNumbers) {
  const auto expect_error = [](const std::string& arguments, int code, const std::string& words) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  };
  expect_error("run " + kModel + " -p x --memory 5MiB", 1, "at least");
  expect_error("run " + kModel + " -p x --memory 5XB", 2, "--memory");
  expect_error("run " + kModel + " -p x --memory ''", 2, "--memory");
  expect_error("run " + kModel + " -p x --memory 900TiB", 1, "at most");
  expect_error("run " + kModel + " -p x --seed -1", 2, "--seed");
  expect_error("run " + kModel + " -f " + kModel + "/eval.txt -n 1 --memory 4MiB", 1,
               "too large to be tokenized");
  expect_error("eval " + kModel + " -f " + kModel + "/model.safetensors", 1, "model.safetensors at byte");
  expect_error("run " + kModel + " --tokens 1,6400 -n 1", 2, "6400");
  expect_error("run " + kModel + " --tokens 1,,2 -n 1", 2, "--tokens");
  expect_error("run " + kModel + " --tokens 1,2,3 -n 1 -c 2", 1, "3 tokens");
  expect_error("run " + kModel + " -p x -c 999999", 2, "4096");
  expect_error("run " + kModel + " -p '' -n 1", 2, "-p: the prompt has no tokens");
  expect_error("run " + kModel + " -p x --cache belady", 2, "belady");
  expect_error("run " + kModel + " -p x --cache nonsense", 2,
               "one of none, static, fifo, lru, lfu, marking, eam, zip-pools, slice-lru");
  EXPECT_EQ(run("run " + kModel + " -p x --cache nonsense").err.find("belady"), std::string::npos);
  expect_error("run /no/model -p x --cache nonsense", 2, "--cache");
  EXPECT_EQ(run("run " + kModel + " -p x --cache belady").err.find("simulate"), std::string::npos);
  expect_error("run " + kModel + " -p x --keep packed", 2, "--keep");
  expect_error("run " + kModel + " -p x --isa mips", 2, "--isa");
  expect_error("run " + kModel + " -p x --temp -1", 2, "--temp");
  expect_error("run " + kModel + " -p x -n -4", 2, "-n: ");
  expect_error("run " + kModel, 2, "--prompt");
  expect_error("run /nowhere -p x", 1, "/nowhere");
  expect_error("eval " + kModel + " -f /dev/null", 1, "too short");
  expect_error("run " + kModel + " -p x -n 1 --out /nowhere/x.txt", 1, "/nowhere");
  expect_error("run " + kModel + " -p x -n 1 --out " + directory(), 1, directory());
  expect_error("run /no/model -p x -n 1 --out /nowhere/x.txt", 1,
               "/nowhere");  // reported before the model is opened
  expect_error("forward /no/model --tokens 1 --out /nowhere/x.npy", 1, "/nowhere");
  expect_error("forward " + kModel + " --tokens 1 --out /nowhere/x.npy", 1, "/nowhere");
  expect_error("forward " + kModel + " --tokens 1 --out /dev/full/x", 1, "/dev/full");
}

TEST_F(RunRefusal, AFlippedBitInTheStoreIsAnErrorAndNeverText) {
  const std::string broken = file("broken.sluice");
  fs::copy(store(), broken, fs::copy_options::recursive);
  const std::string experts = broken + "/experts-00000.bin";
  std::fstream stream(experts, std::ios::binary | std::ios::in | std::ios::out);
  for (std::uintmax_t at = 100; at < fs::file_size(experts); at += 50000) {
    stream.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(byte);
  }
  stream.close();
  const Outcome outcome = run("run " + broken + " -p 'The old king' -n 20 --json");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("experts-00000.bin at byte"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("checksum"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace run_refusal_test
