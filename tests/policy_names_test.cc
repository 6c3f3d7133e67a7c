// Each command takes every name of a policy that its help lists, and refuses the others by the flag that
// names them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/files/scratch_directory.h"
#include "base/json/json.h"
#include "bundled_model.h"
#include "experts/device_presets.h"
#include "experts/registry.h"

namespace {

using sluice::Json;
using sluice::program::kModel;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::testing::ScratchDirectory;
namespace experts = sluice::experts;

using Names = std::vector<std::string>;

class PolicyNames : public ::testing::Test {
 protected:
  // A small model with random weights; packed; and in slices. Its routing, and what its residuals are.
  static void SetUpTestSuite() {
    directory_.emplace();
    Json config = sluice::read_json_file(kModel + "/config.json");
    config["num_hidden_layers"] = 3;
    config["num_experts"] = 8;
    config["moe_intermediate_size"] = 128;
    config["hidden_size"] = 128;
    std::ofstream(file("config.json")) << config;
    const auto make = [](const std::string& words) { ASSERT_EQ(run(words + " -q").code, 0) << words; };
    make("synth " + file("config.json") + " -o " + file("model"));
    for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"})
      std::filesystem::copy_file(kModel + "/" + name, file("model") + "/" + name,
                                 std::filesystem::copy_options::skip_existing);
    make("pack " + file("model") + " -o " + file("packed.sluice"));
    make("pack " + file("model") + " --slices 8/4 -o " + file("sliced.sluice"));
    for (const char* name : {"a.trace", "b.trace"})
      make("trace " + file("model") + " --tokens 1,2,3,4,5,6,7,8 -n 12 --ahead --prefetch smoe-partial -o " +
           file(name));
    make("trace " + file("packed.sluice") + " --tokens 1,2,3 -n 9 -o " + file("packed.trace"));
    make("trace " + file("sliced.sluice") + " --precision high --tokens 1,2,3 -n 9 -o " +
         file("sliced.trace"));
    make("profile " + file("packed.sluice") + " --repeats 1 -o " + file("profile.json"));
    make("calibrate " + file("packed.sluice") + " --residual -f " + kModel +
         "/eval.txt --tokens 1500 --ctx 100 -o " + file("residual.bin"));
  }
  static void TearDownTestSuite() { directory_.reset(); }
  static std::string file(const std::string& name) { return directory_->file(name); }

  // The text of a flag in a command's help, on one line.
  static std::string help_of(const std::string& command, const std::string& flag) {
    const Outcome help =
        sluice::program::run_command("COLUMNS=100000 '" SLUICE_PROGRAM "' " + command + " --help");
    std::istringstream lines(help.out);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string name, value, text;
      words >> name >> value;
      std::getline(words >> std::ws, text);
      if (name == flag) return text.empty() ? (std::getline(lines, line), line) : text;
    }
    return "";
  }

 private:
  static inline std::optional<ScratchDirectory> directory_;
};

// The words of `text` that are names of `all`.
Names listed(std::string text, const Names& all) {
  std::ranges::replace_if(
      text, [](char c) { return c == ',' || c == ';' || c == ':'; }, ' ');
  std::istringstream words(text);
  Names names;
  for (std::string word; words >> word;)
    if (std::ranges::find(all, word) != all.end() && std::ranges::find(names, word) == names.end())
      names.push_back(word);
  return names;
}

template <class Policies>
Names names_in(const Policies& policies) {
  Names names;
  for (const auto& policy : policies) names.emplace_back(policy.name);
  return names;
}

Names all_presets() {
  Names names = names_in(experts::presets());
  for (const experts::DevicePreset& preset : experts::device_presets()) names.emplace_back(preset.name);
  return names;
}

struct Kind {
  std::string flag;
  Names all;
};

std::vector<Kind> kinds() {
  const Names caches = names_in(experts::cache_policies());
  return {{"--preset", all_presets()},
          {"--router", names_in(experts::router_policies())},
          {"--cache", caches},
          {"--scheduler", names_in(experts::scheduler_policies())},
          {"--prefetch", names_in(experts::prefetch_policies())},
          {"--placement", names_in(experts::placement_policies())},
          {"--device-cache", caches}};
}

struct Call {
  std::string command, words;
};

class PolicyNamesOf : public PolicyNames, public ::testing::WithParamInterface<Call> {
 protected:
  // The command with a name of a policy, and with what that needs beside it.
  static std::string words_for(const Kind& kind, const std::string& name) {
    const bool sliced = kind.flag != "--device-cache" && (name == "slicemoe" || name == "slice-lru");
    const bool preset = kind.flag == "--preset";
    std::string words = GetParam().command + ' ' + file(sliced ? "sliced.sluice" : "packed.sluice") + " -q " +
                        GetParam().words + " -o " + file("made");
    if (const std::string& command = GetParam().command; command != "forward" && command != "trace")
      words.resize(words.rfind(" -o "));
    if (sliced) words += " --precision high";
    if (!preset && GetParam().command == "compare") words += " --preset auto";
    if (preset && experts::is_device_preset(name)) words += " --device emulated --prefetch none";
    if (kind.flag == "--device-cache" || (kind.flag == "--placement" && name != "cpu"))
      words += " --device emulated";
    const bool plays = help_of(GetParam().command, "--routing") != "";
    const bool popular = name == "d-fiddler" || (kind.flag == "--device-cache" && name == "static-popular");
    if (popular) words += " --ranks-of " + file("b.trace");
    if (name == "recorded" && plays) words += " --routing " + file("a.trace");
    if (name == "dali-residual") words += " --residual " + file("residual.bin");
    return words + ' ' + kind.flag + ' ' + name;
  }
};

// A preset for a device runs without its prefetch, which may have to know another text.
TEST_P(PolicyNamesOf, ItsHelpListsAllItTakesAndNoOthers) {
  std::size_t taken = 0, refused = 0;
  for (const Kind& kind : kinds()) {
    const std::string help = help_of(GetParam().command, kind.flag);
    const Names names = listed(help.substr(0, help.find("; default")), kind.all);
    ASSERT_GE(names.size(), 3u) << kind.flag << ": " << help;
    for (const std::string& name : kind.all) {
      const std::string words = words_for(kind, name);
      const Outcome outcome = run(words);
      std::filesystem::remove(file("made"));
      const bool is_listed = std::ranges::find(names, name) != names.end();
      ++(is_listed ? taken : refused);
      EXPECT_EQ(outcome.code, is_listed ? 0 : 2) << words << "\n" << outcome.err;
      if (!is_listed) {
        EXPECT_TRUE(outcome.err.starts_with("sluice: " + kind.flag + ": ")) << words << "\n" << outcome.err;
      }
    }
  }
  std::printf("%zu names taken, %zu refused\n", taken, refused);
  EXPECT_GT(taken, 80u);
  // Eleven are for replays alone, or caches for a device or the host alone; `recorded` is refused by what
  // cannot play a trace.
  EXPECT_EQ(refused, help_of(GetParam().command, "--routing").empty() ? 12u : 11u);
}

// What the error about a name lists as allowed.
Names allowed(const Outcome& outcome, const Names& all) {
  const std::size_t first = outcome.err.find("; expected "), last = outcome.err.find(", found ");
  return first < last ? listed(outcome.err.substr(first, last - first), all) : Names();
}

// A router that plays a trace is offered only beside a trace.
TEST_P(PolicyNamesOf, AnUnknownRouterIsAnsweredWithThoseThatCanAct) {
  const Names all = names_in(experts::router_policies());
  const Kind router = {"--router", all};
  const std::string help = help_of(GetParam().command, "--router");
  const Names acting = listed(help.substr(0, std::min(help.find("; with --routing"), help.find(" ("))), all);
  EXPECT_EQ(acting.size() + 1, all.size()) << help;
  const Outcome unknown = run(words_for(router, "cumsun")), played = run(words_for(router, "recorded"));
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(allowed(unknown, all), acting) << unknown.err;
  EXPECT_NE(unknown.err.find("did you mean cumsum?"), std::string::npos) << unknown.err;
  const bool plays = !help_of(GetParam().command, "--routing").empty();
  EXPECT_EQ(help.find("; with --routing recorded (") != std::string::npos, plays) << help;
  EXPECT_EQ(played.code, plays ? 0 : 2) << played.err;
  if (plays) {
    const Outcome beside = run(words_for(router, "recordet") + " --routing " + file("a.trace"));
    EXPECT_EQ(beside.code, 2);
    EXPECT_EQ(allowed(beside, all), all) << beside.err;
  } else {
    EXPECT_EQ(allowed(played, all), acting) << played.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Commands, PolicyNamesOf,
                         ::testing::Values(Call{"run", "--tokens 1,2,3 -n 3 --temp 0 --ignore-eos"},
                                           Call{"forward", "--tokens 1,2,3"},
                                           Call{"eval", "--ctx 16 -f " + kModel + "/config.json"},
                                           Call{"plan", ""}, Call{"trace", "--tokens 1,2,3 -n 3"},
                                           Call{"compare", "--tokens 1,2,3 -n 3 --runs 1"}),
                         [](const auto& call) { return call.param.command; });

// What a replay needs for a policy of each kind.
TEST_F(PolicyNames, ThatAReplayListsItTakes) {
  const std::string trace = "simulate -q --trace " + file("a.trace"),
                    ranks = " --ranks-of " + file("b.trace");
  const std::string device = trace + " --machine dali-3090 --device-slots 2" + ranks;
  const std::string sizes = " --capacity 4";
  const std::string scored = device + " --preset gpu-lru" + sizes;  // reads scores, too
  const std::map<std::string, std::string> caches = {
      {"hybrimoe", scored},
      {"d-hybrimoe", scored},
      {"score-window", scored},
      {"slice-lru", "simulate -q --trace " + file("sliced.trace") + " --precision dbsc --capacity 100KiB"},
      {"zip-pools", "simulate -q --trace " + file("packed.trace") + " --pools 1,1,1,1"},
      {"zip-reuse", "simulate -q --trace " + file("packed.trace") + " --pools 1,1,1,1"}};
  const struct {
    Kind kind;
    std::string flag_of_help, call;
  } all[] = {
      {{"--cache", names_in(experts::cache_policies())}, "--cache", trace + sizes},
      {{"--preset", names_in(experts::presets())},
       "--preset",
       "simulate -q --trace " + file("packed.trace") + " --profile " + file("profile.json") +
           " --memory-experts 300KiB"},
      {{"--preset", names_in(experts::device_presets())}, "--device-slots", device},
      {{"--placement", names_in(experts::placement_policies())}, "--placement", device},
      {{"--prefetch", names_in(experts::prefetch_policies())}, "--prefetch", device},
      {{"--router", names_in(experts::router_policies())},
       "--router",
       trace + " --machine slicemoe --memory-experts 100KiB --shape " + file("model")},
  };
  std::size_t taken = 0;
  for (const auto& [kind, flag_of_help, call] : all) {
    const Names names = listed(help_of("simulate", flag_of_help), kind.all);
    EXPECT_GE(names.size(), 3u) << flag_of_help;
    for (const std::string& name : names) {
      const std::string other = kind.flag == "--cache" && caches.contains(name) ? caches.at(name) : call;
      const std::string words = other + ' ' + kind.flag + ' ' + name;
      const Outcome outcome = run(words);
      EXPECT_EQ(outcome.code, 0) << words << "\n" << outcome.err;
      ++taken;
    }
  }
  std::printf("%zu names taken\n", taken);
  EXPECT_GT(taken, 60u);
}

}  // namespace
