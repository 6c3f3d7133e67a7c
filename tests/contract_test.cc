// --max-loss on the command line: calibrated, chosen, reported; and refused where it cannot be kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/files/scratch_directory.h"
#include "base/json/json.h"
#include "bundled_model.h"

namespace sluice::program {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class MaxLoss : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_.emplace();
    store_ = directory_->file("m.sluice");
    ASSERT_EQ(run("pack " + kModel + " -o " + store_ + " --slices 4/2 -q").code, 0);
    calibrate_ = "calibrate " + store_ + " --reference " + kModel + " --io buffered --threads 2 -f " +
                 kModel + "/eval.txt --tokens 96 --ctx 48 --prefill 16";
  }
  static void TearDownTestSuite() { directory_.reset(); }

  static std::string sidecar() { return store_ + "/sidecar/calibration.json"; }
  static void calibrated() {
    if (!fs::exists(sidecar())) run_json(calibrate_);
  }
  static Outcome contracted(const std::string& arguments) {
    return run("run " + store_ +
               " --io buffered --threads 2 -p 'Once upon a time' -n 40 --ignore-eos --temp 0 " + arguments);
  }

  static inline std::optional<sluice::testing::ScratchDirectory> directory_;
  static inline std::string store_, calibrate_;
};

TEST_F(MaxLoss, IsKeptAndReported) {
  EXPECT_THAT(run(calibrate_).out, HasSubstr("few tokens"));
  const Json calibration = run_json(calibrate_);
  EXPECT_EQ(calibration["text"]["windows"], 2);
  EXPECT_EQ(calibration["activations"], "int8");
  EXPECT_EQ(calibration["text"]["scored"], 2 * 31);
  EXPECT_GE(calibration["precision"].size(), 4u);
  EXPECT_GE(calibration["routing"].size(), 6u);
  EXPECT_EQ(run("verify " + store_).code, 0);

  const Outcome outcome = contracted("--memory " + memory(24) + " --max-loss 60% --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json slices = Json::parse(outcome.out)["experts"]["slices"];
  EXPECT_NEAR(slices["max_loss"].get<double>(), .6, 1e-9);
  EXPECT_LE(slices["estimated_loss"]["upper"], .6 + 1e-9);
  EXPECT_GT(slices["estimated_loss"]["total"], 0);
  EXPECT_LE(slices["estimated_loss"]["total"], slices["estimated_loss"]["upper"]);
  EXPECT_EQ(slices["constraint"], "hard");
  const Outcome table = contracted("--memory " + memory(24) + " --max-loss 60%");
  EXPECT_THAT(table.err, AllOf(HasSubstr("\n  loss "), HasSubstr("(accepted 60 %)")));
}

// Smoe may spend what routing may lose; its alpha is the user's, and the limit acts as it does elsewhere.
TEST_F(MaxLoss, SmoeMaySpendIt) {
  calibrated();
  std::uint64_t substituted = 0;
  for (const std::string alpha : {"", " --alpha 0.8"}) {
    SCOPED_TRACE(alpha);
    const Outcome outcome =
        contracted("--memory " + memory(24) + " --max-loss 60% --router smoe --json" + alpha);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json experts = Json::parse(outcome.out)["experts"];
    const Json& slices = experts["slices"];
    EXPECT_LE(slices["estimated_loss"]["upper"], .6 + 1e-9);
    EXPECT_EQ(slices["constraint"], "none");
    EXPECT_EQ(experts["routing"]["router"], "smoe");
    EXPECT_GT(experts["routing"]["substituted"].get<std::uint64_t>(), substituted);
    substituted = experts["routing"]["substituted"].get<std::uint64_t>();
  }
  EXPECT_THAT(contracted("--memory " + memory(24) + " --max-loss 60% --router smoe").err,
              HasSubstr("smoe, alpha 0.25 (within the accepted loss)"));
  for (const char* const flags :
       {" --router cache-prior", " --router smoe --merge off", " --router smoe --renorm mass", " --alpha 0.3",
        " --router smoe --precision low"})
    EXPECT_THAT(contracted(std::string("--max-loss 60%") + flags).err,
                HasSubstr("--max-loss chooses precision and routing"))
        << flags;
}

TEST_F(MaxLoss, LessThanTheStoreCanDoIsRefused) {
  calibrated();
  const Outcome outcome = contracted("--max-loss 0.01%");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--max-loss"), HasSubstr("at least"), HasSubstr("0.01 %")));
}

TEST_F(MaxLoss, OfAStoreWithoutSlicesNothingIsLost) {
  const std::string store = directory_->file("exact.sluice");
  ASSERT_EQ(run("pack " + kModel + " -o " + store + " -q").code, 0);
  for (const std::string& model : {store, kModel}) {
    const Outcome refused = run("run " + model + " -p x -n 1 --max-loss 3%");
    EXPECT_EQ(refused.code, model == store ? 1 : 2) << model;
    EXPECT_THAT(refused.err, HasSubstr("this model loses nothing")) << model;
  }
}

TEST_F(MaxLoss, NeedsACalibrationOfThisStore) {
  calibrated();
  const std::string kept = directory_->file("kept.json");
  fs::rename(sidecar(), kept);
  const auto refused = [&](const std::string& why) {
    const Outcome outcome = contracted("--max-loss 60%");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr(why));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  };
  refused("sluice calibrate " + directory_->file("m.sluice") + " --reference MODEL -f TEXT");
  std::ifstream file(kept, std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(file), {});
  const auto write = [&](const std::string& text) { std::ofstream(sidecar(), std::ios::binary) << text; };
  std::string damaged = whole;
  damaged[damaged.find("\"loss\":") + 7] ^= 1;
  write(damaged);
  refused("calibration.json");
  write(whole.substr(0, whole.size() / 2));
  refused("calibration.json");
  // The calibration of another store.
  const std::string other = directory_->file("other.sluice");
  ASSERT_EQ(run("pack " + kModel + " -o " + other + " --slices 8/4 -q").code, 0);
  fs::create_directories(other + "/sidecar");
  fs::copy_file(kept, other + "/sidecar/calibration.json");
  const Outcome foreign = run("run " + other + " --io buffered -p a -n 2 --max-loss 60%");
  EXPECT_EQ(foreign.code, 1);
  EXPECT_THAT(foreign.err, HasSubstr("sluice calibrate"));
  fs::rename(kept, sidecar());
}

TEST_F(MaxLoss, ChoosesAlone) {
  for (const std::string flag : {"--precision high", "--preset slicemoe", "--constraint hard", "--theta .4",
                                 "--router exact", "--lambda .2", "--lsb-miss skip", "--rho 1"}) {
    const Outcome outcome = contracted("--max-loss 5% " + flag);
    EXPECT_EQ(outcome.code, 2) << flag;
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("--max-loss chooses"), HasSubstr(flag.substr(0, flag.find(' ')))));
  }
  EXPECT_EQ(contracted("--max-loss five").code, 2);
  const Outcome one = contracted("--max-loss 1");
  EXPECT_EQ(one.code, 2);
  EXPECT_THAT(one.err, HasSubstr("1% or 100%"));
  calibrated();
  const Outcome other = contracted("--max-loss 5% --activations fp32");
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, AllOf(HasSubstr("other activations"), HasSubstr("--activations")));
  const Outcome cache = contracted("--max-loss 60% --kv int8");
  EXPECT_EQ(cache.code, 2);
  EXPECT_THAT(cache.err, HasSubstr("--kv int8"));
  const Outcome view = contracted("--max-loss 60% --low-view amat-center");
  EXPECT_EQ(view.code, 2);
  EXPECT_THAT(view.err, HasSubstr("--low-view"));
  const Outcome directory = run("run " + kModel + " -p a -n 1 --max-loss 5%");
  EXPECT_EQ(directory.code, 2);
  EXPECT_THAT(directory.err, HasSubstr("a NAME.sluice store"));
}

TEST_F(MaxLoss, IsAContenderByItself) {
  calibrated();
  const std::string at =
      "compare " + store_ + " --io buffered -p 'Once upon a time' -n 8 --runs 1 -q --max-loss 60% ";
  const Json one = run_json(at), both = run_json(at + "--reference " + kModel);
  ASSERT_EQ(one["presets"].size(), 1u);
  ASSERT_EQ(both["presets"].size(), 2u);
  EXPECT_EQ(both["presets"][0]["preset"], "exact");
  for (const Json& contender : {one["presets"][0], both["presets"][1]}) {
    EXPECT_EQ(contender["preset"], "max-loss");
    EXPECT_NEAR(contender["experts"]["slices"]["max_loss"].get<double>(), .6, 1e-9);
    EXPECT_GT(contender["experts"]["slices"]["estimated_loss"]["total"].get<double>(), 0);
  }
  EXPECT_EQ(both["presets"][1]["equal_tokens"]["of"], 8);
  const Outcome table = run(at);
  EXPECT_THAT(table.out, AllOf(HasSubstr("\nmax-loss "), HasSubstr("(accepted 60 %)")));
  const Outcome refused = run(at + "--preset slicemoe");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("--max-loss chooses"), HasSubstr("--preset")));
}

TEST_F(MaxLoss, CalibrationIsRefusedWithoutWhatItNeeds) {
  const Outcome no_reference = run("calibrate " + store_ + " -f " + kModel + "/eval.txt");
  EXPECT_EQ(no_reference.code, 2);
  EXPECT_THAT(no_reference.err, HasSubstr("--reference"));
  const Outcome not_sliced =
      run("calibrate " + kModel + " --reference " + kModel + " -f " + kModel + "/eval.txt");
  EXPECT_EQ(not_sliced.code, 1);
  EXPECT_THAT(not_sliced.err, HasSubstr("only a packed store keeps"));
  const Outcome window = run(calibrate_ + " --ctx 20");
  EXPECT_EQ(window.code, 2);
}

}  // namespace
}  // namespace sluice::program
