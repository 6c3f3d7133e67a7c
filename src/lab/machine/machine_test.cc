// The modelled machine: the numbers that SPEC §4.1 derives, and the expert phase against a simulation of
// every event.
#include "lab/machine/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "base/error.h"
#include "lab/machine/expert_phase.h"
#include "lab/machine/sliced_model.h"

namespace sluice::lab {
namespace {

using ::testing::HasSubstr;

constexpr double kP = 8650752;

TEST(SliceMoeMachine, AnExpertTakesWhatThePaperDerives) {
  const Machine& machine = slicemoe_machine();
  EXPECT_NEAR(machine.xpu_ops_per_s, 16.384e12, 1);
  EXPECT_NEAR(1e12 / machine.xpu_ops_per_joule, .3145, 5e-5);                          // pJ an operation
  EXPECT_NEAR(machine.xpu_ops_per_s / machine.xpu_ops_per_joule, 5.15, .005);          // W
  EXPECT_NEAR(machine.dram_bits_per_s / machine.flash_bits_per_s, 10.4, 1e-9);         // slower
  EXPECT_NEAR(machine.flash_joules_per_bit / machine.dram_joules_per_bit, 68.7, .05);  // more energy
  for (const SlicedModel& model : published_models()) {
    EXPECT_EQ(model.expert_weights(), kP) << model.name();
    EXPECT_NEAR(model.expert_ops(1), 17.3e6, 2e3) << model.name();
  }
  const double ops = 2 * kP;
  EXPECT_NEAR(machine.compute_s(0, ops) * 1e6, 1.056, 5e-4);
  EXPECT_NEAR(machine.energy({.ops = ops}).total() * 1e6, 5.44, 5e-3);
}

struct SliceRow {
  codec::SliceBits bits;
  double msb_mb, msb_ms, msb_mj, lsb_mb, lsb_ms, lsb_mj, high_mb;
  std::array<Bytes, 3> high, msb_only;  // how many experts fit in 1.8, 2.4, 3.6 GB
};
constexpr SliceRow kSliceRows[] = {
    {{8, 4}, 5.136, 4.109, 4.232, 4.325, 3.460, 3.564, 9.462, {190, 253, 380}, {350, 467, 700}},
    {{6, 3}, 4.055, 3.244, 3.341, 3.244, 2.595, 2.673, 7.299, {246, 328, 493}, {443, 591, 887}},
    {{4, 2}, 2.974, 2.379, 2.450, 2.163, 1.730, 1.782, 5.136, {350, 467, 700}, {605, 807, 1210}},
};

TEST(SliceMoeMachine, SlicesHaveThePublishedSizes) {
  const Machine& machine = slicemoe_machine();
  const auto flash_mj = [&](Bytes bytes) {
    return machine.energy({.flash = static_cast<double>(bytes)}).flash * 1e3;
  };
  for (const SliceRow& row : kSliceRows) {
    const experts::ExpertBytes bytes = slice_bytes(kP, row.bits);
    const auto msb = static_cast<double>(bytes.msb), lsb = static_cast<double>(bytes.lsb);
    EXPECT_NEAR(msb * 1e-6, row.msb_mb, 6e-4);
    EXPECT_NEAR(lsb * 1e-6, row.lsb_mb, 6e-4);
    EXPECT_NEAR((msb + lsb) * 1e-6, row.high_mb, 6e-4);
    EXPECT_NEAR(machine.flash_s(msb) * 1e3, row.msb_ms, 6e-4);
    EXPECT_NEAR(machine.flash_s(lsb) * 1e3, row.lsb_ms, 6e-4);
    EXPECT_NEAR(flash_mj(bytes.msb), row.msb_mj, 6e-4);
    EXPECT_NEAR(flash_mj(bytes.lsb), row.lsb_mj, 6e-4);
    const Bytes caches[] = {1'800'000'000, 2'400'000'000, 3'600'000'000};
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(caches[i] / (bytes.msb + bytes.lsb), row.high[i]);
      EXPECT_EQ(caches[i] / bytes.msb, row.msb_only[i]);
    }
  }
}

TEST(Machine, EnergyCountsWhatFlashBringsAsWritten) {
  const Machine& machine = slicemoe_machine();
  const Energy energy =
      machine.energy({.flash = 1000, .dram_read = 5000, .dram_written = 200, .ops = 3.18e12});
  EXPECT_DOUBLE_EQ(energy.flash, 8 * 1000 * 103e-12);
  EXPECT_DOUBLE_EQ(energy.dram_read, 8 * 5000 * 1.5e-12);
  EXPECT_DOUBLE_EQ(energy.dram_write, 8 * 1200 * 1.5e-12);
  EXPECT_DOUBLE_EQ(energy.compute, 1);
  EXPECT_DOUBLE_EQ(energy.total(), energy.flash + energy.dram_read + energy.dram_write + energy.compute);
}

TEST(Machine, ComesFromJson) {
  Json json = to_json(slicemoe_machine());
  json["name"] = "other";
  json["flash"]["bits_per_s"] = 20e9;
  const Machine machine = machine_from_json(json, "m.json");
  EXPECT_EQ(machine.name, "other");
  EXPECT_EQ(machine.flash_bits_per_s, 20e9);
  EXPECT_EQ(machine.xpu_ops_per_joule, slicemoe_machine().xpu_ops_per_joule);
  const auto error_of = [&](const char* object, const char* field, const Json& value) -> std::string {
    Json bad = json;
    if (value.is_null())
      bad[object].erase(field);
    else
      bad[object][field] = value;
    try {
      machine_from_json(bad, "m.json");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalid);
      return error.what();
    }
    return "";
  };
  for (const auto& [object, field] : {std::pair{"flash", "bits_per_s"},
                                      {"dram", "joules_per_bit"},
                                      {"xpu", "ops_per_s"},
                                      {"xpu", "ops_per_joule"}}) {
    const std::string place = std::string("m.json: ") + object + "." + field;
    EXPECT_THAT(error_of(object, field, nullptr), HasSubstr(place));
    EXPECT_THAT(error_of(object, field, 0), HasSubstr(place));
    EXPECT_THAT(error_of(object, field, "fast"), HasSubstr(place));
  }
  EXPECT_THROW(find_machine("no such machine"), Error);
  EXPECT_EQ(find_machine("slicemoe").flash_bits_per_s, 10e9);
}

// Simulates every event in ticks: what the channel and the unit hold, and what they take next.
double simulated_phase(const Machine& machine, const std::vector<ExpertWork>& work, double tick) {
  const auto ticks = [&](double seconds) { return std::llround(seconds / tick); };
  std::deque<std::pair<std::size_t, bool>> channel;  // (expert, whether its last slice)
  std::deque<std::size_t> ready;
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (work[i].msb_read > 0) channel.emplace_back(i, work[i].lsb_read == 0);
    if (work[i].msb_read + work[i].lsb_read == 0) ready.push_back(i);
  }
  const std::size_t msbs = channel.size();
  for (std::size_t i = 0; i < work.size(); ++i)
    if (work[i].lsb_read > 0) channel.emplace_back(i, true);
  std::size_t taken = 0;
  long long now = 0, channel_left = 0, unit_left = 0;
  std::pair<std::size_t, bool> reading = {0, false};
  bool is_reading = false, is_computing = false;
  for (;; ++now) {
    if (is_reading && channel_left == 0) {
      is_reading = false;
      if (reading.second) ready.push_back(reading.first);
    }
    if (is_computing && unit_left == 0) is_computing = false;
    if (!is_reading && taken < channel.size()) {
      reading = channel[taken];
      const Bytes bytes = taken < msbs ? work[reading.first].msb_read : work[reading.first].lsb_read;
      channel_left = ticks(machine.flash_s(static_cast<double>(bytes)));
      is_reading = true;
      ++taken;
    }
    if (!is_computing && !ready.empty()) {
      const ExpertWork& one = work[ready.front()];
      ready.pop_front();
      unit_left = ticks(machine.compute_s(static_cast<double>(one.view), one.ops));
      is_computing = true;
    }
    if (!is_reading && !is_computing) return static_cast<double>(now) * tick;
    if (is_reading) --channel_left;
    if (is_computing) --unit_left;
  }
}

TEST(ExpertClock, IsASimulationOfEveryEvent) {
  // A tick is the time of a byte from Flash; a byte of a view takes another whole number of ticks.
  const Machine machine = {.name = "ticks",
                           .flash_bits_per_s = 8,
                           .flash_joules_per_bit = 1,
                           .dram_bits_per_s = 4,
                           .dram_joules_per_bit = 1,
                           .xpu_ops_per_s = 1,
                           .xpu_ops_per_joule = 1};
  const std::uint64_t seed = 20261122;
  std::mt19937_64 random(seed);
  ExpertClock clock(machine);
  double waited = 0;
  for (int instance = 0; instance < 500; ++instance) {
    std::vector<ExpertWork> work(random() % 8);
    for (ExpertWork& one : work) {
      const Bytes msb = 1 + random() % 20, lsb = 1 + random() % 20;
      const bool high = random() % 2 == 0;
      one.msb_read = random() % 2 == 0 ? msb : 0;
      one.lsb_read = high && random() % 2 == 0 ? lsb : 0;
      one.view = msb + (high ? lsb : 0);
      one.ops = static_cast<double>(random() % 60);
    }
    const ExpertPhase phase = clock.time(work);
    ASSERT_EQ(phase.seconds, simulated_phase(machine, work, 1))
        << "seed " << seed << ", instance " << instance;
    ASSERT_GE(phase.wait_s(), 0);
    ASSERT_LE(phase.seconds, phase.flash_s + phase.xpu_s);
    waited += phase.wait_s();
  }
  EXPECT_GT(waited, 0);
}

TEST(ExpertClock, HitsComeBeforeArrivals) {
  ExpertClock clock(slicemoe_machine());
  EXPECT_EQ(clock.time({}).seconds, 0);
  const experts::ExpertBytes bytes = slice_bytes(kP, {8, 4});
  const double run = slicemoe_machine().compute_s(static_cast<double>(bytes.msb), 2 * kP);
  const double read = slicemoe_machine().flash_s(static_cast<double>(bytes.msb));
  const ExpertWork hit = {.view = bytes.msb, .ops = 2 * kP}, miss = {bytes.msb, 0, bytes.msb, 2 * kP};
  // The unit computes with all resident experts while the missing one arrives.
  const std::vector<ExpertWork> work = {miss, hit, hit, hit};
  EXPECT_DOUBLE_EQ(clock.time(work).seconds, std::max(3 * run, read) + run);
}

TEST(SlicedModel, CountsWhatATokenReads) {
  const SlicedModel& deepseek = find_published_model("deepseek-v2-lite");
  const SlicedModel& qwen = find_published_model("qwen1.5-moe-a2.7b");
  EXPECT_EQ(deepseek.layers(), 26u);
  EXPECT_EQ(deepseek.experts(), 64u);
  EXPECT_EQ(deepseek.top_k(), 6u);
  EXPECT_EQ(qwen.layers(), 24u);
  EXPECT_EQ(qwen.experts(), 60u);
  EXPECT_EQ(qwen.top_k(), 4u);
  EXPECT_THROW(find_published_model("gpt"), Error);

  // By hand, for DeepSeek-V2-Lite: attention, two norms (one with 512 elements), dense or shared experts, and
  // router.
  const double attention =
      2048.0 * 16 * 192 + 2048 * 576 + 512 + 512.0 * 16 * 256 + 16 * 128 * 2048.0 + 2 * 2048;
  const double dense = attention + 3.0 * 2048 * 10944;
  const double sparse = attention + 3.0 * 2048 * 2816 + 64.0 * 2048;
  const double head = 102400.0 * 2048 + 2048;
  const double weights = dense + 26 * sparse + head;
  const Machine& machine = slicemoe_machine();
  const SlicedModel::Stretch token[] = {{1, 99}};
  const SlicedModel::Work work = deepseek.rest(machine, token);
  const double kv = 27 * 576.0;
  EXPECT_NEAR(work.traffic.dram_read, weights * (1 + 2.0 / 128) + 100 * kv, 1);
  EXPECT_NEAR(work.traffic.dram_written, kv, 1e-6);
  EXPECT_NEAR(work.traffic.ops, 2 * (weights + 27 * 100 * 16.0 * (512 + 512 + 64)), 1);
  EXPECT_EQ(work.traffic.flash, 0);
  EXPECT_NEAR(work.seconds, 8 * (work.traffic.dram_read + kv) / 104e9, 1e-9);  // memory is the limit

  // A prompt reads weights once; a batch has a key/value cache for each sequence.
  const SlicedModel::Stretch prompt[] = {{100, 0}}, two[] = {{1, 99}, {1, 99}};
  EXPECT_NEAR(deepseek.rest(machine, prompt).traffic.dram_read, work.traffic.dram_read, 1);
  EXPECT_NEAR(deepseek.rest(machine, prompt).traffic.dram_written, 100 * kv, 1e-6);
  EXPECT_NEAR(deepseek.rest(machine, two).traffic.dram_read, work.traffic.dram_read + 100 * kv, 1);
  EXPECT_EQ(deepseek.rest(machine, {}).seconds, 0);
}

}  // namespace
}  // namespace sluice::lab
