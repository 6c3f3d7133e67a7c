// A second unit beside the host: the program's text and logits stay the same, its memory has a budget, and
// what cannot be is refused.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json/json.h"
#include "packed_model.h"

namespace {

using sluice::Json;
using sluice::program::content_of;
using sluice::program::kModel;
using sluice::program::Outcome;
using sluice::program::PackedModelTest;
using sluice::program::run;

class RunDevice : public PackedModelTest {};

const std::string kUnpaced = " --device emulated:link=inf,compute=inf,latency=0us";

TEST_F(RunDevice, TheTextIsThatOfTheHostAlone) {
  for (const std::string& model : {kModel, store()}) {
    const std::string request = "run " + model + " -p 'Once upon a time' -n 24 --temp 0 --memory 48MiB";
    const Outcome host = run(request);
    ASSERT_EQ(host.code, 0) << host.err;
    for (const char* const how :
         {"", " --placement device --device-slots 0",
          " --placement greedy --device-cache lru --device-slots 4", " --placement cpu",
          " --placement layer-split --device-cache static-layers --device-memory 4MiB"}) {
      const Outcome both = run(request + kUnpaced + how);
      ASSERT_EQ(both.code, 0) << how << "\n" << both.err;
      EXPECT_EQ(both.out, host.out) << model << how;
      EXPECT_NE(both.err.find("device            emulated"), std::string::npos) << both.err;
    }
  }
}

TEST_F(RunDevice, LogitsAreEqualByteForByte) {
  const std::string request = "forward " + kModel + " --tokens 5,9,301,77,2,1000,44 --prefill 3 -q -o ";
  ASSERT_EQ(run(request + file("host.npy")).code, 0);
  ASSERT_EQ(run(request + file("both.npy") + kUnpaced + " --placement device --device-slots 2").code, 0);
  EXPECT_EQ(content_of(file("both.npy")), content_of(file("host.npy")));
}

TEST_F(RunDevice, TheReportCountsWhatWasAsked) {
  const Outcome outcome = run("run " + kModel + " -p Once -n 12 --temp 0 --json --device-slots 0" + kUnpaced +
                              " --placement device");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  const Json& placement = json.at("placement");
  EXPECT_EQ(placement.at("host"), 0);
  EXPECT_EQ(placement.at("device"), json.at("experts").at("accesses"));
  EXPECT_EQ(placement.at("streamed"), placement.at("device"));  // there are no slots
  EXPECT_EQ(json.at("experts").at("device").at("hits"), 0);
  const Json& device = json.at("device");
  EXPECT_LE(device.at("memory").at("peak"), device.at("memory").at("budget"));
  EXPECT_GT(device.at("link").at("demand"), 0);
  EXPECT_GT(device.at("link").at("result"), 0);
  EXPECT_EQ(device.at("link").at("prefetch"), 0);
  EXPECT_EQ(device.at("valid_times"), false);  // nothing is paced
}

TEST_F(RunDevice, RefusesWhatCannotBe) {
  const std::string request = "run " + kModel + " -p Once -n 2 ";
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"--device cuda", "--device"},
      {"--device emulated --device-memory 100KiB", "--device-memory 1MiB or more"},
      {"--device emulated --device-slots 4000", "a layer does not have so many experts"},
      {"--device emulated --device-cache zip-pools", "--device-cache"},
      {"--device emulated --device-cache nonsense", "nonsense"},
      {"--device-memory 1MiB", "there is no device"},
      {"--device none --device-slots 3", "there is no device"},
      {"--placement greedy", "there is none"},
  };
  for (const auto& [flags, says] : refused) {
    const Outcome outcome = run(request + flags);
    EXPECT_NE(outcome.code, 0) << flags;
    EXPECT_TRUE(outcome.out.empty()) << flags;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << flags << "\n" << outcome.err;
  }
}

}  // namespace
