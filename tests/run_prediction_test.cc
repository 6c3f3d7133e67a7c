// Reading ahead in `run`, and bytes per token as predicted beside those measured.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/json/json.h"
#include "packed_model.h"

namespace {

using sluice::Json;
using sluice::read_json_file;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::PackedModelTest;
using sluice::program::run;
using sluice::program::run_json;

class RunPrediction : public PackedModelTest {};

TEST_F(RunPrediction, ReadsAheadUnlessToldNotTo) {
  const std::string what = "run " + kModel + " -p Once -n 60 --temp 0 --ignore-eos --memory " + memory(24);
  const Json ahead = run_json(what), not_ahead = run_json(what + " --prefetch none");
  EXPECT_EQ(ahead["tokens"], not_ahead["tokens"]);
  const Json& count = ahead["experts"]["prefetch"];
  EXPECT_EQ(count["policy"], "stream");
  EXPECT_GT(count["useful"].get<int>() + count["late"].get<int>(), 0);
  EXPECT_GT(ahead["experts"]["decode"]["prefetch_bytes"], 0);
  EXPECT_GT(ahead["experts"]["decode"]["policy_s"], 0);
  EXPECT_GT(ahead["experts"]["decode"]["demand_s"], 0);
  EXPECT_EQ(not_ahead["experts"]["decode"]["prefetch_bytes"], 0);
  EXPECT_EQ(not_ahead["experts"]["prefetch"]["policy"], "none");

  std::string prompt;
  for (int i = 0; i < 40; ++i) prompt += "Once upon a time ";
  const Json one = run_json("run " + kModel + " -p '" + prompt + "' -n 1 --temp 0 --prefetch none " +
                            "--cache none --memory " + memory(40));
  EXPECT_EQ(one["experts"]["prefill"]["prefetch_bytes"], 0);
  EXPECT_EQ(one["experts"]["prefill"]["hits"], 0);
}

double per_token(const Json& result, const char* name) {
  const Json& decode = result["experts"]["decode"];
  return decode[name].get<double>() / decode["tokens"].get<double>();
}

// The factor is 1.5: the plan takes caches as full of the experts that the text uses most, and they are
// filled by what it used last.
TEST_F(RunPrediction, BytesArePredictedFromTheRecordedRoutingOfTheSameRun) {
  const std::string text = " -p 'The old king looked at his daughter' -n 200 --ignore-eos --temp 0 ";
  ASSERT_EQ(run("trace " + store() + text + "--quiet -o " + file("same.trace")).code, 0);
  ASSERT_EQ(
      run("profile " + store() + " --quiet --trace " + file("same.trace") + " -o " + file("same.json")).code,
      0);
  constexpr double kFactor = 1.5;
  for (const int mib : {24, 28, 34})
    for (const std::string prefetch : {"none", "stream"}) {
      const Json result = run_json("run " + store() + text + "--profile " + file("same.json") +
                                   " --prefetch " + prefetch + " --memory " + memory(mib));
      SCOPED_TRACE(prefetch + " in " + memory(mib) + ": " + result["predicted"].dump() + " " +
                   result["experts"].dump());
      const Json& decode = result["experts"]["decode"];
      EXPECT_EQ(decode["useful_bytes"].get<double>() + decode["wasted_bytes"].get<double>(),
                decode["bytes_read"].get<double>() + decode["prefetch_bytes"].get<double>());
      const Json& predicted = result["predicted"];
      EXPECT_EQ(predicted["routing"], "recorded");
      EXPECT_EQ(predicted["bytes_hint"], nullptr);
      const auto needed = predicted["bytes_per_token"].get<double>(),
                 wasted = predicted["wasted_bytes_per_token"].get<double>();
      const double useful = per_token(result, "useful_bytes"), in_vain = per_token(result, "wasted_bytes");
      EXPECT_LT(useful, kFactor * needed);
      EXPECT_GT(useful * kFactor, needed);
      EXPECT_LT(useful + in_vain, kFactor * (needed + wasted));
      EXPECT_GT((useful + in_vain) * kFactor, needed);
      EXPECT_EQ(wasted > 0, prefetch == "stream");
    }
}

// What a device keeps is not read from the disk, and is predicted so.
TEST_F(RunPrediction, ExpertsOfADeviceCountAsInMemory) {
  const std::string text = " -p 'The old king looked at his daughter' -n 120 --ignore-eos --temp 0 ";
  const std::string device =
      " --prefetch none --device emulated:link=2GB/s,latency=20us,compute=60GB/s --device-slots ";
  const auto predicted = [&](const std::string& flags) {
    return run_json("run " + kModel + text + "--memory " + memory(30) + flags)["predicted"];
  };
  const double alone = predicted(" --prefetch none")["bytes_per_token"].get<double>();
  for (const std::string placement : {"device", "greedy", "cpu"}) {
    SCOPED_TRACE(placement);
    const Json result = run_json("run " + kModel + text + "--memory " + memory(30) + device +
                                 "10 --placement " + placement + " --tiers exclusive");
    EXPECT_LT(result["predicted"]["bytes_per_token"].get<double>(), 0.7 * alone);
    const double useful = per_token(result, "useful_bytes");
    EXPECT_LT(useful, 2 * result["predicted"]["bytes_per_token"].get<double>()) << result["predicted"];
  }
  const Json same = predicted(device + "4 --placement greedy --tiers inclusive");
  EXPECT_NEAR(same["bytes_per_token"].get<double>(), alone, 0.1 * alone);
}

// A whole layer is read for a few of its experts; the others are read in vain.
TEST_F(RunPrediction, AWholeLayerIsMostlyReadInVain) {
  const Json result = run_json("run " + kModel + " -p Once -n 20 --temp 0 --ignore-eos --preset z-deepspeed");
  const double wasted = per_token(result, "wasted_bytes"), useful = per_token(result, "useful_bytes");
  EXPECT_NEAR(useful * 7, wasted, 0.01 * wasted);  // 4 of 32
  EXPECT_NEAR(wasted, result["predicted"]["wasted_bytes_per_token"].get<double>(), 0.01 * wasted);
  EXPECT_EQ(result["predicted"]["bytes_hint"], nullptr);
  EXPECT_EQ(result["predicted"]["waste_hint"], nullptr);
}

TEST_F(RunPrediction, ARouterThatTakesOtherExpertsIsNamed) {
  const std::string what = "run " + kModel + " -p Once -n 80 --temp 0 --ignore-eos --memory " + memory(28);
  const Json prior = run_json(what + " --router cache-prior")["predicted"]["bytes_hint"];
  ASSERT_TRUE(prior.is_string());
  EXPECT_NE(prior.get<std::string>().find("the router cache-prior took others, which were in memory"),
            std::string::npos)
      << prior;
}

TEST_F(RunPrediction, WhereAPredictionIsFarOffTheRunSaysWhatToDo) {
  // In a short text most of what is read fills the caches.
  const std::string few = "run " + store() + " -p Once -n 4 --temp 0 --ignore-eos --memory " + memory(64);
  const auto hint = run_json(few)["predicted"]["bytes_hint"].get<std::string>();
  EXPECT_NE(hint.find("short text"), std::string::npos) << hint;
  EXPECT_NE(run(few).err.find("hint              a short text"), std::string::npos);

  // A recording of a text that used the same four experts of each layer all the time.
  ASSERT_EQ(run("profile " + store() + " --repeats 1 --quiet -o " + file("wrong.json")).code, 0);
  Json profile = read_json_file(file("wrong.json"));
  profile["ranks"] = Json::array();
  for (int r = 0; r < 32; ++r) profile["ranks"].push_back(r < 4 ? 1 : 0);
  std::ofstream(file("wrong.json")) << profile;
  const std::string far = "run " + store() +
                          " -p Once -n 100 --temp 0 --ignore-eos --prefetch none --memory " + memory(24) +
                          " --profile " + file("wrong.json");
  const Outcome outcome = run(far);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.err.find("(recorded routing)"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("the prediction takes caches as holding"), std::string::npos) << outcome.err;

  // What read-ahead reads in vain has a sentence of its own, where it is more than twice or less than half.
  const std::string ahead = "run " + store() + " -p Once -n 60 --temp 0 --ignore-eos --memory " + memory(24) +
                            " --profile " + file("wrong.json") + " --prefetch ";
  const Json result = run_json(ahead + "stream");
  const double measured = per_token(result, "wasted_bytes"),
               predicted = result["predicted"]["wasted_bytes_per_token"].get<double>();
  const std::string said = result["predicted"]["waste_hint"].dump();
  // A quarter of all bytes, at least.
  const double all = std::max(per_token(result, "useful_bytes") + measured,
                              result["predicted"]["bytes_per_token"].get<double>() + predicted);
  const bool matters = std::abs(measured - predicted) >= 0.25 * all;
  EXPECT_EQ(said.find("less was read in vain than predicted") != std::string::npos,
            matters && 2 * measured < predicted)
      << said << ": " << predicted << " predicted, " << measured << " measured";
  EXPECT_EQ(said.find("more was read in vain than predicted") != std::string::npos,
            matters && measured > 2 * predicted)
      << said << ": " << predicted << " predicted, " << measured << " measured";
  EXPECT_EQ(run_json(ahead + "none")["predicted"]["waste_hint"], nullptr);
}

}  // namespace
