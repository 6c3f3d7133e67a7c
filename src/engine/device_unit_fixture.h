// An engine with a device beside the host, whose placement is drawn, for tests of bits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
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
#include "engine/engine_hooks.h"
#include "engine/forward/unit/device_unit.h"
#include "engine/forward/unit/make_unit_kernels.h"
#include "engine/plan/unit_parts.h"
#include "engine/run_report.h"
#include "engine/shared_steps_testing.h"
#include "experts/cache/cache_policies.h"
#include "experts/cache/residency.h"
#include "experts/core/equal_sizes.h"
#include "experts/placement/placement.h"
#include "experts/prefetch/prefetch.h"
#include "experts/registry.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "model/pack_plan.h"
#include "store/pack/pack.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine {

namespace fs = std::filesystem;

inline const fs::path kModels = sluice::testing::kGoldenModels;
inline const fs::path kGoldens = sluice::testing::kGoldens;

// Each expert goes where a coin says; `share` of them to the device.
class RandomPlacement final : public experts::Placement {
 public:
  RandomPlacement(std::uint64_t seed, double share) : random_(seed), share_(share) {}
  void assign(const experts::Demand& demand, const experts::PlacementCosts&,
              experts::Assignment& out) override {
    out.unit.clear();
    for (std::size_t i = 0; i < demand.experts.size(); ++i)
      out.unit.push_back(coin_(random_) < share_ ? experts::Unit::kDevice : experts::Unit::kHost);
  }
  std::string name() const override { return "random"; }

 private:
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> coin_{0, 1};
  const double share_;
};

struct DeviceSetup {
  double share = 0.5;       // the share of experts that are assigned to the device
  std::uint32_t slots = 0;  // on the device
  std::uint32_t staging = 2;
  unsigned threads = 1;
  Bytes memory = 256 * kMiB;  // the device's
  std::uint64_t seed = 1;
  std::string prefetch = {};  // to the device; empty: none
  std::uint32_t prefetch_size = 2;
  double faults = 0;    // the share of copies in decode steps that fail
  bool packed = false;  // slots, and what the host keeps
  experts::Parts slot_slices = experts::Part::kMsb | experts::Part::kLsb;
  experts::Tiers tiers = experts::Tiers::kInclusive;
  std::string cache = "lru", host_cache = {};      // empty: as `auto`
  std::optional<std::uint32_t> host_experts = {};  // that its cache holds, of all layers; empty: what fits
  std::function<std::unique_ptr<experts::Placement>()> placement =
      {};  // empty: by coins, of which `share` says
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
    return {
        .make_unit =
            [this](const UnitParts& parts) {
              auto unit = std::make_unique<DeviceUnit>(
                  *device_, kernels(parts), parts,
                  fetch::DeviceStoreOptions{setup_.slots, setup_.staging, setup_.packed, setup_.slot_slices});
              unit_ = unit.get();
              return unit;
            },
        .make_placement = [this]() -> std::unique_ptr<experts::Placement> {
          if (setup_.placement) return setup_.placement();
          return std::make_unique<RandomPlacement>(setup_.seed, setup_.share);
        },
        .make_residencies =
            [this](const experts::ExpertSizes&) {
              std::vector<std::unique_ptr<experts::Residency>> all;
              counted_.emplace(experts::ExpertBytes{.full = 1});  // each slot, however small its expert
              all.push_back(std::make_unique<experts::Residency>(
                  experts::make_cache(setup_.cache, {}), *counted_, setup_.slots, experts::Tier::kDevice));
              return all;
            },
        .costs = {.run = {.fixed = 1e-4}, .transfer = 1e-3},
        .make_prefetch = setup_.prefetch.empty()
                             ? std::function<std::unique_ptr<experts::Prefetch>()>()
                             : [this] { return experts::find_prefetch(setup_.prefetch).make({}); },
        .prefetch_size = setup_.prefetch_size,
        .tiers = setup_.tiers,
        .slot_slices = setup_.slot_slices};
  }
  // For one engine at a time.
  kernels::UnitKernels& kernels(const UnitParts& parts) {
    kernels_ = make_unit_kernels(device::EmulatedSpec(), *device_, parts, DeviceMath::kSame);
    return *kernels_;
  }
  // Sets what the host keeps of experts, which have this many bytes each.
  void set_host(Bytes expert, EngineOptions& options) const {
    if (setup_.packed) options.keep = Keep::kPacked;
    options.cache = setup_.host_cache;
    if (setup_.host_experts) options.cache_bytes = *setup_.host_experts * expert;
  }
  bool exclusive() const { return setup_.tiers == experts::Tiers::kExclusive; }
  bool prefetches() const { return !setup_.prefetch.empty(); }
  bool has_faults() const { return setup_.faults > 0; }
  bool brings_in() const { return setup_.cache.starts_with("workload"); }  // what the host may lack
  std::atomic<bool> fails = false;
  int failed_steps = 0;
  fetch::DeviceStoreCounters counters;  // when the engine was last looked at
  fetch::ReturnCounters returns;
  device::Device& device() { return *device_; }
  fetch::DeviceStore& store() { return unit_->store(); }

 private:
  const DeviceSetup setup_;
  std::optional<experts::EqualSizes> counted_;
  std::mutex fault_mutex_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<kernels::UnitKernels> kernels_;
  DeviceUnit* unit_ = nullptr;
};

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
    if (adjust_) adjust_(options);
    EngineHooks hooks;
    if (device != nullptr) hooks.second_unit = device->unit();
    if (device != nullptr) device->set_host(expert_bytes_, options);
    Engine engine(*checkpoint_, model_, resolve(options, *checkpoint_, model_), sequences, hooks);
    expert_bytes_ = engine.report().experts.facts().largest_resident;
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
      if (!device.has_faults() && !device.brings_in()) {
        EXPECT_EQ(counters.missing, 0u);
      }
      EXPECT_EQ(link[device::Traffic::kPrefetch].bytes, 0u);
    }
    EXPECT_LE(counters.useful + counters.late + counters.wasted, counters.prefetches);
    EXPECT_EQ(device.store().pins(), 0u);
    if (!device.has_faults()) {
      const std::uint64_t experts = counters.hits + counters.loads + counters.streamed;
      EXPECT_LE(device.device().computed().pieces, experts);  // some are computed together
      EXPECT_EQ(link[device::Traffic::kResult].copies, experts);
    }
    device.returns = device.store().returns();
    if (device.exclusive()) {
      EXPECT_LE(device.returns.complete, device.returns.begun);
    } else if (!device.brings_in()) {
      EXPECT_EQ(link[device::Traffic::kUpdate].bytes, 0u);
    }
    device::Accountant& accountant = device.device().memory().accountant();
    EXPECT_GT(accountant.used(device::Account::kActivations), 0u);
    EXPECT_LE(accountant.peak(), accountant.budget());
  }

  std::unique_ptr<store::Checkpoint> checkpoint_;
  const model::Model model_;
  const Json golden_;
  mutable Bytes expert_bytes_ = 0;              // those of the engine that ran last
  std::function<void(EngineOptions&)> adjust_;  // adjusts the options of every engine; null: nothing does
};

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

}  // namespace sluice::engine
