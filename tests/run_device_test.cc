// A second unit beside the host: the program's text and logits stay the same, its memory has a budget, and
// what cannot be is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "packed_model.h"

namespace run_device_test {
namespace {

using sluice::Json;
using sluice::program::content_of;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::PackedModelTest;
using sluice::program::run;
using sluice::program::run_json;

class RunDevice : public PackedModelTest {};

const std::string kUnpaced = " --device emulated:link=inf,compute=inf,latency=0us";

TEST_F(RunDevice, TheTextIsThatOfTheHostAlone) {
  for (const std::string& model : {kModel, store()}) {
    const std::string request =
        "run " + model + " -p 'Once upon a time' -n 24 --temp 0 --memory " + memory(48);
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

TEST_F(RunDevice, TheDensePartMayBeThereToo) {
  for (const std::string& model : {kModel, store()}) {
    const std::string request =
        "run " + model + " -p 'Once upon a time' -n 24 --temp 0 --memory " + memory(48);
    const Outcome host = run(request);
    ASSERT_EQ(host.code, 0) << host.err;
    for (const char* const how : {" --dense-on device --placement device --device-memory 16MiB",
                                  " --dense-on auto --placement greedy --device-memory 24MiB --dense packed",
                                  " --dense-on device --placement cpu --device-slots 0 --prefetch stream"}) {
      if (model == kModel && std::string(how).find("packed") != std::string::npos) continue;
      const Outcome both = run(request + kUnpaced + how);
      ASSERT_EQ(both.code, 0) << how << "\n" << both.err;
      EXPECT_EQ(both.out, host.out) << model << how;
      EXPECT_NE(both.err.find("with dense weights"), std::string::npos) << both.err;
    }
  }
  const Outcome small = run("run " + kModel + " -p Once -n 4 --dense-on device --device-memory 8MiB" +
                            kUnpaced + " --context 1000");
  EXPECT_EQ(small.code, 1);
  EXPECT_NE(small.err.find("--device-memory"), std::string::npos) << small.err;
  EXPECT_NE(small.err.find("dense "), std::string::npos) << small.err;
  const Outcome none = run("run " + kModel + " -p Once -n 4 --dense-on device");
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("--dense-on"), std::string::npos) << none.err;
  const Outcome wrong = run("run " + kModel + " -p Once -n 4 --dense-on there" + kUnpaced);
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("host, device or auto"), std::string::npos) << wrong.err;
}

// The least budget that a refusal names, in MiB.
double least_of(const std::string& command) {
  const std::string refusal = run(command + " --memory 1MiB").err, before = "at least ";
  const std::size_t at = refusal.find(before);
  EXPECT_NE(at, std::string::npos) << refusal;
  return at == std::string::npos ? 0 : std::stod(refusal.substr(at + before.size()));
}

// Dense weights go there in parts: the host never has the output head, of 64 MiB, as a whole.
TEST_F(RunDevice, TheDensePartThereTakesLittleOfTheHost) {
  Json config = Json::parse(content_of(kModel + "/config.json"));
  config["vocab_size"] = 131072;
  config["tie_word_embeddings"] = false;
  std::ofstream(file("large.json")) << config;
  const std::string model = file("large"), packed = file("large.sluice");
  ASSERT_EQ(run("synth " + file("large.json") + " --layers 2 -q -o " + model).code, 0);
  ASSERT_EQ(run("pack " + model + " -q -o " + packed).code, 0);
  for (const std::string& which : {model, packed, packed + " --dense packed"}) {
    SCOPED_TRACE(which);
    const std::string request = "run " + which + " --tokens 5,6,7 -n 4 --temp 0 --ignore-eos --chunk 16 -q",
                      device = kUnpaced + " --device-memory 160MiB --placement device --dense-on ";
    const double here = least_of(request + device + "host"), there = least_of(request + device + "device");
    EXPECT_LE(there, here - 30);
    const std::string budget = " --memory " + std::to_string(static_cast<int>(there) + 2) + "MiB";
    const Json ran = run_json(request + device + "device" + budget);
    EXPECT_LE(ran["memory"]["accounted"], ran["memory"]["budget"]);
    EXPECT_EQ(ran["tokens"], run_json(request + " --memory 512MiB")["tokens"]);
  }
}

// What is missing is said where a GPU is asked for by name; `auto` does without it, and so says nothing.
TEST_F(RunDevice, AGpuThatIsNotThereIsOneClearError) {
  const Json gpus = run_json("version --json");
  const std::string request = "run " + kModel + " -p Once -n 4 --temp 0 --math f32 --memory " + memory(48);
  const Outcome host = run(request + " --device none"), found = run(request);
  ASSERT_EQ(host.code, 0) << host.err;
  EXPECT_EQ(found.out, host.out);
  const Outcome wrong = run(request + " --device cuda:255");
  EXPECT_EQ(wrong.code, 1);
  for (const char* const word : {"--device: ", "; expected ", ", found "})
    EXPECT_NE(wrong.err.find(word), std::string::npos) << wrong.err;
  if (!gpus.at("gpus").empty()) GTEST_SKIP() << "there is a GPU";
  EXPECT_NE(gpus.at("gpu_lack"), "");
  EXPECT_EQ(run(request + " --device cuda").code, 1);
  EXPECT_EQ(found.err.find("device  "), std::string::npos) << found.err;
  const Outcome memory_alone = run(request + " --device-memory 8MiB");
  EXPECT_EQ(memory_alone.code, 2);
  EXPECT_NE(
      memory_alone.err.find("--device-memory: there is no device; expected --device beside it, found none: " +
                            gpus.at("gpu_lack").get<std::string>()),
      std::string::npos)
      << memory_alone.err;
}

TEST_F(RunDevice, AnEmulatedDeviceHasNoMathOfItsOwn) {
  const std::string request =
      "run " + kModel + " -p Once -n 4 --temp 0" + kUnpaced + " --memory " + memory(48);
  EXPECT_EQ(run(request + " --device-math same").code, 0);
  const Outcome fast = run(request + " --device-math fast");
  EXPECT_EQ(fast.code, 2);
  EXPECT_NE(fast.err.find("--device-math: "), std::string::npos) << fast.err;
  EXPECT_NE(fast.err.find("expected same, or --device cuda, found fast beside emulated"), std::string::npos)
      << fast.err;
  EXPECT_EQ(run(request + " --device-math quick").code, 2);
}

// What such a device takes says nothing about this program.
TEST_F(RunDevice, CommandsWithoutATableNameTheDevice) {
  const std::string device = kUnpaced + ",dilate=3 --memory " + memory(48), eval = "eval " + kModel + device,
                    data = SLUICE_SOURCE_DIR "/tests/data/eval/";
  std::ofstream(file("text")) << "Once upon a time there was an old king who had three sons.";
  for (const std::string& call : {eval + " -f " + file("text"),
                                  eval + " --task boolq --limit 1 --ctx 96 --data " + data + "boolq.jsonl",
                                  "trace " + kModel + device + " --tokens 1,2,3 -n 2 -o " + file("a.trace"),
                                  "forward " + kModel + device + " --tokens 1,2,3 -o " + file("a.npy")}) {
    const Outcome outcome = run(call);
    EXPECT_EQ(outcome.code, 0) << call << "\n" << outcome.err;
    const std::string flat = std::regex_replace(outcome.out + outcome.err, std::regex("\\s+"), " ");
    EXPECT_NE(flat.find("emulated, dilated x3: no time here is a speed of this program (emulated:link=inf, "),
              std::string::npos)
        << call << "\n"
        << flat;
  }
  const Json json = run_json("forward " + kModel + device + " --tokens 1,2,3 --json -o " + file("b.npy"));
  EXPECT_EQ(json.at("device").at("dilation"), 3);
  EXPECT_EQ(json.at("placement").at("device").get<int>() + json.at("placement").at("host").get<int>(),
            json.at("experts").at("accesses"));
}

TEST_F(RunDevice, TheReportCountsWhatWasAsked) {
  const Outcome outcome =
      run("run " + kModel + " -p Once -n 12 --temp 0 --json --prefetch none --device-slots 0" + kUnpaced +
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

// Computing an expert for a token takes 2.5 ms, whatever this machine is like.
TEST_F(RunDevice, TheHostKeepsThePaceOfTheSpecification) {
  const std::string request = "run " + kModel + " -p Once -n 8 --temp 0 --memory " + memory(48),
                    there = " --prefetch none --placement cpu --device-slots 0" + kUnpaced;
  const Json alone = run_json(request), unpaced = run_json(request + there),
             paced = run_json(request + there + ",host=60MB/s");
  EXPECT_TRUE(unpaced.at("device").at("host").is_null());
  EXPECT_EQ(paced.at("tokens"), alone.at("tokens"));
  const Json& host = paced.at("device").at("host");
  EXPECT_EQ(host.at("limit_bytes_per_s"), 60e6);
  const double each = paced.at("device").at("keep").at("copy_bytes").get<double>() / 60e6;
  const double busy = host.at("busy_s").get<double>();
  const double computed = busy / each;  // experts of tokens: whole layers of 4
  EXPECT_NEAR(computed, 24 * std::round(computed / 24), 1e-3);
  EXPECT_GT(computed, 24 * 7);
  EXPECT_GE(paced.at("experts").at("moe_s").get<double>(), .9 * busy);
  const Json& step = paced.at("placement").at("decode");
  EXPECT_GE(step.at("moe_s").get<double>(), .9 * 24 * each);
  EXPECT_GE(step.at("tpot_s"), step.at("moe_s"));
  EXPECT_GE(step.at("predicted_moe_s").get<double>(), .9 * 24 * each);
  EXPECT_GE(step.at("predicted_tpot_s"), step.at("predicted_moe_s"));
}

TEST_F(RunDevice, PresetsForADeviceRun) {
  const std::string request =
      "run " + kModel + " -p 'Once upon a time' -n 12 --temp 0 --memory " + memory(48);
  const Json host = run_json(request);
  const std::map<std::string, std::string> placements = {{"dali", "greedy"},
                                                         {"dali-plus", "ratio-prefix"},
                                                         {"d-naive", "cpu"},
                                                         {"d-greedy", "greedy"},
                                                         {"cpu-moe", "cpu"},
                                                         {"ncmoe", "layer-split"},
                                                         {"gpu-lru", "device"},
                                                         {"d-llamacpp", "layer-split"},
                                                         {"d-ktransformers", "layer-split"},
                                                         {"hybrimoe", "two-pointer"},
                                                         {"d-hybrimoe", "threshold"},
                                                         {"d-greedy+pre", "greedy"},
                                                         {"s-base", "device"},
                                                         {"s-ce", "device"},
                                                         {"s-llamacpp", "layer-split"}};
  for (const auto& [name, placement] : placements) {
    SCOPED_TRACE(name);
    const Json both = run_json(request + kUnpaced + " --device-slots 8 --prefetch none --preset " + name);
    EXPECT_EQ(both.at("tokens"), host.at("tokens"));
    EXPECT_EQ(both.at("preset"), name);
    EXPECT_EQ(both.at("placement").at("policy"), placement);
    EXPECT_EQ(both.at("device").at("rests"), false);
    if (name == "hybrimoe") {  // as the preset reads ahead
      const Json ahead = run_json(request + kUnpaced + " --device-slots 8 --preset hybrimoe");
      EXPECT_EQ(ahead.at("tokens"), host.at("tokens"));
      EXPECT_EQ(ahead.at("experts").at("prefetch").at("policy"), "raw");
    }
    if (placement == "cpu") {
      EXPECT_EQ(both.at("placement").at("device"), 0);
    }
    if (placement == "device" || placement == "layer-split") {
      EXPECT_GT(both.at("placement").at("device"), 0);
    }
  }
}

// Everything of the prompt is computed on the device, and nothing of the answer.
TEST_F(RunDevice, PromptsMayBePlacedOtherwise) {
  const std::string request =
      "run " + kModel + " -p 'Once upon a time' -n 12 --temp 0 --memory " + memory(48);
  const std::string policies = kUnpaced + " --device-slots 4 --prefetch none --placement-prefill device";
  const Json host = run_json(request), both = run_json(request + policies + " --placement cpu");
  EXPECT_EQ(both.at("tokens"), host.at("tokens"));
  EXPECT_EQ(both.at("device").at("rests"), false);
  const Json& placement = both.at("placement");
  EXPECT_EQ(placement.at("policy"), "cpu");
  EXPECT_EQ(placement.at("prefill_policy"), "device");
  EXPECT_EQ(placement.at("prefill_from"), 1);
  EXPECT_EQ(placement.at("device"), both.at("experts").at("prefill").at("accesses"));
  EXPECT_EQ(placement.at("host"), both.at("experts").at("decode").at("accesses"));
  const Json preset = run_json(request + kUnpaced + " --device-slots 4 --preset ncmoe").at("placement");
  EXPECT_EQ(preset.at("prefill_policy"), "device");
  EXPECT_EQ(preset.at("prefill_from"), 32);
  EXPECT_TRUE(
      run_json(request + kUnpaced + " --placement cpu").at("placement").at("prefill_policy").is_null());
  EXPECT_NE(run(request + policies).err.find("ratio-prefix (device in prompts):"), std::string::npos);
  const std::string plan = "plan " + kModel + " --memory " + memory(48) + policies + " --placement greedy";
  EXPECT_EQ(run_json(plan).at("policies").at("placement_prefill"), "device");
}

// A copy there would serve nobody: the device's cache takes in nothing, and nothing is copied ahead.
TEST_F(RunDevice, ExpertsThatTheHostComputesAreNotCopied) {
  const std::string request =
      "run " + kModel + " -p 'Once upon a time' -n 12 --temp 0 --memory " + memory(48);
  const std::string there = kUnpaced + " --device-slots 4 --placement cpu";
  const Json host = run_json(request);
  for (const char* const how : {"", " --prefetch stream --prefetch-size 2", " --device-cache workload-window",
                                " --prefetch stream --placement-prefill cpu"}) {
    SCOPED_TRACE(how);
    const Json both = run_json(request + there + how);
    EXPECT_EQ(both.at("tokens"), host.at("tokens"));
    EXPECT_EQ(both.at("placement").at("device"), 0);
    const Json& link = both.at("device").at("link");
    for (const char* const traffic : {"demand", "prefetch", "update"})
      EXPECT_EQ(link.at(traffic), 0) << traffic;
    EXPECT_EQ(both.at("experts").at("device").at("prefetch").at("sent"), 0);
  }
  EXPECT_NE(run(request + there).err.find("so that none is copied there"), std::string::npos);
  // A prompt that is computed there wants them.
  EXPECT_GT(run_json(request + there + " --placement-prefill device").at("device").at("link").at("demand"),
            0);
}

TEST_F(RunDevice, ReportsShowASpecificationInUnitsThatFit) {
  const std::string device = " --device emulated:link=16.4MB/s,latency=20us --memory " + memory(48);
  const std::regex broken("\n *");
  for (const std::string& command :
       {"plan " + kModel + device, "profile " + kModel + " --repeats 1 -o " + file("here.json") + device,
        "forward " + kModel + " --tokens 1,2 -o " + file("a.npy") + device}) {
    SCOPED_TRACE(command);
    const Outcome outcome = run(command);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const std::string text = std::regex_replace(outcome.out + outcome.err, broken, " ");
    EXPECT_NE(
        text.find("emulated:link=16.4 MB/s, latency=20.0 µs, compute=60 GB/s, host=inf, threads=1, dilate=1, "
                  "duplex=full"),
        std::string::npos)
        << text;
  }
  // What programs read has numbers.
  EXPECT_NE(content_of(file("here.json")).find("emulated:link=16400000B/s"), std::string::npos);
}

// The smaller of the link's own rate and the limit holds.
TEST_F(RunDevice, TheLinkMayBeLimited) {
  const std::string request = "run " + kModel + " -p Once -n 4 --temp 0 --memory " + memory(48) +
                              " --device-slots 4 --placement device --prefetch none --device ";
  const auto link = [&](const std::string& device) {
    return run_json(request + device).at("device").at("link");
  };
  const std::string own = "emulated:link=400MB/s,latency=0us,dilate=2";
  const Json limited = link(own + " --link 200MB/s"), free = link(own + " --link 1GB/s"),
             unpaced = link("emulated:link=inf --link 300MB/s");
  EXPECT_EQ(limited.at("limit_bytes_per_s"), 100e6);  // in seconds that are twice as long
  EXPECT_EQ(limited.at("limited"), true);
  EXPECT_EQ(free.at("limit_bytes_per_s"), 200e6);
  EXPECT_EQ(free.at("limited"), false);
  EXPECT_EQ(unpaced.at("limit_bytes_per_s"), 300e6);
  const std::string says = "--link limits the link to 100 MB/s; without it: 200 MB/s";
  EXPECT_NE(run(request + own + " --link 200MB/s").err.find(says), std::string::npos);
  const std::string plan = "plan " + kModel + " --memory " + memory(48) + " --device " + own;
  EXPECT_NE(run(plan + " --link 200MB/s").out.find(says), std::string::npos);
  EXPECT_EQ(run(plan).out.find("link limit"), std::string::npos);
}

// The experts that another text uses most stay on the device, from the start to the end.
TEST_F(RunDevice, PopularExpertsStayWhereRecordedRoutingSaysWhichTheyAre) {
  const std::string trace = file("popular.trace");
  ASSERT_EQ(run("trace " + kModel + " -p 'The sea was calm' -n 20 --temp 0 -q -o " + trace).code, 0);
  const std::string request =
      "run " + kModel + " -p 'Once upon a time' -n 16 --temp 0 --memory " + memory(48);
  const Json host = run_json(request),
             both = run_json(request + kUnpaced + " --preset d-fiddler --device-slots 8 --ranks-of " + trace);
  EXPECT_EQ(both.at("tokens"), host.at("tokens"));
  EXPECT_EQ(both.at("placement").at("policy"), "fiddler");
  EXPECT_EQ(both.at("placement").at("loads"), 0);
  EXPECT_GT(both.at("experts").at("device").at("hits"), 0);
  const Outcome other = run("run " + kModel + " -p Once -n 2" + kUnpaced + " --preset d-fiddler --ranks-of " +
                            SLUICE_SOURCE_DIR "/tests/data/routing/dsv2lite.first48.mrt.zst");
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("of another model; expected 6 sparse layers of 32 experts, found 26 of 64"),
            std::string::npos)
      << other.err;
}

// A copy takes 5 ms, computing an expert here a few tens of microseconds, and nothing stays there.
TEST_F(RunDevice, AutoLeavesADeviceAloneThatDoesNotHelp) {
  const std::string request = "run " + kModel + " -p 'Once upon a time' -n 4 --temp 0 --memory " +
                              memory(48) + " --chunk 4" +
                              " --device emulated:link=1GB/s,latency=5ms,compute=1GB/s --device-slots 0";
  const Json rests = run_json(request);
  EXPECT_EQ(rests.at("device").at("rests"), true);
  EXPECT_EQ(rests.at("placement").at("policy"), "cpu");
  EXPECT_EQ(rests.at("placement").at("device"), 0);
  EXPECT_EQ(rests.at("device").at("link").at("demand"), 0);
  const Outcome told = run(request);
  EXPECT_NE(told.err.find("left alone"), std::string::npos) << told.err;
  const Json asked = run_json(request + " --placement device");
  EXPECT_EQ(asked.at("device").at("rests"), false);
  EXPECT_EQ(asked.at("placement").at("host"), 0);
}

TEST_F(RunDevice, APlanSaysWhereBytesLieAndWhatMoreWouldBring) {
  const std::string request =
      "plan " + kModel + kUnpaced + " --memory " + memory(48) + " --device-memory 8MiB";
  const Json device = run_json(request).at("device");
  const Json& names = device.at("memory").at("by_name");
  EXPECT_LE(names.at("activations").get<std::int64_t>() + names.at("staging").get<std::int64_t>() +
                names.at("experts").get<std::int64_t>(),
            device.at("memory").at("budget").get<std::int64_t>());
  EXPECT_GT(device.at("slots"), 0);
  for (const char* what : {"decode", "prompt", "twice_memory", "twice_link"})
    for (const char* time : {"host_s", "device_s", "both_s"}) EXPECT_GT(device.at(what).at(time), 0) << what;
  EXPECT_GE(device.at("twice_memory").at("resident"), device.at("decode").at("resident"));
  const Outcome told = run(request);
  for (const char* row :
       {"device memory", "twice the memory", "twice the link", "dense weights and the key/value"})
    EXPECT_NE(told.out.find(row), std::string::npos) << row << "\n" << told.out;
}

TEST_F(RunDevice, TheDoctorShowsADeviceThatWasMeasured) {
  ASSERT_EQ(run("profile " + kModel + kUnpaced + " --repeats 1 -q -o " + file("device.json")).code, 0);
  ASSERT_EQ(run("profile " + kModel + " --repeats 1 -q -o " + file("alone.json")).code, 0);
  const Outcome device = run("doctor --profile " + file("device.json")),
                alone = run("doctor --profile " + file("alone.json"));
  EXPECT_NE(device.out.find("emulated:link=inf"), std::string::npos) << device.out;
  EXPECT_NE(device.out.find("GB/s"), std::string::npos) << device.out;
  EXPECT_NE(alone.out.find("has no costs of a device"), std::string::npos) << alone.out;
  EXPECT_NE(run("doctor --profile " + kModel + "/config.json").err.find("not a profile"), std::string::npos);
}

TEST_F(RunDevice, TheExpertMapShowsBothMemories) {
  const Outcome outcome =
      run("run " + kModel + " -p Once -n 8 --temp 0 --memory " + memory(48) + " --show-experts" + kUnpaced +
          " --placement device --device-cache lru --device-slots 4");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("D on the device and in memory: "), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("D on the device and in memory: 0; d on the device alone: 0"),
            std::string::npos);
  EXPECT_NE(outcome.err.find("idle "), std::string::npos);
}

// At a fixed precision, wherever experts are computed and whatever their slots hold.
TEST_F(RunDevice, SlicesHaveTheTextOfTheHostAlone) {
  for (const std::string flags : {" --precision high", " --precision high --cache slice-lru",
                                  " --precision low", " --precision low --cache lru"}) {
    const std::string request =
        "run " + sliced() + " -p 'Once upon a time' -n 24 --temp 0 --memory " + memory(48) + flags;
    const Outcome host = run(request);
    ASSERT_EQ(host.code, 0) << host.err;
    for (const char* const how :
         {"", " --placement device --device-slots 0",
          " --placement greedy --device-cache lru --device-slots 4",
          " --placement device --device-memory 4MiB --prefetch raw --prefetch-size 2",
          " --placement device --device-keep full --device-slots 32 --dense-on device"}) {
      const Outcome both = run(request + kUnpaced + how);
      ASSERT_EQ(both.code, 0) << flags << how << "\n" << both.err;
      EXPECT_EQ(both.out, host.out) << flags << how;
    }
  }
}

// By criticality a text follows from what slots hold, and so from costs, which the store keeps.
TEST_F(RunDevice, SlicesByCriticalityHaveOneTextForOneProfile) {
  const std::string request = "run " + sliced() +
                              " -p 'Once upon a time' -n 24 --temp 0 --precision dbsc --memory " +
                              memory(48) + " --capacity 4MiB" + kUnpaced + " --device-slots 8 --decisions ";
  const Outcome first = run(request + file("first"));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(run(request + file("again")).out, first.out);
  EXPECT_EQ(content_of(file("again")), content_of(file("first")));
  EXPECT_NE(content_of(file("first")).find(":low"), std::string::npos);
  EXPECT_NE(content_of(file("first")).find("device_slices=msb+lsb"), std::string::npos);
}

TEST_F(RunDevice, SlotsHoldTheSlicesThatDecodeStepsComputeWith) {
  const auto plan = [](const std::string& flags) {
    return run_json("plan " + sliced() + kUnpaced + " --memory " + memory(48) + " --device-memory 8MiB " +
                    flags)
        .at("device");
  };
  const Json high = plan("--precision high"), low = plan("--precision low"),
             full = plan("--precision low --device-keep full");
  EXPECT_EQ(high.at("keep").at("form"), "msb+lsb");
  EXPECT_EQ(full.at("keep").at("form"), "msb+lsb");
  EXPECT_EQ(low.at("keep").at("form"), "msb");
  EXPECT_LT(low.at("keep").at("slot_bytes").get<double>(),
            0.62 * high.at("keep").at("slot_bytes").get<double>());
  EXPECT_LT(low.at("keep").at("copy_bytes").get<double>(),
            0.62 * high.at("keep").at("copy_bytes").get<double>());
  EXPECT_GT(low.at("slots").get<double>(), 1.5 * high.at("slots").get<double>());
  EXPECT_EQ(full.at("slots"), high.at("slots"));
  const Outcome small =
      run("run " + sliced() + " -p Once -n 2 --precision low --device-memory 100KiB" + kUnpaced);
  EXPECT_EQ(small.code, 1) << small.err;
  EXPECT_NE(small.err.find("--device-memory: the memory of the device is too small"), std::string::npos)
      << small.err;
}

TEST_F(RunDevice, SlicesThatDependOnTheHostsMemoryAreRefused) {
  for (const auto& [flags, says] : std::vector<std::pair<std::string, std::string>>{
           {"--preset slicemoe", "--constraint: a limit on misses counts what the host reads"},
           {"--precision dbsc --lsb-miss skip",
            "--lsb-miss: a device computes with the slices that are asked for"},
           {"--precision high --tiers exclusive",
            "--tiers: experts in slices do not come back from a device"},
           {"--precision high --device-keep packed", "--device-keep: slots of the device cannot hold"},
           {"--precision high --device-cache slice-lru",
            "--device-cache: a device's cache holds whole experts"}}) {
    const Outcome outcome = run("run " + sliced() + " -p Once -n 2" + kUnpaced + " " + flags);
    EXPECT_EQ(outcome.code, 2) << flags << outcome.err;
    EXPECT_TRUE(outcome.out.empty());
    EXPECT_NE(outcome.err.find(says), std::string::npos) << flags << "\n" << outcome.err;
  }
}

// The costs that a run has measured and kept.
TEST_F(RunDevice, AReplayTakesCostsOfSlicesWithAPrecision) {
  const std::string request = sliced() + " -p Once -n 4 --precision high" + kUnpaced + " --device-slots 2";
  ASSERT_EQ(run("trace " + request + " -q -o " + file("slices.trace")).code, 0);
  const std::string replay = "simulate --trace " + file("slices.trace") + " --machine " + sliced() +
                             "/sidecar/profile.json --placement device --device-cache lru --device-slots 2";
  const Outcome without = run(replay);
  EXPECT_EQ(without.code, 2) << without.err;
  EXPECT_NE(without.err.find("experts in slices"), std::string::npos) << without.err;
  const Json row = run_json(replay + " --precision high").at("results").at(0);
  EXPECT_EQ(row.at("slices").at("precision"), "high");
  EXPECT_GT(row.at("slices").at("lsb_misses"), 0);
}

TEST_F(RunDevice, PrefetchesServeTheDeviceAndChangeNoText) {
  const std::string request =
      "run " + kModel + " -p 'Once upon a time' -n 24 --temp 0 --memory " + memory(40);
  const Json host = run_json(request);
  for (const char* const how : {" --prefetch stream", " --prefetch raw --prefetch-size 1",
                                " --prefetch random", " --prefetch raw --prefetch-size 0"}) {
    const Json json = run_json(request + kUnpaced + " --placement device --device-slots 3" + how);
    EXPECT_EQ(json.at("tokens"), host.at("tokens")) << how;
    const Json& ahead = json.at("experts").at("device").at("prefetch");
    const bool none = std::string(how).find("size 0") != std::string::npos;
    EXPECT_EQ(ahead.at("sent") == 0, none) << how;
    EXPECT_EQ(json.at("device").at("link").at("prefetch") == 0, none) << how;
    const auto count = [](const Json& counts, const char* name) { return counts.at(name).get<int>(); };
    // The last layer's are still on their way.
    EXPECT_LE(count(ahead, "used") + count(ahead, "kept") + count(ahead, "wasted"), count(ahead, "sent"));
    EXPECT_LE(count(ahead.at("copies"), "begun"), count(ahead, "sent"));
    // How the prediction came true, if there was one: in JSON, and in a line where something was copied.
    const Json& predicted = json.at("experts").at("prefetch");
    const bool predicts = std::string(how).find("random") == std::string::npos;
    EXPECT_EQ(count(predicted, "predicted") > 0, predicts) << how;
    EXPECT_EQ(predicted.contains("accuracy"), predicts) << how;
    if (predicts) {
      EXPECT_GE(count(predicted, "predicted"), count(predicted, "active")) << how;
      EXPECT_GE(count(predicted, "active"), count(predicted, "top")) << how;
      EXPECT_GT(count(predicted, "top"), 0) << how;
      ASSERT_EQ(predicted.at("cosine").size(), 5u) << how;
      for (const Json& cosine : predicted.at("cosine")) {
        EXPECT_GT(cosine, 0) << how;
        EXPECT_LE(cosine, 1.000001) << how;
      }
    }
    const std::string told = run(request + kUnpaced + " --placement device --device-slots 3" + how).err;
    EXPECT_EQ(told.find("with the most tokens in each layer were foretold") != std::string::npos,
              predicts && !none)
        << how << "\n"
        << told;
    if (!none) {
      EXPECT_GT(count(ahead, "used"), 0) << how;
      EXPECT_GT(count(ahead.at("copies"), "useful") + count(ahead.at("copies"), "late"), 0) << how;
    }
  }
}

// Two thirds of the bytes, in slots and on the link; and the host's bits whichever form slots have.
TEST_F(RunDevice, PackedSlotsHoldMoreAndMoveLess) {
  const std::string model = packable(), device = " --device-memory 6MiB --prefetch none" + kUnpaced;
  const std::string asked =
      "run " + model + " -p 'Once upon a time' -n 16 --temp 0 --memory " + memory(64) + " --ignore-eos";
  const Json host = run_json(asked);
  const std::string stream = device + " --placement device --device-cache lru";
  const Json full = run_json(asked + stream + " --device-keep full --keep full"),
             packed = run_json(asked + stream + " --device-keep packed"),
             both = run_json(asked + stream + " --keep packed");
  for (const Json* one : {&full, &packed, &both}) EXPECT_EQ(one->at("tokens"), host.at("tokens"));
  const auto keep = [](const Json& run, const char* what) { return run.at("device").at("keep").at(what); };
  EXPECT_EQ(keep(full, "form"), "full");
  EXPECT_EQ(keep(packed, "form"), "packed");
  EXPECT_EQ(keep(both, "form"), "packed");
  const double slot = keep(packed, "slot_bytes").get<double>() / keep(full, "slot_bytes").get<double>(),
               copy = keep(packed, "copy_bytes").get<double>() / keep(full, "copy_bytes").get<double>();
  EXPECT_LE(copy, 0.70);  // blocks of 4 KiB weigh in so small experts
  EXPECT_LE(slot, 0.70);
  EXPECT_GE(packed.at("device").at("slots").get<double>(), 1.4 * full.at("device").at("slots").get<double>());
  EXPECT_LT(packed.at("device").at("link").at("demand"), full.at("device").at("link").at("demand"));
  EXPECT_LE(packed.at("device").at("memory").at("peak"), packed.at("device").at("memory").at("budget"));

  const std::string logits = "forward " + model + " --tokens 5,9,301,77,2,1000,44 --prefill 3 -q -o ";
  ASSERT_EQ(run(logits + file("host.npy")).code, 0);
  for (const char* const how :
       {" --placement device --device-slots 2", " --placement greedy --device-slots 0",
        " --placement device --device-cache lru --device-slots 32"}) {
    ASSERT_EQ(run(logits + file("both.npy") + kUnpaced + how + " --device-keep packed").code, 0);
    EXPECT_EQ(content_of(file("both.npy")), content_of(file("host.npy"))) << how;
  }
}

TEST_F(RunDevice, SaysWhySlotsAreNotPacked) {
  const auto why = [](const std::string& flags) {
    return run_json("plan " + flags + kUnpaced + " --device-memory 8MiB --memory " + memory(64))
        .at("device")
        .at("keep");
  };
  EXPECT_EQ(why(kModel + " --preset dali-plus --prefetch none").at("why"), "the model is not packed");
  EXPECT_EQ(why(packable() + " --preset dali-plus --prefetch none").at("form"), "packed");
  EXPECT_EQ(why(packable() + " --device-keep packed").at("form"), "packed");
  EXPECT_NE(why(packable()).at("why").get<std::string>().find("the host keeps words"), std::string::npos);
  EXPECT_NE(why(store() + " --keep packed").at("why").get<std::string>().find("decoded"), std::string::npos);
  for (const auto& [flags, says] :
       std::vector<std::pair<std::string, std::string>>{{kModel, "sluice pack"},
                                                        {store(), "decoded first"},
                                                        {packable() + " --keep full", "--keep full"},
                                                        {packable() + " --cache zip-pools", "zip-pools"},
                                                        {packable() + " --preset zipmoe", "zip-pools"}}) {
    const Outcome outcome = run("run " + flags + " -p Once -n 2 --device-keep packed" + kUnpaced);
    EXPECT_EQ(outcome.code, 2) << flags;
    EXPECT_NE(outcome.err.find("--device-keep: slots of the device"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << flags << "\n" << outcome.err;
  }
}

TEST_F(RunDevice, RefusesWhatCannotBe) {
  const std::string request = "run " + kModel + " -p Once -n 2 ";
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"--device cuda", "--device"},
      {"--device emulated --device-memory 100KiB", "--device-memory 1MiB or more"},
      {"--device emulated --device-slots 4000", "a layer does not have so many experts"},
      {"--device emulated --device-cache zip-pools", "--device-cache"},
      {"--device emulated --device-cache nonsense", "nonsense"},
      {"--device emulated:link=2GB/s,", "no property behind it"},
      {"--device emulated:", "no property behind it"},
      {"--device emulated:link=1kB/s", "too slow"},
      {"--device emulated:compute=10kB/s", "too slow"},
      {"--device emulated:dilate=500000", "too slow"},
      {"--device-memory 1MiB", "there is no device"},
      {"--preset dali --prefetch none", "there is none"},
      {"--preset dali --device emulated", "add --prefetch none"},
      {"--preset edgemoe --device emulated", "add --prefetch none"},
      {"--preset d-fiddler --device emulated",
       "sluice: --preset: the cache static-popular keeps the experts that are used most"},
      {"--preset d-fiddler --device emulated", "expected --ranks-of FILE beside it"},
      {"--preset d-fiddler", "there is none"},
      {"--device emulated --device-cache static-popular", "sluice: --device-cache: the cache static-popular"},
      {"--cache static-popular", "sluice: --cache: this cache is for a device"},
      {"--ranks-of a.trace", "sluice: --ranks-of: there is no device"},
      {"--device emulated --ranks-of a.trace", "sluice: --ranks-of: this flag has no effect here"},
      {"--prefetch stat", "sluice simulate --prefetch stat --ranks-of FILE"},
      {"--device emulated --device-cache belady", "--device-cache"},
      {"--device none --device-slots 3", "there is no device"},
      {"--placement greedy", "there is none"},
      {"--link 25GB/s", "sluice: --link: there is no device"},
      {"--device emulated --link 25GB", "sluice: --link: this is no rate of a link"},
      {"--device emulated --link inf", "such as 25GB/s"},
      {"--placement-prefill device", "sluice: --placement-prefill: there is no device"},
      {"--device emulated --placement-prefill fast", "sluice: --placement-prefill: unknown name"},
      {"--prefetch-size 2", "there is no device"},
      {"--device emulated --prefetch-size 100",
       "--prefetch-size: a layer does not have so many experts; expected at most 32, found 100; give "
       "--prefetch-size 32 for all of them"},
      {"--device-keep packed", "there is no device"},
      {"--device emulated --device-keep words", "auto, full or packed"},
      {"--device emulated --prefetch none --prefetch-size 2", "nothing is prefetched"},
      {"--device emulated --prefetch dali-residual", "calibrate MODEL --residual"},
      {"--device emulated --allow-timing-dependent-bits", "no effect here; expected --device-math fast"},
  };
  for (const auto& [flags, says] : refused) {
    const Outcome outcome = run(request + flags);
    EXPECT_NE(outcome.code, 0) << flags;
    EXPECT_TRUE(outcome.out.empty()) << flags;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << flags << "\n" << outcome.err;
  }
}

}  // namespace
}  // namespace run_device_test
