// Whole models on a device that computes with the kernels of a GPU, in lockstep: logits have the bits of the
// host alone, wherever the dense part and the experts are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "engine/engine.h"
#include "engine/engine_device.h"
#include "engine/engine_hooks.h"
#include "engine/run_report.h"
#include "engine/shared_steps_testing.h"
#include "kernels/gpu/gpu_kernels.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine {
namespace {

class LockstepKernelsTest : public ::testing::TestWithParam<std::string> {
 protected:
  LockstepKernelsTest()
      : checkpoint_(store::open_checkpoint(sluice::testing::kGoldenModels + "/" + GetParam())),
        model_(model::describe_model(*checkpoint_)),
        golden_(read_json_file(sluice::testing::kGoldens + "/" + GetParam() + ".golden/golden.json")) {}

  EngineOptions options(std::size_t sequences, DType kv) const {
    EngineOptions options = engine_options(sequences, Math::kF32);
    options.kv = kv;
    return options;
  }

  std::vector<float> host(std::size_t sequences, DType kv) const {
    Engine engine(*checkpoint_, model_, resolve(options(sequences, kv), *checkpoint_, model_), sequences);
    return logits_of(engine, golden_, {.sequences = sequences});
  }

  std::unique_ptr<store::Checkpoint> checkpoint_;
  const model::Model model_;
  const Json golden_;
};

TEST_P(LockstepKernelsTest, LogitsAreThoseOfTheHost) {
  struct Case {
    DenseOn dense_on;
    const char* placement;
    std::uint32_t slots;
    std::size_t sequences;
    DType kv = DType::kBF16;
  };
  for (const Case& one : {Case{DenseOn::kHost, "device", 2, 2}, Case{DenseOn::kDevice, "cpu", 0, 2},
                          Case{DenseOn::kDevice, "device", 1000, 1, DType::kI8},
                          Case{DenseOn::kDevice, "greedy", 1, 1, DType::kF32}}) {
    SCOPED_TRACE(::testing::Message()
                 << one.placement << ", " << one.slots << " slots, " << one.sequences << " sequences"
                 << (one.dense_on == DenseOn::kDevice ? ", dense part there" : ""));
    EngineOptions there = options(one.sequences, one.kv);
    there.device = "emulated:link=inf,compute=inf,latency=0us";
    there.device_slots = std::min(one.slots, model_.config.moe.experts);
    there.placement = one.placement;
    there.dense_on = one.dense_on;
    EngineHooks hooks;
    int made = 0;
    hooks.kernels = [&](device::Device&) {
      ++made;
      return kernels::make_lockstep_kernels({.room = kMiB});
    };
    Engine engine(*checkpoint_, model_, resolve(there, *checkpoint_, model_), one.sequences, hooks);
    const std::vector<float> expected = host(one.sequences, one.kv),
                             found = logits_of(engine, golden_, {.sequences = one.sequences});
    ASSERT_EQ(found.size(), expected.size());
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0);
    EXPECT_EQ(engine.report().device->has_dense(), one.dense_on == DenseOn::kDevice);
    EXPECT_EQ(made, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(AllModels, LockstepKernelsTest,
                         ::testing::ValuesIn(sluice::testing::golden_model_names()));

}  // namespace
}  // namespace sluice::engine
