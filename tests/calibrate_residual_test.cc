// A residual is measured, kept, found and followed, and one of another model is refused. Through the program.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/json/json.h"
#include "packed_model.h"

namespace {

namespace fs = std::filesystem;
using sluice::Json;
using sluice::program::content_of;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::PackedModelTest;
using sluice::program::run;
using sluice::program::run_json;

const std::string kText = " --residual -f " + kModel + "/eval.txt --tokens 1500 --ctx 100 ";
const std::string kDevice = " --device emulated:link=inf,compute=inf,latency=0us --placement device";

class CalibrateResidual : public PackedModelTest {
 protected:
  static std::string measured() {
    const std::string path = file("residual.bin");
    if (!fs::exists(path)) run_json("calibrate " + kModel + kText + "-o " + path);
    return path;
  }
  static void expect_refused(const std::string& command, const std::string& why) {
    const Outcome outcome = run(command);
    EXPECT_NE(outcome.code, 0) << command;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << command << "\n" << outcome.err;
  }
};

TEST_F(CalibrateResidual, AStoreAndItsDirectoryHaveTheSame) {
  const std::string packed = file("kept.sluice");
  fs::copy(store(), packed, fs::copy_options::recursive);
  const Json of_directory = run_json("calibrate " + kModel + kText + "-o " + file("again.bin")),
             of_store = run_json("calibrate " + packed + kText);
  EXPECT_EQ(of_directory, of_store);
  EXPECT_EQ(of_store.at("layers").size(), 5u);
  EXPECT_EQ(of_store.at("averaged"), 1200);
  EXPECT_EQ(of_store.at("windows"), 3);
  EXPECT_EQ(run("verify " + packed).code, 0);
  // Found by itself.
  const std::string request =
      "run " + packed + " -p 'The sea' -n 16 --temp 0 --memory " + memory(40) + " --json";
  const Json with = Json::parse(run(request + " --prefetch dali-residual").out),
             without = Json::parse(run(request + " --prefetch none").out),
             chosen = Json::parse(run(request).out);
  EXPECT_EQ(with.at("text"), without.at("text"));
  EXPECT_EQ(with.at("experts").at("prefetch").at("policy"), "dali-residual");
  int ahead = 0;  // how many were in time is up to the machine
  for (const char* const name : {"useful", "late", "wasted", "dropped"})
    ahead += with.at("experts").at("prefetch").at(name).get<int>();
  EXPECT_GT(ahead, 0);
  EXPECT_EQ(chosen.at("experts").at("prefetch").at("policy"), of_store.at("auto_prefetch"));
  // A damaged one is passed over with a warning, and named by `verify`.
  std::string bytes = content_of(packed + "/sidecar/residual.bin");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(packed + "/sidecar/residual.bin", std::ios::binary) << bytes;
  const Outcome damaged = run("run " + packed + " -p 'The sea' -n 2 --temp 0");
  EXPECT_EQ(damaged.code, 0);
  EXPECT_NE(damaged.err.find("the store's residual is passed over"), std::string::npos) << damaged.err;
  EXPECT_NE(run("verify " + packed).code, 0);
  fs::remove_all(packed);
}

TEST_F(CalibrateResidual, ServesHostAndDeviceWithTheSameText) {
  const std::string request =
      "run " + kModel + " -p 'Once upon a time' -n 24 --temp 0 --memory " + memory(40) + " --json";
  const std::string residual = " --prefetch dali-residual --residual " + measured();
  const Json none = Json::parse(run(request + " --prefetch none").out),
             host = Json::parse(run(request + residual).out),
             both = Json::parse(run(request + residual + kDevice + " --device-slots 3").out);
  EXPECT_EQ(host.at("text"), none.at("text"));
  EXPECT_EQ(both.at("text"), none.at("text"));
  EXPECT_GT(both.at("experts").at("device").at("prefetch").at("used").get<int>(), 0);
  const Json preset = Json::parse(
      run(request + " --residual " + measured() + " --device emulated --device-slots 3 --preset dali").out);
  EXPECT_EQ(preset.at("text"), none.at("text"));
  EXPECT_EQ(preset.at("experts").at("prefetch").at("policy"), "dali-residual");
}

TEST_F(CalibrateResidual, TracesRecordItForReplays) {
  const std::string trace = file("a.trace");
  const Json recorded =
      run_json("trace " + kModel + " -p 'The sea was calm' -n 12 --temp 0 --ahead --residual " + measured() +
               " -o " + trace);
  EXPECT_EQ(recorded.at("version"), 2);
  const Json replayed = run_json("simulate --trace " + trace +
                                 " --machine dali-3090 --prefetch dali-residual --device-slots 4 "
                                 "--device-cache lru --placement device");
  EXPECT_GT(replayed.at("results").at(0).at("decode").at("prefetch").at("used").get<int>(), 0);
}

TEST_F(CalibrateResidual, RefusesWhatCannotBe) {
  const std::string request = "run " + kModel + " -p Once -n 2 --residual ";
  // A model of the same shape.
  ASSERT_EQ(run("synth " + kModel + "/config.json -q --seed 3 -o " + file("other")).code, 0);
  expect_refused("forward " + file("other") + " --tokens 5,9,3 -q -o " + file("x.npy") +
                     " --prefetch dali-residual --residual " + measured(),
                 "another model");
  const std::string bytes = content_of(measured());
  std::ofstream(file("cut.bin"), std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  expect_refused(request + file("cut.bin"), "cut.bin");
  expect_refused(request + store() + "/sidecar/tokenizer.bin", "tokenizer");
  expect_refused(request + kModel + "/config.json", "not a sidecar");
  expect_refused(request + file("nothing.bin"), "nothing.bin");
  expect_refused(request + measured() + " --prefetch raw", "no effect");
  expect_refused(request + file("missing") + " --prefetch raw", "no effect");  // the file is not even opened
  expect_refused("run " + kModel + " -p Once -n 2 --prefetch dali-residual", "calibrate MODEL --residual");
  expect_refused("calibrate " + kModel + kText, "-o FILE");
  expect_refused("calibrate " + kModel + kText + "-o x --reference " + kModel, "one model");
  expect_refused("calibrate " + kModel + " --residual -f " + kModel + "/eval.txt --tokens 100 --ctx 50 -o " +
                     file("short.bin"),
                 "too short");
  EXPECT_FALSE(fs::exists(file("short.bin")));
}

}  // namespace
