// What the router smoe costs, through the built program: calibrated in a store of exact weights, chosen by
// --max-loss and by default, reported, and refused where it was not measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/files/scratch_directory.h"
#include "base/json/json.h"
#include "bundled_model.h"

namespace sluice::program {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class SmoeCost : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_.emplace();
    store_ = directory_->file("m.sluice");
    ASSERT_EQ(run("pack " + kModel + " -o " + store_ + " -q").code, 0);
    calibrate_ = "calibrate " + store_ + " --io buffered --threads 2 -f " + kModel +
                 "/eval.txt --tokens 192 --ctx 64 --prefill 16";
  }
  static void TearDownTestSuite() { directory_.reset(); }

  static std::string sidecar() { return store_ + "/sidecar/calibration.json"; }
  static Json calibrated() {
    if (!fs::exists(sidecar())) run_json(calibrate_);
    std::ifstream file(sidecar(), std::ios::binary);
    return Json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  }
  static std::string story(const std::string& more) {
    return "run " + store_ +
           " --io buffered --threads 2 -p 'Once upon a time' -n 40 --ignore-eos --temp 0 --cache lru "
           "--capacity 8MiB --prefetch none --memory " +
           memory(64) + " " + more;
  }
  static Json routing_of(const std::string& more) {
    return run_json(story(more)).at("experts").at("routing");
  }

  static inline std::optional<sluice::testing::ScratchDirectory> directory_;
  static inline std::string store_, calibrate_;
};

// The largest alpha that loses at most so much in either cache, as do the smaller ones.
double allowed_alpha(const Json& calibration, double most) {
  double refused = 1e9, largest = 0;
  for (const Json& point : calibration.at("points"))
    if (point.at("loss").get<double>() + point.at("error").get<double>() > std::log1p(most))
      refused = std::min(refused, point.at("alpha").get<double>());
  for (const Json& point : calibration.at("points"))
    if (const double alpha = point.at("alpha").get<double>(); alpha < refused)
      largest = std::max(largest, alpha);
  return largest;
}

TEST_F(SmoeCost, IsMeasuredAndKeptInTheStore) {
  const Outcome table = run(calibrate_);
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("few tokens"), HasSubstr("0.60, 50 %"),
                               HasSubstr("--router smoe will run with alpha")));
  const Json printed = run_json(calibrate_), kept = calibrated();
  EXPECT_EQ(printed.at("points"), kept.at("points"));
  EXPECT_EQ(printed.at("text").at("windows"), 3);
  ASSERT_EQ(printed.at("points").size(), 10u);
  EXPECT_EQ(run("verify " + store_).code, 0);
}

TEST_F(SmoeCost, ALimitChoosesAlphaIsKeptAndReported) {
  const Json calibration = calibrated();
  double mass = -1;
  for (const double most : {.01, .6}) {
    SCOPED_TRACE(most);
    const std::string flag = "--max-loss " + std::to_string(100 * most) + "%";
    const Json routing = routing_of(flag);
    EXPECT_EQ(routing.at("router"), "smoe");
    EXPECT_EQ(routing.at("alpha").get<double>(), allowed_alpha(calibration, most));
    EXPECT_TRUE(routing.at("calibrated").get<bool>());
    EXPECT_NEAR(routing.at("max_loss").get<double>(), most, 1e-9);
    EXPECT_LE(routing.at("estimated_loss").at("upper").get<double>(), most + 1e-9);
    EXPECT_LE(routing.at("estimated_loss").at("total").get<double>(),
              routing.at("estimated_loss").at("upper").get<double>());
    EXPECT_GE(routing.at("mass_lost").get<double>(), mass);
    mass = routing.at("mass_lost").get<double>();
  }
  EXPECT_GT(mass, 0);
  const Outcome shown = run(story("--max-loss 60%"));
  EXPECT_THAT(shown.err, AllOf(HasSubstr("(calibrated)"), HasSubstr("of perplexity"), HasSubstr("\n  loss "),
                               HasSubstr("(accepted 60 %)")));
}

TEST_F(SmoeCost, AlphaIsThatOfOnePercentWhereNobodySaysIt) {
  const Json calibration = calibrated();
  const Json usual = routing_of("--router smoe"), said = routing_of("--router smoe --alpha 0.3");
  EXPECT_EQ(usual.at("alpha").get<double>(), allowed_alpha(calibration, .01));
  EXPECT_TRUE(usual.at("calibrated").get<bool>());
  EXPECT_FALSE(usual.contains("max_loss"));
  EXPECT_EQ(said.at("alpha").get<double>(), .3);
  EXPECT_TRUE(said.at("calibrated").get<bool>());
  EXPECT_GE(said.at("estimated_loss").at("upper").get<double>(), 0);
  // Weights by another rule were not measured, nor is more than was measured known.
  const Json other = routing_of("--router smoe --renorm none");
  EXPECT_FALSE(other.at("calibrated").get<bool>());
  EXPECT_EQ(other.at("alpha").get<double>(), .25);
  const Json beyond = routing_of("--router smoe --alpha 50");
  EXPECT_TRUE(beyond.at("estimated_loss").at("total").is_null());
  EXPECT_THAT(run(story("--router smoe --alpha 50")).err, HasSubstr("not known: calibrated up to"));
}

TEST_F(SmoeCost, WhatWasNotMeasuredIsRefused) {
  calibrated();
  const struct {
    const char *flags, *says;
  } all[] = {
      {"--max-loss 1% --alpha 0.2", "--alpha"},
      {"--max-loss 1% --router smoe", "--router"},
      {"--max-loss 1% --renorm none", "--renorm"},
      {"--max-loss 1% --merge off", "--merge"},
      {"--max-loss 1% --preset zipmoe", "--preset"},
      {"--max-loss 1% --kv int8", "8-bit key/value cache"},
      {"--max-loss 1% --constraint hard", "--constraint"},
  };
  for (const auto& [flags, says] : all) {
    const Outcome refused = run(story(flags));
    EXPECT_EQ(refused.code, 2) << flags;
    EXPECT_THAT(refused.err, HasSubstr(says)) << flags;
  }
  const Outcome reference = run(calibrate_ + " --reference " + kModel);
  EXPECT_EQ(reference.code, 2);
  EXPECT_THAT(reference.err, AllOf(HasSubstr("--reference"), HasSubstr("its own reference")));
}

// A run goes on without a calibration that is damaged, and says so; a limit needs it.
TEST_F(SmoeCost, ADamagedCalibrationPromisesNothing) {
  calibrated();
  const std::string kept = directory_->file("kept.json");
  fs::copy_file(sidecar(), kept);
  std::ifstream file(kept, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  text[text.find("\"loss\":") + 7] ^= 1;
  std::ofstream(sidecar(), std::ios::binary) << text;
  const Outcome limited = run(story("--max-loss 1%")), free = run(story("--router smoe"));
  EXPECT_EQ(limited.code, 1);
  EXPECT_THAT(limited.err, HasSubstr("calibration.json"));
  EXPECT_EQ(free.code, 0);
  EXPECT_THAT(free.err, AllOf(HasSubstr("calibration is passed over"), HasSubstr("(uncalibrated)")));
  fs::remove(sidecar());
  fs::rename(kept, sidecar());
}

}  // namespace
}  // namespace sluice::program
