// Encoder-decoders beside a device: experts of both stacks on either side, and logits with the bits of the
// host alone, whatever the placement, the slots, the threads and the place of the dense part.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/error_of.h"
#include "base/json/json.h"
#include "device/accountant.h"
#include "engine/engine.h"
#include "engine/engine_device.h"
#include "engine/engine_hooks.h"
#include "engine/plan/profile.h"
#include "engine/run_report.h"
#include "engine/shared_steps_testing.h"
#include "experts/cache/residency.h"
#include "experts/layer_decider.h"
#include "experts/registry.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine {
namespace {

using sluice::testing::error_of;
using ::testing::HasSubstr;
using Tokens = std::vector<tokenizer::TokenId>;

struct Case {
  std::string placement = "device";
  std::uint32_t slots = 1;
  unsigned threads = 1;  // threads of the host, and of the device
  DenseOn dense_on = DenseOn::kHost;
  std::string cache = "lru", prefetch = "none";
  std::string text() const {
    return placement + ", " + std::to_string(slots) + " slots, " + std::to_string(threads) + " threads, " +
           cache + ", " + prefetch + (dense_on == DenseOn::kDevice ? ", dense part on the device" : "");
  }
};

class EncoderDeviceTest : public ::testing::TestWithParam<std::string> {
 protected:
  EncoderDeviceTest()
      : checkpoint_(store::open_checkpoint(sluice::testing::kGoldenModels + "/" + GetParam())),
        model_(model::describe_model(*checkpoint_)),
        golden_(read_json_file(sluice::testing::kGoldens + "/" + GetParam() + ".golden/golden.json")) {}

  // Inputs have several chunks, and sequences share steps.
  EngineOptions options_of(unsigned threads) const {
    EngineOptions options = engine_options(kSequences, Math::kF32);
    options.threads = threads;
    options.prefetch = "none";
    return options;
  }

  EngineOptions options_of(const Case& one) const {
    EngineOptions options = options_of(one.threads);
    options.device = "emulated:link=inf,compute=inf,latency=0us,threads=" + std::to_string(one.threads);
    options.device_slots = one.slots;
    options.device_cache = one.cache;
    options.placement = one.placement;
    options.dense_on = one.dense_on;
    options.prefetch = one.prefetch;
    return options;
  }

  // Costs are measured once for each device.
  std::unique_ptr<Engine> engine_of(const Case& one) const {
    EngineOptions options = options_of(one);
    std::optional<Profile>& profile = profiles_[{one.threads, one.dense_on}];
    options.profile = profile;
    auto engine =
        std::make_unique<Engine>(*checkpoint_, model_, resolve(options, *checkpoint_, model_), kSequences);
    if (!profile) profile = engine->report().profile;
    return engine;
  }

  std::vector<float> host() const {
    Engine engine(*checkpoint_, model_, resolve(options_of(2), *checkpoint_, model_), kSequences);
    return logits_of(engine, golden_, {.sequences = kSequences});
  }

  Tokens input() const { return golden_.at("encoder_tokens").get<Tokens>(); }
  Tokens output() const { return golden_.at("tokens").get<Tokens>(); }

  static constexpr std::size_t kSequences = 2;
  std::unique_ptr<store::Checkpoint> checkpoint_;
  const model::Model model_;
  const Json golden_;
  mutable std::map<std::pair<unsigned, DenseOn>, std::optional<Profile>> profiles_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && !a.empty() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_P(EncoderDeviceTest, EveryPlacementHasTheHostsBits) {
  const std::vector<float> expected = host();
  ASSERT_GT(input().size(), 5u);  // more than a chunk
  for (const DenseOn dense_on : {DenseOn::kHost, DenseOn::kDevice})
    for (const unsigned threads : {1u, 2u})
      for (const experts::PlacementPolicy& placement : experts::placement_policies())
        for (const std::uint32_t slots : {std::uint32_t{0}, std::uint32_t{1}, model_.config.moe.experts}) {
          const Case one{std::string(placement.name), slots, threads, dense_on};
          SCOPED_TRACE(one.text());
          const auto engine = engine_of(one);
          EXPECT_TRUE(same_bits(logits_of(*engine, golden_, {.sequences = kSequences}), expected));
          const RunReport report = engine->report();
          EXPECT_EQ(report.device->has_dense(), dense_on == DenseOn::kDevice);
          EXPECT_LE(report.device->accountant().peak(), report.device->memory().budget);
          EXPECT_EQ(report.accountant.used(device::Account::kKv) == 0, dense_on == DenseOn::kDevice);
        }
}

TEST_P(EncoderDeviceTest, BothStacksKeepExpertsOnTheDevice) {
  for (const DenseOn dense_on : {DenseOn::kHost, DenseOn::kDevice}) {
    const auto engine = engine_of({"device", 2, 2, dense_on});
    logits_of(*engine, golden_, {.sequences = kSequences});
    const experts::LayerPolicies& policies = engine->report().decider.policies();
    const std::uint32_t layers = model_.config.sparse_layers();
    ASSERT_EQ(policies.device->residencies.size(), layers);
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      std::size_t there = 0;
      for (std::uint32_t e = 0; e < model_.config.moe.experts; ++e)
        there += policies.device->residency(layer).computable(
            {static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)});
      EXPECT_EQ(there, 2u) << layer;
    }
    for (const StepKind kind : {StepKind::kPrompt, StepKind::kDecode}) {
      const experts::DeviceCounts& counts = engine->report().decider.device()->counts(kind);
      EXPECT_GT(counts.hits, 0u);
      EXPECT_EQ(counts.assigned, counts.active);
    }
  }
}

TEST_P(EncoderDeviceTest, EveryCacheAndPrefetchHasTheHostsBits) {
  const std::vector<float> expected = host();
  for (const char* const cache : {"workload-ema", "workload-window", "lfu", "score-window", "static-layers"})
    for (const char* const prefetch : {"none", "stream", "raw", "random"})
      for (const DenseOn dense_on : {DenseOn::kHost, DenseOn::kDevice}) {
        const Case one{"ratio-prefix", 2, 2, dense_on, cache, prefetch};
        SCOPED_TRACE(one.text());
        EXPECT_TRUE(same_bits(logits_of(*engine_of(one), golden_, {.sequences = kSequences}), expected));
      }
}

TEST_P(EncoderDeviceTest, AFailedCopyFailsItsStepAlone) {
  const std::vector<float> expected = host();
  for (const DenseOn dense_on : {DenseOn::kHost, DenseOn::kDevice}) {
    SCOPED_TRACE(dense_on == DenseOn::kDevice);
    std::atomic<bool> fails = false;
    std::atomic<int> copies = 0;
    EnginePlan plan = resolve(options_of({"device", 1, 2, dense_on}), *checkpoint_, model_);
    EngineHooks hooks;
    hooks.fault = [&](std::uint64_t, Bytes) {
      if (!fails) return device::Fault::kNone;
      const int copy = copies++;  // in the end steps must succeed
      return copy < 60 && copy % 13 == 5 ? device::Fault::kCopyFails : device::Fault::kNone;
    };
    Engine engine(*checkpoint_, model_, plan, kSequences, std::move(hooks));
    int failed = 0;
    const std::vector<float> found = logits_of(engine, golden_,
                                               {.sequences = kSequences,
                                                .prefilled = [&] { fails = true; },
                                                .failed =
                                                    [&](const Error& error) {
                                                      if (error.kind() != ErrorKind::kIo) throw error;
                                                      ++failed;
                                                    }});
    EXPECT_TRUE(same_bits(found, expected));
    EXPECT_GT(failed, 0);
  }
}

// The sequence then has no input, and may be given one again; another one, in the middle of its answer, goes
// on. So does one whose input was interrupted.
TEST_P(EncoderDeviceTest, AFailedInputFailsAlone) {
  const Tokens text = input(), answer = output();
  const auto logits_behind = [&](Engine& engine, Sequence& sequence, std::size_t place) {
    const std::span<const float> logits = engine.decode(sequence, answer[place]);
    return std::vector<float>(logits.begin(), logits.end());
  };
  Engine alone(*checkpoint_, model_, resolve(options_of(2), *checkpoint_, model_), kSequences);
  const std::unique_ptr<Sequence> one = alone.new_sequence();
  alone.encode(*one, text);
  const std::vector<float> first = logits_behind(alone, *one, 0), second = logits_behind(alone, *one, 1);
  for (const DenseOn dense_on : {DenseOn::kHost, DenseOn::kDevice}) {
    std::atomic<int> left = -1;  // copies until one fails
    EnginePlan plan = resolve(options_of({"device", 1, 2, dense_on}), *checkpoint_, model_);
    EngineHooks hooks;
    hooks.fault = [&](std::uint64_t, Bytes) {
      return left >= 0 && left-- == 0 ? device::Fault::kCopyFails : device::Fault::kNone;
    };
    Engine engine(*checkpoint_, model_, plan, kSequences, std::move(hooks));
    const auto begun = engine.new_sequence(), other = engine.new_sequence();
    int failed = 0;
    for (int copy = 0; copy < 40; copy += 3) {
      SCOPED_TRACE("copy " + std::to_string(copy) + (dense_on == DenseOn::kDevice ? ", dense" : ""));
      begun->clear();
      engine.encode(*begun, text);
      EXPECT_TRUE(same_bits(logits_behind(engine, *begun, 0), first));
      left = copy;
      try {
        engine.encode(*other, text);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kIo) << error.what();
        EXPECT_EQ(other->encoder_length(), 0u);
        ++failed;
      }
      left = -1;
      EXPECT_TRUE(same_bits(logits_behind(engine, *begun, 1), second));
      int asked = 0;
      EXPECT_FALSE(engine.encode(*other, text, [&] { return ++asked < 7; }));
      EXPECT_TRUE(engine.encode(*other, text));
      EXPECT_TRUE(same_bits(logits_behind(engine, *other, 0), first));
      other->clear();
    }
    EXPECT_GT(failed, 5);
  }
}

TEST_P(EncoderDeviceTest, BudgetsAreKeptOrRefused) {
  for (const DenseOn dense_on : {DenseOn::kHost, DenseOn::kDevice}) {
    EngineOptions options = options_of({"device", 1, 1, dense_on});
    options.device_slots.reset();
    options.device_memory = 64 * kMiB;
    const auto make = [&] {
      return std::make_unique<Engine>(*checkpoint_, model_, resolve(options, *checkpoint_, model_),
                                      kSequences);
    };
    const Bytes least = make()->report().device->memory().minimum;
    options.device_memory = least;
    const auto engine = make();
    EXPECT_TRUE(same_bits(logits_of(*engine, golden_, {.sequences = kSequences}), host()));
    EXPECT_EQ(engine->report().device->memory().slots, 0u);
    EXPECT_LE(engine->report().device->accountant().peak(), least);
    EXPECT_LE(engine->report().accountant.peak(), engine->report().accountant.budget());
    options.device_memory = least - 256;
    EXPECT_THAT(error_of(make), HasSubstr("memory of the device is too small"));
    options.device_memory.reset();
    options.device_slots = model_.config.moe.experts + 1;
    EXPECT_THAT(error_of(make), HasSubstr("slots"));
  }
  EngineOptions options = options_of({"device", 1});
  options.encoder_positions = 4096;
  options.dense_on = DenseOn::kDevice;
  const auto needs = [&] {
    const Engine engine(*checkpoint_, model_, resolve(options, *checkpoint_, model_), kSequences);
    return engine.report().device->memory().kv;
  };
  const Bytes large = needs();
  options.encoder_positions = 64;
  EXPECT_GT(large, needs() + 1000 * 1000);  // the encoder's input lies there, too
}

INSTANTIATE_TEST_SUITE_P(Models, EncoderDeviceTest,
                         ::testing::Values("switch_transformers_a", "switch_transformers_b"));

}  // namespace
}  // namespace sluice::engine
