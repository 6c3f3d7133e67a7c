// Experts on a device: whatever is assigned to it, and whatever stays there, logits have the bits of the host
// alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/scratch_directory.h"
#include "base/json/json.h"
#include "device/emulated/emulated_device.h"
#include "engine/engine.h"
#include "engine/forward/unit/device_unit.h"
#include "engine/plan/unit_parts.h"
#include "engine/shared_steps_testing.h"
#include "experts/cache/cache_policies.h"
#include "experts/cache/residency.h"
#include "experts/placement/placement.h"
#include "experts/prefetch/prefetch.h"
#include "experts/registry.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "model/pack_plan.h"
#include "store/pack/pack.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine {
namespace {

namespace fs = std::filesystem;
using experts::ExpertId;
using experts::Part;
using experts::Unit;

const fs::path kModels = sluice::testing::kGoldenModels;
const fs::path kGoldens = sluice::testing::kGoldens;
const std::string kFable = SLUICE_SOURCE_DIR "/models/fable-moe-18m";

// Each expert goes where a coin says; `share` of them to the device.
class RandomPlacement final : public experts::Placement {
 public:
  RandomPlacement(std::uint64_t seed, double share) : random_(seed), share_(share) {}
  void assign(const experts::Demand& demand, const experts::PlacementCosts&,
              experts::Assignment& out) override {
    out.unit.clear();
    for (std::size_t i = 0; i < demand.experts.size(); ++i)
      out.unit.push_back(coin_(random_) < share_ ? Unit::kDevice : Unit::kHost);
  }
  std::string name() const override { return "random"; }

 private:
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> coin_{0, 1};
  const double share_;
};

struct DeviceSetup {
  double share = 0.5;       // of experts that are assigned to the device
  std::uint32_t slots = 0;  // on the device
  std::uint32_t staging = 2;
  unsigned threads = 1;
  Bytes memory = 256 * kMiB;  // of the device
  std::uint64_t seed = 1;
  std::string prefetch = {};  // to the device; empty: none
  std::uint32_t prefetch_size = 2;
  double faults = 0;    // of copies in decode steps
  bool packed = false;  // slots, and what the host keeps
};

// A device with a cache, for an engine.
class DeviceFor {
 public:
  explicit DeviceFor(const DeviceSetup& setup) : setup_(setup) {
    device::EmulatedOptions options;
    options.spec = device::parse_emulated_spec("emulated:link=inf,compute=inf,latency=0us", "the device");
    options.spec.threads = setup.threads;
    options.memory = setup.memory;
    // The first three fail for certain: at most two of them were made ahead, so a step fails.
    options.fault = [this, copies = 0, coin = std::mt19937_64(setup.seed)](std::uint64_t, Bytes) mutable {
      const std::lock_guard lock(fault_mutex_);
      const bool fail =
          fails && (copies++ < 3 || std::uniform_real_distribution<double>()(coin) < setup_.faults);
      return fail ? device::Fault::kCopyFails : device::Fault::kNone;
    };
    device_ = device::make_emulated_device(std::move(options));
  }

  SecondUnit unit() {
    return {.make_unit =
                [this](const UnitParts& parts) {
                  auto unit = std::make_unique<DeviceUnit>(
                      *device_, parts,
                      fetch::DeviceStoreOptions{setup_.slots, setup_.staging, setup_.packed});
                  unit_ = unit.get();
                  return unit;
                },
            .make_placement = [this] { return std::make_unique<RandomPlacement>(setup_.seed, setup_.share); },
            .make_residencies =
                [this](const experts::ExpertSizes& sizes) {
                  std::vector<std::unique_ptr<experts::Residency>> all;
                  const experts::ExpertBytes bytes = sizes.bytes({0, 0});
                  const Bytes each = std::max(bytes.full, bytes.msb + bytes.lsb);
                  const experts::Parts keep =
                      bytes.full > 0 ? experts::Parts(Part::kFull) : Part::kMsb | Part::kLsb;
                  all.push_back(std::make_unique<experts::Residency>(experts::make_lru_cache({.keep = keep}),
                                                                     sizes, setup_.slots * each,
                                                                     experts::Tier::kDevice));
                  return all;
                },
            .costs = {.run = {.fixed = 1e-4}, .transfer = 1e-3},
            .make_prefetch = setup_.prefetch.empty()
                                 ? std::function<std::unique_ptr<experts::Prefetch>()>()
                                 : [this] { return experts::find_prefetch(setup_.prefetch).make({}); },
            .prefetch_size = setup_.prefetch_size};
  }
  bool prefetches() const { return !setup_.prefetch.empty(); }
  bool packed() const { return setup_.packed; }
  bool has_faults() const { return setup_.faults > 0; }
  std::atomic<bool> fails = false;
  int failed_steps = 0;
  fetch::DeviceStoreCounters counters;  // when the engine was last looked at
  device::Device& device() { return *device_; }
  fetch::DeviceStore& store() { return unit_->store(); }

 private:
  const DeviceSetup setup_;
  std::mutex fault_mutex_;
  std::unique_ptr<device::Device> device_;
  DeviceUnit* unit_ = nullptr;
};

EngineOptions engine_options(std::size_t sequences, Math math) {
  EngineOptions options;
  options.memory = 256 * kMiB;
  options.threads = 2;
  options.math = math;
  options.positions = 96;
  options.encoder_positions = 64;
  options.chunk = 5;
  options.sequences = sequences;
  options.fetch.io = fetch::IoMode::kBuffered;
  return options;
}

class DeviceUnitTest : public ::testing::TestWithParam<std::string> {
 protected:
  DeviceUnitTest() : DeviceUnitTest(kModels / GetParam()) {}
  explicit DeviceUnitTest(const fs::path& model)
      : checkpoint_(store::open_checkpoint(model)),
        model_(model::describe_model(*checkpoint_)),
        golden_(read_json_file(kGoldens / (GetParam() + ".golden") / "golden.json")) {}

  // Prompts of `sequences` sequences, in chunks, and some decode steps of all of them together.
  std::vector<float> run(std::size_t sequences, Math math, DeviceFor* device,
                         const std::string& prefetch = "none") const {
    EngineOptions options = engine_options(sequences, math);
    options.prefetch = prefetch;
    if (device != nullptr) options.second_unit = device->unit();
    if (device != nullptr && device->packed()) options.keep = Keep::kPacked;
    Engine engine(*checkpoint_, model_, resolve(options, *checkpoint_, model_), sequences);
    SharedSteps steps{.sequences = sequences};
    if (device != nullptr && device->has_faults()) {
      steps.prefilled = [&] { device->fails = true; };
      // A step whose copies fail is computed again, as often as it takes.
      steps.failed = [&](const Error& error) {
        if (error.kind() != ErrorKind::kIo) throw error;
        ++device->failed_steps;
      };
    }
    std::vector<float> logits = logits_of(engine, golden_, steps);
    if (device != nullptr) device->fails = false;
    if (device != nullptr) check(*device);
    return logits;
  }

  void check(DeviceFor& device) const {
    const fetch::DeviceStoreCounters& counters = device.counters = device.store().counters();
    const device::LinkCounters link = device.device().link().counters();
    if (!device.prefetches()) {  // else an expert of the host may go while it is copied
      if (!device.has_faults()) {
        EXPECT_EQ(counters.missing, 0u);
      }
      EXPECT_EQ(link[device::Traffic::kPrefetch].bytes, 0u);
    }
    EXPECT_LE(counters.useful + counters.late + counters.wasted, counters.prefetches);
    EXPECT_EQ(device.store().pins(), 0u);
    if (!device.has_faults()) {
      EXPECT_EQ(device.device().computed().pieces, counters.hits + counters.loads + counters.streamed);
      EXPECT_EQ(link[device::Traffic::kResult].copies, device.device().computed().pieces);
    }
    EXPECT_EQ(link[device::Traffic::kUpdate].bytes, 0u);
    device::Accountant& accountant = device.device().memory().accountant();
    EXPECT_GT(accountant.used(device::Account::kActivations), 0u);
    EXPECT_LE(accountant.peak(), accountant.budget());
  }

  std::unique_ptr<store::Checkpoint> checkpoint_;
  const model::Model model_;
  const Json golden_;
};

TEST_P(DeviceUnitTest, RandomPlacementsHaveTheHostsBits) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  for (const std::size_t sequences : {1, 3})
    for (const Math math : {Math::kF32, Math::kAuto}) {
      const std::vector<float> host = run(sequences, math, nullptr);
      ASSERT_FALSE(host.empty());
      for (const DeviceSetup& setup :
           {DeviceSetup{.share = 0.5, .slots = 3, .seed = seed},
            DeviceSetup{.share = 1, .slots = 0, .threads = 2, .seed = seed},
            DeviceSetup{.share = 0.7, .slots = 64, .staging = 3, .seed = seed + 1}}) {
        SCOPED_TRACE(std::to_string(sequences) + (math == Math::kF32 ? " f32" : " auto") + ", slots " +
                     std::to_string(setup.slots));
        DeviceFor device(setup);
        EXPECT_EQ(run(sequences, math, &device), host);
        if (model_.config.moe.experts > 1 && !model_.experts.empty()) {
          const fetch::DeviceStoreCounters& counters = device.counters;
          EXPECT_GT(counters.loads + counters.streamed, 0u);
          if (setup.slots == 0) {
            EXPECT_EQ(counters.loads, 0u);
          }
        }
      }
    }
}

// Every prefetch that needs no other text, to the host and to the device.
TEST_P(DeviceUnitTest, PrefetchesHaveTheHostsBits) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  const bool prefetched =
      model_.config.moe.experts > 1 && model_.config.sparse_layers() > 1 && !model_.config.has_encoder();
  std::uint64_t copies = 0, used = 0;
  int failed = 0;
  for (const std::size_t sequences : {1, 3}) {
    const std::vector<float> host = run(sequences, Math::kF32, nullptr);
    for (const experts::PrefetchPolicy& policy : experts::prefetch_policies()) {
      if (policy.needs != experts::PrefetchNeeds::kNothing) continue;
      const std::string name(policy.name);
      for (const DeviceSetup& setup :
           {DeviceSetup{.share = 1, .slots = 0, .staging = 4, .prefetch = name},
            DeviceSetup{.share = 0.5, .slots = 3, .staging = 3, .prefetch = name, .prefetch_size = 1},
            DeviceSetup{
                .share = 0.7, .slots = 5, .staging = 6, .threads = 2, .prefetch = name, .prefetch_size = 9},
            DeviceSetup{.share = 0.7, .slots = 3, .staging = 5, .prefetch = name, .faults = 0.05}}) {
        SCOPED_TRACE(std::to_string(sequences) + " " + name + ", slots " + std::to_string(setup.slots) +
                     (setup.faults > 0 ? ", faults" : ""));
        DeviceSetup seeded = setup;
        seeded.seed = seed;
        DeviceFor device(seeded);
        EXPECT_EQ(run(sequences, Math::kF32, &device, name), host);
        copies += device.counters.prefetches;
        used += device.counters.useful + device.counters.late;
        failed += device.failed_steps;
      }
    }
  }
  std::cout << copies << " prefetches, " << used << " used; " << failed << " steps failed\n";
  if (prefetched) {
    EXPECT_GT(copies, 0u);
    EXPECT_GT(used, 0u);
    EXPECT_GT(failed, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(AllModels, DeviceUnitTest,
                         ::testing::ValuesIn(sluice::testing::golden_model_names()));

// A model as a store in which every matrix can be computed with as it is packed.
class PackedStore {
 protected:
  explicit PackedStore(const std::string& name) : path_(scratch_.file(name + ".sluice")) {
    store::PackOptions options;
    options.keep_columns = true;
    const fs::path model = kModels / name;
    store::pack(model, path_, model::pack_plan(*store::open_checkpoint(model)), options);
  }
  const sluice::testing::ScratchDirectory scratch_;
  const std::string path_;
};

class PackedSlots : private PackedStore, public DeviceUnitTest {
 protected:
  PackedSlots() : PackedStore(GetParam()), DeviceUnitTest(PackedStore::path_) {}
};

// Slots too small for words, and the host's bits: those of words, and those of packed experts.
TEST_P(PackedSlots, HaveTheHostsBits) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  ASSERT_TRUE(facts_of(*checkpoint_, model_).packable);
  std::uint64_t copies = 0;
  int failed = 0;
  for (const Math math : {Math::kF32, Math::kAuto}) {
    const std::vector<float> host = run(2, math, nullptr);
    for (const DeviceSetup& setup :
         {DeviceSetup{.share = 0.5, .slots = 3, .packed = true},
          DeviceSetup{.share = 1, .slots = 0, .threads = 2, .packed = true},
          DeviceSetup{.share = 0.7, .slots = 64, .staging = 5, .prefetch = "raw", .packed = true},
          DeviceSetup{.share = 1, .slots = 3, .staging = 4, .faults = 0.05, .packed = true}}) {
      SCOPED_TRACE(std::string(math == Math::kF32 ? "f32" : "auto") + ", slots " +
                   std::to_string(setup.slots) + (setup.faults > 0 ? ", faults" : ""));
      DeviceSetup seeded = setup;
      seeded.seed = seed;
      DeviceFor device(seeded);
      EXPECT_EQ(run(2, math, &device, setup.prefetch.empty() ? "none" : setup.prefetch), host);
      copies += device.counters.loads + device.counters.streamed;
      failed += device.failed_steps;
    }
  }
  EXPECT_GT(copies, 0u);
  EXPECT_GT(failed, 0);
}

INSTANTIATE_TEST_SUITE_P(SomeModels, PackedSlots,
                         ::testing::Values("qwen2_moe_b", "mixtral_a", "deepseek_v2_a", "olmoe_b"));

}  // namespace
}  // namespace sluice::engine
