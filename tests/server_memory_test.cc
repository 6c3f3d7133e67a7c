// What a server takes beside the engine is charged from the start, and is shown where it is planned alone.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "device/accountant.h"
#include "engine/engine.h"
#include "engine/plan/memory_plan.h"
#include "engine/run_report.h"
#include "engine/session/kv_pool.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "report/memory_report.h"
#include "store/source/open_checkpoint.h"

namespace sluice::app {
namespace {

class ServerMemory : public ::testing::Test {
 protected:
  std::unique_ptr<engine::Engine> engine_with(Bytes serve, Bytes memory) {
    engine::EngineOptions options;
    options.memory = memory;
    options.threads = 1;
    options.positions = 100;
    options.sequences = 3;
    options.kv_tokens = 130;
    options.serve = serve;
    options.fetch.io = fetch::IoMode::kBuffered;
    return std::make_unique<engine::Engine>(*checkpoint_, model_,
                                            engine::resolve(options, *checkpoint_, model_));
  }

  const std::unique_ptr<store::Checkpoint> checkpoint_ =
      store::open_checkpoint(std::string(sluice::testing::kGoldenModels) + "/qwen2_moe_a");
  const model::Model model_ = model::describe_model(*checkpoint_);
};

TEST_F(ServerMemory, IsCharged) {
  const Bytes least = engine_with(8 * kMiB, kGiB)->report().memory.minimum;
  const auto engine = engine_with(8 * kMiB, least + kMiB);  // the process may have grown
  const engine::RunReport report = engine->report();
  EXPECT_EQ(report.memory.serve, 8 * kMiB);
  EXPECT_EQ(report.accountant.used(device::Account::kServe), 8 * kMiB);
}

TEST_F(ServerMemory, IsShownWhereItIsPlanned) {
  const auto with = engine_with(8 * kMiB, kGiB), without = engine_with(0, kGiB);
  const engine::RunReport server = with->report(), run = without->report();
  EXPECT_TRUE(memory_json(server, Engines::kSeveral)["by_name"].contains("serve"));
  EXPECT_FALSE(memory_json(run, Engines::kSeveral)["by_name"].contains("serve"));
  EXPECT_NE(memory_line(server).find(", serve "), std::string::npos);
  EXPECT_EQ(memory_line(run).find("serve"), std::string::npos);
  EXPECT_NE(memory_line_short(server, 200).find(" serve "), std::string::npos);
  EXPECT_EQ(memory_line_short(run, 200).find("serve"), std::string::npos);
}

// In whole blocks, and of all sequences together.
TEST_F(ServerMemory, ThePoolIsAsLargeAsItIsAskedFor) {
  const auto engine = engine_with(0, kGiB);
  EXPECT_EQ(engine->report().accountant.used(device::Account::kKv),
            engine::KvPool::bytes(model_.config, DType::kBF16, 160));
  const auto first = engine->new_sequence();
  EXPECT_THROW(engine->new_sequence(), Error);  // 100 positions are four blocks, and one is left
}

}  // namespace
}  // namespace sluice::app
