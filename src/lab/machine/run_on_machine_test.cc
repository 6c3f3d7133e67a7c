// Energy and time of real runs: against numbers worked out by hand, and against the replay of the same
// decisions.
#include "lab/machine/run_on_machine.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "engine/engine.h"
#include "engine/forward/dense/dense_choice.h"
#include "engine/forward/dense/dense_weights.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/options.h"
#include "engine/run_report.h"
#include "experts/decision_log.h"
#include "fetch/memory/expert_store.h"
#include "lab/machine/machine_replay.h"
#include "lab/replay/routing_recorder.h"
#include "model/architecture.h"
#include "model/pack_plan.h"
#include "store/pack/testing.h"
#include "store/source/open_checkpoint.h"

namespace sluice::lab {
namespace {

using engine::EngineOptions;
using experts::Part;
using experts::PrecisionMode;
using store::testing::TempDirectory;

const std::string kFable = SLUICE_SOURCE_DIR "/models/fable-moe-18m";
constexpr std::size_t kPrompt = 24, kTokens = 56;

// From its config.json: 6 layers, hidden 256, 4 heads of 64 and 2 of keys and values, shared experts of 192
// with a gate, 32 experts of 96, a vocabulary of 6400 with a tied head.
constexpr double kAttention = 256.0 * 256 + 256 + 2 * (256.0 * 128 + 128) + 256.0 * 256,
                 kLayer = kAttention + 3 * 256.0 * 192 + 256 + 32 * 256.0 + 2 * 256,
                 kHead = 6400 * 256.0 + 256, kExpert = 3 * 256.0 * 96;

class RunOnMachineTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = std::make_unique<TempDirectory>();
    store::PackOptions options;
    options.slices = codec::SliceBits{8, 4};
    store::pack(kFable, *scratch_ / "m.sluice", model::pack_plan(*store::open_checkpoint(kFable)), options);
  }
  static void TearDownTestSuite() { scratch_.reset(); }

  explicit RunOnMachineTest() {
    std::mt19937_64 random(5);
    for (std::size_t i = 0; i < kTokens; ++i)
      tokens_.push_back(static_cast<tokenizer::TokenId>(random() % 6400));
  }
  void open(const std::string& path) {
    checkpoint_ = store::open_checkpoint(path);
    model_ = model::describe_model(*checkpoint_);
  }
  static EngineOptions options() {
    EngineOptions options;
    options.memory = 2 * kGiB;
    options.threads = 1;
    options.positions = kTokens;
    options.fetch.io = fetch::IoMode::kBuffered;
    return options;
  }
  void feed(engine::Engine& engine) const {
    const auto sequence = engine.new_sequence();
    engine.prefill(*sequence, std::span(tokens_).first(kPrompt), {[](std::size_t) { return false; }, {}});
    for (std::size_t t = kPrompt; t < kTokens; ++t) engine.decode(*sequence, tokens_[t]);
  }

  static inline std::unique_ptr<TempDirectory> scratch_;
  std::unique_ptr<store::Checkpoint> checkpoint_;
  model::Model model_;
  std::vector<tokenizer::TokenId> tokens_;
};

TEST_F(RunOnMachineTest, ExactRunsCostWhatHandsWorkOut) {
  open(kFable);
  EngineOptions settings = options();
  settings.cache = "lru";
  settings.prefetch = "none";
  settings.cache_bytes = 4 * kMiB;
  engine::Engine engine(*checkpoint_, model_, engine::resolve(settings, *checkpoint_, model_));
  RunOnMachine machine(engine, slicemoe_machine());
  engine.observe(&machine);
  feed(engine);
  const RunPhase prefill = machine.prefill(), decode = machine.decode();
  EXPECT_EQ(prefill.tokens, kPrompt);
  EXPECT_EQ(decode.tokens, kTokens - kPrompt);
  EXPECT_EQ(decode.steps, kTokens - kPrompt);

  double ops = 0, read = 0, written = 0;
  const double dense = static_cast<double>(
      engine::DenseWeights::resident_bytes(*checkpoint_, model_, engine.report().dense_choice.view));
  for (std::size_t t = kPrompt; t < kTokens; ++t) {
    const double seen = static_cast<double>(t + 1);
    ops += 2 * (6 * kLayer + kHead + 6 * 4 * kExpert) + 2 * 6 * (2.0 * 4 * 64) * seen;
    read += dense + 6 * 4 * static_cast<double>(engine.report().experts.sizes().bytes({0, 0}).full) +
            6 * (2.0 * 2 * 64) * 2 * seen;  // keys and values in BF16
    written += 6 * (2.0 * 2 * 64) * 2;
  }
  EXPECT_NEAR(decode.traffic.ops, ops, 1e-9 * ops);
  EXPECT_NEAR(decode.traffic.dram_read, read, 1e-9 * read);
  EXPECT_NEAR(decode.traffic.dram_written, written, 1e-9 * written);
  const double flash = static_cast<double>(engine.statistics().decode.bytes_read);
  EXPECT_GT(flash, 0);
  EXPECT_EQ(decode.traffic.flash, flash);
  EXPECT_NEAR(decode.energy.flash, 8 * 103e-12 * flash, 1e-15);
  EXPECT_NEAR(decode.energy.dram_read, 8 * 1.5e-12 * read, 1e-12);
  EXPECT_NEAR(decode.energy.dram_write, 8 * 1.5e-12 * (flash + written), 1e-15);
  EXPECT_NEAR(decode.energy.compute, ops / 3.18e12, 1e-12);
  // One channel and one unit: at least the busy time of either, at most the sum of both.
  const double busy = 8 * flash / 10e9;
  EXPECT_GE(decode.compute_s + decode.wait_s, busy * (1 - 1e-9));
  EXPECT_LE(decode.compute_s + decode.wait_s, (busy + decode.compute_s) * (1 + 1e-9));
}

TEST_F(RunOnMachineTest, WhatIsInMemoryIsReadFromThereAlone) {
  open(kFable);
  EngineOptions settings = options();
  settings.cache = "lru";
  settings.prefetch = "none";
  engine::Engine all(*checkpoint_, model_, engine::resolve(settings, *checkpoint_, model_));
  RunOnMachine machine(all, slicemoe_machine());
  all.observe(&machine);
  feed(all);
  const RunPhase before = machine.decode();
  feed(all);  // everything is in memory by now
  const RunPhase after = machine.decode();
  EXPECT_EQ(after.traffic.flash, before.traffic.flash);
  EXPECT_EQ(after.tokens, 2 * before.tokens);
  EXPECT_NEAR(after.traffic.ops, 2 * before.traffic.ops, 1e-6 * before.traffic.ops);
}

class Slices : public RunOnMachineTest, public ::testing::WithParamInterface<PrecisionMode> {};

// Replays the same decisions: reads, computation and waiting must agree.
TEST_P(Slices, CostWhatTheReplayOfTheirDecisionsSays) {
  open(*scratch_ / "m.sluice");
  EngineOptions settings = options();
  settings.precision = GetParam();
  settings.cache_bytes = 3 * kMiB;
  settings.prefetch = "none";  // a replay has no notion of time
  engine::Engine engine(*checkpoint_, model_, engine::resolve(settings, *checkpoint_, model_));
  RunOnMachine machine(engine, slicemoe_machine());
  RoutingRecorder recorder(model_.config);
  engine::ObserverList both;
  both.add(&machine);
  both.add(&recorder);
  engine.observe(&both);
  feed(engine);
  const RunPhase decode = machine.decode();

  const SlicedModel shape("fable", model_.config);
  MachineReplaySettings replay;
  const experts::ExpertBytes sizes = engine.report().experts.sizes().bytes({0, 0});
  replay.bytes = {.msb = sizes.msb, .lsb = sizes.lsb};  // as on disk: whole blocks
  ASSERT_EQ(engine.report().experts.disk_bytes({0, 0}), sizes.msb + sizes.lsb);
  replay.memory = engine.report().cache_capacity();
  replay.cache = engine.policies().cache->name;
  replay.precision = {GetParam(), engine.policies().precision.critical};
  replay.slices = engine.policies().slices;
  const MachineReplayResult result = replay_on_machine(recorder.steps(), shape, slicemoe_machine(), replay);
  EXPECT_EQ(result.decision_hash, engine.report().decision_hash());
  EXPECT_EQ(result.recorded_differs, 0u);
  EXPECT_GT(decode.traffic.flash, 0);
  EXPECT_EQ(decode.traffic.flash, result.decode.traffic.flash);
  EXPECT_NEAR(decode.energy.flash, result.decode.energy.flash, 1e-15);
  EXPECT_NEAR(decode.traffic.ops, result.decode.traffic.ops, 1e-6 * result.decode.traffic.ops);
  EXPECT_NEAR(decode.compute_s, result.decode.compute_s, 1e-9 * result.decode.compute_s);
  EXPECT_NEAR(decode.wait_s, result.decode.wait_s, 1e-9 * result.decode.wait_s);
  // The replay has the rest in 8 bits, this store in BF16: 4 bytes for a weight's two, and half of the keys'.
  const double rest = result.decode.traffic.dram_read, ours = decode.traffic.dram_read;
  EXPECT_GT(ours, rest);
  const double steps = static_cast<double>(kTokens - kPrompt),
               dense = static_cast<double>(engine::DenseWeights::resident_bytes(
                   *checkpoint_, model_, engine.report().dense_choice.view));
  double keys = 0;
  for (std::size_t t = kPrompt; t < kTokens; ++t) keys += 6 * 256.0 * static_cast<double>(t + 1);
  EXPECT_NEAR(ours - rest, steps * (dense - shape.rest_weights() * (1 + 2 / 128.0)) + keys, 1e-6 * ours);
}

INSTANTIATE_TEST_SUITE_P(Precisions, Slices,
                         ::testing::Values(PrecisionMode::kHigh, PrecisionMode::kDbsc, PrecisionMode::kLow));

TEST(RunOnMachine, KnowsWhatItCanModel) {
  model::ModelConfig dense = model::describe_model(*store::open_checkpoint(kFable)).config;
  EXPECT_TRUE(RunOnMachine::models(dense));
  std::fill(dense.sparse.begin(), dense.sparse.end(), false);
  EXPECT_FALSE(RunOnMachine::models(dense));
}

}  // namespace
}  // namespace sluice::lab
