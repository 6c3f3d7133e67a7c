// A device under a whole engine, with little room everywhere: three slots a layer, a host that keeps few
// experts, copies and reads that fail now and then, and passes that are given up. After each failure both
// residencies must be sound and the sequences as before, and every logit must be that of the host alone, bit
// for bit. Meant mainly for ThreadSanitizer. Costs are invented, so decisions are the same everywhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "engine/engine.h"
#include "engine/engine_device.h"
#include "engine/engine_hooks.h"
#include "engine/forward/pass.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "experts/layer_decider.h"
#include "fetch/memory/expert_store.h"
#include "model/architecture.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine::device_stress_test {
namespace {

using tokenizer::TokenId;

const std::string kModel = SLUICE_SOURCE_DIR "/models/fable-moe-18m";
const std::string kDevice = "emulated:link=2GB/s,latency=20us,compute=60GB/s";
const std::string kSlowDevice = "emulated:link=50MB/s,latency=20us,compute=60GB/s";
constexpr std::uint64_t kSeed = 20261125;
constexpr std::uint32_t kSlots = 3, kHostExperts = 40;
constexpr std::size_t kSequences = 3, kRoundsAfterwards = 60;

// SLUICE_STRESS_TOKENS sets the number.
std::size_t stress_tokens() {
  if (const char* text = std::getenv("SLUICE_STRESS_TOKENS")) return std::stoul(text);
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return 300;
#else
  return 2000;
#endif
}

// One step: a token more of each sequence, or the prompt of a new text.
struct Round {
  std::vector<TokenId> tokens;
  std::vector<std::size_t> count;  // tokens of each sequence
  std::vector<bool> is_new;
};

std::vector<Round> random_rounds(std::size_t tokens, std::uint32_t vocab, std::mt19937_64& random) {
  std::vector<Round> rounds;
  std::vector<std::size_t> left(kSequences, 0);  // tokens of the running texts
  for (std::size_t done = 0; done < tokens; done += rounds.back().tokens.size()) {
    Round round;
    for (std::size_t s = 0; s < kSequences; ++s) {
      const bool is_new = left[s] == 0;
      if (is_new) left[s] = 9 + random() % 16;
      const std::size_t count = is_new ? 1 + random() % 6 : 1;
      left[s] -= count;
      round.count.push_back(count);
      round.is_new.push_back(is_new);
      for (std::size_t i = 0; i < count; ++i) round.tokens.push_back(static_cast<TokenId>(random() % vocab));
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

struct Case {
  std::string name;
  std::string placement, device_cache, host_cache = "lru", prefetch = "none";
  experts::Tiers tiers = experts::Tiers::kInclusive;
  DenseOn dense_on = DenseOn::kHost;
  std::size_t part = 4;  // runs one in this many of all rounds
  bool link_is_slow = false;
};

class DeviceStress : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    checkpoint_ = store::open_checkpoint(kModel);
    model_ = std::make_unique<model::Model>(model::describe_model(*checkpoint_));
    std::mt19937_64 random(kSeed);
    rounds_ = random_rounds(stress_tokens(), model_->config.vocab, random);
    Engine host(*checkpoint_, *model_, resolve(host_options(), *checkpoint_, *model_), kSequences);
    expected_ = hashes(host, rounds_);
  }
  static void TearDownTestSuite() {
    model_.reset();
    checkpoint_.reset();
  }

  static EngineOptions host_options() {
    EngineOptions options;
    options.memory = 256 * kMiB;
    options.threads = 2;
    options.positions = 32;
    options.chunk = 18;
    options.sequences = kSequences;
    options.seed = kSeed;
    options.fetch.io = fetch::IoMode::kBuffered;  // not every directory supports direct I/O
    return options;
  }

  static EngineOptions options_of(const Case& one) {
    EngineOptions options = host_options();
    options.device = one.link_is_slow ? kSlowDevice : kDevice;
    options.device_slots = kSlots;
    options.device_cache = one.device_cache;
    options.placement = one.placement;
    options.cache = one.host_cache;
    options.prefetch = one.prefetch;
    options.tiers = one.tiers;
    options.dense_on = one.dense_on;
    return options;
  }

  // The costs of a device that has work for both units, whatever this machine is like.
  static Profile made_up_costs(const EngineOptions& options) {
    Engine engine(*checkpoint_, *model_, resolve(options, *checkpoint_, *model_), kSequences);
    expert_ = engine.report().experts.facts().largest_resident;
    Profile profile = engine.report().profile.value();
    DeviceProfile& device = profile.device.value();
    device.host = {{1, {3e-3, 0}}, {16, {48e-3, 0}}};
    device.run = {{1, {3e-4, 0}}, {16, {3e-4, 0}}};
    device.idle = device.busy = {static_cast<double>(device.expert) / 9e-3, 0};
    device.attention = {{1, {5e-3, 0}}};
    device.predict = device.sync = {1e-5, 0};
    return profile;
  }

  // Hashes of the logits behind the last token of each sequence, for every round. A step that fails is
  // computed again, as often as it takes.
  static std::vector<std::uint64_t> hashes(Engine& engine, std::span<const Round> rounds) {
    std::vector<std::uint64_t> all;
    std::vector<std::unique_ptr<Sequence>> sequences;
    for (std::size_t s = 0; s < kSequences; ++s) sequences.push_back(engine.new_sequence());
    std::mt19937_64 random(kSeed + 1);
    for (const Round& round : rounds) {
      std::vector<SequenceSpan> spans;
      std::vector<bool> last(round.tokens.size());
      std::size_t first = 0;
      for (std::size_t s = 0; s < kSequences; ++s) {
        if (round.is_new[s]) sequences[s]->clear();
        spans.push_back({sequences[s].get(), first, round.count[s],
                         round.is_new[s] ? StepKind::kPrompt : StepKind::kDecode});
        first += round.count[s];
        last[first - 1] = true;
      }
      const Step step{round.tokens, spans};
      if (faults_ && random() % 8 == 0) give_up(engine, step, random() % (model_->config.layers + 1));
      const std::size_t before = all.size();
      const LogitSink sink{
          [&](std::size_t t) { return last[t]; },
          [&](std::size_t, std::span<const float> row) { all.push_back(xxh3(std::as_bytes(row))); }};
      while (!tried(engine, [&] { engine.step(step, sink); })) all.resize(before);
    }
    return all;
  }

  // Whether it succeeded.
  template <class Work>
  static bool tried(const Engine& engine, const Work& work) {
    try {
      work();
      return true;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kIo || !faults_) throw;
      const bool by_link = std::string_view(error.what()).find("over the link") != std::string_view::npos;
      (by_link ? failed_copies_ : failed_reads_) += 1;
      expect_sound(engine);
      return false;
    }
  }

  static void give_up(Engine& engine, const Step& step, std::size_t layer) {
    ++given_up_;
    tried(engine, [&] {
      Pass pass = engine.begin(step);
      pass.advance(layer);
      pass.cancel();
    });
    expect_sound(engine);
  }

  // What is in a slot has one by the device's residency, and no layer has more than its slots; budgets hold.
  static void expect_sound(const Engine& engine) {
    const RunReport report = engine.report();
    const experts::LayerPolicies& policies = report.decider.policies();
    for (std::uint16_t layer = 0; layer < model_->config.sparse_layers(); ++layer) {
      std::uint32_t there = 0;
      for (std::uint16_t e = 0; e < model_->config.moe.experts; ++e) {
        const experts::ExpertId id{layer, e};
        const bool resident = policies.device->residency(layer).computable(id);
        there += resident ? 1 : 0;
        EXPECT_TRUE(resident || !report.device->holds(id)) << layer << "/" << e << ", seed " << kSeed;
      }
      EXPECT_LE(there, kSlots);
    }
    for (const auto& residency : policies.residencies) EXPECT_LE(residency->used(), residency->capacity());
    EXPECT_LE(report.accountant.used(), report.accountant.budget());
    EXPECT_LE(report.device->accountant().used(), report.device->accountant().budget());
  }

  static inline std::unique_ptr<store::Checkpoint> checkpoint_;
  static inline std::unique_ptr<model::Model> model_;
  static inline std::vector<Round> rounds_;
  static inline std::vector<std::uint64_t> expected_;
  static inline Bytes expert_ = 0;
  static inline std::size_t failed_copies_ = 0, failed_reads_ = 0, given_up_ = 0;
  static inline bool faults_ = false;
};

TEST_P(DeviceStress, FailuresNeverShowInTheLogits) {
  EngineOptions options = options_of(GetParam());
  options.profile = made_up_costs(options);
  options.cache_bytes = kHostExperts * expert_;
  std::atomic<bool> failing{false};
  std::atomic<unsigned> reads{0}, chunks{0};
  options.fetch.wrap_reader = [&](std::unique_ptr<DiskReader> inner) {
    return make_faulty_reader(std::move(inner),
                              [&](const DiskRead&) { return failing && ++reads % 211 == 0 ? EIO : 0; });
  };
  const auto fault = [&](std::uint64_t, Bytes) {
    return failing && ++chunks % 307 == 0 ? device::Fault::kCopyFails : device::Fault::kNone;
  };
  Engine engine(*checkpoint_, *model_, resolve(options, *checkpoint_, *model_), kSequences, {.fault = fault});
  failed_copies_ = failed_reads_ = given_up_ = 0;
  failing = faults_ = true;
  const auto expect_hosts_logits = [&](std::size_t rounds) {
    std::vector<std::uint64_t> expected = expected_;
    expected.resize(kSequences * rounds);
    EXPECT_EQ(hashes(engine, std::span(rounds_).first(rounds)), expected) << "seed " << kSeed;
  };
  expect_hosts_logits(rounds_.size() / GetParam().part);
  failing = faults_ = false;
  expect_sound(engine);
  // Without faults, both memories as they are now.
  expect_hosts_logits(std::min(kRoundsAfterwards, rounds_.size()));
  EXPECT_GT(failed_copies_, 0u);
  EXPECT_GT(failed_reads_, 0u);
  EXPECT_GT(given_up_, 0u);
  const fetch::DeviceStoreCounters& copies = engine.report().device->copies();
  EXPECT_GT(copies.loads + copies.streamed, 100u);
  EXPECT_GT(copies.hits, 100u);
  // Prefetches that an event used, some of them promoted while they were under way, and others that nobody
  // wanted any more; and far more copies than there are buffers, each into one that launches have read.
  if (GetParam().prefetch != "none") {
    EXPECT_GT(copies.late + copies.useful, 0u);
    EXPECT_GT(copies.wasted, 0u);
  }
  if (GetParam().link_is_slow) {
    EXPECT_GT(copies.late, 0u);
  }
  std::cout << copies.late << " promoted, " << copies.wasted << " withdrawn or wasted, "
            << copies.loads + copies.streamed << " buffers taken again; " << GetParam().name << ", seed "
            << kSeed << ": " << stress_tokens() / GetParam().part << " tokens, " << failed_copies_
            << " steps failed by copies, " << failed_reads_ << " by reads, " << given_up_
            << " passes given up; " << copies.missing << " experts were not where they should be\n";
}

INSTANTIATE_TEST_SUITE_P(
    Setups, DeviceStress,
    ::testing::Values(Case{"updates_and_prefetches", "ratio-prefix", "workload-ema", "lru", "stream",
                           experts::Tiers::kInclusive, DenseOn::kHost, 1},
                      Case{"exclusive_tiers", "greedy", "lru", "lru", "none", experts::Tiers::kExclusive},
                      Case{"slow_link", "ratio-prefix", "workload-ema", "lru", "stream",
                           experts::Tiers::kInclusive, DenseOn::kHost, 8, true},
                      Case{"dense_part_there", "device", "lru", "marking", "raw", experts::Tiers::kInclusive,
                           DenseOn::kDevice}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace sluice::engine::device_stress_test
