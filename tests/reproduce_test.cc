// Compares presets, and reproduces a paper's tables, with the built program.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/files/scratch_directory.h"
#include "base/json/json.h"
#include "bundled_model.h"
#include "reproduce/well_formed.h"
#include "reproduce/zipmoe/zipmoe.h"

namespace reproduce_test {
namespace {

namespace fs = std::filesystem;
using sluice::Json;
using sluice::program::content_of;
using sluice::program::exchange_experts;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::testing::ScratchDirectory;

class ReproduceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    fs::current_path(directory_.path());  // reports name files relative to this directory
  }
  void TearDown() override { fs::current_path(before_); }
  ScratchDirectory directory_;
  fs::path before_;
};

TEST_F(ReproduceTest, CompareSetsPresetsSideBySide) {
  const std::string store = directory_.file("fable.sluice"), prompt = " -p 'Once upon a time' ";
  ASSERT_EQ(run("pack " + kModel + " -o " + store + " --quiet").code, 0);
  const Outcome outcome = run("compare " + store + " --whole " + kModel +
                              " --preset zipmoe,z-C,z-basic-lru,z-accelerate,z-moe-infinity,z-deepspeed" +
                              prompt + "-n 12 --runs 2 --memory " + memory(30) + " --quiet --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(result.at("texts_equal"), true);
  EXPECT_FALSE(result.at("text").get<std::string>().empty());
  ASSERT_EQ(result.at("presets").size(), 6u);
  const std::set<std::string> whole = {"z-accelerate", "z-moe-infinity", "z-deepspeed"};
  for (const Json& preset : result.at("presets")) {
    SCOPED_TRACE(preset.at("preset").get<std::string>());
    EXPECT_EQ(preset.at("runs"), 2);
    EXPECT_EQ(preset.at("model"), whole.contains(preset.at("preset").get<std::string>()) ? kModel : store);
    for (const char* figure : {"tok_s", "ttft_s", "tpot_s", "cpu_s_per_token", "bytes_per_token"}) {
      EXPECT_GE(preset.at(figure).at("median").get<double>(), preset.at(figure).at("low").get<double>())
          << figure;
      EXPECT_LE(preset.at(figure).at("median").get<double>(), preset.at(figure).at("high").get<double>())
          << figure;
    }
    EXPECT_GT(preset.at("tok_s").at("low").get<double>(), 0);
    EXPECT_GT(preset.at("bytes_per_token").at("low").get<double>(), 0);
    EXPECT_LE(preset.at("peak_bytes").get<double>(), result.at("budget").get<double>());
    std::uint64_t found = 0;
    for (const auto& [state, count] : preset.at("found").items()) found += count.get<std::uint64_t>();
    EXPECT_EQ(found, 11u * 6 * 4);  // steps, sparse layers, experts of a token
  }
  EXPECT_TRUE(result.at("presets")[0].contains("planned"));
  // A window over all layers reads every expert in every step, most of it ahead.
  const double all_experts = 6.0 * 32 * 3 * 256 * 96 * 2;
  const auto streamed = result.at("presets")[5].at("bytes_per_token").at("median").get<double>();
  EXPECT_GT(streamed, all_experts);
  EXPECT_LT(streamed, 1.1 * all_experts);  // reads are whole blocks

  // The text equals that of `run`.
  const Outcome alone =
      run("run " + store + prompt + "-n 12 --temp 0 --ignore-eos --json --memory " + memory(30));
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_EQ(Json::parse(alone.out).at("tokens"), result.at("tokens")[0]);
}

TEST_F(ReproduceTest, CompareDecodesSeveralPromptsTogether) {
  const std::string prompts = " -p 'Once upon a time' -p 'The old woman' -n 5 --memory " + memory(30);
  const Outcome both =
      run("compare " + kModel + " --preset z-basic-lru,z-accelerate --runs 1 --quiet --json" + prompts);
  ASSERT_EQ(both.code, 0) << both.err;
  const Json tokens = Json::parse(both.out).at("tokens");
  ASSERT_EQ(tokens.size(), 2u);
  for (const Json& one : tokens) EXPECT_EQ(one.size(), 5u);
  EXPECT_NE(tokens[0], tokens[1]);
}

TEST_F(ReproduceTest, CompareRefusesWhatIsNotThere) {
  const Outcome outcome = run("compare " + kModel + " --preset zipmoe,no-such -p a -n 4");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("no-such"), std::string::npos);
  EXPECT_EQ(run("compare " + kModel + " --preset , -p a -n 4").code, 2);
  EXPECT_EQ(run("reproduce no-such-paper").code, 2);
  EXPECT_EQ(run("reproduce zipmoe --model " + directory_.file("none") + " -o " + directory_.path()).code, 1);
}

// SPEC §6.1, word by word.
struct PaperRow {
  const char *id, *paper, *mode;
};
constexpr PaperRow kPaper[] = {
    {"Z-F1", "38.5 % to 80.1 %; 15.8 % to 41.7 %", "S, R"},
    {"Z-F2", "2.651, 2.563, 2.554; 14.06, 11.33, 14.84 %", "A"},
    {"Z-F3", "74 %; 68 %; 66.02, 65.96, 66.52 %", "A"},
    {"Z-F4", "3; 7.47 %", "R, N"},
    {"Z-F7", "62.65–97.97 % / 53.25–87.90 %; 4.99–81.24 % / ≤ 83.45 %", "S, R"},
    {"Z-F8", "1.79–42.49×; 1.31–5.82×", "S, R"},
    {"Z-F9", "3.03–42.49×; 1.11–5.64×", "S, R"},
    {"Z-F10",
     "DeepSeek 1.60 (585.96), 4.43 (204.05), 5.18 (176.68), 5.30 (173.23); Qwen1.5 1.99 (515.12), 6.39 "
     "(160.33), "
     "7.64 (134.10), 7.79 (–)",
     "S, R"},
    {"Z-A", "56.64 %; 53.32 %", "R"},
    {"Z-T", "≤ 3 − 1/L", "A"},
    {"Z-abs", "72.77 %; 6.76×", "N"},
};

void expect_plain_numbers(const Json& row) {
  static const std::regex wrong("(^|[^a-z])-?(nan|inf)([^a-z]|$)", std::regex::icase);
  for (const auto& [member, value] : row.items())
    if (value.is_string()) {
      const auto text = value.get<std::string>();
      EXPECT_FALSE(text.empty()) << row.at("id") << " " << member;
      EXPECT_FALSE(std::regex_search(text, wrong)) << row.at("id") << ": " << text;
    }
}

// The arguments of a printed command.
std::string arguments(const std::string& command) {
  EXPECT_TRUE(command.starts_with("sluice ")) << command;
  return command.substr(std::string("sluice ").size());
}

void expect_known_flags(const std::string& command) {
  std::istringstream words(std::regex_replace(arguments(command), std::regex("\"[^\"]*\""), "TEXT"));
  std::string name;
  words >> name;
  const Outcome help = run(name + " --help");
  ASSERT_EQ(help.code, 0) << command;
  for (std::string word; words >> word;)
    if (word.starts_with('-')) {
      EXPECT_TRUE(std::regex_search(help.out, std::regex("(^|[ ,])" + word + "([ ,\n]|$)")))
          << word << " of " << command;
    }
}

TEST_F(ReproduceTest, EveryRowOfZipmoe) {
  const std::string out = directory_.file("out"),
                    trace = SLUICE_SOURCE_DIR "/tests/data/routing/dsv2lite.first48.mrt.zst";
  directory_.write("out/temporary.sluice", "a user's");
  const Outcome outcome =
      run("reproduce zipmoe --quick --model " + kModel + " --trace " + trace + " -o " + out + " --quiet");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json report = Json::parse(content_of(out + "/zipmoe.json"));
  const std::string markdown = content_of(out + "/zipmoe.md");
  const auto hash = report.at("configuration").at("hash").get<std::string>();
  EXPECT_EQ(hash.size(), 12u);
  EXPECT_NE(outcome.out.find("configuration " + hash), std::string::npos);
  ASSERT_EQ(report.at("rows").size(), std::size(kPaper));
  ASSERT_EQ(sluice::reproduce::zipmoe_row_ids().size(), std::size(kPaper));
  for (std::size_t i = 0; i < std::size(kPaper); ++i) {
    const Json& row = report.at("rows")[i];
    SCOPED_TRACE(kPaper[i].id);
    EXPECT_EQ(sluice::reproduce::zipmoe_row_ids()[i], kPaper[i].id);
    EXPECT_EQ(row.at("id"), kPaper[i].id);
    EXPECT_EQ(row.at("paper"), kPaper[i].paper);
    EXPECT_EQ(row.at("mode"), kPaper[i].mode);
    EXPECT_EQ(row.at("configuration"), hash);
    EXPECT_NE(markdown.find(std::string("| ") + kPaper[i].id + " |"), std::string::npos);
    expect_plain_numbers(row);
    EXPECT_FALSE(row.at("commands").empty());
    for (const Json& command : row.at("commands")) expect_known_flags(command.get<std::string>());
  }
  // Rows of several runs: every budget, batch and length.
  EXPECT_EQ(report.at("rows")[4].at("commands").size(), 3u);
  EXPECT_EQ(report.at("rows")[5].at("commands").size(), 2u);
  EXPECT_EQ(report.at("rows")[6].at("commands").size(), 2u);
  EXPECT_GT(report.at("data").at("replay").at("decoder_only").size(), 20u);
  EXPECT_GT(report.at("data").at("replay").at("encoder_decoder").size(), 20u);
  EXPECT_NE(markdown.find("## Expected order"), std::string::npos);
  EXPECT_NE(markdown.find("## Simulated rows"), std::string::npos);
  EXPECT_EQ(report.at("data").at("texts_equal"), true);
  const auto entropy = report.at("data").at("exponents").at("entropy_bits").get<double>();
  EXPECT_GT(entropy, 2);
  EXPECT_LT(entropy, 3.5);
  EXPECT_GE(report.at("pictures").size(), 7u);
  for (const Json& picture : report.at("pictures")) {
    const std::string svg = content_of(out + "/" + picture.get<std::string>());
    EXPECT_EQ(sluice::testing::xml_fault(svg), "") << picture;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(out))
    EXPECT_TRUE(entry.is_regular_file()) << entry.path();  // the store is removed
  EXPECT_EQ(content_of(out + "/temporary.sluice"), "a user's");

  // Commands of single rows repeat the report's run: the batch of four.
  expect_known_flags(report.at("prepare").get<std::string>());
  ASSERT_EQ(run(arguments(report.at("prepare").get<std::string>()) + " --quiet").code, 0);
  const Outcome batch =
      run(arguments(report.at("rows")[5].at("commands")[1].get<std::string>()) + " --quiet --json");
  ASSERT_EQ(batch.code, 0) << batch.err;
  const Json alone = Json::parse(batch.out), within = report.at("data").at("batches")[1].at("comparison");
  EXPECT_EQ(alone.at("tokens").size(), 4u);
  EXPECT_EQ(alone.at("tokens"), within.at("tokens"));
  EXPECT_EQ(alone.at("budget"), within.at("budget"));
  ASSERT_EQ(alone.at("presets").size(), within.at("presets").size());
  for (std::size_t i = 0; i < alone.at("presets").size(); ++i)
    EXPECT_EQ(alone.at("presets")[i].at("preset"), within.at("presets")[i].at("preset"));
}

TEST_F(ReproduceTest, DaliIsTriedAgainWithoutAModel) {
  const std::string trace = SLUICE_SOURCE_DIR "/tests/data/routing/dsv2lite.first48.mrt.zst";
  const Outcome outcome =
      run("reproduce dali --quick --quiet --model none --json --trace " + trace + " -o out");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report.at("command"), "sluice reproduce dali --quick --model none --trace " + trace);
  std::set<std::string> ids;
  for (const Json& row : report.at("rows")) ids.insert(row.at("id").get<std::string>());
  for (const char* id : {"D-F12", "D-F5b", "D-T2", "D-T7", "D-T9", "D-F18d", "D-fig"})
    EXPECT_TRUE(ids.contains(id)) << id;
  const std::string markdown = content_of("out/dali.md");
  for (const char* part : {"D-F19", "consumed", "not measured", "not determined", "](dali-lanes.svg)"})
    EXPECT_NE(markdown.find(part), std::string::npos) << part;
  for (const char* file : {"dali-ladder.svg", "dali-lanes.svg", "dali-hits.svg"})
    EXPECT_EQ(sluice::testing::xml_fault(content_of(std::string("out/") + file)), "") << file;
  const Outcome refused = run("reproduce dali --quiet --budget 8MiB");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("zipmoe"), std::string::npos) << refused.err;
}

TEST_F(ReproduceTest, SmoeIsTriedAgainWithoutAModel) {
  const Outcome outcome = run("reproduce smoe --quick --quiet --model none --json -o out");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report.at("command"), "sluice reproduce smoe --quick --model none");
  std::set<std::string> ids;
  for (const Json& row : report.at("rows")) {
    ids.insert(row.at("id").get<std::string>());
    expect_plain_numbers(row);
  }
  for (const char* id : {"S-F12", "S-F13", "S-F14", "S-F16", "S-F15", "S-F18", "S-F19", "S-fig", "S-T3"})
    EXPECT_TRUE(ids.contains(id)) << id;
  const std::string markdown = content_of("out/smoe.md");
  for (const char* part : {"S-F16c", "consumed", "not measured", "f₁ 0.4", "](smoe-ladder.svg)"})
    EXPECT_NE(markdown.find(part), std::string::npos) << part;
  for (const char* file : {"smoe-ladder.svg", "smoe-hits.svg", "smoe-reuse.svg"})
    EXPECT_EQ(sluice::testing::xml_fault(content_of(std::string("out/") + file)), "") << file;
  for (const char* flags : {"--budget 8MiB", "--trace tests/data/routing/dsv2lite.first48.mrt.zst"}) {
    const Outcome refused = run(std::string("reproduce smoe --quiet ") + flags);
    EXPECT_EQ(refused.code, 2) << flags;
    EXPECT_NE(refused.err.find(std::string(flags, 7)), std::string::npos) << refused.err;
  }
}

// The stores of a report are temporary: what packing keeps to go on from is gone, and nothing speaks of it.
TEST_F(ReproduceTest, AnInterruptedReportSaysThatNothingIsWritten) {
  for (const std::string paper : {"zipmoe", "slicemoe", "dali", "smoe"}) {
    sluice::program::Running program({"reproduce", paper, "--quick", "--quiet", "--trace", "none", "--model",
                                      kModel, "--threads", "1", "-o", "out"});
    program.interrupt();
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.code, 130);
    EXPECT_EQ(outcome.out, "sluice: out: interrupted; no report is written\n");
    EXPECT_FALSE(fs::exists("out"));
  }
}

TEST_F(ReproduceTest, AReportThatNobodyReadsEndsAtOnce) {
  std::ofstream("script") << "{ timeout 60 '" SLUICE_PROGRAM "' reproduce zipmoe --trace none --model "
                          << kModel << " -o out; echo $? >code; } | true\n";
  EXPECT_EQ(sluice::program::run_command("sh script").err.find("sluice:"), std::string::npos);
  EXPECT_EQ(content_of("code"), "141\n");
  EXPECT_FALSE(fs::exists("out"));
  const Outcome full = run("reproduce zipmoe --quiet --trace none --model " + kModel + " -o out >/dev/full");
  EXPECT_EQ(full.code, 1);
  EXPECT_NE(full.err.find("standard output"), std::string::npos) << full.err;
  EXPECT_FALSE(fs::exists("out"));
}

TEST_F(ReproduceTest, OutputsThatAreTooShortOrTooLongAreRefused) {
  for (const char* tokens : {"0", "1", "2", "3", "-4"}) {
    const Outcome outcome = run("reproduce zipmoe --quick --trace none --model " + kModel + " -n " + tokens);
    EXPECT_EQ(outcome.code, 2) << tokens;
  }
  // Twice as many tokens are also refused.
  const Outcome outcome = run("reproduce zipmoe --quick --quiet --trace none --model " + kModel + " -n 2048");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("at most 4096 positions"), std::string::npos) << outcome.err;
}

// A model stored whole that differs from the one stored split; neither has a tokenizer.
TEST_F(ReproduceTest, TextsThatDifferFailTheRunAfterItsReport) {
  const fs::path model = directory_.file("split"), other = directory_.file("whole");
  for (const fs::path& copy : {model, other}) {
    fs::create_directory(copy);
    for (const char* file : {"config.json", "generation_config.json", "model.safetensors"})
      fs::copy_file(fs::path(kModel) / file, copy / file);
  }
  exchange_experts(other / "model.safetensors");
  const Outcome outcome = run(
      "reproduce zipmoe --quick --quiet -n 4 --runs 1 --model split --whole whole --trace none --budget " +
      memory(30) + " --threads 1 --io buffered -o out");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("different texts"), std::string::npos) << outcome.err;
  const Json report = Json::parse(content_of("out/zipmoe.json"));
  EXPECT_EQ(report.at("data").at("texts_equal"), false);
  EXPECT_NE(content_of("out/zipmoe.md").find("DIFFERED"), std::string::npos);
  const std::string flags = " --threads 1 --io buffered";
  EXPECT_EQ(report.at("command"), "sluice reproduce zipmoe --quick --model split --whole whole --budget " +
                                      memory(30) + " -n 4 --runs 1 --trace none" + flags);
  for (const Json& row : report.at("rows")) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    expect_plain_numbers(row);
    for (const Json& each : row.at("commands")) {
      const auto command = each.get<std::string>();
      EXPECT_NE(command.find(flags), std::string::npos) << command;
      if (command.starts_with("sluice compare")) {
        EXPECT_NE(command.find(" --tokens "), std::string::npos) << command;
        EXPECT_EQ(command.find(" -p "), std::string::npos) << command;
      }
    }
  }
  EXPECT_NE(report.at("rows")[8].at("note").get<std::string>().find("--io buffered"), std::string::npos);
  // Nothing was replayed.
  EXPECT_NE(report.at("rows")[0].at("ours").get<std::string>().find("S n/a; "), std::string::npos);
  EXPECT_NE(report.at("rows")[0].at("note").get<std::string>().find("--trace"), std::string::npos);
  ASSERT_EQ(run(arguments(report.at("prepare").get<std::string>()) + " --quiet").code, 0);
  EXPECT_EQ(run(arguments(report.at("rows")[9 - 2].at("commands")[0].get<std::string>()) + " --quiet").code,
            1);  // they differ there, too
}

TEST_F(ReproduceTest, ATraceOfAnotherModelIsRefused) {
  const Outcome outcome =
      run("reproduce zipmoe --quick --quiet -n 4 --runs 1 --model " + kModel + " --budget " + memory(30) +
          " --trace " SLUICE_SOURCE_DIR "/tests/data/routing/qwen.route.csv.zst -o out");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("26 sparse layers of 64 experts"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace reproduce_test
