// A device and the host's memory that exclude each other, above the disk: the program's text and logits stay
// the same, less is read, and what cannot be is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>

#include "base/json/json.h"
#include "packed_model.h"

namespace {

using sluice::Json;
using sluice::program::content_of;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::PackedModelTest;
using sluice::program::run;
using sluice::program::run_json;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kDevice = " --device emulated:link=inf,compute=inf,latency=0us";
const std::string kExclusive = kDevice + " --tiers exclusive";

class ThreeTiers : public PackedModelTest {};

TEST_F(ThreeTiers, TheTextIsThatOfTheHostAlone) {
  const std::string prompt = " -p 'Once upon a time' -n 24 --temp 0 --memory " + memory(48);
  for (const std::string& model : {kModel, store(), packable()}) {
    const Outcome host = run("run " + model + prompt);
    ASSERT_EQ(host.code, 0) << host.err;
    for (const char* const how :
         {" --placement device --device-cache lru --device-slots 4",
          " --placement greedy --device-slots 6 --dense-on device --prefetch stream",
          " --placement ratio-prefix --device-slots 3 --device-cache workload-window --prefetch raw",
          " --placement device --device-cache lru --device-slots 5 --cache-scope layer",
          " --placement device --device-slots 0", " --placement cpu --device-slots 4"}) {
      const Outcome both = run("run " + model + prompt + kExclusive + " --cache lru --capacity 4MiB" + how);
      ASSERT_EQ(both.code, 0) << how << "\n" << both.err;
      EXPECT_EQ(both.out, host.out) << model << how;
    }
  }
}

TEST_F(ThreeTiers, LogitsAreEqualByteForByte) {
  const std::string request =
      "forward " + kModel + " --tokens 5,9,301,77,2,1000,44,5,9,301 --prefill 3 -q -o ";
  ASSERT_EQ(run(request + file("host.npy")).code, 0);
  for (const char* const cache : {"lru", "fifo", "lfu", "marking", "eam", "none"}) {
    SCOPED_TRACE(cache);
    const Outcome both = run(request + file("both.npy") + kExclusive +
                             " --placement device --device-slots 2" + " --device-cache lru --cache " + cache +
                             (std::string(cache) == "none" ? "" : " --capacity 2MiB"));
    ASSERT_EQ(both.code, 0) << both.err;
    EXPECT_EQ(content_of(file("both.npy")), content_of(file("host.npy")));
  }
}

// There are 192 experts of 144 KiB. The host holds a quarter, the device 5 of 32 in each layer; or the host
// alone holds 40 %, 77 of them.
TEST_F(ThreeTiers, ReadLittleMoreThanOneMemoryOfTheirCommonSize) {
  constexpr std::uint64_t kExpert = 3 * 96 * 256 * 2;
  const auto read = [&](std::uint64_t experts, const std::string& flags) {
    const Json json = run_json("run " + kModel +
                               " -p 'Once upon a time' -n 300 --temp 1 --seed 3 --ignore-eos --prefetch none "
                               "--cache lru --memory " +
                               memory(48) + " --capacity " + std::to_string(experts * kExpert) + "B" + flags);
    if (json.contains("device") && json.at("device").at("tiers") == "exclusive") {
      const Json& tiers = json.at("experts").at("device").at("tiers");
      std::cout << tiers << '\n';
      EXPECT_GT(tiers.at("returns"), 100);
      EXPECT_EQ(tiers.at("copies").at("begun"), tiers.at("returns"));
      EXPECT_EQ(tiers.at("copies").at("lost"), 0);
      EXPECT_GE(json.at("device").at("link").at("update"),
                tiers.at("copies").at("complete").get<std::uint64_t>() * kExpert);
    }
    return json.at("experts").at("bytes_read").get<double>();
  };
  const double alone = read(77, "");
  const std::string device = " --placement device --device-cache lru --device-slots 5";
  const double exclusive = read(48, kExclusive + device),
               inclusive = read(48, kDevice + device + " --tiers inclusive");
  std::cout << "exclusive " << exclusive / alone << ", inclusive " << inclusive / alone
            << " of what the host alone reads\n";
  EXPECT_LE(exclusive, 1.05 * alone);
  EXPECT_GT(inclusive, exclusive);
}

// Where nobody says it: exclusive if the host cannot hold all experts and its cache can take them back.
TEST_F(ThreeTiers, AreChosenByWhatTheHostHolds) {
  const std::string device = kDevice + " --placement device --device-slots 3 --memory " + memory(64);
  const auto choice = [&](const std::string& flags) {
    const Json told = run_json("plan " + flags + device).at("device");
    const Json ran = run_json("run " + flags + device + " -p Once -n 2 --temp 0").at("device");
    EXPECT_EQ(ran.at("tiers"), told.at("tiers")) << flags;
    EXPECT_EQ(ran.at("tiers_why"), told.at("tiers_why")) << flags;
    return ran.at("tiers").get<std::string>() + ": " + ran.at("tiers_why").get<std::string>();
  };
  EXPECT_EQ(choice(kModel + " --cache lru"), "inclusive: the host's memory holds all experts");
  EXPECT_THAT(choice(kModel + " --cache lru --capacity 4MiB"),
              StartsWith("exclusive: the host's memory does"));
  EXPECT_EQ(choice(kModel + " --cache lru --capacity 4MiB --tiers inclusive"), "inclusive: as asked");
  EXPECT_EQ(choice(kModel + " --cache lru --tiers exclusive"), "exclusive: as asked");
  EXPECT_THAT(choice(kModel + " --cache static --capacity 4MiB"), HasSubstr("takes nothing back"));
  EXPECT_THAT(choice(store() + " --cache zip-pools --capacity 4MiB"), HasSubstr("takes nothing back"));
  EXPECT_THAT(choice(store() + " --cache lru --keep packed --capacity 4MiB"), HasSubstr("not packed again"));
  EXPECT_THAT(choice(packable() + " --cache lru --keep packed --capacity 4MiB"), StartsWith("exclusive: "));
  EXPECT_THAT(choice(packable() + " --cache lru --keep full --capacity 4MiB"), StartsWith("exclusive: "));
  EXPECT_THAT(run("plan " + kModel + " --cache lru --capacity 4MiB" + device).out,
              HasSubstr("exclusive: the host's memory does not hold all experts"));
}

TEST_F(ThreeTiers, RefuseWhatCannotBe) {
  const auto refused = [&](const std::string& command, const std::string& why) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << command << "\n" << outcome.err;
  };
  const std::string request = "run " + kModel + " -p Once -n 2";
  refused(request + " --tiers exclusive", "--device cuda or emulated");
  refused(request + " --tiers inclusive", "there is no device");
  refused(request + kDevice + " --tiers both", "inclusive or exclusive");
  refused(request + kExclusive + " --cache static", "can take in nothing that leaves a device");
  // A packed store has pools, if nothing else is said.
  refused("run " + store() + " -p Once -n 2" + kExclusive, "found zip-reuse");
  refused("run " + store() + " -p Once -n 2 --cache lru --keep packed" + kExclusive, "not packed again");
}

}  // namespace
