// `sluice doctor` through the built program: its lines, its JSON, and places where nothing can be written.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/wrapped_text.h"
#include "bundled_model.h"
#include "own_disk.h"
#include "scratch_test.h"

namespace {

using sluice::Json;
using sluice::program::kNoDisks;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::program::run_command;
using sluice::program::run_json;
using sluice::program::run_on_own_disk;

const std::vector<std::string> kChecks = {"cpu",      "memory",       "budget", "swap",
                                          "io_uring", "direct reads", "gpu"};
constexpr std::size_t kText = 20;    // the column in which texts begin
constexpr std::size_t kBelow = 6;    // the same where the terminal is narrow
constexpr std::size_t kNarrow = 60;  // a terminal with fewer columns is

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// One blank between words, and sizes of memory, which other programs change, left out.
std::string steady(const std::string& text) {
  std::istringstream in(text);
  std::string words;
  for (std::string word; in >> word;) words += (words.empty() ? "" : " ") + word;
  return std::regex_replace(words, std::regex(R"([0-9.]+ [KMGT]?i?B\b)"), "SIZE");
}

// The texts behind each label, "ok" or "warn" with the check's name.
std::map<std::string, std::string> by_label(const std::vector<std::string>& lines, std::size_t columns) {
  std::map<std::string, std::string> texts;
  std::string* text = nullptr;
  for (const std::string& line : lines) {
    const bool labelled = line.starts_with("  ok   ") || line.starts_with("  warn ");
    const std::size_t begin = columns < kNarrow ? kBelow : kText;
    if (labelled) {
      const std::string label = line.substr(0, kText);
      text = &texts[label.substr(2, label.find_last_not_of(' ') - 1)];
      if (columns < kNarrow) {
        EXPECT_LE(line.size(), kText) << line;  // the text stands below
        continue;
      }
    }
    if (text == nullptr) {
      ADD_FAILURE() << "the first line has no label: " << line;
      return texts;
    }
    EXPECT_GT(line.size(), begin) << line;
    EXPECT_EQ(line.substr(labelled ? begin - 1 : 0, labelled ? 1 : begin),
              std::string(labelled ? 1 : begin, ' '))
        << line;
    EXPECT_NE(line[begin], ' ') << line;
    *text += (text->empty() ? "" : " ") + line.substr(begin);
  }
  return texts;
}

class Doctor : public sluice::testing::ScratchTest {};

TEST_F(Doctor, ItsLinesFitAlignAndCutNoWord) {
  const Json json = run_json("doctor " + directory_.path());
  for (const std::size_t columns : {50, 80, 100}) {
    SCOPED_TRACE(columns);
    const Outcome outcome = run_command("COLUMNS=" + std::to_string(columns) +
                                        " '" SLUICE_PROGRAM "' doctor " + directory_.path());
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    const std::vector<std::string> lines = lines_of(outcome.out);
    for (const std::string& line : lines) {
      // A path alone may be longer than a line.
      const bool path = line.find(directory_.path()) != std::string::npos;
      EXPECT_TRUE(path || sluice::text_columns(line) <= columns) << line;
      EXPECT_NE(line.back(), ' ') << line;
    }
    const auto texts = by_label(lines, columns);
    EXPECT_EQ(texts.size(), kChecks.size());
    for (const Json& check : json["checks"]) {
      const std::string label =
          (check["ok"].get<bool>() ? "ok   " : "warn ") + check["name"].get<std::string>();
      ASSERT_TRUE(texts.contains(label)) << label << "\n" << outcome.out;
      EXPECT_EQ(steady(texts.at(label)),
                steady(check["text"].get<std::string>() + " " + check["fix"].get<std::string>()));
    }
  }
}

TEST_F(Doctor, WithoutATerminalItHas80Columns) {
  const Outcome outcome = run_command("env -u COLUMNS '" SLUICE_PROGRAM "' doctor " + directory_.path()),
                eighty = run_command("COLUMNS=80 '" SLUICE_PROGRAM "' doctor " + directory_.path());
  const auto plain = [](const std::string& out) { return by_label(lines_of(out), 80); };
  ASSERT_EQ(plain(outcome.out).size(), kChecks.size()) << outcome.out;
  for (const auto& [label, text] : plain(eighty.out))
    EXPECT_EQ(steady(plain(outcome.out)[label]), steady(text)) << label;
}

TEST_F(Doctor, ItsJsonHasEachCheckAndWhatTheyFound) {
  const Json json = run_json("doctor " + directory_.path());
  std::vector<std::string> names;
  for (const Json& check : json["checks"]) {
    names.push_back(check["name"].get<std::string>());
    EXPECT_NE(check["text"], "") << check;
    EXPECT_EQ(check["ok"].get<bool>(), check["fix"] == "") << check;
  }
  EXPECT_EQ(names, kChecks);
  EXPECT_GT(json["cpus"], 0);
  EXPECT_GT(json["default_budget"], 0);
  EXPECT_GE(json["memory"]["total"].get<double>(), json["memory"]["available"].get<double>());
  EXPECT_TRUE(json["gpus"].is_array());
  const std::string gpu = json["checks"].back()["text"].get<std::string>();
  EXPECT_EQ(gpu.starts_with("none: "), json["gpus"].empty()) << gpu;
  for (const Json& one : json["gpus"]) EXPECT_GT(one["link"]["to_device_bytes_per_s"], 0) << one;
  for (const char* const name : {"isa", "direct_alignment"}) EXPECT_TRUE(json.contains(name)) << name;
  for (const char* const name : {"swap", "cgroup_limit"}) EXPECT_TRUE(json["memory"].contains(name)) << name;
}

TEST_F(Doctor, QuietlyItPrintsWarningsAlone) {
  std::size_t warnings = 0;
  const Json json = run_json("doctor " + directory_.path());
  for (const Json& check : json["checks"]) warnings += check["ok"] == false;
  const auto texts = by_label(lines_of(run("doctor -q " + directory_.path()).out), 80);
  EXPECT_EQ(texts.size(), warnings);
  for (const auto& [label, text] : texts) EXPECT_TRUE(label.starts_with("warn ")) << label;
}

struct Place {
  const char *name, *options, *fill, *found, *fix;
};

class DoctorOf : public Doctor, public ::testing::WithParamInterface<Place> {};

// Reads cannot be tried where there is no file to read; one warning says what stopped it.
TEST_P(DoctorOf, APlaceThatTakesNoFileIsOneWarning) {
  const std::string place = file("place"), empty = place + GetParam().fill;
  const std::string doctor = "'" SLUICE_PROGRAM "' doctor " + empty;
  const std::string fill = *GetParam().fill == '\0' ? ""
                                                    : "mkdir '" + empty + "'; head -c 100000 /dev/zero >'" +
                                                          place + "/page' 2>/dev/null\n";
  const auto text = run_on_own_disk(place, GetParam().options, fill + doctor + " -q");
  const auto json =
      run_on_own_disk(place, GetParam().options, fill + doctor + " --json && ls -A '" + empty + "' >&2");
  if (!text || !json) GTEST_SKIP() << kNoDisks;
  EXPECT_EQ(text->code, 0);
  EXPECT_EQ(text->err, "");
  const std::string words = steady(text->out), warning = "warn direct reads ";
  EXPECT_NE(words.find(warning + empty + ": not checked: no file can be made there (" + GetParam().found +
                       "), and it holds none that could be read " + GetParam().fix),
            std::string::npos)
      << text->out;
  EXPECT_EQ(words.find(GetParam().found), words.rfind(GetParam().found)) << text->out;
  EXPECT_EQ(json->code, 0);
  EXPECT_EQ(json->err, "") << "left behind";
  const Json checks = Json::parse(json->out)["checks"];
  const auto reads =
      std::ranges::find_if(checks, [](const Json& one) { return one["name"] == "direct reads"; });
  ASSERT_NE(reads, checks.end());
  EXPECT_EQ((*reads)["ok"], false);
  EXPECT_NE((*reads)["text"].get<std::string>().find(GetParam().found), std::string::npos) << *reads;
}

INSTANTIATE_TEST_SUITE_P(
    Places, DoctorOf,
    ::testing::Values(Place{"NoWrites", "ro,size=4k", "", "Read-only file system",
                            "name a directory that holds a model, or where you may write: sluice doctor "
                            "DIRECTORY"},
                      Place{"Full", "size=16k", "/empty", "No space left on device",
                            "free some space, or name a directory that holds a model: sluice doctor "
                            "DIRECTORY"}),
    [](const auto& place) { return std::string(place.param.name); });

TEST_F(Doctor, APlaceThatCannotBeLookedAtIsOneError) {
  const Outcome outcome = run("doctor /" + std::string(300, 'd'));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  EXPECT_NE(outcome.err.find(": cannot be looked at; expected "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(", found File name too long; "), std::string::npos) << outcome.err;
}

}  // namespace
