// An engine with a GPU, of which everything but the hardware is real: calls of CUDA are played, and its
// kernels run in lockstep on this CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/error_of.h"
#include "base/json/json.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/fake_cuda.h"
#include "engine/device_budget.h"
#include "engine/device_check.h"
#include "engine/engine.h"
#include "engine/engine_device.h"
#include "engine/engine_hooks.h"
#include "engine/run_report.h"
#include "engine/shared_steps_testing.h"
#include "kernels/gpu/gpu_kernels.h"
#include "kernels/ops/around_kernels.h"
#include "kernels/ops/wrong_kernels.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine::gpu_engine_test {
namespace {

namespace fs = std::filesystem;
using device::testing::FakeCuda;
using sluice::testing::error_of;
using ::testing::HasSubstr;

const fs::path kModels = sluice::testing::kGoldenModels, kGoldens = sluice::testing::kGoldens;

// Launches of experts, and which of them is refused, counted from 1; 0: none is.
struct ExpertLaunches {
  std::atomic<int> seen = 0, refused = 0;
};

// Operations take their turn in the GPU's queue, and are over when the call returns.
class InTurn final : public kernels::AroundKernels<InTurn> {
 public:
  InTurn(std::unique_ptr<kernels::UnitKernels> inner, ExpertLaunches& launches)
      : AroundKernels(std::move(inner)), launches_(launches) {}
  template <class Op>
  void around(const device::Access& access, const Op& op) {
    if (std::is_same_v<Op, std::span<const kernels::op::Mlp>> && ++launches_.seen == launches_.refused)
      throw Error(ErrorKind::kIo, "the launch was refused");
    std::promise<void> done;
    FakeCuda::launch(access, [&] {
      try {
        inner().run(access, op);
        done.set_value();
      } catch (...) {
        done.set_exception(std::current_exception());
      }
    });
    done.get_future().get();
  }

 private:
  ExpertLaunches& launches_;
};

class GpuEngineTest : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr Bytes kContext = 3 * kMiB;

  GpuEngineTest()
      : checkpoint_(store::open_checkpoint(kModels / GetParam())),
        model_(model::describe_model(*checkpoint_)),
        golden_(read_json_file(kGoldens / (GetParam() + ".golden") / "golden.json")) {}

  EngineOptions options(const std::string& device = "cuda:0") const {
    EngineOptions options = engine_options(2, Math::kF32);
    options.device = device;
    if (device == "none") return options;
    options.device_slots = std::min(1u, model_.config.moe.experts);
    options.placement = "device";
    return options;
  }
  EngineHooks hooks() {
    EngineHooks hooks;
    hooks.devices.facts = [this](const device::DeviceSpec&) {
      if (fails_) throw Error(ErrorKind::kIo, "the GPU does not answer").in("cuda:0");
      return device::DeviceFacts{"Fake GPU, compute 9.0", kContext, 2 * kGiB};
    };
    hooks.devices.make = [this](const device::DeviceSpec& spec, device::DeviceOptions options) {
      arena_ = options.memory;
      device::CudaOptions cuda;
      cuda.index = static_cast<int>(spec.cuda()->index);
      cuda.memory = options.memory;
      cuda.host = options.host;
      cuda.api = &cuda_;
      return device::make_cuda_device(std::move(cuda));
    };
    hooks.kernels = [this](device::Device&) -> std::unique_ptr<kernels::UnitKernels> {
      auto kernels = std::make_unique<InTurn>(kernels::make_lockstep_kernels({.room = kMiB}), launches_);
      if (!wrong_) return kernels;
      return std::make_unique<kernels::WrongKernels>(std::move(kernels), *wrong_, nullptr, throws_);
    };
    return hooks;
  }
  std::unique_ptr<Engine> engine(const EngineOptions& options) {
    return std::make_unique<Engine>(*checkpoint_, model_, resolve(options, *checkpoint_, model_), 2, hooks());
  }
  std::vector<float> logits(Engine& engine) const { return logits_of(engine, golden_, {.sequences = 2}); }

  std::unique_ptr<store::Checkpoint> checkpoint_;
  model::Model model_;
  const Json golden_;
  FakeCuda cuda_{512 * kMiB};
  bool fails_ = false;
  std::optional<kernels::Operation> wrong_ = {};  // an operation of the GPU's kernels
  bool throws_ = false;
  Bytes arena_ = 0;
  ExpertLaunches launches_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && !a.empty() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_P(GpuEngineTest, LogitsAreThoseOfTheHost) {
  const std::vector<float> host = logits(*engine(options("none")));
  for (const DenseOn dense_on : {DenseOn::kHost, DenseOn::kDevice}) {
    EngineOptions both = options();
    both.dense_on = dense_on;
    const std::unique_ptr<Engine> there = engine(both);
    const RunReport report = there->report();
    ASSERT_NE(report.device, nullptr);
    EXPECT_EQ(report.device->has_dense(), dense_on == DenseOn::kDevice);
    EXPECT_TRUE(same_bits(logits(*there), host));
    EXPECT_GT(cuda_.locked(), 0u);  // what the host copies from
  }
  EXPECT_EQ(cuda_.left(), "");
}

// The GPU shares the host's memory: what does not stay there is read where the host has it.
TEST_P(GpuEngineTest, WhatPassesIsReadInPlace) {
  const std::vector<float> host = logits(*engine(options("none")));
  for (const DenseOn dense_on : {DenseOn::kHost, DenseOn::kDevice}) {
    for (const unsigned slots : {0u, 1u}) {
      EngineOptions both = options();
      both.dense_on = dense_on;
      both.device_slots = slots;
      both.prefetch = "none";  // what is copied ahead depends on time
      fetch::DeviceStoreCounters copied, read;
      Bytes copied_bytes = 0, read_bytes = 0;
      std::optional<Profile> profile;
      for (const bool shares : {true, false}) {
        SCOPED_TRACE(::testing::Message() << slots << " slots, " << (shares ? "shared" : "apart"));
        cuda_.share_memory(shares);
        both.profile = profile;  // so that both decide alike
        const std::unique_ptr<Engine> there = engine(both);
        if (shares) profile = there->report().profile;
        EXPECT_TRUE(same_bits(logits(*there), host));
        const EngineDevice& device = *there->report().device;
        (shares ? read : copied) = device.copies();
        (shares ? read_bytes : copied_bytes) = device.link_bytes(device::Traffic::kDemand);
      }
      EXPECT_TRUE(profile->device->in_place);
      EXPECT_GT(read.in_place, 0u);
      EXPECT_EQ(read.streamed, 0u);
      EXPECT_EQ(read.in_place, copied.streamed);
      EXPECT_EQ(read.loads, copied.loads);
      EXPECT_EQ(copied.in_place, 0u);
      EXPECT_GT(copied_bytes, read_bytes);
      const bool others_cross = dense_on == DenseOn::kHost || GetParam() == "gpt_oss_a";  // inputs, biases
      if (slots > 0 || others_cross) continue;
      // As many bytes as where the host computes all experts.
      both.placement = "cpu";
      const std::unique_ptr<Engine> no_experts = engine(both);
      logits(*no_experts);
      EXPECT_EQ(read_bytes, no_experts->report().device->link_bytes(device::Traffic::kDemand));
    }
  }
  EXPECT_EQ(cuda_.left(), "");
}

// An operation that fails ends its step alone, whatever it read.
TEST_P(GpuEngineTest, AStepThatFailsLetsGoOfWhatItReadInPlace) {
  cuda_.share_memory(true);
  const std::vector<float> host = logits(*engine(options("none")));
  EngineOptions none_stays = options();
  none_stays.device_slots = 0;
  const std::unique_ptr<Engine> there = engine(none_stays);
  int failed = 0;
  const std::vector<float> found = logits_of(*there, golden_,
                                             {.sequences = 2,
                                              .prefilled = [&] { launches_.refused = launches_.seen + 3; },
                                              .failed = [&](const Error&) { ++failed; }});
  EXPECT_EQ(failed, 1);
  EXPECT_TRUE(same_bits(found, host));
  EXPECT_GT(there->report().device->copies().in_place, 0u);
}

TEST_P(GpuEngineTest, TheContextIsPartOfItsBudget) {
  const std::unique_ptr<Engine> there = engine(options());
  const EngineDevice& device = *there->report().device;
  EXPECT_EQ(device.memory().context, kContext);
  EXPECT_EQ(arena_ + kContext, device.memory().budget);
  EXPECT_EQ(device.peak(), device.accountant().peak() + kContext);
  EXPECT_LE(device.peak(), device.memory().budget);
  EXPECT_THAT(device.name(), HasSubstr("cuda:0, Fake GPU, compute 9.0"));
  EXPECT_TRUE(device.has_valid_times());
  EXPECT_EQ(device.overrun_share(), 0);
  const Profile& profile = there->report().profile.value();
  EXPECT_EQ(profile.device.value().device, device.name());
  EXPECT_TRUE(profile.device->computes_experts());
}

TEST_P(GpuEngineTest, AProfileOfAnotherGpuIsRefused) {
  Profile profile = engine(options())->report().profile.value();
  EngineOptions again = options();
  again.profile = profile;
  EXPECT_EQ(engine(again)->report().profile.value().device, profile.device);
  profile.device->device = "cuda:0, Other GPU, compute 8.6";
  again.profile = profile;
  EXPECT_THAT(error_of([&] { engine(again); }), HasSubstr("measured with another device"));
}

TEST_P(GpuEngineTest, OneThatFailsAtTheStartIsAnErrorIfItWasNamed) {
  fails_ = true;
  EXPECT_THAT(error_of([&] { engine(options()); }), HasSubstr("the GPU does not answer"));
  EngineOptions found = options();
  found.device_slots.reset();
  found.placement = {};
  found.device_is_found = true;
  const std::unique_ptr<Engine> alone = engine(found);
  EXPECT_EQ(alone->report().device, nullptr);
  EXPECT_THAT(alone->plan().no_device, HasSubstr("the GPU does not answer"));
  EXPECT_TRUE(same_bits(logits(*alone), logits(*engine(options("none")))));
}

// What a GPU computes otherwise than the host is found when it is opened, and left to the host.
TEST_P(GpuEngineTest, WhatItDoesNotComputeAsTheHostIsLeftToTheHost) {
  using kernels::Operation;
  struct Case {
    Operation wrong;
    bool throws, dense_there, experts_there;
    const char* named;
  };
  const std::vector<float> host = logits(*engine(options("none")));
  for (const Case& one : {Case{Operation::kAttention, false, false, true, "attention over"},
                          Case{Operation::kRmsNorm, true, false, true, "the launch was refused"},
                          Case{Operation::kGatherRows, false, true, false, "gathering rows of experts"},
                          Case{Operation::kMlp, false, false, false, "experts in "}}) {
    SCOPED_TRACE(one.named);
    wrong_ = one.wrong;
    throws_ = one.throws;
    EngineOptions both = options();
    both.dense_on = DenseOn::kDevice;
    const std::unique_ptr<Engine> there = engine(both);
    const RunReport report = there->report();
    ASSERT_NE(report.device, nullptr);
    EXPECT_EQ(report.device->has_dense(), one.dense_there);
    EXPECT_EQ(!report.device->takes_none(), one.experts_there);
    EXPECT_THAT(device_warning(there->plan()), HasSubstr(one.named));
    if (!one.dense_there) {
      EXPECT_THAT(report.dense_place.why, HasSubstr("as the host does"));
    }
    if (one.wrong != Operation::kAttention) continue;
    wrong_.reset();  // what was found is not used, so it may as well be wrong no more
    EXPECT_TRUE(same_bits(logits(*there), host));
  }
}

TEST_P(GpuEngineTest, OneThatWasFoundAndIsWrongIsNotUsed) {
  wrong_ = kernels::Operation::kRope;
  EngineOptions found = options();
  found.device_slots.reset();
  found.placement = {};
  found.device_is_found = true;
  const std::unique_ptr<Engine> alone = engine(found);
  EXPECT_EQ(alone->report().device, nullptr);
  EXPECT_THAT(alone->plan().no_device, HasSubstr("rotary positions"));
  EXPECT_THAT(device_warning(alone->plan()), HasSubstr("the host computes everything"));
}

TEST_P(GpuEngineTest, ExpertsWithoutKernelsAreLeftToTheHost) {
  ModelFacts facts = facts_of(*checkpoint_, model_);
  facts.gpus_lack.formats = "q5_k";
  const std::vector<float> host = logits(*engine(options("none")));
  EngineOptions both = options();
  both.dense_on = DenseOn::kDevice;
  Engine there(*checkpoint_, model_, resolve(both, facts), 2, hooks());
  const RunReport report = there.report();
  EXPECT_TRUE(report.device->takes_none());
  EXPECT_EQ(report.device->memory().slots, 0u);
  EXPECT_FALSE(report.profile.value().device.value().computes_experts());
  EXPECT_TRUE(same_bits(logits(there), host));
  EXPECT_EQ(report.device->copies().loads + report.device->copies().streamed, 0u);
  const Json json = to_json(*report.profile->device);
  EXPECT_EQ(device_profile_of(JsonObject(json, "device")), *report.profile->device);
}

INSTANTIATE_TEST_SUITE_P(Models, GpuEngineTest,
                         ::testing::Values("qwen2_moe_a", "deepseek_v2_b", "gpt_oss_a"));

TEST(UsualDeviceMemory, LeavesAMarginOfWhatIsFree) {
  const auto usual = [](Bytes free) { return usual_device_memory({"GPU", 0, free}); };
  EXPECT_EQ(usual(4 * kGiB), 4 * kGiB - 512 * kMiB);
  EXPECT_EQ(usual(100 * kGiB), 95 * kGiB);
  EXPECT_THAT(error_of([&] { usual(512 * kMiB); }), HasSubstr("--device-memory"));
  EXPECT_GT(usual_device_memory({}), 0u);
  EXPECT_LE(usual_device_memory({}), kGiB);
}

}  // namespace
}  // namespace sluice::engine::gpu_engine_test
