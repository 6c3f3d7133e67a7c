// Traces through the built program: a replay of a run's trace decides what the engine decided (SPEC I6);
// interrupted, cut and foreign traces.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "bundled_model.h"
#include "own_disk.h"
#include "scratch_test.h"

namespace {

namespace fs = std::filesystem;
using sluice::Json;
using sluice::program::content_of;
using sluice::program::kModel;
using sluice::program::kNoDisks;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::program::run_json;
using sluice::program::run_on_own_disk;

const std::string kData = SLUICE_SOURCE_DIR "/tests/data/routing/";

class TraceTest : public sluice::testing::ScratchTest {
 protected:
  // The logs of the run and of the replay must be equal, and so must their counts.
  void expect_same_decisions(const std::string& model, const std::string& cache, const std::string& scope,
                             const std::string& keep, const std::string& flags) {
    SCOPED_TRACE(cache + " " + scope + " " + keep + " " + flags);
    for (const char* name : {"a.trace", "engine", "replay"}) fs::remove(file(name));
    const Json ran =
        run_json("trace " + model +
                 " -p 'The sea was calm, and the old man' -n 24 --temp 0.8 --seed 7 --ignore-eos -o " +
                 file("a.trace") + " --decisions " + file("engine") + " --cache " + cache +
                 " --cache-scope " + scope + " --keep " + keep + " " + flags);
    ASSERT_TRUE(ran.contains("run"));
    std::string pools;
    if (ran["run"].contains("pools")) {
      slots_ = ran["run"]["pools"]["slots"].get<std::vector<int>>();
      for (const int slots : slots_) pools += (pools.empty() ? " --pools " : ",") + std::to_string(slots);
    }
    const Json replayed = run_json("simulate --trace " + file("a.trace") + " --cache " + cache + " --scope " +
                                   scope + " --keep " + keep + " --seed 7 --capacity " +
                                   std::to_string(ran["run"]["capacity"].get<std::uint64_t>()) +
                                   "B --decisions " + file("replay") + pools);
    EXPECT_EQ(content_of(file("engine")), content_of(file("replay")));
    EXPECT_GT(content_of(file("engine")).size(), 2000u);
    EXPECT_EQ(ran["decisions"], replayed["decisions"]);
    for (const char* count : {"accesses", "hits", "misses"})
      EXPECT_EQ(ran["experts"][count], replayed[count]) << count;
    // What a cache brings in unused is a hit, but is read on demand where a token needs it before it came.
    if (!cache.starts_with("workload")) {
      EXPECT_EQ(ran["experts"]["bytes_read"], replayed["bytes_read"]);
    }
    any_hits_ += ran["experts"]["hits"].get<std::uint64_t>();
    any_misses_ += replayed["evictions"].get<std::uint64_t>();
  }

  // A store, and a profile of it with these costs instead of measured ones.
  std::string packed_with_profile(const Json& costs) {
    const std::string store = file("fable.sluice");
    if (!fs::exists(store)) {
      EXPECT_EQ(run("pack " + kModel + " -o " + store + " --quiet").code, 0);
    }
    Json profile = run_json("profile " + store + " --repeats 1 -o " + file("measured.json"));
    for (const auto& [name, median] : costs.items()) profile[name]["median"] = median;
    std::ofstream(file("profile.json")) << profile;
    return store;
  }
  std::vector<int> slots_;  // F, C, S, E of the last run, if it had pools
  std::uint64_t any_hits_ = 0, any_misses_ = 0;
};

TEST_F(TraceTest, ReplayDecidesWhatTheEngineDecided) {
  for (const std::string cache :
       {"fifo", "lru", "lfu", "marking", "eam", "static", "workload-window", "workload-ema"})
    for (const std::string scope : {"global", "layer"})
      for (const int mib : {30, 40})
        expect_same_decisions(kModel, cache, scope, "full", "--chunk 5 --memory " + memory(mib));
  expect_same_decisions(kModel, "none", "global", "full", "--memory " + memory(40));
  EXPECT_GT(any_hits_, 1000u);
  EXPECT_GT(any_misses_, 1000u);
}

// Without what they go by they would all be the same.
TEST_F(TraceTest, CachesThatGoByScoresDecideByThem) {
  std::set<std::string> decisions;
  for (const std::string cache : {"lru", "hybrimoe", "d-hybrimoe", "score-window"})
    decisions.insert(run_json("run " + kModel +
                              " -p 'The sea was calm' -n 60 --temp 0 --ignore-eos --prefetch none " +
                              "--capacity 6MiB --memory " + memory(64) + " --cache " + cache)["decisions"]
                         .get<std::string>());
  EXPECT_EQ(decisions.size(), 4u);
}

TEST_F(TraceTest, ReplayDecidesWhatTheEngineDecidedOfAPackedStore) {
  const std::string store = file("fable.sluice");
  ASSERT_EQ(run("pack " + kModel + " -o " + store + " --quiet").code, 0);
  for (const std::string keep : {"full", "packed"})
    expect_same_decisions(store, "lru", "global", keep, "--memory " + memory(36));
}

TEST_F(TraceTest, ReplayDecidesWhatTheEngineDecidedOfSlices) {
  const std::string store = file("slices.sluice");
  ASSERT_EQ(run("pack " + kModel + " -o " + store + " --slices 8/4 --quiet").code, 0);
  struct Case {
    // Flags of both; the engine's extra flags do not matter to a replay.
    const char *engine, *replay;
    const char* heading;
  };
  std::uint64_t downgrades = 0, misses = 0;
  for (const Case& one : {
           Case{"--preset slicemoe --miss-rate 3%", "--precision dbsc --constraint hard --miss-rate 3%",
                " precision=dbsc critical=single-head,0.35 lsb_miss=fetch_if_budget lsb_reserve=0 warmup=pcw "
                "kappa=0.5 rho=0.5 constraint=hard miss_rate=0.03\n"},
           Case{"--precision dbsc --router cumsum --lsb-miss fetch --warmup last-layer",
                "--precision dbsc --lsb-miss fetch --warmup last-layer", " rho=0.5 constraint=none\n"},
           Case{"--precision low", "--precision low", " precision=low "},
           Case{"--precision high --cache slice-lru --warmup random --lsb-reserve 0.3 --rho 0.25",
                "--precision high --warmup random --lsb-reserve 0.3 --rho 0.25", " warmup=random "},
           Case{"--precision dbsc --kappa 0.3 --rho 0.25", "--precision dbsc --kappa 0.3 --rho 0.25",
                " kappa=0.3 rho=0.25 constraint=none\n"},
           Case{"--precision dbsc --critical rel_top1 --theta 80% --lsb-miss skip --warmup empty",
                "--precision dbsc --critical rel_top1 --theta 80% --lsb-miss skip --warmup empty",
                " critical=rel_top1,0.8 lsb_miss=skip "},
       }) {
    for (const std::string scope : {"global", "layer"}) {
      SCOPED_TRACE(std::string(one.engine) + " " + scope);
      for (const char* name : {"a.trace", "engine", "replay"}) fs::remove(file(name));
      const Json ran =
          run_json("trace " + store +
                   " -p 'The sea was calm, and the old man' -p 'A fox' -n 24 --temp 0.8 --seed 7 "
                   "--ignore-eos --chunk 5 -o " +
                   file("a.trace") + " --decisions " + file("engine") + " --cache-scope " + scope +
                   " --memory " + memory(26) + " " + one.engine);
      const Json replayed =
          run_json("simulate --trace " + file("a.trace") + " --cache slice-lru --scope " + scope +
                   " --seed 7 --capacity " + std::to_string(ran["run"]["capacity"].get<std::uint64_t>()) +
                   "B --decisions " + file("replay") + " " + one.replay);
      const std::string log = content_of(file("engine"));
      EXPECT_EQ(log, content_of(file("replay")));
      EXPECT_GT(log.size(), 2000u);
      EXPECT_NE(log.find(one.heading), std::string::npos) << log.substr(0, log.find('\n'));
      EXPECT_EQ(ran["decisions"], replayed["decisions"]);
      for (const char* count : {"accesses", "hits", "misses", "bytes_read"})
        EXPECT_EQ(ran["experts"][count], replayed[count]) << count;
      downgrades += replayed["slices"]["downgrades"].get<std::uint64_t>();
      misses += replayed["slices"]["msb_misses"].get<std::uint64_t>();
    }
  }
  EXPECT_GT(downgrades, 0u);
  EXPECT_GT(misses, 0u);
  const Outcome critical = run("simulate --trace " + file("a.trace") +
                               " --cache slice-lru --capacity 1MiB --precision dbsc --critical fixed_top_c "
                               "--critical-count 5");
  EXPECT_EQ(critical.code, 2);
  EXPECT_NE(critical.err.find("--critical-count: more critical experts"), std::string::npos) << critical.err;
  const Outcome whole = run("simulate --trace " + file("a.trace") + " --cache slice-lru,lru --capacity 1MiB");
  EXPECT_EQ(whole.code, 2);
  EXPECT_NE(whole.err.find("slice-lru alone"), std::string::npos) << whole.err;
}

TEST_F(TraceTest, ABatchIsRecordedAndReplayed) {
  const std::string others =
      " -p 'A fox went out' -p 'It was the best house in the village, with a red roof'";
  for (const std::string scope : {"global", "layer"})
    expect_same_decisions(kModel, "lru", scope, "full", others + " --memory " + memory(40));
  fs::remove(file("a.trace"));
  const std::string prompts = " -p 'The sea'" + others + " -n 8 --temp 0 --ignore-eos --memory " + memory(48);
  const Json ran = run_json("run " + kModel + prompts),
             traced = run_json("trace " + kModel + prompts + " -o " + file("a.trace"));
  EXPECT_EQ(traced["steps"], 1 + 7);  // one of all prompts, then steps of all three
  ASSERT_EQ(traced["sequences"].size(), 3u);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(traced["sequences"][i]["tokens"], ran["sequences"][i]["tokens"]);
  double longest = 0;
  for (const Json& sequence : traced["sequences"])
    longest = std::max(longest, sequence["timing"]["decode_s"].get<double>());
  EXPECT_GT(longest, 0);
  EXPECT_EQ(traced["timing"]["decode_s"], longest);
}

TEST_F(TraceTest, ReplayDecidesWhatTheEngineDecidedWithPools) {
  // Reads cost most, decoding costs next to nothing: compressed experts pay.
  const std::string store = packed_with_profile({{"u", 2e-3}, {"v", 1e-4}, {"c", 1e-6}, {"merge", 1e-6}}),
                    flags = " --profile " + file("profile.json") + " --chunk 9 --memory " + memory(34);
  for (const std::string scope : {"global", "layer"}) {
    expect_same_decisions(store, "zip-pools", scope, "full", "--preset zipmoe" + flags);
    EXPECT_GT(slots_.at(1), 0);
    expect_same_decisions(store, "zip-pools", scope, "full", "--preset z-C" + flags);
    for (const int slots : slots_) EXPECT_GT(slots, 0);
    const std::string log = content_of(file("engine"));
    EXPECT_NE(log.find(" pools=" + std::to_string(slots_[0]) + ","), std::string::npos);
    for (const char* state : {"=full", "=sm+exp", "=sm,", "=exp,", "=sm>", "=exp>", " reduce "})
      EXPECT_NE(log.find(state), std::string::npos) << state;
  }
  EXPECT_GT(any_hits_, 500u);
  EXPECT_GT(any_misses_, 100u);
}

TEST_F(TraceTest, SlotsAloneAreACapacity) {
  const std::string replay =
      "simulate --trace " + kData + "dsv2lite.first48.mrt.zst --cache zip-pools --pools 4,4,2,2 --scope ";
  const Json layer = run_json(replay + "layer"), global = run_json(replay + "global");
  EXPECT_EQ(layer["capacity"], 12);
  EXPECT_EQ(global["capacity"], 12 * 26);
  EXPECT_GT(layer["hits"], 0);
  EXPECT_GT(layer["partial"], 0);
  EXPECT_EQ(layer["hits"], global["hits"]);  // every layer has pools of its own
  const Outcome none =
      run("simulate --trace " + kData + "dsv2lite.first48.mrt.zst --cache zip-pools --pools 0,0,0,0");
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("--pools: pools without a slot"), std::string::npos) << none.err;
}

TEST_F(TraceTest, RecordedRoutingIsPlannedWith) {
  const std::string store = packed_with_profile(Json::object());
  ASSERT_EQ(
      run("trace " + store + " -p 'Once upon a time' -n 90 --ignore-eos --quiet -o " + file("a.trace")).code,
      0);
  const Json profile =
      run_json("profile " + store + " --repeats 1 --trace " + file("a.trace") + " -o " + file("p.json"));
  ASSERT_EQ(profile["ranks"].size(), 32u);
  double sum = 0;
  for (const Json& f : profile["ranks"]) sum += f.get<double>();
  EXPECT_NEAR(sum, profile["model"]["top_k"].get<double>(), 1e-6);
  const std::string plan = "plan " + store + " --memory " + memory(40) + " --profile ";
  EXPECT_EQ(run_json(plan + file("measured.json"))["ranks_assumed"], true);
  EXPECT_EQ(run_json(plan + file("p.json"))["ranks_assumed"], false);
  EXPECT_EQ(run_json(plan + file("measured.json") + " --trace " + file("a.trace"))["ranks_assumed"], false);
  const Outcome other = run(plan + file("p.json") + " --trace " + kData + "dsv2lite.first48.mrt.zst");
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("another model"), std::string::npos) << other.err;
}

TEST_F(TraceTest, TimedReplayComparesPresets) {
  const std::string store = packed_with_profile({{"u", 2e-3}, {"v", 1e-4}, {"c", 1e-6}, {"merge", 1e-6}});
  ASSERT_EQ(
      run("trace " + store + " -p 'Once upon a time' -n 40 --ignore-eos --quiet -o " + file("a.trace")).code,
      0);
  const std::string replay = "simulate --trace " + file("a.trace") + " --profile " + file("profile.json");
  const Json all = run_json(replay + " --preset all --memory-experts 6MiB,12MiB");
  EXPECT_GE(all["results"].size(), 2 * 8u);
  std::map<std::string, std::vector<double>> tpot;
  for (const Json& row : all["results"]) {
    EXPECT_EQ(row["decode"]["steps"], 39);
    EXPECT_EQ(row["prompts"], 1);
    EXPECT_GT(row["ttft_s"], 0);
    EXPECT_GE(row["decode"]["time_s"].get<double>(),
              row["decode"]["lower_bound_s"].get<double>() * (1 - 1e-9));
    tpot[row["preset"].get<std::string>()].push_back(row["tpot_s"].get<double>());
  }
  EXPECT_LT(tpot["zipmoe"][0], tpot["z-basic-lru"][0]);
  EXPECT_LT(tpot["z-basic-lru"][0], tpot["z-deepspeed"][0]);
  EXPECT_EQ(tpot["z-deepspeed"][0], tpot["z-deepspeed"][1]);
  const Outcome table = run(replay + " --preset zipmoe,z-C --memory-experts 8MiB --workers 4");
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("z-C"), std::string::npos);
  for (const auto& [flags, words] : std::map<std::string, std::string>{
           {" --preset zipmoe", "--memory-experts"},
           {" --memory-experts 8MiB", "--preset"},
           {" --preset best --memory-experts 8MiB", "one of auto"},
           {" --preset zipmoe --memory-experts 8MiB --cache lru", "--cache"}}) {
    const Outcome wrong = run(replay + flags);
    EXPECT_EQ(wrong.code, 2) << flags;
    EXPECT_NE(wrong.err.find(words), std::string::npos) << wrong.err;
  }
  const Outcome tiny = run(replay + " --preset zipmoe --memory-experts 1B");
  EXPECT_EQ(tiny.code, 1);
  EXPECT_NE(tiny.err.find("no part of any expert"), std::string::npos) << tiny.err;
  const Outcome other = run("simulate --trace " + kData + "dsv2lite.first48.mrt.zst --profile " +
                            file("profile.json") + " --preset zipmoe --memory-experts 8MiB");
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("different models"), std::string::npos) << other.err;
}

TEST_F(TraceTest, RunWritesTheSameLog) {
  const Json ran =
      run_json("run " + kModel + " --tokens 5,6,7 -n 12 --ignore-eos --temp 0 --cache lfu --memory " +
               memory(40) + " --decisions " + file("run"));
  const std::string log = content_of(file("run"));
  EXPECT_TRUE(log.starts_with("# sluice decisions v1 cache=lfu scope=global capacity="))
      << log.substr(0, 100);
  EXPECT_TRUE(log.ends_with("# hash " + ran["decisions"].get<std::string>() + "\n"));
}

TEST_F(TraceTest, RecordsWhatTheRunSaidAndChangesNoBit) {
  const std::string prompt = " -p 'Once upon a time' -n 16 --temp 0 --memory " + memory(48);
  const Json plain = run_json("run " + kModel + prompt),
             traced = run_json("trace " + kModel + prompt + " -o " + file("a.trace"));
  EXPECT_EQ(plain["tokens"], traced["tokens"]);
  EXPECT_EQ(traced["steps"], 16);  // one prefill, fifteen decode steps
  const Json replayed = run_json("simulate --trace " + file("a.trace") + " --cache lru --capacity 8");
  EXPECT_EQ(traced["memory"]["budget"], plain["memory"]["budget"]);
  EXPECT_LE(traced["memory"][sluice::program::kPeak], traced["memory"]["budget"]);
  EXPECT_GT(traced["memory"]["accounted"], 0);
  for (const char* account : {"dense", "kv"})
    EXPECT_EQ(traced["memory"]["by_name"][account], plain["memory"]["by_name"][account]) << account;
  EXPECT_EQ(replayed["steps"], 16);
  EXPECT_EQ(replayed["prefill_steps"], 1);
  EXPECT_EQ(replayed["layers"], 6);
  EXPECT_EQ(replayed["experts"], 32);
  EXPECT_EQ(replayed["cut_off"], false);
}

TEST_F(TraceTest, RecordsPredictionsAndGateInputsOnRequest) {
  const std::string record =
                        "trace " + kModel + " --tokens 5,6,7 -n 4 --temp 0 --ignore-eos --capacity 2MiB ",
                    file_flag = " -o " + file("more.trace");
  const Json plain = run_json(record + "-o " + file("plain.trace")),
             more = run_json(record + "--ahead --gate-inputs" + file_flag);
  EXPECT_EQ(plain["version"], 1);
  EXPECT_EQ(more["version"], 2);
  EXPECT_EQ(plain["tokens"], more["tokens"]);
  EXPECT_EQ(plain["decisions"], more["decisions"]);
  // Six tokens, each with 256 floats in each of 6 layers, and 32 logits twice in all but the first.
  EXPECT_GT(more["bytes"].get<int>(), plain["bytes"].get<int>() + 6 * 4 * (6 * 256 + 5 * 2 * 32));
  const std::string replay = " --cache lru --capacity 8";
  EXPECT_EQ(run_json("simulate --trace " + file("plain.trace") + replay)["decisions"],
            run_json("simulate --trace " + file("more.trace") + replay)["decisions"]);
  const Outcome other = run(record + "--append" + file_flag);
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("the trace records other things"), std::string::npos) << other.err;
  EXPECT_EQ(run(record + "--append --ahead --gate-inputs" + file_flag).code, 0);
}

TEST_F(TraceTest, AnInterruptedTraceIsReadAndContinued) {
  const std::string record =
      "trace " + kModel + " --tokens 5,6,7 -n 8 --temp 0 --ignore-eos --memory " + memory(48) + " -o ";
  ASSERT_EQ(run(record + file("a.trace") + " --quiet").code, 0);
  const std::string whole = content_of(file("a.trace"));
  EXPECT_EQ(run(record + file("a.trace")).code, 1);  // never overwritten
  EXPECT_EQ(content_of(file("a.trace")), whole);

  std::ofstream(file("cut.trace"), std::ios::binary) << whole.substr(0, whole.size() - 3000);
  const Outcome cut = run("simulate --trace " + file("cut.trace") + " --cache lru --capacity 8 --json");
  EXPECT_EQ(cut.code, 0);
  EXPECT_NE(cut.err.find("was cut off"), std::string::npos) << cut.err;
  const Json before = Json::parse(cut.out);
  EXPECT_EQ(before["cut_off"], true);
  EXPECT_LT(before["steps"], 8);

  const Json added = run_json(record + file("cut.trace") + " --append");
  EXPECT_EQ(added["steps"], 8);
  const Json after = run_json("simulate --trace " + file("cut.trace") + " --cache lru --capacity 8");
  EXPECT_EQ(after["cut_off"], false);
  EXPECT_EQ(after["steps"].get<int>(), added["first_step"].get<int>() + 8);

  // The same model packed is the same model with other expert sizes; another file is not a trace at all.
  const std::string store = file("fable.sluice");
  ASSERT_EQ(run("pack " + kModel + " -o " + store + " --quiet").code, 0);
  const Outcome packed = run("trace " + store + " --tokens 5 -n 2 --append -o " + file("a.trace"));
  EXPECT_EQ(packed.code, 1);
  EXPECT_NE(packed.err.find("stored with other sizes"), std::string::npos) << packed.err;
  EXPECT_EQ(content_of(file("a.trace")), whole);
  EXPECT_EQ(run(record + file("b.trace.zst")).code, 2);  // it would be read as compressed
  const Outcome foreign = run("trace " + kModel + " --tokens 5 -n 2 --append -o " + store + "/manifest.json");
  EXPECT_EQ(foreign.code, 1);
  EXPECT_NE(foreign.err.find("not a routing trace"), std::string::npos) << foreign.err;
}

// The error of a file that found no room behind this many bytes.
std::string no_room(const std::string& path, int bytes) {
  return "sluice: " + path + " at byte " + std::to_string(bytes) +
         ": cannot be written; expected a place with room, where you may write, found No space left on "
         "device; free some space or choose another directory\n";
}

TEST_F(TraceTest, ANewTraceOnAFullDiskIsOneErrorAndLeavesNothing) {
  const std::string place = file("place"), trace = place + "/a.trace",
                    record = "'" SLUICE_PROGRAM "' trace " + kModel +
                             " -q --tokens 5,6,7 -n 300 --temp 0 --ignore-eos --memory " + memory(48);
  for (const int kib : {4, 64}) {  // soon after the first step, and later
    SCOPED_TRACE(kib);
    const auto outcome = run_on_own_disk(place, "size=" + std::to_string(kib) + "k",
                                         record + " -o " + trace + "; echo $?; ls -A " + place);
    if (!outcome) GTEST_SKIP() << kNoDisks;
    EXPECT_EQ(outcome->err, no_room(trace, kib << 10));
    EXPECT_EQ(outcome->out, "1\n");  // and no name of a file
  }
  // A log that finds no room takes the trace with it, which is elsewhere.
  const auto log = run_on_own_disk(
      place, "size=8k",
      record + " -o " + file("b.trace") + " --decisions " + place + "/log; echo $?; ls -A " + place);
  ASSERT_TRUE(log);
  EXPECT_EQ(log->err, no_room(place + "/log", 8 << 10));
  EXPECT_EQ(log->out, "1\n");
  EXPECT_FALSE(fs::exists(file("b.trace")));
}

TEST_F(TraceTest, AFullDiskLeavesAnEarlierTraceAsItWas) {
  const std::string record =
      " trace " + kModel + " --tokens 5,6,7 --temp 0 --ignore-eos --memory " + memory(48) + " -o ";
  ASSERT_EQ(run(record + file("a.trace") + " -n 4 -q").code, 0);
  const std::string earlier = content_of(file("a.trace")), place = file("place"), trace = place + "/a.trace";
  ASSERT_LT(earlier.size(), 32u << 10);
  const auto outcome = run_on_own_disk(place, "size=64k",
                                       "cp " + file("a.trace") + " " + trace + "\n'" SLUICE_PROGRAM "'" +
                                           record + trace + " -q -n 300 --append; echo $?; ls -A " + place +
                                           "; cp " + trace + " " + file("kept.trace"));
  if (!outcome) GTEST_SKIP() << kNoDisks;
  EXPECT_EQ(outcome->err, no_room(trace, 64 << 10));
  EXPECT_EQ(outcome->out, "1\na.trace\n");
  EXPECT_TRUE(content_of(file("kept.trace")) == earlier);
  const Json read = run_json("simulate --trace " + file("kept.trace") + " --cache lru --capacity 8");
  EXPECT_EQ(read["cut_off"], false);
  EXPECT_EQ(read["steps"], 4);
}

TEST_F(TraceTest, SimulateReadsPublishedTracesAndComparesCaches) {
  const Json one = run_json("simulate --trace " + kData +
                            "qwen.route.csv.zst --cache lru --capacity 4000MiB --scope global");
  EXPECT_NEAR(one["hit_rate"].get<double>(), 0.7488, 0.0005);
  EXPECT_EQ(one["accesses"], 39526);
  EXPECT_EQ(one["hits"].get<int>() + one["misses"].get<int>(), one["accesses"].get<int>());
  const Json all =
      run_json("simulate --trace " + kData + "dsv2lite.first48.mrt.zst --cache all --capacity 8,16");
  ASSERT_EQ(all["results"].size() % 2, 0u);
  EXPECT_GE(all["results"].size(), 14u);
  for (const Json& row : all["results"]) {
    EXPECT_EQ(row["accesses"], 26 * 48 * 6);
    EXPECT_EQ(row["decode_hit_rate"], 0.0);
    EXPECT_FALSE(row.contains("bytes_read"));  // the file has no sizes
  }
  const Outcome table = run("simulate --trace " + kData +
                            "dsv2lite.first48.mrt.zst --cache lru,belady --capacity 16 --window 12");
  EXPECT_EQ(table.code, 0);
  EXPECT_NE(table.out.find("belady"), std::string::npos);
}

TEST_F(TraceTest, WrongUseIsOneClearError) {
  const auto fails = [&](const std::string& arguments, int code, const std::string& words) {
    const Outcome outcome = run("simulate " + arguments);
    EXPECT_EQ(outcome.code, code) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  const std::string mrt = "--trace " + kData + "dsv2lite.first48.mrt.zst ";
  fails(mrt + "--cache best --capacity 4", 2, "one of none, static, fifo");
  fails(mrt + "--cache lru, --capacity 4", 2, "--cache");
  fails(mrt + "--cache lru --capacity 4XB", 2, "--capacity");
  fails(mrt + "--cache lru --capacity 4MiB", 2, "does not say how large");
  fails(mrt + "--cache lru,lfu --capacity 4 --decisions x", 2, "--decisions");
  fails(mrt + "--cache zip-pools --capacity 4", 2, "--pools");
  fails(mrt + "--cache zip-pools --pools 1,2,3", 2, "F,C,S,E");
  fails(mrt + "--cache lru --capacity 4 --pools 1,2,3,4", 2, "--pools");
  fails(mrt + "--cache zip-pools --capacity 4 --pools 3,2,0,0", 1, "do not fit");
  fails(mrt + "--cache lru", 2, "--capacity");
  fails(mrt, 2, "--cache");
  fails("--trace " + kModel + "/config.json --cache lru --capacity 4", 1, "not a routing trace");
  fails("--trace /nonexistent --cache lru --capacity 4", 1, "/nonexistent");
  fails("--cache lru --capacity 4", 2, "--trace");
}

}  // namespace
