// The router `recorded` through the built program: a run that plays a trace decides what the trace's replay
// decides; on the model that was recorded it computes the same text; every output names what is played.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "bundled_model.h"
#include "scratch_test.h"

namespace recorded_routing_test {
namespace {

using sluice::Json;
using sluice::program::content_of;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::program::run_json;

const std::string kData = SLUICE_SOURCE_DIR "/tests/data/routing/";
const std::string kOnePrompt = " -p 'The sea was calm, and the old man'",
                  kFourPrompts = kOnePrompt + " -p 'A fox went out' -p 'It was the best house' -p Once";

class RecordedRouting : public sluice::testing::ScratchTest {
 protected:
  // A model of the bundled one's shape with random weights; its vocabulary takes the same prompts.
  std::string random_model() {
    EXPECT_EQ(run("synth " + kModel + "/config.json -o " + file("random") + " --seed 3 --quiet").code, 0);
    return file("random");
  }

  // Token ids of the prompts, since a random model has no tokenizer.
  static std::string as_tokens(const std::vector<std::vector<int>>& prompts) {
    std::string flags;
    for (const std::vector<int>& prompt : prompts) {
      flags += " --tokens ";
      for (std::size_t i = 0; i < prompt.size(); ++i)
        flags += (i == 0 ? "" : ",") + std::to_string(prompt[i]);
    }
    return flags;
  }
};

// A report whose lines are not broken.
std::string on_one_line(const std::string& text) { return std::regex_replace(text, std::regex("\n *"), " "); }

// Without the first line, which also says what a run plays.
std::string decisions_of(const std::string& log) { return log.substr(log.find('\n')); }

TEST_F(RecordedRouting, ARunThatPlaysATraceDecidesWhatTheReplayOfTheTraceDecides) {
  const std::string model = random_model();
  const std::vector<std::vector<int>> prompts = {{5, 6, 7, 8, 9}, {10, 11}, {12, 13, 14}, {15, 16, 17, 18}};
  for (const std::size_t batch : {1u, 4u}) {
    const std::string name = std::to_string(batch),
                      tokens =
                          as_tokens({prompts.begin(), prompts.begin() + static_cast<std::ptrdiff_t>(batch)});
    ASSERT_EQ(run("trace " + kModel + tokens + " -n 20 --temp 0 --ignore-eos --quiet --chunk 3 -o " +
                  file(name + ".trace"))
                  .code,
              0);
    for (const std::string scope : {"global", "layer"}) {
      SCOPED_TRACE("batch " + name + ", " + scope);
      const std::string capacity = scope == "global" ? "4MiB" : "1MiB";
      const Json ran =
          run_json("run " + model + tokens +
                   " -n 20 --temp 0.9 --seed 4 --ignore-eos --chunk 3 --cache lru --cache-scope " + scope +
                   " --capacity " + (scope == "global" ? "4MiB" : "6MiB") + " --router recorded --routing " +
                   file(name + ".trace") + " --decisions " + file(name + scope + ".run"));
      const Json replayed =
          run_json("simulate --trace " + file(name + ".trace") + " --cache lru --scope " + scope +
                   " --capacity " + capacity + " --decisions " + file(name + scope + ".replay"));
      EXPECT_EQ(ran["decisions"], replayed["decisions"]);
      const std::string log = content_of(file(name + scope + ".run"));
      EXPECT_EQ(decisions_of(log), decisions_of(content_of(file(name + scope + ".replay"))));
      EXPECT_GT(log.size(), 2000u);
      EXPECT_NE(log.find(" routing=recorded from " + file(name + ".trace") + "\n"), std::string::npos);
      EXPECT_EQ(ran["routing"], "recorded from " + file(name + ".trace"));
      EXPECT_EQ(ran["experts"]["routing"]["router"], "recorded");
      EXPECT_GT(ran["experts"]["routing"]["changed_tokens"], 0);
      EXPECT_GT(replayed["misses"], 0);
    }
  }
}

TEST_F(RecordedRouting, TheModelThatWasRecordedComputesTheSameText) {
  for (const std::string& prompts : {kOnePrompt, kFourPrompts}) {
    const std::string flags = prompts + " -n 24 --temp 0.8 --seed 7 --ignore-eos --memory " + memory(48);
    const std::string trace = file(prompts == kOnePrompt ? "1.trace" : "4.trace");
    const Json traced = run_json("trace " + kModel + flags + " -o " + trace),
               played = run_json("run " + kModel + flags + " --router recorded --routing " + trace);
    if (prompts == kOnePrompt) {
      EXPECT_EQ(played["tokens"], traced["tokens"]);
    } else {
      for (std::size_t i = 0; i < 4; ++i)
        EXPECT_EQ(played["sequences"][i]["tokens"], traced["sequences"][i]["tokens"]);
    }
    EXPECT_EQ(played["experts"]["routing"]["changed_tokens"], 0);
  }
}

TEST_F(RecordedRouting, ATraceOfAnotherShapeIsFittedAndEveryOutputSaysHow) {
  const std::string trace = kData + "dsv2lite.first48.mrt.zst",
                    flags = kOnePrompt + " -n 60 --ignore-eos --temp 0 --memory " + memory(40) +
                            " --router recorded --routing " + trace;
  const std::string fitted = "recorded from " + trace +
                             " (26 layers of 64 experts, top 6 on 6 layers of 32 experts, top 4: layer l "
                             "plays l mod 26; expert x is x "
                             "mod 32; the best 4 of 6)";
  const Json ran = run_json("run " + kModel + flags);  // longer than the trace, which begins again
  EXPECT_EQ(ran["routing"], fitted);
  const Json recorded =
      run_json("trace " + kModel + flags + " -o " + file("a.trace") + " --decisions " + file("engine"));
  EXPECT_EQ(recorded["routing"], fitted);
  EXPECT_EQ(recorded["run"]["routing"], fitted);
  const Json replayed = run_json(
      "simulate --trace " + file("a.trace") + " --cache reuse --scope global --capacity " +
      std::to_string(recorded["run"]["capacity"].get<std::uint64_t>()) + "B --decisions " + file("replay"));
  // The trace says that it was played, so that the replay's log begins as the run's.
  EXPECT_EQ(content_of(file("engine")), content_of(file("replay")));
  EXPECT_EQ(replayed["played"], fitted);
  const Outcome text = run("run " + kModel + flags);
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.err.find("recorded from"), std::string::npos) << text.err;
  EXPECT_NE(text.err.find("not its own"), std::string::npos) << text.err;
  const Outcome quiet = run("run " + kModel + flags + " --quiet");
  EXPECT_EQ(quiet.err, "routing: " + fitted + "\n");
  EXPECT_EQ(quiet.out, text.out);
  const Outcome traced = run("trace " + kModel + flags + " --quiet -o " + file("quiet.trace"));
  EXPECT_EQ(traced.err, "routing: " + fitted + "\n");
  EXPECT_EQ(traced.out, "");
  const Json chosen = run_json("run " + kModel + flags + " --routing-layers 1,6,11,16,21,25");
  EXPECT_NE(chosen["routing"].get<std::string>().find("layers 1,6,11,16,21,25"), std::string::npos);
  EXPECT_NE(chosen["decisions"], ran["decisions"]);
}

TEST_F(RecordedRouting, EveryReplayOfATraceThatWasPlayedNamesWhatWasPlayed) {
  const std::string first = file("first.trace"), again = file("again.trace"), profile = file("here.json"),
                    store = file("sliced.sluice"), sliced = file("sliced.trace"),
                    request = " --tokens 5,6,7 -n 70 --temp 0 --ignore-eos --memory " + memory(40);
  ASSERT_EQ(run("trace " + kModel + request + " -q -o " + first).code, 0);
  const std::string played = " --router recorded --routing " + first, words = "recorded from " + first;
  ASSERT_EQ(run("trace " + kModel + request + played + " -q --ahead -o " + again).code, 0);
  ASSERT_EQ(run("pack " + kModel + " --slices 8/4 -q -o " + store).code, 0);
  ASSERT_EQ(run("trace " + store + request + " --precision high" + played + " -q -o " + sliced).code, 0);
  ASSERT_EQ(run("profile " + kModel + " --repeats 1 -q -o " + profile).code, 0);
  const struct {
    std::string what;  // behind the trace
    std::string trace;
  } replays[] = {
      {" --cache lru --capacity 4", again},
      {" --cache lru,lfu --capacity 4", again},
      {" --cache slice-lru --capacity 4MiB --scope global --precision high", sliced},
      {" --machine slicemoe --shape " + kModel + " --memory-experts 8MiB", again},
      {" --machine dali-3090 --preset dali --device-slots 4 --prefetch none", again},
      {" --profile " + profile + " --preset z-basic-lru --memory-experts 8MiB", again},
  };
  for (const auto& [what, trace] : replays) {
    SCOPED_TRACE(what);
    const Outcome table = run("simulate --trace " + trace + what + " -q");
    EXPECT_EQ(table.code, 0) << table.err;
    EXPECT_NE(table.out.find("\nrouting: " + words + "\n"), std::string::npos) << table.out;
    EXPECT_EQ(run_json("simulate --trace " + trace + what)["played"], words);
    EXPECT_FALSE(trace == again && run_json("simulate --trace " + first + what).contains("played"));
  }
  // Where it only says how often experts are used, and where it is played once more.
  const std::string said = "sluice: " + again + ": its routing is " + words + ", and not its model's own\n";
  EXPECT_EQ(run("plan " + kModel + " --trace " + again + " --memory " + memory(40)).err, said);
  EXPECT_EQ(run("profile " + kModel + " --repeats 1 -q --trace " + again + " -o " + profile).err, said);
  // The profile keeps that: whatever predicts with it says so.
  EXPECT_EQ(Json::parse(content_of(profile))["played"], words);
  const std::string with_profile = " --memory " + memory(40) + " --profile " + profile,
                    short_run = "run " + kModel + " --tokens 5,6,7 -n 4 --temp 0" + with_profile;
  const std::string report = on_one_line(run(short_run).err);
  EXPECT_NE(report.find("(recorded routing, played: " + words + ")"), std::string::npos) << report;
  EXPECT_EQ(run_json(short_run)["predicted"]["played"], words);
  EXPECT_EQ(run_json("plan " + kModel + with_profile)["played"], words);
  EXPECT_FALSE(run_json("plan " + kModel + with_profile + " --trace " + first).contains("played"));
  EXPECT_EQ(run("simulate --trace " + first + " --profile " + profile +
                " --preset z-basic-lru --memory-experts 8MiB -q")
                .err,
            "sluice: " + profile + ": its routing is " + words + ", and not its model's own\n");
  EXPECT_EQ(run("simulate --trace " + first + " --profile " + profile +
                " --preset z-basic-lru --memory-experts 8MiB -q --ranks-of " + again)
                .err,
            said);
  EXPECT_EQ(run("simulate --trace " + first +
                " --machine dali-3090 --device-slots 4,8 --prefetch none -q "
                "--ranks-of " +
                again)
                .err,
            said);
  EXPECT_EQ(run_json("run " + kModel + request + " --router recorded --routing " + again)["routing"],
            "recorded from " + again + ", itself " + words);
}

TEST_F(RecordedRouting, PresetsThatPlayOneTraceGiveOneTextAndAreNamed) {
  const std::string compare =
      "compare " + kModel + " --preset auto,z-basic-lru -n 8 --runs 1 --tokens 5,6,7 " + "--memory " +
      memory(40) + " --router recorded --routing " + kData + "dsv2lite.first48.mrt.zst";
  const Json compared = run_json(compare);
  EXPECT_TRUE(compared["routing"].get<std::string>().starts_with("recorded from "));
  EXPECT_EQ(compared["texts_equal"], true);
  for (const Json& preset : compared["presets"]) {
    EXPECT_EQ(preset["lossy"], true);
    EXPECT_NE(preset["arithmetic"].get<std::string>().find("routing recorded from"), std::string::npos);
  }
  const Outcome table = run(compare);
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("routing: recorded from"), std::string::npos) << table.out;
}

TEST_F(RecordedRouting, WrongUseIsOneClearError) {
  const std::string model = kModel + " --tokens 5 -n 2 ", trace = kData + "dsv2lite.first48.mrt.zst";
  const auto fails = [](const std::string& command, int code, const std::string& words) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, code) << command;
    EXPECT_EQ(outcome.out, "") << command;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  fails("run " + model + "--router recorded", 2, "--routing FILE");
  fails("run " + model + "--routing " + trace, 2, "--routing: this flag has no effect here");
  fails("run " + model + "--router exact --routing-layers 1", 2, "--routing-layers");
  fails("run " + model + "--router recorded --routing " + trace + " --routing-layers 1,2", 2, "6 numbers");
  fails("run " + model + "--router recorded --routing " + trace + " --routing-layers 1,2,3,4,5,26", 2,
        "0 to 25");
  fails("run " + model + "--router recorded --routing " + trace + " --routing-layers 1,x", 2, "\"x\"");
  fails("run " + model + "--router recorded --routing " + kModel + "/config.json", 1, "not a routing trace");
  fails("run " + model + "--router recorded --routing /nonexistent", 1, "/nonexistent");
  fails("run " + model + "--router recorded --constraint hard --routing " + trace, 2, "the router recorded");
  fails("run " + model + "--router recorded --top-j 1 --routing " + trace, 2, "--top-j");
  // Judges of text have no such flag, and say so.
  std::ofstream(file("text")) << "Once upon a time there was a house.";
  fails("eval " + kModel + " -f " + file("text") + " --router recorded", 2, "run, trace and compare");
  fails("forward " + kModel + " --tokens 5 --out " + file("logits.npy") + " --router recorded", 2,
        "run, trace and compare");
  fails("compare " + kModel + " --reference " + kModel + " --tokens 5 --router recorded --routing " + trace,
        2, "says nothing about the model's text");
  fails("simulate --trace " + trace + " --machine slicemoe --memory-experts 1GB --router recorded", 2,
        "run, trace and compare");
}

TEST_F(RecordedRouting, ThePlayedTraceIsInsideTheBudget) {
  constexpr std::uint64_t kTokens = 20000;
  std::ofstream csv(file("long.csv"));
  csv << "# route_trace v1\n# arch=a n_layer=1 n_expert=4 n_expert_used=1\n"
         "turn,phase,step,layer,slot,expert,weight,residency,expert_bytes\n";
  for (std::uint64_t t = 0; t < kTokens; ++t) csv << "0,1," << t << ",0,0," << t % 4 << ",1,0,1\n";
  csv.close();
  const std::string flags = " --tokens 5 -n 2 --ignore-eos --memory " + memory(40);
  const Json plain = run_json("run " + kModel + flags),
             played = run_json("run " + kModel + flags + " --router recorded --routing " + file("long.csv"));
  const auto tables = [](const Json& json) {
    return json["memory"]["by_name"]["tables"].get<std::uint64_t>();
  };
  EXPECT_GT(tables(played), tables(plain) + kTokens * 6 * 4 * 2 - 4096);
  EXPECT_LE(played["memory"][sluice::program::kPeak], played["memory"]["budget"]);
}

}  // namespace
}  // namespace recorded_routing_test
