// Profiles, plans, pools and batches through the built program, on the bundled model.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "bundled_model.h"
#include "model/golden_models.h"

namespace {

namespace fs = std::filesystem;
using sluice::Json;
using sluice::read_json_file;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::program::run_json;

class ZipMoeTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = ::testing::TempDir() + "/sluice-zip-XXXXXX";
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
    ASSERT_EQ(run("pack " + kModel + " -o " + store() + " --codec zstd --quiet").code, 0);
    ASSERT_EQ(run("profile " + store() + " --repeats 1 --quiet -o " + file("profile.json")).code, 0);
  }
  static void TearDownTestSuite() { fs::remove_all(directory_); }
  static std::string store() { return directory_ + "/fable.sluice"; }
  static std::string file(const std::string& name) { return directory_ + "/" + name; }
  static Json read(const std::string& name) { return read_json_file(file(name)); }
  static std::string write(const std::string& name, const Json& value) {
    std::ofstream(file(name)) << value;
    return file(name);
  }
  // The measured profile with costs that make every state useful: reading is slow, decoding is free.
  static std::string made_up_profile() {
    Json profile = read("profile.json");
    const auto set = [&](const char* name, double seconds) {
      profile[name] = {{"median", seconds}, {"spread", 0}};
    };
    set("u", 1e-3);
    set("v", 1e-4);
    set("c", 1e-9);
    set("merge", 0);
    return write("made_up.json", profile);
  }
  static void expect_error(const std::string& arguments, int code, const std::string& words) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  }
  static inline std::string directory_;
};

TEST_F(ZipMoeTest, AProfileIsWrittenAndBelongsToTheStore) {
  const Json profile = read("profile.json");
  EXPECT_EQ(profile["model"]["experts"], 32);
  EXPECT_EQ(profile["model"]["chunks"], 4);
  for (const char* cost : {"u", "v", "c", "p", "merge", "rest"})
    EXPECT_GT(profile[cost]["median"], 0) << cost;
  // Without -o the profile becomes a sidecar, which verify knows and a directory cannot have.
  ASSERT_EQ(run("profile " + store() + " --repeats 1 --quiet").code, 0);
  EXPECT_TRUE(fs::exists(store() + "/sidecar/profile.json"));
  EXPECT_EQ(run("verify " + store() + " --quiet").code, 0);
  fs::remove_all(store() + "/sidecar");
  expect_error("profile " + kModel, 2, "-o");
}

TEST_F(ZipMoeTest, TheFirstRunOfAStoreKeepsItsProfileForThoseThatFollow) {
  const std::string copy = file("copy.sluice"), profile = copy + "/sidecar/profile.json";
  fs::copy(store(), copy, fs::copy_options::recursive);
  fs::remove_all(copy + "/sidecar");
  const std::string request =
      "run " + copy + " -p 'Once upon a time' -n 20 --temp 0 --prefetch none --memory " + memory(34);
  run_json(request + " --profile " + made_up_profile());
  EXPECT_FALSE(fs::exists(profile));  // one was given
  const Json first = run_json(request);
  ASSERT_TRUE(fs::exists(profile));
  const std::string kept = sluice::program::content_of(profile);
  EXPECT_EQ(run_json(request)["tokens"], first["tokens"]);
  EXPECT_EQ(sluice::program::content_of(profile), kept);
  const Json planned = run_json("plan " + copy + " --memory " + memory(34))["profile"];
  for (const char* cost : {"u", "v", "c", "p", "merge", "rest"})
    EXPECT_EQ(planned[cost], Json::parse(kept)[cost]) << cost;
  EXPECT_EQ(run("verify " + copy + " --quiet").code, 0);
  // A profile of another machine stays in place, and is not used for planning.
  ASSERT_EQ(run("profile " + copy + " --repeats 1 --threads 1 --quiet").code, 0);
  const std::string of_one_thread = sluice::program::content_of(profile);
  run_json(request + " --threads 2");
  EXPECT_EQ(sluice::program::content_of(profile), of_one_thread);
}

// As with its tokenizer: what is damaged beside the weights is made again, and said.
TEST_F(ZipMoeTest, ADamagedProfileOfAStoreIsAWarningAndIsMadeAgain) {
  const std::string copy = file("damaged.sluice"), profile = copy + "/sidecar/profile.json";
  fs::copy(store(), copy, fs::copy_options::recursive);
  ASSERT_EQ(run("profile " + copy + " --repeats 1 --quiet").code, 0);
  const std::string good = sluice::program::content_of(profile);
  const std::string request =
      " " + copy + " -p 'Once upon a time' -n 4 --temp 0 --prefetch none --memory " + memory(34);
  const Json expected = run_json("run" + request)["tokens"];
  const std::string flipped = good.substr(0, good.size() / 2) + "#" + good.substr(good.size() / 2 + 1);
  for (const std::string& content :
       {std::string(), flipped, good.substr(0, good.size() / 2), std::string("{}")}) {
    std::ofstream(profile, std::ios::binary) << content;
    const Outcome quiet = run("plan " + copy + " --quiet --memory " + memory(34));
    EXPECT_EQ(quiet.code, 0);
    EXPECT_EQ(quiet.err, "");
    std::ofstream(profile, std::ios::binary) << content;
    const Outcome warned = run("run" + request + " --json");
    ASSERT_EQ(warned.code, 0) << warned.err;
    EXPECT_EQ(Json::parse(warned.out)["tokens"], expected);
    const std::size_t at = warned.err.find(
        "sluice: warning: the store's profile is passed over, and measured again: " + profile);
    ASSERT_NE(at, std::string::npos) << warned.err;
    EXPECT_EQ(warned.err.find("passed over", at + 60), std::string::npos) << "said twice: " << warned.err;
    EXPECT_EQ(warned.err.find("; remove it"), std::string::npos) << warned.err;
    EXPECT_EQ(run("run" + request + " --json").err, "") << "made again";
    EXPECT_EQ(run("verify " + copy + " --quiet").code, 0);
  }
}

// Sampling takes memory only where it may take another token than the likeliest; the bundled model samples
// by itself.
TEST_F(ZipMoeTest, APlanCountsTheTokenizerAndSamplingAsARunDoes) {
  constexpr double kAnswer = 64 * 1024;  // the answer and its prompt, which a plan does not have
  std::vector<double> activations;
  for (const std::string& model : {kModel, store()})
    for (const std::string sampling :
         {"", " --temp 0.7", " --temp 0", " --temp 0 --repeat-penalty 1.1", " --repeat-penalty 1.1"}) {
      const std::string flags = " --memory " + memory(60) + " --threads 1 --chunk 16" + sampling;
      const Json run = run_json("run " + model + " --tokens 1,2,3 -n 61" + flags)["memory"]["by_name"];
      const Json plan = run_json("plan " + model + " --tokens 64" + flags)["by_name"];
      for (const char* name : {"dense", "kv", "activations"})
        EXPECT_EQ(plan[name], run[name]) << name << " of " << model << sampling;
      EXPECT_NEAR(plan["tables"].get<double>(), run["tables"].get<double>(), kAnswer) << model << sampling;
      activations.push_back(plan["activations"].get<double>());
    }
  EXPECT_GT(activations[1], activations[2]);
  EXPECT_EQ(activations[1], activations[3]);
  EXPECT_EQ(run("plan " + store() + " --temp -1").code, 2);
}

// Also of a model that is not packed, whose experts a run keeps in another cache than a plan's pools.
TEST_F(ZipMoeTest, APlanAndARunAssumeTheSameRouting) {
  const std::string flags = " --prefetch none --threads 1 --memory " + memory(36);
  const Json predicted = run_json("run " + kModel + " --tokens 1,2,3 -n 61" + flags)["predicted"];
  EXPECT_EQ(predicted["routing"], "assumed");
  const Json plan = run_json("plan " + kModel + " --tokens 64" + flags);
  EXPECT_EQ(plan["ranks_assumed"], true);
  const auto in_run = predicted["bytes_per_token"].get<double>(),
             planned = plan["disk_bytes_per_step"].get<double>();
  EXPECT_GT(in_run, 0);
  EXPECT_LT(in_run, 1.25 * planned);
  EXPECT_LT(planned, 1.25 * in_run);
}

TEST_F(ZipMoeTest, APlanForMoreThanTheContextSaysSo) {
  const std::string plan = "plan " + kModel + " --memory " + memory(60);
  EXPECT_NE(run(plan + " --tokens 5000").err.find("the context holds 4096 tokens"), std::string::npos);
  EXPECT_EQ(run(plan + " --tokens 4096").err, "");
}

TEST_F(ZipMoeTest, CtrlCEndsAProfile) {
  const std::string profile = file("interrupted.json");
  sluice::program::Running program({"profile", kModel, "-o", profile, "--repeats", "1000"});
  program.interrupt();
  EXPECT_EQ(program.wait().code, 130);
  EXPECT_FALSE(std::filesystem::exists(profile));
}

TEST_F(ZipMoeTest, APlanCountsTheInputOfAnEncoderAsARunDoes) {
  const std::string flags = " " + sluice::testing::kGoldenModels + "/switch_transformers_a" +
                            " --threads 1 --chunk 16 --memory " + memory(60);
  const Json run = run_json("run --tokens 1,2,3,4,5,6,7,8 -n 8" + flags)["memory"]["by_name"];
  const Json plan = run_json("plan --tokens 8" + flags)["by_name"];
  for (const char* name : {"dense", "kv", "activations"}) EXPECT_EQ(plan[name], run[name]) << name;
}

// What stands in its place stays there. A link to itself is to root, too, what a file without permission is
// to others.
TEST_F(ZipMoeTest, AProfileThatCannotBeReadIsAWarningAndIsMeasured) {
  const std::string copy = file("unreadable.sluice"), profile = copy + "/sidecar/profile.json";
  fs::copy(store(), copy, fs::copy_options::recursive);
  fs::remove(profile);
  const std::string request =
      "run " + copy + " -p 'Once upon a time' -n 4 --temp 0 --prefetch none --memory " + memory(34);
  const std::string expected = run(request + " -q").out;
  for (const std::string made : {"mkfifo ", "mkdir ", "ln -s profile.json "}) {
    fs::remove(profile);
    ASSERT_EQ(std::system((made + profile).c_str()), 0);
    const Outcome outcome =
        sluice::program::run_command("timeout -s KILL 60 '" SLUICE_PROGRAM "' " + request);
    EXPECT_EQ(outcome.code, 0) << made << outcome.err;
    EXPECT_EQ(outcome.out, expected);
    EXPECT_NE(outcome.err.find("sluice: warning: the store's profile is passed over, and measured again: " +
                               profile),
              std::string::npos)
        << made << outcome.err;
    EXPECT_FALSE(fs::is_regular_file(fs::symlink_status(profile))) << made;
  }
}

TEST_F(ZipMoeTest, AProfileOfAnythingElseIsOneClearError) {
  const std::string base = "run " + store() + " -p x -n 1 --memory " + memory(40) + " --profile ";
  Json other = read("profile.json");
  other["machine"]["cpu"] = "Another";
  expect_error(base + write("machine.json", other), 1, "another machine");
  other = read("profile.json");
  other["model"]["codec"] = "lz4";
  expect_error(base + write("model.json", other), 1, "another model or store");
  other = read("profile.json");
  other["c"]["median"] = -1;
  expect_error(base + write("negative.json", other), 1, "median");
  other = read("profile.json");
  other["profile"] = 99;
  expect_error(base + write("version.json", other), 1, "another version");
  std::ofstream(file("cut.json")) << read("profile.json").dump().substr(0, 100);
  expect_error(base + file("cut.json"), 1, "cut.json");
  expect_error(base + file("nowhere.json"), 1, "nowhere.json");
}

// In a store of codec native, dense matrices take two thirds of the memory, and every text stays the same.
TEST_F(ZipMoeTest, DenseMatricesAreKeptAsTheyAreStored) {
  const std::string native = file("native.sluice");
  ASSERT_EQ(run("pack " + kModel + " -o " + native + " --quiet").code, 0);
  const auto plan = [&](const std::string& arguments) {
    return run_json("plan " + arguments + " --memory " + memory(32));
  };
  const Json packed = plan(native + " --dense packed"), words = plan(native + " --dense words"),
             flat = plan(store()), automatic = plan(native);  // which depends on the instruction set
  EXPECT_EQ(packed["dense"]["view"], "packed");
  EXPECT_NE(automatic["dense"]["why"].get<std::string>().find("less"), std::string::npos);
  EXPECT_EQ(words["dense"]["view"], "words");
  EXPECT_EQ(flat["dense"]["view"], "words");
  EXPECT_LT(packed["by_name"]["dense"], words["by_name"]["dense"]);
  EXPECT_EQ(flat["by_name"]["dense"], words["by_name"]["dense"]);
  EXPECT_NE(run("plan " + native + " --memory " + memory(32))
                .out.find("dense weights     " + automatic["dense"]["view"].get<std::string>()),
            std::string::npos);
  const std::string request = " -p 'Once upon a time' -n 40 --temp 0 --quiet --memory " + memory(32);
  const Outcome text = run("run " + kModel + request);
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* dense : {"auto", "packed", "words"})
    EXPECT_EQ(run("run " + native + request + " --dense " + dense).out, text.out) << dense;
  expect_error("run " + native + request + " --dense all", 2, "--dense");
}

// Requests that cannot be met are refused: only codec native has matrices that kernels can multiply with
// directly.
TEST_F(ZipMoeTest, DenseMatricesThatAreNotStoredPackedAreNotKeptSo) {
  const std::string request = " -p x -n 1 --dense packed";
  expect_error("run " + kModel + request, 2, "--dense packed");
  expect_error("run " + kModel + request, 2, "found weights stored with codec none");
  expect_error("run " + store() + request, 2, "pack --codec native");
  expect_error("plan " + store() + " --dense packed", 2, "--dense packed");
}

TEST_F(ZipMoeTest, ThePlanSaysWhereTheBytesGo) {
  const std::string flags = " --memory " + memory(32) + " --profile " + made_up_profile();
  const Json plan = run_json("plan " + store() + flags);
  std::uint64_t sum = 0;
  for (const auto& [name, bytes] : plan["by_name"].items()) sum += bytes.get<std::uint64_t>();
  EXPECT_LE(sum, plan["budget"].get<std::uint64_t>());
  double shares = 0;
  for (const auto& [pool, share] : plan["gamma"].items()) shares += share.get<double>();
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_EQ(plan["configurations"], 1771);
  EXPECT_TRUE(plan["limit"] == "disk" || plan["limit"] == "decode" || plan["limit"] == "compute");
  for (const char* alternative : {"f_only", "equal_shares"})
    EXPECT_LE(plan["cost_layer_s"].get<double>(),
              plan["alternatives"][alternative]["cost_layer_s"].get<double>() * (1 + 1e-9));
  // Decoding is free here, so compressed experts are worth more than full ones.
  EXPECT_GT(plan["slots"]["C"].get<int>(), plan["slots"]["F"].get<int>());
  EXPECT_GT(plan["tok_s"], 0);
  const Outcome table = run("plan " + store() + flags);
  EXPECT_EQ(table.code, 0);
  for (const char* words : {"F only", "equal shares", "gain", "limit"})
    EXPECT_NE(table.out.find(words), std::string::npos);
  expect_error("plan " + store() + " --memory 8MiB", 1, "too small");
}

TEST_F(ZipMoeTest, EveryStateSavesItsReadsAndTheTextIsTheSame) {
  const std::string request = " -p 'The old king' -n 60 --seed 3 --temp 0.8 --memory " + memory(30);
  const Json expected = run_json("run " + kModel + " -p 'The old king' -n 60 --seed 3 --temp 0.8");
  const std::string profile = " --profile " + made_up_profile();
  for (const char* preset : {"zipmoe", "z-C", "z-C+P", "z-basic-lru", "z-basic-fifo", "z-basic-marking",
                             "z-accelerate", "z-deepspeed", "z-moe-infinity"}) {
    const Json found = run_json("run " + store() + request + profile + " --preset " + preset);
    EXPECT_EQ(found["tokens"], expected["tokens"]) << preset;
    EXPECT_EQ(found["preset"], preset);
    std::uint64_t uses = 0;
    for (const auto& [state, count] : found["experts"]["states"].items()) uses += count.get<std::uint64_t>();
    EXPECT_EQ(uses, found["experts"]["accesses"].get<std::uint64_t>());
    EXPECT_EQ(found["experts"]["hits"].get<std::uint64_t>() + found["experts"]["misses"].get<std::uint64_t>(),
              uses)
        << preset;
    EXPECT_LE(found["experts"]["hits"].get<std::uint64_t>(), uses) << preset;
    EXPECT_LE(found["experts"]["partial"].get<std::uint64_t>(),
              found["experts"]["misses"].get<std::uint64_t>())
        << preset;
    EXPECT_LE(found["memory"][sluice::program::kPeak], found["memory"]["budget"]) << preset;
    if (std::string(preset) == "z-C") {
      EXPECT_GT(found["experts"]["states"]["C"], 0);
      EXPECT_GT(found["experts"]["partial"], 0);
      EXPECT_EQ(found["experts"]["partial"],
                found["experts"]["states"]["S"].get<int>() + found["experts"]["states"]["E"].get<int>());
    }
  }
}

TEST_F(ZipMoeTest, ABatchGivesEachPromptItsOwnText) {
  const std::string flags = " -n 24 --temp 0 --ignore-eos --memory " + memory(40);
  const std::string prompts[] = {"Once upon a time", "The king", "In the forest there lived an old man who"};
  std::string all;
  for (const std::string& prompt : prompts) all += " -p '" + prompt + "'";
  const Json batch = run_json("run " + store() + all + flags);
  ASSERT_EQ(batch["sequences"].size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const Json alone = run_json("run " + store() + " -p '" + prompts[i] + "'" + flags);
    for (const char* field : {"tokens", "text", "prompt_tokens", "stop_reason"})
      EXPECT_EQ(batch["sequences"][i][field], alone[field]) << i;
    ASSERT_EQ(alone["sequences"].size(), 1u);
    for (const char* field : {"tokens", "text", "prompt_tokens", "stop_reason"})
      EXPECT_EQ(alone["sequences"][0][field], alone[field]) << i;
  }
  EXPECT_EQ(batch["experts"]["decode"]["steps"], 23);
  EXPECT_EQ(batch["experts"]["decode"]["tokens"], 69);
  const Outcome text = run("run " + store() + all + flags + " -q");
  EXPECT_EQ(text.out.rfind("[1] ", 0), 0u);
  EXPECT_NE(text.out.find("\n[3] "), std::string::npos);
  expect_error("run " + store() + all + flags + " -o " + file("text"), 2, "-o");
}

}  // namespace
