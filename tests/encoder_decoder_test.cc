// An encoder-decoder through the built program.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/files/scratch_directory.h"
#include "base/json/json.h"
#include "model/golden_models.h"
#include "program.h"

namespace encoder_decoder_test {
namespace {

namespace fs = std::filesystem;
using sluice::Json;
using sluice::read_json_file;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::testing::ScratchDirectory;

const std::string kModels = sluice::testing::kGoldenModels + "/", kGoldens = sluice::testing::kGoldens + "/";

std::string list(const Json& tokens) {
  std::string text;
  for (const Json& token : tokens) text += (text.empty() ? "" : ",") + std::to_string(token.get<int>());
  return text;
}

std::vector<float> read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const std::size_t header =
      10 + static_cast<unsigned char>(bytes.at(8)) + 256 * static_cast<unsigned char>(bytes.at(9));
  std::vector<float> values((bytes.size() - header) / 4);
  std::memcpy(values.data(), bytes.data() + header, values.size() * 4);
  return values;
}

class EncoderDecoderTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { golden_ = read_json_file(kGoldens + GetParam() + ".golden/golden.json"); }
  std::string model() const { return kModels + GetParam(); }
  std::string file(const std::string& name) const { return directory_.file(name); }

  ScratchDirectory directory_;
  Json golden_;
};

TEST_P(EncoderDecoderTest, ForwardAndRunGiveTheGoldensFromDirectoryAndStore) {
  ASSERT_EQ(run("pack " + model() + " -o " + file("m.sluice") + " --quiet").code, 0);
  EXPECT_EQ(run("verify " + file("m.sluice")).code, 0);
  const std::vector<float> expected = read_npy(kGoldens + GetParam() + ".golden/logits.npy");
  for (const std::string& path : {model(), file("m.sluice")}) {
    const Outcome forward =
        run("forward " + path + " --encoder-tokens " + list(golden_["encoder_tokens"]) + " --tokens " +
            list(golden_["tokens"]) + " --math f32 --io buffered --out " + file("logits.npy"));
    ASSERT_EQ(forward.code, 0) << forward.err;
    const std::vector<float> found = read_npy(file("logits.npy"));
    ASSERT_EQ(found.size(), expected.size());
    const double largest = golden_["max_abs_logit"].get<double>();
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-4 * largest) << i;

    const Outcome generated = run("run " + path + " --tokens " + list(golden_["encoder_tokens"]) +
                                  " -n 24 --temp 0 --math f32 --io buffered --ignore-eos --json");
    ASSERT_EQ(generated.code, 0) << generated.err;
    const Json result = Json::parse(generated.out);
    EXPECT_EQ(result["tokens"], golden_["greedy"]);
    EXPECT_EQ(result["prompt_tokens"], golden_["encoder_tokens"]);
  }
  ASSERT_EQ(run("unpack " + file("m.sluice") + " -o " + file("again") + " --quiet").code, 0);
  for (const auto& entry : fs::directory_iterator(model())) {
    std::ifstream a(entry.path(), std::ios::binary),
        b(file("again") + "/" + entry.path().filename().string(), std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(a), {}),
              std::string(std::istreambuf_iterator<char>(b), {}));
  }
}

TEST_P(EncoderDecoderTest, IsCompared) {
  ASSERT_EQ(run("pack " + model() + " -o " + file("m.sluice") + " --quiet").code, 0);
  const std::string prompt =
      " --tokens " + list(golden_["encoder_tokens"]) + " -n 24 --math f32 --io buffered --json";
  const Outcome compared = run("compare " + file("m.sluice") + " --reference " + model() + " --whole " +
                               model() + " --preset auto,z-accelerate --runs 1" + prompt);
  ASSERT_EQ(compared.code, 0) << compared.err;
  EXPECT_EQ(Json::parse(compared.out)["tokens"][0], golden_["greedy"]);
}

const std::string kDevice = " --device emulated:link=inf,compute=inf,latency=0us";

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST_P(EncoderDecoderTest, BesideADeviceLogitsAreEqualByteForByte) {
  ASSERT_EQ(run("pack " + model() + " -o " + file("m.sluice") + " --quiet").code, 0);
  for (const std::string& path : {model(), file("m.sluice")}) {
    const std::string request = "forward " + path + " --encoder-tokens " + list(golden_["encoder_tokens"]) +
                                " --tokens " + list(golden_["tokens"]) + " --io buffered -q -o ";
    ASSERT_EQ(run(request + file("host.npy")).code, 0);
    for (const char* const how :
         {"", " --placement device --device-slots 0", " --placement greedy --device-slots 2 --threads 1",
          " --placement device --device-slots 2 --dense-on device --preset gpu-lru",
          " --placement ratio-prefix --device-memory 8MiB --dense-on auto --prefetch stream",
          " --placement cpu --placement-prefill device --device-slots 1 --tiers exclusive --cache lru"}) {
      const Outcome both = run(request + file("both.npy") + kDevice + how);
      ASSERT_EQ(both.code, 0) << path << how << "\n" << both.err;
      EXPECT_EQ(bytes_of(file("both.npy")), bytes_of(file("host.npy"))) << path << how;
    }
  }
}

TEST_P(EncoderDecoderTest, ARunBesideADeviceReportsAsADecoders) {
  const std::string request = "run " + model() + " --tokens " + list(golden_["encoder_tokens"]) +
                              " -n 24 --temp 0 --math f32 --io buffered --ignore-eos --json" + kDevice +
                              " --placement device --device-slots 2 --prefetch none --dense-on ";
  for (const std::string dense_on : {"host", "device"}) {
    const Outcome ran = run(request + dense_on);
    ASSERT_EQ(ran.code, 0) << ran.err;
    const Json json = Json::parse(ran.out);
    EXPECT_EQ(json["tokens"], golden_["greedy"]);
    EXPECT_EQ(json["placement"]["host"], 0);
    EXPECT_EQ(json["placement"]["device"], json["experts"]["accesses"]);
    EXPECT_GT(json["experts"]["prefill"]["accesses"], 0);  // the encoder's
    EXPECT_GT(json["experts"]["decode"]["accesses"], 0);
    EXPECT_GT(json["experts"]["device"]["hits"], 0);
    EXPECT_EQ(json["device"]["dense_on"], dense_on);
    EXPECT_LE(json["device"]["memory"]["peak"], json["device"]["memory"]["budget"]);
    EXPECT_GT(json["placement"]["decode"]["predicted_tpot_s"], 0);
  }
}

TEST_P(EncoderDecoderTest, IsProfiledPlannedAndComparedBesideADevice) {
  const std::string device = kDevice + " --device-memory 8MiB --io buffered";
  const Outcome profiled =
      run("profile " + model() + kDevice + " --io buffered --repeats 2 -q -o " + file("p.json"));
  ASSERT_EQ(profiled.code, 0) << profiled.err;
  const Outcome planned = run("plan " + model() + device + " --profile " + file("p.json") + " --json");
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_GT(Json::parse(planned.out)["device"]["slots"], 0) << planned.out;
  const Outcome compared =
      run("compare " + model() + device + " --preset gpu-lru,d-greedy --prefetch none --runs 1 --tokens " +
          list(golden_["encoder_tokens"]) + " -n 24 --math f32 --json");
  ASSERT_EQ(compared.code, 0) << compared.err;
  EXPECT_EQ(Json::parse(compared.out)["tokens"][0], golden_["greedy"]);
}

TEST_P(EncoderDecoderTest, WhatADeviceCannotDoIsRefused) {
  const auto expect = [](int code, const std::string& arguments, const std::string& said) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments;
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
  };
  const std::string request = "run " + model() + " --tokens 1,2,3 -n 4 --io buffered" + kDevice;
  expect(1, request + " --device-memory 4KiB", "memory of the device is too small");
  expect(2, request + " --device-slots 1000", "--device-slots");
  expect(2, request + " --prefetch dali-residual", "--prefetch");
  expect(2, request + " --device-keep packed", "--device-keep");
  expect(1, "trace " + model() + " --tokens 1,2,3 -n 4 --io buffered -o " + file("t") + kDevice, "encoder");
}

TEST_P(EncoderDecoderTest, WhatMakesNoSenseIsRefused) {
  const auto expect = [](int code, const std::string& arguments, const std::string& said) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments;
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
  };
  const std::string out = " --io buffered --out " + file("x.npy");
  expect(2, "forward " + model() + " --tokens 0,5" + out, "--encoder-tokens");
  expect(2, "forward " + kModels + "olmoe_a --tokens 1 --encoder-tokens 1" + out, "no encoder");
  expect(2, "forward " + model() + " --tokens 0 --encoder-tokens 1,x" + out, "--encoder-tokens");
  expect(2, "forward " + model() + " --tokens 0 --encoder-tokens 1,99999" + out, "out of range");
  expect(1, "run " + model() + " --tokens 1,2,3 -n 4 -c 2 --io buffered", "context");
}

INSTANTIATE_TEST_SUITE_P(Models, EncoderDecoderTest,
                         ::testing::Values("switch_transformers_a", "switch_transformers_b"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace encoder_decoder_test
