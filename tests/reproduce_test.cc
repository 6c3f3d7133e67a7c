// Presets compared, and a paper's tables tried again, through the built program.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "bundled_model.h"
#include "lab/reproduce/well_formed.h"
#include "lab/reproduce/zipmoe.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using sluice::program::content_of;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::run;

class ReproduceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = ::testing::TempDir() + "/sluice-reproduce-XXXXXX";
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string directory_;
};

TEST_F(ReproduceTest, CompareSetsPresetsSideBySide) {
  const std::string store = directory_ + "/fable.sluice", prompt = " -p 'Once upon a time' ";
  ASSERT_EQ(run("pack " + kModel + " -o " + store + " --quiet").code, 0);
  const Outcome outcome =
      run("compare " + store + " --whole " + kModel + " --preset zipmoe,z-C,z-basic-lru,z-accelerate" +
          prompt + "-n 12 --runs 2 --memory " + memory(30) + " --quiet --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("texts_equal"), true);
  EXPECT_FALSE(result.at("text").get<std::string>().empty());
  ASSERT_EQ(result.at("presets").size(), 4u);
  for (const json& preset : result.at("presets")) {
    SCOPED_TRACE(preset.at("preset").get<std::string>());
    EXPECT_EQ(preset.at("runs"), 2);
    EXPECT_EQ(preset.at("model"), preset.at("preset") == "z-accelerate" ? kModel : store);
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

  // The text is that of `run`.
  const Outcome alone =
      run("run " + store + prompt + "-n 12 --temp 0 --ignore-eos --json --memory " + memory(30));
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_EQ(json::parse(alone.out).at("tokens"), result.at("tokens")[0]);
}

TEST_F(ReproduceTest, CompareRefusesWhatIsNotThere) {
  const Outcome outcome = run("compare " + kModel + " --preset zipmoe,no-such -p a -n 4");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("no-such"), std::string::npos);
  EXPECT_EQ(run("compare " + kModel + " --preset , -p a -n 4").code, 2);
  EXPECT_EQ(run("reproduce no-such-paper").code, 2);
  EXPECT_EQ(run("reproduce zipmoe --model " + directory_ + "/none -o " + directory_).code, 1);
}

TEST_F(ReproduceTest, EveryRowOfZipmoe) {
  const std::string out = directory_ + "/out";
  const Outcome outcome = run("reproduce zipmoe --quick --model " + kModel + " -o " + out + " --quiet");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json report = json::parse(content_of(out + "/zipmoe.json"));
  const std::string markdown = content_of(out + "/zipmoe.md");
  const auto& ids = sluice::lab::zipmoe_row_ids();
  ASSERT_EQ(report.at("rows").size(), ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const json& row = report.at("rows")[i];
    EXPECT_EQ(row.at("id"), ids[i]);
    EXPECT_NE(markdown.find("| " + ids[i] + " |"), std::string::npos);
    for (const char* member : {"quantity", "paper", "ours", "mode", "note", "command"})
      EXPECT_FALSE(row.at(member).get<std::string>().empty()) << ids[i] << " " << member;
  }
  // SPEC §6.1, by name, so that the list cannot lose a row unseen.
  for (const char* id :
       {"Z-F1", "Z-F2", "Z-F3", "Z-F4", "Z-F7", "Z-F8", "Z-F9", "Z-F10", "Z-A", "Z-T", "Z-abs"})
    EXPECT_NE(std::find(ids.begin(), ids.end(), id), ids.end()) << id;
  EXPECT_EQ(report.at("data").at("texts_equal"), true);
  const double entropy = report.at("data").at("exponents").at("entropy_bits");
  EXPECT_GT(entropy, 2);
  EXPECT_LT(entropy, 3.5);
  EXPECT_GE(report.at("pictures").size(), 7u);
  for (const json& picture : report.at("pictures")) {
    const std::string svg = content_of(out + "/" + picture.get<std::string>());
    EXPECT_EQ(sluice::testing::xml_fault(svg), "") << picture;
  }
  EXPECT_FALSE(fs::exists(out + "/temporary.sluice"));
}

}  // namespace
