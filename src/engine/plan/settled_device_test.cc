#include "engine/plan/settled_device.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/error.h"
#include "base/machine/cpu.h"
#include "engine/plan/device_choice.h"
#include "engine/plan/engine_plan.h"
#include "kernels/context.h"

namespace sluice::engine {
namespace {

const ModelFacts kModel{.path = "model", .has_experts = true, .experts = 8, .top_k = 2};

device::FoundDevice a_gpu() { return {.spec = device::CudaSpec{}}; }
device::FoundDevice none() { return {.why = "no GPU"}; }
device::FoundDevice nobody_may_ask() {
  ADD_FAILURE() << "the driver was asked";
  return {};
}

// `auto`, on a machine with a GPU whose CPU rounds nothing.
EngineOptions found(const std::function<void(EngineOptions&)>& change = {}) {
  EngineOptions options;
  options.device = "auto";
  options.isa = "scalar";
  if (change) change(options);
  settle_device(options, a_gpu);
  return options;
}

TEST(SettledDevice, AutoIsTheGpuThatIsThere) {
  const EngineOptions options = found();
  EXPECT_EQ(options.device, "cuda:0");
  EXPECT_TRUE(options.device_is_found);
  EXPECT_TRUE(options.has_device());
}

TEST(SettledDevice, AutoWithoutAGpuIsNoneAndSaysWhy) {
  EngineOptions options;
  options.device = "auto";
  settle_device(options, none);
  EXPECT_FALSE(options.has_device());
  EXPECT_EQ(options.device_lack, "no GPU");
  const EnginePlan plan = resolve(options, kModel);
  EXPECT_FALSE(plan.device);
  EXPECT_EQ(plan.no_device, "");  // nothing was left out
  options.device_memory = kGiB;
  try {
    resolve(options, kModel);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("--device-memory: there is no device"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("found none: no GPU"), std::string::npos) << error.what();
  }
}

TEST(SettledDevice, NobodyLooksForADeviceThatIsNamed) {
  for (const char* const device : {"", "none", "emulated", "cuda:1"}) {
    EngineOptions options;
    options.device = device;
    settle_device(options, nobody_may_ask);
    EXPECT_EQ(options.device, device);
    EXPECT_FALSE(options.device_is_found);
  }
  EngineOptions options;
  options.device = "auto";
  options.preset = "zipmoe";  // is of the host alone
  settle_device(options, nobody_may_ask);
  EXPECT_EQ(options.device, "none");
  EXPECT_NE(options.device_lack.find("zipmoe"), std::string::npos);
}

TEST(SettledDevice, APresetForADeviceTakesIt) {
  const EngineOptions options = found([](EngineOptions& o) { o.preset = "gpu-lru"; });
  EXPECT_TRUE(options.has_device());
  EXPECT_EQ(resolve(options, kModel).policies.preset_name(), "gpu-lru");
}

TEST(SettledDevice, WhatIsFoundHasAPlanWithoutIt) {
  const EnginePlan plan = resolve(found(), kModel);
  ASSERT_TRUE(plan.device);
  EXPECT_EQ(device::to_text(plan.device->spec), "cuda:0");
  EXPECT_EQ(plan.device->dense_on, DenseOn::kAuto);
  EXPECT_EQ(plan.no_device, "");
  ASSERT_NE(plan.without_device, nullptr);
  EXPECT_FALSE(plan.without_device->device);
  EXPECT_EQ(plan.without_device->policies.device_cache, nullptr);
}

TEST(SettledDevice, WhatDoesNotGoWithTheRestIsLeftOutAndSaysWhy) {
  ModelFacts blocks = kModel, dense = kModel, lacking = kModel;
  blocks.blocks = true;
  dense.has_experts = false;
  lacking.gpus_lack.formats = "q5_k, iq4_xs";
  const auto int8 = [](EngineOptions& o) { o.activations = kernels::ActivationForm::kInt8; };
  const EnginePlan coded = resolve(found(int8), blocks);
  EXPECT_FALSE(coded.device);
  EXPECT_NE(coded.no_device.find("fp32 activations alone"), std::string::npos) << coded.no_device;
  EXPECT_EQ(coded.activations, kernels::ActivationForm::kInt8);
  EXPECT_FALSE(resolve(found(), dense).device);
  const EnginePlan other = resolve(found(), lacking);
  EXPECT_FALSE(other.device);
  EXPECT_EQ(other.no_device, "a GPU has no kernels for experts in q5_k, iq4_xs");
  // Who says something of a device means it.
  EXPECT_THROW(resolve(found([&](EngineOptions& o) { int8(o), o.device_slots = 3; }), blocks), Error);
  EXPECT_THROW(resolve(found([&](EngineOptions& o) { int8(o), o.placement = "greedy"; }), blocks), Error);
}

EngineOptions named(const std::function<void(EngineOptions&)>& change = {}) {
  EngineOptions options;
  options.device = "cuda";
  options.isa = "scalar";
  if (change) change(options);
  return options;
}

std::string refused(const EngineOptions& options, const ModelFacts& facts) {
  try {
    resolve(options, facts);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "accepted";
}

// The same bits wherever experts are computed.
TEST(SettledDevice, AnOrderOfSumsThatNoGpuHasIsRefused) {
  int exact = 0;
  for (const Isa isa : available_isas()) {
    const auto with = [&](Math math, const char* device) {
      return refused(
          named([&](EngineOptions& o) { o.isa = isa_name(isa), o.math = math, o.device = device; }), kModel);
    };
    const bool rounds = kernels::rounded_products(isa) != kernels::Products::kExact;
    exact += rounds ? 0 : 1;
    const std::string automatic = with(Math::kAuto, "cuda");
    EXPECT_EQ(automatic == "accepted", !rounds) << isa_name(isa) << ": " << automatic;
    if (rounds) {
      EXPECT_NE(automatic.find("give --math f32"), std::string::npos) << automatic;
    }
    EXPECT_EQ(with(Math::kF32, "cuda"), "accepted");
    EXPECT_EQ(with(Math::kAuto, "emulated"), "accepted");
  }
  EXPECT_GT(exact, 0);
}

TEST(SettledDevice, ActivationsInCodesAreRefusedForBlocks) {
  ModelFacts blocks = kModel;
  blocks.blocks = true;
  const auto int8 = [](EngineOptions& o) { o.activations = kernels::ActivationForm::kInt8; };
  const std::string text = refused(named(int8), blocks);
  EXPECT_NE(text.find("--activations"), std::string::npos) << text;
  EXPECT_NE(text.find("fp32"), std::string::npos) << text;
  EXPECT_EQ(refused(named(), blocks), "accepted");
  EXPECT_EQ(resolve(named(), blocks).activations, kernels::ActivationForm::kF32);
}

TEST(SettledDevice, ExpertsThatNoKernelReadsAreLeftToTheHost) {
  ModelFacts lacking = kModel;
  lacking.gpus_lack.formats = "q5_k";
  const EnginePlan plan =
      resolve(named([](EngineOptions& o) { o.placement = "device", o.device_slots = 3; }), lacking);
  ASSERT_TRUE(plan.device);
  EXPECT_EQ(plan.device->experts_lack.formats, "q5_k");
  EXPECT_TRUE(plan.device->experts_lack.all());
  EXPECT_EQ(plan.device->slots, 0u);
  EXPECT_EQ(plan.device->prefetch_size, 0u);
  EXPECT_EQ(plan.policies.placement->name, "cpu");
  EXPECT_EQ(plan.policies.tiers, experts::Tiers::kInclusive);
  EXPECT_EQ(plan.without_device, nullptr);
  // A device that is played reads everything.
  const EnginePlan played = resolve(named([](EngineOptions& o) { o.device = "emulated"; }), lacking);
  EXPECT_FALSE(played.device->experts_lack.any());
}

TEST(SettledDevice, LayersWithoutKernelsAloneAreLeftToTheHost) {
  ModelFacts lacking = kModel;
  lacking.gpus_lack = {"q5_k", {1, 0, 1, 0, 0}};
  EXPECT_FALSE(lacking.gpus_lack.all());
  EXPECT_EQ(lacking.gpus_lack.layers_there(5), 3u);
  EXPECT_TRUE(lacking.gpus_lack.leaves_out(2));
  EXPECT_FALSE(lacking.gpus_lack.leaves_out(1));
  const EnginePlan plan =
      resolve(named([](EngineOptions& o) { o.placement = "device", o.device_slots = 3; }), lacking);
  EXPECT_EQ(plan.device->experts_lack.layers, lacking.gpus_lack.layers);
  EXPECT_EQ(plan.device->slots, 3u);
  EXPECT_EQ(plan.policies.placement->name, "device");
  // A device that was found is taken, too.
  EXPECT_TRUE(resolve(found(), lacking).device);
}

TEST(SettledDevice, TheLinkOfAGpuIsLimitedAsItIsAskedFor) {
  const EnginePlan gpu = resolve(named([](EngineOptions& o) { o.link_bytes_per_s = 25e9; }), kModel);
  ASSERT_TRUE(gpu.device->link_limit);
  EXPECT_FALSE(gpu.device->link_limit->without);  // nobody has measured it
  EXPECT_EQ(gpu.device->spec.link_limit(), 25e9);
  const auto played = [&](double rate) {
    return resolve(named([&](EngineOptions& o) {
                     o.device = "emulated:link=2GB/s,dilate=2";
                     o.link_bytes_per_s = rate;
                   }),
                   kModel);
  };
  EXPECT_FALSE(played(25e9).device->link_limit);
  EXPECT_EQ(played(1e9).device->link_limit.value().without, 1e9);
  EXPECT_EQ(played(1e9).device->spec.link_limit(), .5e9);
}

TEST(SettledDevice, TwoOfManyCpusAreLeftToAGpu) {
  EngineOptions options;
  options.math = Math::kF32;
  EXPECT_EQ(compute_threads(resolve(options, kModel), 16), 16u);
  options.device = "emulated";
  EXPECT_EQ(compute_threads(resolve(options, kModel), 16), 16u);
  options.device = "cuda:0";
  EXPECT_EQ(compute_threads(resolve(options, kModel), 16), 14u);
  EXPECT_EQ(compute_threads(resolve(options, kModel), 8), 6u);
  EXPECT_EQ(compute_threads(resolve(options, kModel), 7), 7u);
  options.threads = 16;
  EXPECT_EQ(compute_threads(resolve(options, kModel), 8), 16u);
}

TEST(SettledDevice, MathOfItsOwnNeedsAFixedPlacement) {
  EXPECT_EQ(parse_device_math("same"), DeviceMath::kSame);
  EXPECT_EQ(parse_device_math("fast"), DeviceMath::kFast);
  EXPECT_THROW(parse_device_math("quick"), Error);
  const auto fast = [](const std::string& device, std::string_view placement) {
    EngineOptions options;
    options.math = Math::kF32;
    options.device = device;
    options.device_math = DeviceMath::kFast;
    if (!placement.empty()) options.placement = placement;
    return options;
  };
  EXPECT_NE(
      refused(fast("emulated", "device"), kModel).find("an emulated device computes with the functions"),
      std::string::npos);
  for (const experts::PlacementPolicy& placement : experts::placement_policies()) {
    const EngineOptions options = fast("cuda:0", placement.name);
    const bool is_fixed =
        placement.name == "cpu" || placement.name == "device" || placement.name == "layer-split";
    EXPECT_EQ(placement.timed, !is_fixed) << placement.name;
    if (is_fixed) {
      EXPECT_EQ(resolve(options, kModel).device->math, DeviceMath::kFast) << placement.name;
      continue;
    }
    EXPECT_NE(refused(options, kModel).find("measured times say"), std::string::npos) << placement.name;
    EngineOptions allowed = options;
    allowed.allow_timed_bits = true;
    EXPECT_EQ(resolve(allowed, kModel).device->math, DeviceMath::kFast);
  }
  EXPECT_NE(refused(fast("cuda:0", ""), kModel).find("measured times say"), std::string::npos);
  EngineOptions prompts = fast("cuda:0", "device");
  prompts.placement_prefill = "greedy";
  EXPECT_NE(refused(prompts, kModel).find("the placement greedy"), std::string::npos);
  EngineOptions alone;
  alone.device_math = DeviceMath::kSame;
  EXPECT_NE(refused(alone, kModel).find("--device-math: there is no device"), std::string::npos);
}

}  // namespace
}  // namespace sluice::engine
