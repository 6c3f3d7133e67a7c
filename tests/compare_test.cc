// Runs `sluice compare` with presets that lose something.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>

#include "base/files/scratch_directory.h"
#include "base/json/json.h"
#include "bundled_model.h"
#include "model/golden_models.h"

namespace {

using sluice::Json;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::program::run_json;
using sluice::testing::ScratchDirectory;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPrompt = " -p 'Once upon a time there was a king who' -n 60 --capacity 3MiB";

TEST(Compare, SaysThatTheContextEndedTheAnswers) {
  const std::string compare = "compare " + kModel + " -p Once -n 50 --preset auto --runs 1 --json";
  EXPECT_THAT(run(compare + " -c 20").err, HasSubstr("-c: the context of 20 tokens is full"));
  EXPECT_EQ(run(compare).err, "");
}

// The last token of an answer needs no position: 5 and 4 tokens are whole in a context of 8, as in a run.
TEST(Compare, SaysNothingOfAContextThatHeldTheAnswers) {
  const std::string compare =
      "compare " + kModel + " --tokens 1,2,3,4,5 --preset auto --runs 1 --json -c 8 -n ";
  const Outcome whole = run(compare + "4"), cut = run(compare + "5");
  EXPECT_EQ(whole.err, "");
  EXPECT_EQ(Json::parse(whole.out)["tokens"][0].size(), 4u);
  EXPECT_THAT(cut.err, HasSubstr("-c: the context of 8 tokens is full"));
  EXPECT_EQ(Json::parse(cut.out)["tokens"][0].size(), 4u);
}

// A preset that reads ahead wastes some of what it reads.
TEST(Compare, BytesReadInVainStandApart) {
  const std::string compare = "compare " + kModel + " -p Once -n 40 --runs 1 -q --memory " +
                              sluice::program::memory(24) + " --preset auto,z-basic-lru";
  const Json presets = run_json(compare)["presets"];
  const auto median = [&](std::size_t preset, const char* figure) {
    return presets[preset][figure]["median"].get<double>();
  };
  EXPECT_GT(median(0, "wasted_bytes_per_token"), 0);
  EXPECT_GT(median(0, "useful_bytes_per_token"), 0);
  EXPECT_NEAR(median(0, "useful_bytes_per_token") + median(0, "wasted_bytes_per_token"),
              median(0, "bytes_per_token"), 1e-6 * median(0, "bytes_per_token"));
  EXPECT_EQ(median(1, "wasted_bytes_per_token"), 0);
  EXPECT_GT(median(1, "bytes_per_token"), 0);
  EXPECT_EQ(median(1, "useful_bytes_per_token"), median(1, "bytes_per_token"));
  for (const Json& preset : presets) {
    const Json& predicted = preset["predicted"];
    EXPECT_GT(predicted["bytes_per_token"].get<double>(), 0) << preset["preset"];
    EXPECT_EQ(predicted["routing"], "assumed");
    EXPECT_TRUE(predicted.contains("bytes_hint") && predicted.contains("speed_hint"));
  }
  EXPECT_EQ(presets[1]["predicted"]["wasted_bytes_per_token"], 0);
  EXPECT_EQ(run_json(compare + " --prefetch none")["presets"][0]["wasted_bytes_per_token"]["high"], 0);
  EXPECT_THAT(run(compare).out, HasSubstr("  read/token     in vain  hits  "));
}

// The help says so.
TEST(Compare, FiguresStandSideBySideWhereTheyFit) {
  const std::string compare =
      " '" SLUICE_PROGRAM "' compare " + kModel + " --tokens 1,2 -n 2 --runs 1 -q --preset auto,z-accelerate";
  const Outcome wide = sluice::program::run_command("COLUMNS=200" + compare),
                usual = sluice::program::run_command("COLUMNS=80" + compare),
                narrow = sluice::program::run_command("COLUMNS=50" + compare);
  EXPECT_THAT(wide.out, AllOf(testing::StartsWith("preset "), HasSubstr(", 1 run each in turns")));
  EXPECT_THAT(wide.out, AllOf(HasSubstr("found in\n"), Not(HasSubstr("left out"))));
  EXPECT_THAT(usual.out,
              AllOf(testing::StartsWith("preset "), HasSubstr(" tok/s "), HasSubstr(" in vain "),
                    HasSubstr("\nleft out: "), HasSubstr("found in; a wider terminal and --json")));
  EXPECT_THAT(narrow.out,
              AllOf(testing::StartsWith("auto\n  tok/s "), HasSubstr("\nz-accelerate\n  tok/s ")));
  EXPECT_THAT(sluice::program::run_command("COLUMNS=1000 '" SLUICE_PROGRAM "' compare --help").out,
              HasSubstr("side by side where the terminal is wide enough for the table, else one below the"));
}

class CompareLossy : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_.emplace();
    ASSERT_EQ(run("pack " + kModel + " -o " + store() + " --slices 4/2 --quiet").code, 0);
  }
  static void TearDownTestSuite() { directory_.reset(); }
  static std::string store() { return directory_->file("s.sluice"); }
  // Caches of one capacity, so that every start decides alike.
  static Json alone(const std::string& arguments) {
    return run_json("run " + arguments + kPrompt + " --temp 0 --ignore-eos");
  }

  static inline std::optional<ScratchDirectory> directory_;
};

TEST_F(CompareLossy, TextsMayDifferAndItIsSaidWhatChanged) {
  const Json result = run_json("compare " + store() + " --reference " + kModel +
                               " --preset slicemoe,auto --precision low --runs 2 -q" + kPrompt);
  EXPECT_EQ(result["texts_equal"], false);
  EXPECT_EQ(result["texts_equal_where_computed_alike"], true);
  const Json &exact = result["presets"][0], &lossy = result["presets"][1], &fixed = result["presets"][2];
  EXPECT_EQ(exact["preset"], "exact");
  EXPECT_EQ(exact["model"], kModel);
  EXPECT_EQ(exact["lossy"], false);
  EXPECT_FALSE(exact.contains("experts"));
  EXPECT_EQ(lossy["preset"], "slicemoe");
  EXPECT_EQ(lossy["arithmetic"], nullptr);
  EXPECT_EQ(lossy["lossy"], true);
  EXPECT_EQ(fixed["preset"], "auto");
  EXPECT_EQ(fixed["arithmetic"], "low precision, int8 activations, BF16 keys and values");
  EXPECT_EQ(fixed["lossy"], true);

  // All values equal those of `run`.
  const Json tokens = alone(kModel)["tokens"];
  EXPECT_EQ(result["tokens"][0], tokens);
  for (const Json* contender : {&lossy, &fixed}) {
    const std::string preset = (*contender)["preset"].get<std::string>();
    SCOPED_TRACE(preset);
    const Json ran = alone(store() + " --precision low --preset " + preset);
    EXPECT_EQ((*contender)["experts"]["slices"], ran["experts"]["slices"]);
    EXPECT_EQ((*contender)["experts"]["routing"], ran["experts"]["routing"]);
    std::size_t equal = 0;
    while (equal < tokens.size() && tokens[equal] == ran["tokens"][equal]) ++equal;
    EXPECT_LT(equal, tokens.size());  // otherwise this test shows nothing
    EXPECT_EQ((*contender)["equal_tokens"]["median"], equal);
    EXPECT_EQ((*contender)["equal_tokens"]["high"], equal);
    EXPECT_EQ((*contender)["equal_tokens"]["of"], tokens.size());
  }
}

TEST_F(CompareLossy, RoutersThatPreferWhatIsThereMayDiffer) {
  const std::string split = directory_->file("split.sluice");
  ASSERT_EQ(run("pack " + kModel + " -o " + split + " --quiet").code, 0);
  const Outcome outcome =
      run("compare " + split + " --preset auto,z-basic-fifo --router cache-prior --lambda 1 --runs 1 -q" +
          kPrompt);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("texts equal where computed alike"), HasSubstr("what lossy contenders changed"),
                    HasSubstr("\nz-basic-fifo     routing  cache-prior:")));
}

TEST_F(CompareLossy, RoundedPresetsOfOnePrecisionAgree) {
  for (const std::string precision : {"high", "low"}) {
    const Json result =
        run_json("compare " + store() + " --reference " + kModel +
                 " --preset auto,z-basic-lru,z-accelerate --scheduler fifo --runs 1 -q --precision " +
                 precision + kPrompt);
    EXPECT_EQ(result["texts_equal_where_computed_alike"], true);
    for (std::size_t i : {1u, 2u, 3u})
      EXPECT_THAT(result["presets"][i]["arithmetic"].get<std::string>(), HasSubstr(precision + " precision"));
  }
}

// Passes another model's experts as --whole, since no preset computes wrongly: all that distinguishes models
// is equal.
TEST_F(CompareLossy, ExactPresetsThatDifferAreAFailure) {
  const std::string other = directory_->file("whole");
  std::filesystem::copy(kModel, other);
  for (const auto& entry : std::filesystem::directory_iterator(other))
    if (entry.path().extension() == ".safetensors") sluice::program::exchange_experts(entry.path().string());
  const Outcome outcome = run("compare " + kModel + " --whole " + other +
                              " --preset auto,z-accelerate --runs 1 -q -p 'Once upon a time' -n 8");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("texts DIFFER"));
  EXPECT_THAT(outcome.err, HasSubstr("presets that compute alike gave different texts"));
}

TEST_F(CompareLossy, WholeIsTheSameModel) {
  const std::string other = directory_->file("other_whole");
  ASSERT_EQ(run("synth " + kModel + "/config.json -o " + other + " --quiet").code, 0);
  for (const std::string& whole : {other, sluice::testing::kGoldenModels + "/qwen2_moe_b"}) {
    const Outcome refused =
        run("compare " + kModel + " --whole " + whole + " --preset auto,z-accelerate -q -p a -n 2");
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("this model differs from the model at " + kModel),
                                   HasSubstr(whole), HasSubstr("a directory and stores packed from it")));
    EXPECT_EQ(refused.out, "");
  }
  // A reference that is right must not be blamed.
  const Outcome beside = run("compare " + kModel + " --reference " + kModel + " --whole " + other +
                             " --preset auto,z-accelerate -q -p a -n 2");
  EXPECT_EQ(beside.code, 1);
  EXPECT_THAT(beside.err, HasSubstr(other + ": this model differs from the model at " + kModel));
}

TEST_F(CompareLossy, AContenderWhoseBudgetIsTooSmallIsNamed) {
  const std::string at = "compare " + store() + " --preset auto --precision high -q -p a -n 2 --memory " +
                         sluice::program::memory(42) + " --capacity 1GiB";
  EXPECT_EQ(run(at).code, 0);
  const Outcome refused = run(at + " --reference " + kModel);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("sluice: --capacity: exact: the memory budget leaves less for experts"));
}

TEST_F(CompareLossy, AReferenceIsTheExactModel) {
  const std::string at =
      "compare " + store() + " --preset auto --precision high --runs 1 -q -p a -n 2 --reference ";
  const std::string other = directory_->file("other");
  ASSERT_EQ(run("synth " + kModel + "/config.json -o " + other + " --quiet").code, 0);
  for (const auto& [reference, words] :
       {std::pair(store(), "the reference is itself rounded"),
        std::pair(sluice::testing::kGoldenModels + "/qwen2_moe_b", "another vocabulary"),
        std::pair(other, "the reference is not the model")}) {
    const Outcome refused = run(at + reference);
    EXPECT_EQ(refused.code, 1) << reference;
    EXPECT_THAT(refused.err, AllOf(HasSubstr(words), HasSubstr("give the model that it was packed from")));
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    EXPECT_EQ(refused.out, "");
  }
}

TEST_F(CompareLossy, ItIsSaidWhatIsMissing) {
  const Outcome bare = run("compare " + store() + " --preset slicemoe,auto -p x -n 2");
  EXPECT_EQ(bare.code, 2);
  EXPECT_THAT(bare.err, AllOf(HasSubstr("preset auto does not go with this model"),
                              HasSubstr("add --precision high, low or dbsc")));
  const Outcome pools = run("compare " + store() + " --preset zipmoe -p x -n 2 --cache zip-pools");
  EXPECT_EQ(pools.code, 2);
  EXPECT_THAT(pools.err, HasSubstr("the pools of this cache hold"));
}

TEST(Compare, RanksGoToThePresetsThatGoByThem) {
  const ScratchDirectory directory;
  const std::string ranks = directory.file("ranks.trace");
  ASSERT_EQ(run("trace " + kModel + " --tokens 1,2,3 -n 3 -q -o " + ranks).code, 0);
  const std::string compare = "compare " + kModel + " --tokens 1,2,3 -n 3 --runs 1 --memory " + memory(40) +
                              " --device emulated:threads=1 --ranks-of " + ranks + " --preset ";
  for (const char* presets : {"d-fiddler,gpu-lru", "gpu-lru,d-fiddler"}) {
    const Outcome mixed = run(compare + presets);
    EXPECT_EQ(mixed.code, 0) << mixed.err;
    EXPECT_THAT(mixed.err, HasSubstr("--ranks-of acts on none of gpu-lru, whose")) << presets;
    EXPECT_EQ(run(compare + presets + " -q").err, "") << presets;
  }
  const Outcome one = run(compare + "d-fiddler");
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.err.find("acts on none"), std::string::npos) << one.err;
  const Outcome none = run(compare + "gpu-lru,d-greedy");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("--ranks-of: this flag has no effect here"));
}

TEST(Compare, ADeviceIsNamed) {
  const std::string compare = "compare " + kModel + " --preset zipmoe -p hi -n 4 --runs 1 --memory " +
                              memory(40) + " --device emulated:threads=1";
  const Outcome text = run(compare);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("device, emulated: no time here is a speed of this program"), std::string::npos);
  const Json json = run_json(compare);
  EXPECT_EQ(json["device"]["name"], "emulated");
  EXPECT_NE(json["device"]["spec"].get<std::string>().find("threads=1"), std::string::npos);
}

}  // namespace
