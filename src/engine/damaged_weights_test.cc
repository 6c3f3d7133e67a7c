// Weights that were written wrong but have correct checksums: the error of a step names their place, though
// the kernels that find them do not know it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/scratch_directory.h"
#include "engine/engine.h"
#include "engine/run_report.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "model/pack_plan.h"
#include "store/pack/testing.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine {
namespace {

using store::testing::Damage, store::testing::DamagedChunk;
using ::testing::HasSubstr;

const std::string kModel = sluice::testing::kGoldenModels + "/qwen2_moe_b";

class DamagedWeights : public ::testing::TestWithParam<Math> {
 protected:
  // Every matrix is in tiles with its own columns, so that kernels can compute with its stored form.
  DamagedWeights() {
    store::PackOptions options;
    options.chunks = 2;
    options.keep_columns = true;
    options.least_split_dense = 0;
    store::pack(kModel, store_, model::pack_plan(*store::open_checkpoint(kModel)), options);
    model_ = model::describe_model(*store::open_checkpoint(store_));
  }

  EngineOptions options() const {
    EngineOptions options;
    options.memory = 256 * kMiB;
    options.threads = 2;
    options.math = GetParam();
    options.positions = 32;
    options.dense = DenseForm::kPacked;
    options.cache = cache_;
    options.keep = Keep::kPacked;
    options.scheduler = "serial";  // needs no profile
    options.prefetch = "none";
    options.fetch.io = fetch::IoMode::kBuffered;
    if (device_.empty()) return options;
    options.device = device_;
    options.placement = "device";
    options.device_cache = "lru";
    options.device_slots = 4;
    options.profile = profile_;
    options.device_keep = DeviceKeep::kPacked;
    return options;
  }

  // Prompts and single tokens use different products.
  void expect_error_of_steps(const std::string& where, const std::vector<DamagedChunk>& damaged) {
    const auto checkpoint = store::open_checkpoint(store_);
    Engine engine(*checkpoint, model_, resolve(options(), *checkpoint, model_));
    const auto sequence = engine.new_sequence();
    const std::vector<tokenizer::TokenId> prompt = {3, 17, 4, 20, 33, 9, 12, 7, 2};
    const auto error_of = [](const auto& step) -> std::optional<Error> {
      try {
        step();
      } catch (const Error& error) {
        return error;
      }
      return std::nullopt;
    };
    for (int i = 0; i < 3; ++i) {  // the read bytes are still there the second time
      const std::optional<Error> error = i == 0 ? error_of([&] {
        engine.prefill(*sequence, prompt, {[](std::size_t) { return true; }, [](std::size_t, auto) {}});
      })
                                                : error_of([&] { engine.decode(*sequence, prompt[0]); });
      ASSERT_TRUE(error) << i;
      SCOPED_TRACE(error->what());
      EXPECT_EQ(error->kind(), ErrorKind::kCorrupt);
      EXPECT_EQ(error->where(), where);
      const auto chunk = std::ranges::find_if(
          damaged, [&](const DamagedChunk& one) { return error->offset() == one.bytes.offset; });
      ASSERT_NE(chunk, damaged.end());
      EXPECT_THAT(error->found_text(),
                  HasSubstr(fmt::format("(in a chunk of {} bytes)", chunk->bytes.length)));
      EXPECT_THAT(error->fix_text(), HasSubstr("sluice verify"));
      EXPECT_EQ(sequence->length(), 0u);
    }
  }

  // A device computes all experts, in packed slots. Its costs are measured now, with experts that are whole.
  void compute_on_device() {
    device_ = "emulated:link=inf,compute=inf,latency=0us";
    const auto checkpoint = store::open_checkpoint(store_);
    profile_ = Engine(*checkpoint, model_, resolve(options(), *checkpoint, model_)).report().profile;
  }

  std::string device_;
  std::optional<Profile> profile_;
  std::string cache_ = "lru";
  const sluice::testing::ScratchDirectory scratch_;
  const std::string store_ = scratch_.path() + "/m.sluice";
  model::Model model_;
};

TEST_P(DamagedWeights, OfADenseMatrixTensorFileAndBytesAreNamed) {
  const auto spec = std::ranges::find(model_.dense, model::Role::kO, &model::TensorSpec::role);
  ASSERT_NE(spec, model_.dense.end());
  const DamagedChunk damaged = damage_chunk(store_, spec->name, Damage::kCodes);
  expect_error_of_steps(damaged.file + ", tensor \"" + spec->name + "\"", {damaged});
}

TEST_P(DamagedWeights, OfASharedExpertToo) {
  const auto spec = std::ranges::find(model_.dense, model::Role::kSharedDown, &model::TensorSpec::role);
  ASSERT_NE(spec, model_.dense.end());
  const DamagedChunk damaged = damage_chunk(store_, spec->name, Damage::kCodes);
  expect_error_of_steps(damaged.file + ", tensor \"" + spec->name + "\"", {damaged});
}

TEST_P(DamagedWeights, OfAnExpertFileAndBytesAreNamed) {
  std::vector<DamagedChunk> damaged;
  for (const model::ExpertPieces& expert : model_.experts)  // any expert may be chosen
    if (expert.layer == 0) damaged.push_back(damage_chunk(store_, expert.up.tensor, Damage::kCodes));
  ASSERT_FALSE(damaged.empty());
  expect_error_of_steps(damaged.front().file, damaged);
}

// The bytes cross the link as they are stored, and the device finds the codes.
TEST_P(DamagedWeights, OfAnExpertThatADeviceComputesFileAndBytesAreNamed) {
  compute_on_device();
  std::vector<DamagedChunk> damaged;
  for (const model::ExpertPieces& expert : model_.experts)
    if (expert.layer == 0) damaged.push_back(damage_chunk(store_, expert.up.tensor, Damage::kCodes));
  expect_error_of_steps(damaged.front().file, damaged);
}

// The host has given them up: the experts are named.
TEST_P(DamagedWeights, OnADeviceAloneExpertsAreNamed) {
  cache_ = "none";
  compute_on_device();
  for (const model::ExpertPieces& expert : model_.experts)
    if (expert.layer == 0) damage_chunk(store_, expert.up.tensor, Damage::kCodes);
  const auto checkpoint = store::open_checkpoint(store_);
  Engine engine(*checkpoint, model_, resolve(options(), *checkpoint, model_));
  const auto sequence = engine.new_sequence();
  for (int i = 0; i < 3; ++i) {
    try {
      engine.decode(*sequence, 3);
      FAIL() << i;
    } catch (const Error& error) {
      SCOPED_TRACE(error.what());
      EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
      EXPECT_FALSE(error.where().empty());
      EXPECT_THAT(error.fix_text(), HasSubstr("sluice verify"));
    }
    EXPECT_EQ(sequence->length(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Products, DamagedWeights, ::testing::Values(Math::kF32, Math::kAuto),
                         [](const auto& info) { return info.param == Math::kF32 ? "exact" : "rounding"; });

}  // namespace
}  // namespace sluice::engine
