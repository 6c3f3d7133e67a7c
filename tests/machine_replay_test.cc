// Runs slices on a modelled machine, and reproduces SliceMoE's tables, with the built program.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

#include "base/files/scratch_directory.h"
#include "base/json/json.h"
#include "bundled_model.h"
#include "reproduce/slicemoe/slicemoe.h"
#include "reproduce/slicemoe/slicemoe_trained_rows.h"
#include "reproduce/well_formed.h"

namespace {

namespace fs = std::filesystem;
using sluice::Json;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::testing::ScratchDirectory;

const std::string kTrace = SLUICE_SOURCE_DIR "/tests/data/routing/dsv2lite.summary612.mrt.zst";

class MachineReplayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    fs::current_path(directory_.path());  // a directory without models
  }
  void TearDown() override { fs::current_path(before_); }
  std::string path(const std::string& name) const { return directory_.file(name); }
  ScratchDirectory directory_;
  fs::path before_;
};

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(MachineReplayTest, PublishedRoutingCostsWhatTheEquationsSay) {
  const std::string command = "simulate --trace " + kTrace +
                              " --machine slicemoe --prefill 500 --slices 8/4,4/2 "
                              "--memory-experts 1.8GB,3.6GB";
  const Outcome outcome = run(command + " --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(result.at("model"), "deepseek-v2-lite");
  ASSERT_EQ(result.at("results").size(), 4u);
  for (const Json& row : result.at("results")) {
    const Json& decode = row.at("decode");
    EXPECT_EQ(decode.at("tokens"), 112);
    EXPECT_EQ(decode.at("requests"), 112 * 26 * 6);
    EXPECT_EQ(row.at("prefill").at("tokens"), 500);
    EXPECT_EQ(row.at("recorded_differs"), 0);
    const double flash = decode.at("bytes_read").get<double>();
    EXPECT_EQ(flash, decode.at("msb_misses").get<double>() * row.at("msb_bytes").get<double>() +
                         decode.at("lsb_misses").get<double>() * row.at("lsb_bytes").get<double>());
    const Json &joules = decode.at("joules_per_token"), &seconds = decode.at("seconds_per_token");
    EXPECT_NEAR(joules.at("flash").get<double>(), 8 * 103e-12 * flash / 112, 1e-9);
    double sum = 0;
    for (const char* part : {"flash", "dram_read", "dram_write", "compute"})
      sum += joules.at(part).get<double>();
    EXPECT_NEAR(joules.at("total").get<double>(), sum, 1e-9);
    sum = 0;
    for (const char* part : {"rest", "compute", "flash_wait"}) sum += seconds.at(part).get<double>();
    EXPECT_NEAR(seconds.at("total").get<double>(), sum, 1e-9);
  }
  EXPECT_EQ(result.at("results")[0].at("msb_bytes"), 5136384);
  // More memory, fewer misses; fewer bits, less of everything.
  const auto total = [&](std::size_t row) {
    return result.at("results")[row].at("decode").at("joules_per_token").at("total").get<double>();
  };
  EXPECT_LT(total(1), total(0));
  EXPECT_LT(total(2), total(0));
  const Outcome table = run(command);
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("as deepseek-v2-lite"), std::string::npos);
}

TEST_F(MachineReplayTest, OwnTracesHaveLogitsForEveryRouter) {
  const std::string trace = path("f.trace");
  ASSERT_EQ(run("trace " + kModel + " -p 'Once upon a time there was' -n 40 --ignore-eos --memory " +
                memory(60) + " -o " + trace)
                .code,
            0);
  const std::string command = "simulate --trace " + trace + " --shape " + kModel +
                              " --machine slicemoe --memory-experts 6MB --slices 8/4 --json ";
  const Outcome exact = run(command);
  ASSERT_EQ(exact.code, 0) << exact.err;
  EXPECT_EQ(Json::parse(exact.out).at("routing").at("substituted"), 0);
  EXPECT_EQ(Json::parse(exact.out).at("recorded_differs"), 0);
  EXPECT_EQ(exact.err, "");
  const Outcome limited = run(command + "--preset slicemoe --miss-rate 10% --decisions " + path("log"));
  ASSERT_EQ(limited.code, 0) << limited.err;
  const Json result = Json::parse(limited.out);
  EXPECT_EQ(result.at("router"), "cache-prior");
  EXPECT_EQ(result.at("constraint"), "hard");
  EXPECT_GT(result.at("routing").at("substituted"), 0);
  EXPECT_LT(result.at("hbn_miss_rate"), Json::parse(exact.out).at("hbn_miss_rate"));
  const std::string log = content_of(path("log"));
  EXPECT_NE(log.find("miss_rate=0.1"), std::string::npos);
  EXPECT_NE(log.find("# hash " + result.at("decisions").get<std::string>()), std::string::npos);
  const Outcome again = run(command + "--preset slicemoe --miss-rate 10%");
  EXPECT_EQ(again.out, limited.out);
}

TEST_F(MachineReplayTest, MachinesComeFromFiles) {
  const std::string file = path("fast.json");
  std::ofstream(file) << R"({"name": "fast", "flash": {"bits_per_s": 40e9, "joules_per_bit": 103e-12},
    "dram": {"bits_per_s": 104e9, "joules_per_bit": 1.5e-12}, "xpu": {"ops_per_s": 16.384e12, "ops_per_joule": 3.18e12}})";
  const std::string common =
      "simulate --trace " + kTrace + " --prefill 500 --memory-experts 2.4GB --json --machine ";
  const Json slow = Json::parse(run(common + "slicemoe").out), fast = Json::parse(run(common + file).out);
  EXPECT_EQ(fast.at("machine").at("name"), "fast");
  EXPECT_EQ(fast.at("decisions"), slow.at("decisions"));
  EXPECT_EQ(fast.at("decode").at("joules_per_token"), slow.at("decode").at("joules_per_token"));
  EXPECT_LT(fast.at("decode").at("seconds_per_token").at("total"),
            slow.at("decode").at("seconds_per_token").at("total"));
}

TEST_F(MachineReplayTest, RefusalsNameTheFlag) {
  const auto refused = [](const std::string& arguments, const std::string& named, int code = 2) {
    const Outcome outcome = run("simulate --trace " + kTrace + " " + arguments);
    EXPECT_EQ(outcome.code, code) << arguments;
    EXPECT_NE(outcome.err.find(named), std::string::npos) << arguments << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "");
  };
  const std::string all = "--machine slicemoe --memory-experts 1.8GB ";
  refused("--machine slicemoe", "--memory-experts");
  refused("--slices 8/4 --memory-experts 1GB", "--machine");
  refused("--machine toaster --memory-experts 1GB", "--machine");
  refused(all + "--slices 8/3", "--slices");
  refused(all + "--router cache-prior", "--router");  // the trace has no logits
  refused(all + "--constraint hard", "--constraint: a limit on misses replaces experts");
  refused(all + "--precision dbsc --cache lru", "--cache");
  refused(all + "--precision low --warmup last-layer", "--warmup");
  refused(all + "--critical fixed_top_c --critical-count 7", "--critical-count: more critical experts");
  refused(all + "--router cumsum --top-j 65", "--top-j: more experts are exempt");
  refused(all + "--capacity 8", "--machine");
  refused(all + "--preset zipmoe", "--preset");
  refused(all + "--shape qwen1.5-moe-a2.7b", "--shape", 1);
  refused("--machine slicemoe --memory-experts 1MB", "--memory-experts", 1);
  const Outcome no_shape =
      run("simulate --trace " SLUICE_SOURCE_DIR
          "/tests/data/routing/qwen.route.csv.zst --machine slicemoe --memory-experts 1GB");
  EXPECT_EQ(no_shape.code, 2);
  EXPECT_NE(no_shape.err.find("--shape"), std::string::npos) << no_shape.err;
}

// One blank between words, wherever lines were broken.
std::string words_of(const std::string& text) { return std::regex_replace(text, std::regex("\\s+"), " "); }

TEST_F(MachineReplayTest, ReproducesTheRowsThatAreSimulated) {
  const std::string out = path("report");
  const std::string command = "reproduce slicemoe --quick --quiet --model none --trace ";
  const Outcome outcome = run(command + kTrace + " -o " + out);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json report = Json::parse(content_of(out + "/slicemoe.json"));
  const std::string markdown = content_of(out + "/slicemoe.md");
  ASSERT_EQ(report.at("rows").size(), sluice::reproduce::slicemoe_row_ids().size());
  for (std::size_t i = 0; i < report.at("rows").size(); ++i) {
    const Json& row = report.at("rows")[i];
    EXPECT_EQ(row.at("id"), sluice::reproduce::slicemoe_row_ids()[i]);
    // The other rows are measured on a trained model.
    const bool measured =
        std::ranges::count(sluice::reproduce::trained_row_ids(), row.at("id").get<std::string>()) == 1;
    EXPECT_EQ(row.at("mode"), measured ? "N" : "S");
    EXPECT_NE(words_of(outcome.out).find(words_of(row.at("ours").get<std::string>())), std::string::npos);
    EXPECT_NE(markdown.find(row.at("ours").get<std::string>()), std::string::npos);
  }
  ASSERT_FALSE(report.at("pictures").empty());
  for (const Json& picture : report.at("pictures"))
    EXPECT_EQ(sluice::testing::xml_fault(content_of(out + "/" + picture.get<std::string>())), "") << picture;
  // Equal settings give an equal report; without a recording, the report says that it uses synthetic routing.
  const Outcome again = run(command + kTrace + " --json -o " + path("again"));
  EXPECT_EQ(Json::parse(again.out).at("data"), report.at("data"));
  const Outcome none = run(command + "none -o " + path("none"));
  ASSERT_EQ(none.code, 0) << none.err;
  EXPECT_NE(content_of(path("none") + "/slicemoe.md").find("No recorded routing"), std::string::npos);
  EXPECT_EQ(run("reproduce slicemoe --budget 8GiB").code, 2);
}

TEST_F(MachineReplayTest, ATrainedModelThatCannotBeMeasuredIsRefusedBeforeAnythingIs) {
  const auto refused = [&](const std::string& flags, const std::string& words) {
    const Outcome outcome =
        run("reproduce slicemoe --quick --quiet --trace " + kTrace + " -o " + path("none") + " " + flags);
    EXPECT_EQ(outcome.code, 1) << flags;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
    EXPECT_FALSE(fs::exists(path("none"))) << flags;
  };
  std::ofstream(path("short")) << "Once upon a time there was a king.";
  refused("--model " + path("x"), "no such model");
  refused("--model " + kModel + " -f " + path("y"), "no text");
  refused("--model " + kModel + " -f " + path("short"), "at least 2 windows");
  ASSERT_EQ(run("pack " + kModel + " -o " + path("m.sluice") + " --quiet").code, 0);
  refused("--model " + path("m.sluice") + " -f " + kModel + "/eval.txt", "m.sluice");
}

// Its default data lie with the sources: elsewhere the program says so at once, and leaves nothing.
TEST_F(MachineReplayTest, DataThatAreNotThereAreNamedWithWhatHelps) {
  const auto refused = [&](const std::string& flags, const std::string& where, const std::string& fix,
                           int code = 1) {
    const Outcome outcome = run("reproduce " + flags + " -o " + path("none"));
    EXPECT_EQ(outcome.code, code) << flags;
    EXPECT_NE(outcome.err.find(where), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(fix), std::string::npos) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_FALSE(fs::exists(path("none"))) << flags;
    return outcome.err;
  };
  const std::string model = "models/fable-moe-18m: no such model; expected the directory of Sluice's sources";
  const std::string error = refused("slicemoe", model, "--model none for replays alone");
  EXPECT_NE(error.find("found " + fs::current_path().string()), std::string::npos) << error;
  refused("zipmoe", model, "start there, or give --model");
  refused("slicemoe --model none", "tests/data/routing/dsv2lite.summary612.mrt.zst: no such recorded routing",
          "start there, or give --trace FILE, or --trace none");
  refused("zipmoe --model " + kModel, "tests/data/routing/dsv2lite.first48.mrt.zst: no such recorded routing",
          "--trace none");
  refused("slicemoe --model " + kModel + " --trace there", "there: no such recorded routing",
          "; give --trace FILE, or --trace none");
  refused("slicemoe --model none --trace none -f text", "-f: without a model no text is read", "leave out -f",
          2);
}

}  // namespace
