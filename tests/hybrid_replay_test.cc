// Replays routing through a host and a device with the built program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "base/files/scratch_directory.h"
#include "base/json/json.h"
#include "program.h"

namespace {

using sluice::Json;
using sluice::program::Outcome;
using sluice::program::run;
using testing::HasSubstr;

const std::string kSimulate =
    "simulate --trace " SLUICE_SOURCE_DIR "/tests/data/routing/dsv2lite.summary612.mrt.zst ";

TEST(HybridReplay, CountsEveryExpertOnce) {
  const Outcome outcome = run(kSimulate +
                              "--machine dali-3090,dali-3090-fit --preset dali,d-naive,gpu-lru,ncmoe "
                              "--prefetch none --device-slots 16,64 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  ASSERT_EQ(result.at("machines").size(), 2u);
  ASSERT_EQ(result.at("results").size(), 16u);
  std::map<std::string, double> naive;  // by machine: all on the host
  for (const Json& row : result.at("results"))
    if (row.at("preset") == "d-naive")
      naive[row.at("machine").get<std::string>()] = row.at("tpot_s").get<double>();
  for (const Json& row : result.at("results")) {
    SCOPED_TRACE(row.dump());
    const Json &decode = row.at("decode"), &device = decode.at("experts").at("device"),
               &placement = decode.at("placement");
    EXPECT_EQ(decode.at("tokens"), 612);
    EXPECT_EQ(device.at("active"), 612 * 26 * 6);
    EXPECT_EQ(placement.at("host").get<std::uint64_t>() + placement.at("device").get<std::uint64_t>(),
              device.at("active"));
    EXPECT_EQ(device.at("assigned"), placement.at("device"));
    EXPECT_EQ(device.at("hits").get<std::uint64_t>() + placement.at("loads").get<std::uint64_t>() +
                  placement.at("streamed").get<std::uint64_t>(),
              device.at("assigned"));
    EXPECT_GT(row.at("tpot_s").get<double>(), 0);
    const bool holds_all = row.at("device_slots") == 64;
    if (row.at("preset") == "dali" && holds_all) {
      EXPECT_EQ(device.at("a_hit"), 1);
      EXPECT_EQ(row.at("start_experts"), 26 * 64);
      EXPECT_LT(row.at("tpot_s").get<double>(), naive.at(row.at("machine").get<std::string>()));
    }
    if (row.at("preset") == "d-naive") {
      EXPECT_EQ(placement.at("device"), 0);
    }
    // Six whole layers fit into what 16 experts of each layer take.
    if (row.at("preset") == "ncmoe") {
      EXPECT_EQ(row.at("start_experts"), holds_all ? 26 * 64 : 6 * 64);
      EXPECT_EQ(device.at("assigned"), 612 * 6 * (holds_all ? 26 : 6));
    }
  }
}

TEST(HybridReplay, PromptsAndTheLinkMayBeOtherwise) {
  const auto result = [](const std::string& flags) {
    const Outcome outcome = run(kSimulate +
                                "--machine dali-3090 --preset dali --prefetch none --device-slots 16 "
                                "--prefill 500 --json" +
                                flags);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out);
  };
  const Json usual = result(""), prefill = result(" --placement-prefill device"),
             slow = result(" --link 1GB/s"), fast = result(" --link 100GB/s");
  const Json &usual_row = usual.at("results").at(0), &prefill_row = prefill.at("results").at(0);
  EXPECT_TRUE(usual_row.at("prefill_policy").is_null());
  EXPECT_EQ(prefill_row.at("prefill_policy"), "device");
  EXPECT_EQ(prefill_row.at("prefill_from"), 1);
  EXPECT_GT(usual_row.at("prefill").at("placement").at("host"), 0);
  EXPECT_EQ(prefill_row.at("prefill").at("placement").at("host"), 0);
  EXPECT_GT(prefill_row.at("decode").at("placement").at("host"), 0);
  EXPECT_DOUBLE_EQ(slow.at("machines").at(0).at("link").at("transfer_s").get<double>(), 17301504 / 1e9);
  EXPECT_GT(slow.at("results").at(0).at("tpot_s"), usual_row.at("tpot_s"));
  EXPECT_EQ(fast, usual);
}

// As a run decides it: by what the host's cache holds and takes back.
TEST(HybridReplay, TiersAreChosenByWhatTheHostHolds) {
  const auto row = [](const std::string& flags) {
    const Outcome outcome = run(kSimulate +
                                "--machine dali-3090 --prefetch none --placement device --device-cache lru "
                                "--device-slots 9 --scope global --json --cache " +
                                flags);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out).at("results").at(0);
  };
  const Json small = row("lru --capacity 416"), both = row("lru --capacity 416 --tiers inclusive");
  EXPECT_EQ(small.at("tiers"), "exclusive");
  EXPECT_GT(small.at("decode").at("tiers").at("returns"), 0);
  EXPECT_EQ(small.at("decisions"), row("lru --capacity 416 --tiers exclusive").at("decisions"));
  EXPECT_EQ(both.at("tiers"), "inclusive");
  EXPECT_EQ(both.at("decode").at("tiers").at("returns"), 0);
  EXPECT_EQ(row("lru").at("tiers"), "inclusive");
  EXPECT_EQ(row("lru --capacity 1664").at("tiers"), "inclusive");
  EXPECT_EQ(row("lru --capacity 1663").at("tiers"), "exclusive");
  EXPECT_THAT(row("static --capacity 416").at("tiers_why").get<std::string>(),
              HasSubstr("takes nothing back"));
}

TEST(HybridReplay, MemoryIsSlotsAndTheLogRepeats) {
  const sluice::testing::ScratchDirectory directory;
  const std::string common = kSimulate + "--machine dali-3090 --preset dali-plus --prefetch none --json ";
  const auto row = [&](const std::string& flags) {
    const Outcome outcome = run(common + flags);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out).at("results").at(0);
  };
  const Json by_slots = row("--device-slots 16 --decisions " + directory.file("a"));
  const Json by_memory = row("--device-memory 6864MiB --decisions " + directory.file("b"));  // 16 · 26 · 16.5
  EXPECT_EQ(by_slots, by_memory);
  const auto content = [&](const char* name) {
    std::ifstream file(directory.file(name));
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(content("a"), content("b"));
  EXPECT_THAT(content("a"), HasSubstr("placement=ratio-prefix"));
  EXPECT_THAT(content("a"), HasSubstr("start 0/"));
  EXPECT_THAT(content("a"), HasSubstr(" device "));
  const std::string hash = by_slots.at("decisions").get<std::string>();
  EXPECT_THAT(content("a"), HasSubstr("# hash " + hash));
}

// From the recording of a run to prefetches by what the run predicted.
TEST(HybridReplay, PrefetchesByRecordedPredictions) {
  const sluice::testing::ScratchDirectory directory;
  const std::string model = SLUICE_SOURCE_DIR "/models/fable-moe-18m", trace = directory.file("a.trace"),
                    other = directory.file("b.trace");
  for (const auto& [path, prompt] : {std::pair(trace, "Once"), {other, "The sea"}}) {
    const Outcome outcome =
        run("trace " + model + " -p '" + prompt + "' -n 40 --ignore-eos --temp 0 --ahead -o " + path);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  const auto rows = [&](const std::string& flags) {
    const Outcome outcome =
        run("simulate --trace " + trace + " --machine dali-3090 --device-slots 4 --json " + flags);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out).at("results");
  };
  std::map<std::string, double> used;
  for (const char* prefetch : {"dali-residual", "raw", "stream", "stat", "random"}) {
    SCOPED_TRACE(prefetch);
    const Json all =
        rows("--preset d-greedy --prefetch-size 2 --ranks-of " + other + " --prefetch " + prefetch);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].at("prefetch_policy"), prefetch);
    EXPECT_EQ(all[0].at("prefetch_size"), 2);
    const Json& ahead = all[0].at("decode").at("prefetch");
    const auto count = [&](const char* name) { return ahead.at(name).get<double>(); };
    EXPECT_GT(count("sent"), 0);
    EXPECT_EQ(count("sent"), count("used") + count("kept") + count("wasted"));
    EXPECT_LE(count("late"), count("used"));
    used[prefetch] = count("used") / count("sent");
  }
  for (const auto& [prefetch, share] : used) {
    if (prefetch != "random") {
      EXPECT_GT(share, used.at("random")) << prefetch;
    }
  }
  // Presets with their own prefetch, in one table.
  const Json presets = rows("--preset dali,dali-plus,d-greedy+pre,hybrimoe,edgemoe --ranks-of " + other);
  ASSERT_EQ(presets.size(), 5u);
  for (const Json& row : presets) EXPECT_NE(row.at("prefetch_policy"), "none");
  const Outcome alone = run("simulate --trace " + trace + " --machine dali-3090 --device-slots 4");
  EXPECT_EQ(alone.code, 2);
  EXPECT_THAT(alone.err, HasSubstr("--ranks-of FILE"));
}

// The host's cache decides alone where nothing is on the device.
TEST(HybridReplay, TheHostHasACacheOfItsOwn) {
  const sluice::testing::ScratchDirectory directory;
  const std::string host = "--cache lru --scope layer --capacity 12 --decisions ";
  ASSERT_EQ(run(kSimulate + host + directory.file("alone")).code, 0);
  ASSERT_EQ(run(kSimulate + host + directory.file("beside") +
                " --machine dali-3090 --device-slots 0 --device-cache none --placement cpu")
                .code,
            0);
  const auto lines = [&](const char* name) {
    std::ifstream file(directory.file(name));
    std::string text(std::istreambuf_iterator<char>(file), {});
    return text.substr(text.find('\n'), text.rfind("# hash") - text.find('\n'));
  };
  EXPECT_EQ(lines("alone"), lines("beside"));
  EXPECT_GT(lines("alone").size(), 10000u);
}

TEST(HybridReplay, RefusesWhatCannotBe) {
  const auto refused = [&](const std::string& flags, const std::string& why) {
    const Outcome outcome = run(kSimulate + flags);
    EXPECT_EQ(outcome.code, 2) << flags;
    EXPECT_THAT(outcome.err, HasSubstr(why)) << flags;
  };
  refused("--machine dali-3090 --device-slots 16", "--prefetch none");
  refused("--machine dali-3090 --device-slots 16 --preset edgemoe", "--ranks-of");
  refused("--machine dali-3090 --prefetch none", "found neither; add --device-slots 16");
  refused("--machine dali-3090 --prefetch none --device-slots 65", "at most 64");
  refused("--machine dali-3090 --prefetch none --device-slots 16 --device-memory 1GiB", "found both");
  refused("--device-slots 16", "needs a machine");
  refused("--machine slicemoe --device-slots 16", "no such machine");
  refused("--machine dali-3090 --device-slots 16 --memory-experts 1GiB", "leave out");
  refused("--machine dali-3090 --prefetch none --device-slots 16 --cache nonsense", "nonsense");
  refused("--machine dali-3090 --prefetch none --device-slots 16 --capacity 1GiB", "how large its experts");
  refused("--machine dali-3090 --device-slots 16 --prefetch raw", "a .mrt trace, which has none");
  refused("--machine dali-3090 --device-slots 16 --prefetch fastest", "dali-residual");
  refused("--machine dali-3090 --device-slots 16 --preset d-greedy,d-fiddler",
          "--preset: this cache needs to know how often each expert is used; expected --ranks-of beside it, "
          "found d-fiddler, whose device "
          "cache is static-popular");
  refused("--machine dali-3090 --device-slots 16 --preset gpu-lru --router smoe",
          "sluice: --router: this router looks at the scores of experts that were not chosen");
  refused("--machine dali-3090 --device-slots 16 --preset s-ce",
          "found s-ce, whose device cache is score-window");
  refused("--machine dali-3090 --device-slots 16 --preset s-er", "found s-er, whose router is smoe");
  refused("--machine dali-3090 --device-slots 16 --preset s-er --device-cache lru",
          "sluice: --preset: this router looks at the scores of experts that were not chosen");
  for (const char* preset : {"smoe", "s-pre"})
    refused(
        std::string("--machine dali-3090 --device-slots 16 --preset ") + preset,
        "the predictions \"partial\" of a trace that sluice trace --ahead --prefetch smoe-partial has made");
  refused("--machine dali-3090 --device-slots 16 --preset gpu-lru --router cumsum",
          "sluice: --router: a replay with a device takes the routing as it was recorded, or routes by smoe");
  refused("--machine dali-3090 --device-slots 16 --preset gpu-lru --alpha 0.2",
          "sluice: --alpha: this flag has no effect here");
  refused("--machine dali-3090 --device-slots 16 --device-cache static-popular --prefetch none",
          "--device-cache: this cache needs");
  refused("--machine dali-3090 --prefetch none --device-slots 16 --device-cache belady",
          "--device-cache: this cache must know all requests beforehand");
  refused("--machine dali-3090 --prefetch none --device-slots 16 --device-cache nosuch",
          "--device-cache: unknown name");
  refused("--machine dali-3090 --prefetch none --device-slots 16 --batch 0", "numbers from 1");
  refused("--machine dali-3090 --prefetch none --device-slots 16 --router cumsum", "--router");
}

// Both ends of what the host may read, and both sizes of the card; a size that is named holds instead.
TEST(HybridReplay, MachinesOfSmoeKnowTheirSlots) {
  const auto rows = [](const std::string& flags) {
    const Outcome outcome = run(kSimulate + "--preset gpu-lru --json --machine " + flags);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::string text;
    const Json result = Json::parse(outcome.out);
    for (const Json& row : result.at("results"))
      text += row.at("machine").get<std::string>() + ":" + std::to_string(row.at("device_slots").get<int>()) +
              " ";
    return text;
  };
  EXPECT_EQ(rows("smoe-s1"), "smoe-s1-25:17 smoe-s1-75:17 ");
  EXPECT_EQ(rows("smoe-s2-75"), "smoe-s2-75:14 smoe-s2-75:25 ");
  EXPECT_EQ(rows("smoe-s3,smoe-s2 --device-slots 8"), "smoe-s3:8 smoe-s2-25:8 smoe-s2-75:8 ");
  const Outcome table = run(kSimulate + "--preset gpu-lru --machine smoe-s1");
  EXPECT_THAT(table.out, HasSubstr("on the host, which reads 25 GB/s"));
}

TEST(HybridReplay, RefusesFlagsWithoutEffect) {
  const std::string common = kSimulate + "--machine dali-3090 --device-slots 16 ";
  const auto refused = [&](const std::string& flags, const std::string& flag) {
    const Outcome outcome = run(common + flags);
    EXPECT_EQ(outcome.code, 2) << flags;
    EXPECT_EQ(outcome.out, "") << flags;
    EXPECT_THAT(outcome.err, HasSubstr(flag + ": this flag has no effect here")) << flags;
  };
  refused("--preset gpu-lru --w-size 3", "--w-size");
  refused("--preset gpu-lru --u-size 3", "--u-size");
  refused("--preset gpu-lru --device-cache workload-ema --w-size 3", "--w-size");
  refused("--preset gpu-lru --prefetch-size 3", "--prefetch-size");
  for (const char* flags :
       {"--preset gpu-lru,dali --prefetch none --w-size 3 --u-size 2",  // dali has a window
        "--preset gpu-lru --device-cache workload-ema --u-size 3",
        "--preset gpu-lru --prefetch random --prefetch-size 3"}) {
    const Outcome outcome = run(common + flags);
    EXPECT_EQ(outcome.code, 0) << flags << outcome.err;
  }
}

TEST(HybridReplay, RefusesLargerBatchesThanTheTraceHasSequences) {
  const std::string flags = "--machine dali-3090 --preset dali,gpu-lru --prefetch none --device-slots 16,32 ";
  for (const char* batches : {"4,12", "1,2", "2 --json"}) {
    const Outcome outcome = run(kSimulate + flags + "--batch " + batches);
    EXPECT_EQ(outcome.code, 2) << batches;
    EXPECT_EQ(outcome.out, "") << batches;
    EXPECT_THAT(outcome.err, HasSubstr("--batch: ")) << batches;
    EXPECT_THAT(outcome.err, HasSubstr("expected at most 1, the sequences of ")) << batches;
    EXPECT_THAT(outcome.err, HasSubstr("give --batch 1")) << batches;
  }
}

// Where a prompt takes all tokens there is no decode step, and no figure of one.
TEST(HybridReplay, SaysWhatThePromptsAre) {
  const std::string flags = "--machine dali-3090 --preset gpu-lru --device-slots 16 ";
  const Outcome part = run(kSimulate + flags + "--prefill 600");
  EXPECT_EQ(part.code, 0) << part.err;
  EXPECT_THAT(part.out, testing::ContainsRegex("1 prompt of 600[ \n]tokens,[ \n]12[ \n]tokens"));
  const Outcome all = run(kSimulate + flags + "--prefill 5000 --json");
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_THAT(all.err, HasSubstr("--prefill 5000 takes them all"));
  const Json json = Json::parse(all.out);
  EXPECT_EQ(json.at("prefill"), 5000);
  EXPECT_EQ(json.at("prompts"), 1);
  EXPECT_EQ(json.at("prompt_tokens"), 612);
  EXPECT_EQ(json.at("results").at(0).at("tpot_s"), nullptr);
  EXPECT_EQ(json.at("results").at(0).at("prefill").at("tokens"), 612);

  const sluice::testing::ScratchDirectory directory;
  const std::string model = SLUICE_SOURCE_DIR "/models/fable-moe-18m", one = directory.file("one.trace"),
                    two = directory.file("two.trace");
  for (const auto& [path, prompts] : {std::pair(one, "--tokens 1,2,3,4,5"), {two, "-p Once -p Sea"}}) {
    const Outcome traced = run("trace " + model + " " + prompts + " -n 5 --ignore-eos --temp 0 -o " + path);
    ASSERT_EQ(traced.code, 0) << traced.err;
  }
  const std::string replay = " --machine dali-3090 --preset gpu-lru --device-slots 4 ";
  const Outcome marked = run("simulate --trace " + one + replay + "--json");
  EXPECT_EQ(marked.code, 0) << marked.err;
  const Json of_run = Json::parse(marked.out);
  EXPECT_EQ(of_run.at("prefill"), nullptr);
  EXPECT_EQ(of_run.at("prompts"), 1);
  EXPECT_EQ(of_run.at("prompt_tokens"), 5);
  EXPECT_EQ(of_run.at("decode_tokens"), 4);
  const Outcome asked = run("simulate --trace " + one + replay + "--prefill 1000");
  EXPECT_EQ(asked.code, 2);
  EXPECT_THAT(asked.err, HasSubstr("--prefill: this flag has no effect here"));
  const Outcome several = run("simulate --trace " + two + replay + "--batch 2");
  EXPECT_EQ(several.code, 2);
  EXPECT_THAT(several.err, HasSubstr("leave --batch out"));
  const Outcome as_recorded = run("simulate --trace " + two + replay + "--json");
  EXPECT_EQ(as_recorded.code, 0) << as_recorded.err;
  EXPECT_EQ(Json::parse(as_recorded.out).at("prompts"), 2);
}

TEST(HybridReplay, AFoldedTableSaysWhatItsRowsAre) {
  const Outcome outcome =
      sluice::program::run_command("COLUMNS=50 '" SLUICE_PROGRAM "' " + kSimulate +
                                   "--machine dali-3090 --preset gpu-lru --device-slots 16");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("machine dali-3090, preset gpu-lru, batch -, slots"));
}

}  // namespace
