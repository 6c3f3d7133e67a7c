// Dense weights, attention and the key/value cache on a device: wherever they are, and whatever else is
// decided, logits have the bits of the host alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json/json.h"
#include "device/accountant.h"
#include "engine/engine.h"
#include "engine/engine_device.h"
#include "engine/engine_hooks.h"
#include "engine/run_report.h"
#include "engine/shared_steps_testing.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine::dense_on_test {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = sluice::testing::kGoldenModels, kGoldens = sluice::testing::kGoldens;
const std::string kUnpaced = "emulated:link=inf,compute=inf,latency=0us";

struct Case {
  std::string placement = "device";
  std::uint32_t slots = 1;
  std::size_t sequences = 1;
  Math math = Math::kF32;
  std::string prefetch = "none";
  unsigned threads = 1;  // threads of the device
  std::string text() const {
    return placement + ", " + std::to_string(slots) + " slots, " + std::to_string(sequences) +
           " sequences, " + prefetch + (math == Math::kF32 ? ", f32" : "");
  }
};

class DenseOnTest : public ::testing::TestWithParam<std::string> {
 protected:
  DenseOnTest()
      : checkpoint_(store::open_checkpoint(kModels / GetParam())),
        model_(model::describe_model(*checkpoint_)),
        golden_(read_json_file(kGoldens / (GetParam() + ".golden") / "golden.json")) {}

  EngineOptions options_of(const Case& one, bool device) const {
    EngineOptions options = engine_options(one.sequences, one.math);
    options.prefetch = one.prefetch;
    if (!device) return options;
    options.device = kUnpaced + ",threads=" + std::to_string(one.threads);
    options.device_slots = std::min(one.slots, model_.config.moe.experts);
    options.placement = one.placement;
    options.dense_on = DenseOn::kDevice;
    return options;
  }

  // A step that fails is computed again.
  std::vector<float> run(Engine& engine, std::size_t sequences, int* failed = nullptr,
                         std::atomic<bool>* fails = nullptr) const {
    SharedSteps steps{.sequences = sequences};
    if (fails != nullptr) steps.prefilled = [&] { *fails = true; };
    if (failed != nullptr)
      steps.failed = [&](const Error& error) {
        if (error.kind() != ErrorKind::kIo) throw error;
        ++*failed;
      };
    std::vector<float> logits = logits_of(engine, golden_, steps);
    if (fails != nullptr) *fails = false;
    return logits;
  }

  std::vector<float> host(const Case& one) const {
    Engine engine(*checkpoint_, model_, resolve(options_of(one, false), *checkpoint_, model_), one.sequences);
    return run(engine, one.sequences);
  }

  std::unique_ptr<store::Checkpoint> checkpoint_;
  model::Model model_;
  const Json golden_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && !a.empty() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_P(DenseOnTest, LogitsAreThoseOfTheHost) {
  for (const Case& one :
       {Case{"device", 0}, Case{"cpu", 0, 3}, Case{"greedy", 1, 3, Math::kAuto, "none", 2},
        Case{"layer-split", 2, 1, Math::kAuto}, Case{"device", 1000, 3, Math::kF32, "stream"},
        Case{"ratio-prefix", 1, 1, Math::kF32, "raw"}}) {
    SCOPED_TRACE(one.text());
    Engine engine(*checkpoint_, model_, resolve(options_of(one, true), *checkpoint_, model_), one.sequences);
    const RunReport report = engine.report();
    ASSERT_NE(report.device, nullptr);
    EXPECT_TRUE(report.device->has_dense());
    EXPECT_GT(report.device->accountant().used(device::Account::kDense), 0u);
    EXPECT_GT(report.device->accountant().used(device::Account::kKv), 0u);
    EXPECT_EQ(report.accountant.used(device::Account::kKv), 0u);
    EXPECT_TRUE(same_bits(run(engine, one.sequences), host(one)));
    EXPECT_LE(report.device->accountant().peak(), report.device->memory().budget);
  }
}

// Copies that fail end their step; its sequences are as before, so the step can be computed again.
TEST_P(DenseOnTest, AFailedCopyFailsItsStepAlone) {
  const Case one{"greedy", 1, 3};
  std::atomic<bool> fails = false;
  std::atomic<int> copies = 0;
  const auto fault = [&](std::uint64_t, Bytes) {
    if (!fails) return device::Fault::kNone;
    const int copy = copies++;  // in the end steps must succeed
    return copy < 60 && copy % 13 == 5 ? device::Fault::kCopyFails : device::Fault::kNone;
  };
  Engine engine(*checkpoint_, model_, resolve(options_of(one, true), *checkpoint_, model_), one.sequences,
                {.fault = fault});
  int failed = 0;
  EXPECT_TRUE(same_bits(run(engine, one.sequences, &failed, &fails), host(one)));
  EXPECT_GT(failed, 0);
}

TEST_P(DenseOnTest, TooLittleMemoryIsRefusedWithTheLeast) {
  EngineOptions options = options_of({}, true);
  options.device_slots.reset();
  const auto make = [&](Bytes memory) {
    options.device_memory = memory;
    return std::make_unique<Engine>(*checkpoint_, model_, resolve(options, *checkpoint_, model_));
  };
  const Bytes least = make(64 * kMiB)->report().device->memory().minimum;
  EXPECT_NO_THROW(make(least));
  try {
    make(least - 256);
    FAIL() << "it holds less than the least";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBudget);
    EXPECT_NE(std::string(error.what()).find("dense "), std::string::npos) << error.what();
  }
  options.dense_on = DenseOn::kAuto;
  EXPECT_TRUE(make(64 * kMiB)->report().device->has_dense());
}

INSTANTIATE_TEST_SUITE_P(AllModels, DenseOnTest, ::testing::ValuesIn(sluice::testing::golden_model_names()));

}  // namespace
}  // namespace sluice::engine::dense_on_test
