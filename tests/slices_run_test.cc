// Runs models in slices with the built program: requests, refusals and reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/files/scratch_directory.h"
#include "base/json/json.h"
#include "bundled_model.h"

namespace {

namespace fs = std::filesystem;
using sluice::Json;
using sluice::program::content_of;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::program::run_json;
using sluice::testing::ScratchDirectory;
using testing::HasSubstr;

class SlicesRun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_.emplace();
    ASSERT_EQ(run("pack " + kModel + " -o " + store() + " --slices 8/4 --dense int8 --quiet").code, 0);
  }
  static void TearDownTestSuite() { directory_.reset(); }
  static std::string store() { return directory_->file("s.sluice"); }
  static std::string file(const std::string& name) { return directory_->file(name); }

  static inline std::optional<ScratchDirectory> directory_;
};

TEST_F(SlicesRun, ReportsWhatBecameOfSlicesAndKeepsTheLimit) {
  const std::string prompt = " -p 'The sea was calm, and the old man' -n 60 --temp 0 --ignore-eos --memory ";
  const Json ran = run_json("run " + store() + prompt + memory(23) + " --preset slicemoe --miss-rate 4%");
  const Json& slices = ran["experts"]["slices"];
  EXPECT_EQ(slices["precision"], "dbsc");
  EXPECT_EQ(slices["constraint"], "hard");
  EXPECT_EQ(slices["activations"], "int8");
  EXPECT_DOUBLE_EQ(slices["limit"].get<double>(), 0.04);
  EXPECT_GT(slices["hbn_miss_rate"].get<double>(), 0);
  EXPECT_LE(slices["hbn_miss_rate"].get<double>(), 0.04);
  EXPECT_GT(slices["replaced"].get<int>(), 0);
  const auto agreement = slices["agreement"].get<double>();
  EXPECT_GT(agreement, 0.3);
  EXPECT_LT(agreement, 1);
  // An access of a decode step asks for one MSB slice; slices that must be read are misses.
  const Json& decode = ran["experts"]["decode"];
  EXPECT_EQ(slices["msb_hits"].get<std::uint64_t>() + slices["msb_misses"].get<std::uint64_t>(),
            decode["accesses"].get<std::uint64_t>());
  EXPECT_GE(decode["misses"].get<std::uint64_t>(), slices["msb_misses"].get<std::uint64_t>());
  EXPECT_FALSE(ran.contains("predicted"));

  const Outcome table = run("run " + store() + prompt + memory(23) + " --preset slicemoe");
  EXPECT_EQ(table.code, 0);
  EXPECT_THAT(table.err, HasSubstr("dbsc precision"));
  EXPECT_THAT(table.err, ::testing::ContainsRegex("\\(limit[ \n]+5 %"));
  const Outcome picture = run("run " + store() + prompt + memory(40) + " --precision high --show-experts");
  EXPECT_THAT(picture.err, HasSubstr("H both slices in memory"));
}

// Applies the equations of SPEC §4.1 to the run's own figures.
TEST_F(SlicesRun, EnergyIsThatOfTheBytesThatWereRead) {
  const std::string prompt = " -p 'The sea was calm' -n 20 --temp 0 --ignore-eos --memory ";
  const Json sliced = run_json("run " + store() + prompt + memory(23) + " --preset slicemoe"),
             exact = run_json("run " + kModel + prompt + memory(30));
  for (const Json& ran : {sliced, exact}) {
    const Json& model = ran["energy_model"];
    EXPECT_EQ(model["machine"], "slicemoe");
    for (const char* phase : {"prefill", "decode"}) {
      const Json &one = model[phase], &counts = ran["experts"][phase];
      const auto tokens = one["tokens"].get<double>(), flash = one["bytes_read"].get<double>();
      EXPECT_EQ(tokens, counts["tokens"].get<double>());
      EXPECT_EQ(flash, counts["bytes_read"].get<double>() + counts["prefetch_bytes"].get<double>());
      EXPECT_GE(one["dram_bytes_written"].get<double>(), flash);
      const Json& joules = one["joules_per_token"];
      const auto expect = [&](const char* part, double value) {
        EXPECT_NEAR(joules[part].get<double>(), value / tokens, 1e-9 * value / tokens) << part;
      };
      const double read = 8 * 1.5e-12 * one["dram_bytes_read"].get<double>(),
                   written = 8 * 1.5e-12 * one["dram_bytes_written"].get<double>(),
                   compute = one["operations"].get<double>() / 3.18e12;
      expect("flash", 8 * 103e-12 * flash);
      expect("dram_read", read);
      expect("dram_write", written);
      expect("compute", compute);
      expect("total", 8 * 103e-12 * flash + read + written + compute);
      const Json& seconds = one["seconds_per_token"];
      EXPECT_NEAR(seconds["total"].get<double>(),
                  seconds["rest"].get<double>() + seconds["compute"].get<double>() +
                      seconds["flash_wait"].get<double>(),
                  1e-12);
    }
    EXPECT_GT(model["decode"]["bytes_read"].get<double>(), 0);
  }
  // A machine with twice the energy of Flash; a machine that does not exist.
  std::ofstream(file("machine.json"))
      << R"({"name": "mine", "flash": {"bits_per_s": 1e10, "joules_per_bit": 206e-12},
            "dram": {"bits_per_s": 104e9, "joules_per_bit": 1.5e-12},
            "xpu": {"ops_per_s": 16.384e12, "ops_per_joule": 3.18e12}})";
  const Json mine = run_json("run " + store() + prompt + memory(23) + " --preset slicemoe --machine " +
                             file("machine.json"))["energy_model"];
  EXPECT_EQ(mine["machine"], "mine");
  EXPECT_NEAR(mine["decode"]["joules_per_token"]["flash"].get<double>(),
              2 * sliced["energy_model"]["decode"]["joules_per_token"]["flash"].get<double>(), 1e-12);
  EXPECT_EQ(run("run " + store() + prompt + memory(23) + " --preset slicemoe --machine nothing").code, 2);
}

TEST_F(SlicesRun, AtHighPrecisionStepsAreThePromptsBits) {
  const std::string tokens = " --tokens 5,900,17,4000,33,8,1200,77 --precision high --quiet -o ";
  ASSERT_EQ(run("forward " + store() + tokens + file("prompt.npy")).code, 0);
  ASSERT_EQ(run("forward " + store() + tokens + file("steps.npy") + " --prefill 3").code, 0);
  EXPECT_EQ(content_of(file("prompt.npy")), content_of(file("steps.npy")));
  const std::string low = " --tokens 5,900,17,4000,33,8,1200,77 --precision low --quiet -o ";
  ASSERT_EQ(run("forward " + store() + low + file("low.npy") + " --prefill 3").code, 0);
  ASSERT_EQ(run("forward " + store() + low + file("all.npy")).code, 0);  // shorter than the prompt part
  EXPECT_NE(content_of(file("low.npy")), content_of(file("prompt.npy")));
  EXPECT_EQ(content_of(file("all.npy")), content_of(file("prompt.npy")));
  ASSERT_EQ(run("forward " + store() + low + file("c.npy") + " --prefill 3 --low-view amat-center").code, 0);
  EXPECT_NE(content_of(file("c.npy")), content_of(file("low.npy")));
  ASSERT_EQ(run("forward " + store() + tokens + file("fp32.npy") + " --activations fp32").code, 0);
  ASSERT_EQ(run("forward " + store() + tokens + file("int8.npy") + " --activations int8").code, 0);
  EXPECT_NE(content_of(file("fp32.npy")), content_of(file("prompt.npy")));
  EXPECT_EQ(content_of(file("int8.npy")), content_of(file("prompt.npy")));
}

TEST_F(SlicesRun, OfOneCapacityEveryRunDecidesAlike) {
  const std::string prompt =
      " -p 'The sea was calm' -n 40 --temp 0 --ignore-eos --preset slicemoe --capacity 5MiB --memory ";
  const auto decided = [&](const std::string& more) { return run_json("run " + store() + prompt + more); };
  const Json one = decided(memory(30)), other = decided(memory(33));
  EXPECT_EQ(one["decisions"], other["decisions"]);
  EXPECT_EQ(one["text"], other["text"]);
  EXPECT_EQ(one["experts"]["bytes_read"], other["experts"]["bytes_read"]);
  const std::string at = "run " + store() + " -p x -n 1 --precision high --capacity ";
  const Outcome small = run(at + "16MiB --memory " + memory(24));
  EXPECT_EQ(small.code, 1);
  EXPECT_THAT(small.err, HasSubstr("--capacity"));
  EXPECT_EQ(run(at + "1GiB").code, 0);  // more than all experts
  const Outcome bare = run(at + "8");
  EXPECT_EQ(bare.code, 2);
  EXPECT_THAT(bare.err, HasSubstr("without its unit"));
}

TEST_F(SlicesRun, WhatMakesNoSenseIsRefused) {
  const std::string at = "run " + store() + " -p x -n 1 ";
  struct Case {
    const char *flags, *words;
  };
  for (const Case& one : {
           Case{"", "--precision high, low or dbsc, --preset slicemoe, or --max-loss"},
           Case{"--precision full", "high, low or dbsc"},
           Case{"--precision best", "dbsc"},
           Case{"--precision low --rho 0.5", "--rho"},
           Case{"--precision low --warmup last-layer", "--warmup"},
           Case{"--precision high --scheduler zip-affinity", "--scheduler"},
           Case{"--precision high --preset zipmoe", "--preset: this preset is for models without slices"},
           Case{"--precision high --cache none --capacity 4MiB", "--capacity: this cache keeps nothing"},
           Case{"--precision high --capacity -5", "a size (4GiB, 21217280B)"},
           Case{"--precision high --capacity 1KiB", "--capacity: nothing of an expert fits"},
           Case{"--preset slicemoe --cache-scope layer --capacity 64KiB", "for 6 caches, found 65536B"},
           Case{"--preset slicemoe --critical fixed_top_c --critical-count 5",
                "--critical-count: more critical experts are asked for than a token has experts; expected 0 "
                "to 4"},
           Case{"--preset slicemoe --top-j 33", "--top-j: more experts are exempt"},
           Case{"--precision dbsc --router cumsum --top-j 33", "expected 0 to 32"},
           Case{"--precision high --cache zip-pools", "--cache"},
           Case{"--precision dbsc --cache lru", "--cache"},
           Case{"--precision high --constraint hard",
                "sluice: --constraint: a limit on misses replaces experts"},
           Case{"--preset slicemoe --router exact", "give --constraint none"},
           Case{"--preset slicemoe --miss-rate 120%", "--miss-rate"},
           Case{"--precision dbsc --miss-rate 5%", "--miss-rate: this flag has no effect"},
           Case{"--preset slicemoe --constraint boost --miss-rate 5%",
                "--miss-rate: this flag has no effect"},
           Case{"--preset slicemoe --constraint none --miss-rate 5%",
                "no effect here; expected --constraint hard or adaptive, found"},
           Case{"--precision dbsc --miss-rate 5%", "expected --preset slicemoe, or --constraint"},
           Case{"--precision high --theta 0.3", "--theta: this flag has no effect"},
           Case{"--preset slicemoe --theta 0.3 --critical fixed_top_c", "--theta: this flag has no effect"},
           Case{"--preset slicemoe --critical-count 1", "--critical-count: this flag has no effect"},
           Case{"--precision low --critical rel_top1", "--critical: this flag has no effect"},
           Case{"--precision high --low-view amat", "--low-view: this flag has no effect"},
           Case{"--precision high --lsb-miss fetch", "--lsb-miss: this flag has no effect"},
           Case{"--precision low --lsb-reserve 0.1", "--lsb-reserve: this flag has no effect"},
           Case{"--precision high --warmup empty", "--warmup: this flag has no effect"},
           Case{"--preset slicemoe --warmup empty --kappa 0.2", "--kappa: this flag has no effect"},
           Case{"--preset slicemoe --warmup last-layer --rho 0.2", "--rho: this flag has no effect"},
           Case{"--precision dbsc --lambda 0.2", "--lambda: this flag has no effect"},
           Case{"--preset slicemoe --eta 0.2", "--eta: this flag has no effect"},
           Case{"--preset slicemoe --cumsum-p 0.5", "--cumsum-p: this flag has no effect"},
           Case{"--precision high --top-j 0", "--top-j: this flag has no effect"},
           Case{"--preset slicemoe --lambda x", "--lambda"},
           Case{"--preset slicemoe --lsb-miss never", "--lsb-miss"},
           Case{"--preset slicemoe --low-view clip", "--low-view"},
           Case{"--preset slicemoe --activations fp16", "--activations"},
           Case{"--precision high --activations int8 --math f32", "--activations"},
           Case{"--preset zipmoe --precision high", "slices"},
       }) {
    const Outcome refused = run(at + one.flags);
    EXPECT_EQ(refused.code, 2) << one.flags;
    EXPECT_THAT(refused.err, HasSubstr(one.words)) << one.flags;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  }
  // All bytes of the model, and none.
  EXPECT_EQ(
      run(at + "--preset slicemoe --critical fixed_top_c --critical-count 4 --top-j 32 --capacity 0").code,
      0);
  EXPECT_EQ(run(at + "--preset slicemoe --critical fixed_top_c --critical-count 0 --capacity 64KiB").code, 0);
  for (const std::string& command : {"forward " + store() + " --tokens 1,2 --quiet -o " + file("x.npy"),
                                     "eval " + store() + " --ctx 64 -f " + kModel + "/eval.txt"}) {
    const Outcome refused = run(command + " --precision dbsc --critical fixed_top_c --critical-count 5");
    EXPECT_EQ(refused.code, 2) << command;
    EXPECT_THAT(refused.err, HasSubstr("--critical-count: more critical experts")) << command;
  }
  const Outcome whole_cache = run("run " + kModel + " -p x -n 1 --capacity 100KiB");
  EXPECT_EQ(whole_cache.code, 2);
  EXPECT_THAT(whole_cache.err, HasSubstr("--capacity: nothing of an expert fits"));
  for (const char* flags : {"--precision high", "--preset slicemoe", "--activations int8"}) {
    const Outcome refused = run("run " + kModel + " -p x -n 1 " + flags);
    EXPECT_EQ(refused.code, 2) << flags;
    EXPECT_THAT(refused.err, HasSubstr("slices")) << flags;
  }
  const Outcome whole = run("run " + kModel + " -p x -n 1 --theta 0.3");
  EXPECT_EQ(whole.code, 2);
  EXPECT_THAT(whole.err, HasSubstr("--theta: this flag has no effect"));
  const Outcome compared =
      run("compare " + store() + " --preset slicemoe,z-basic-lru -p x -n 2 --memory " + memory(60));
  EXPECT_EQ(compared.code, 2);
  EXPECT_THAT(compared.err, HasSubstr("preset z-basic-lru does not go with this model"));
  const Outcome kept =
      run("compare " + store() + " --preset slicemoe --precision low --warmup last-layer -p x -n 2");
  EXPECT_EQ(kept.code, 2);
  EXPECT_THAT(kept.err, HasSubstr("preset slicemoe does not go with this model: --warmup"));
  const Outcome unmeasured = run("run " + store() + " --max-loss 1% -p x -n 1");
  EXPECT_EQ(unmeasured.code, 1);
  EXPECT_THAT(unmeasured.err,
              HasSubstr("--max-loss: nobody has measured what this store loses; expected " + store() +
                        "/sidecar/calibration.json, made for this store, found none; make it: "));
  const Outcome exact = run("run " + kModel + " --preset slicemoe -p x -n 1");
  EXPECT_EQ(exact.code, 2);
  EXPECT_THAT(exact.err, HasSubstr("--preset: this preset is for models in slices"));
  const Outcome beside = run("eval " + store() + " -f " + kModel + "/eval.txt --ctx 128 --precision high " +
                             "--capacity 14MiB --reference " + kModel + " --memory " + memory(70));
  EXPECT_EQ(beside.code, 1);
  EXPECT_THAT(beside.err, HasSubstr("--reference-memory"));
  EXPECT_EQ(
      run("compare " + store() + " --preset slicemoe --miss-rate 4% --theta 0.3 --runs 1 -p x -n 2").code, 0);
  for (const char* flag : {"--max-loss 1%", "--low-view amat"})  // a replay computes nothing
    EXPECT_EQ(run(std::string("simulate --trace x --machine slicemoe --memory-experts 6MB ") + flag).code, 2);
  const Outcome small = run(at + "--precision high --memory 12MiB");
  EXPECT_EQ(small.code, 1);
  EXPECT_THAT(small.err, HasSubstr("give --memory"));
}

}  // namespace
