// The prediction by the partial state, from end to end: where all that a layer needs is in memory it says
// what the next router says, bit for bit; where something is missing it says something else; and never does
// it change a logit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "engine/engine.h"
#include "engine/engine_device.h"
#include "engine/forward/predictor.h"
#include "engine/run_report.h"
#include "engine/shared_steps_testing.h"
#include "engine/watch/routing_observer.h"
#include "engine/watch/statistics.h"
#include "fetch/memory/expert_store.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine::partial_state_test {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = sluice::testing::kGoldenModels, kGoldens = sluice::testing::kGoldens;

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && !a.empty() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Compares what was predicted of each layer with what its router says then.
class Comparison final : public RoutingObserver {
 public:
  void on_step(const Step&) override { predicted_.clear(); }
  void on_routing(const experts::ScoresView& scores, const experts::Routing&) override {
    const auto found = predicted_.find(scores.layer);
    if (found == predicted_.end()) return;
    ++compared;
    same += same_bits(found->second, scores.logits) ? 1 : 0;
  }
  bool wants_ahead() const override { return true; }
  void on_ahead(std::string_view predictor, const experts::ScoresView& next) override {
    if (predictor == kPartialState) predicted_[next.layer] = {next.logits.begin(), next.logits.end()};
  }
  int compared = 0, same = 0;

 private:
  std::map<std::uint32_t, std::vector<float>> predicted_;  // logits by layer
};

struct Case {
  const char* name;
  std::size_t sequences;
  bool device;
  bool all;  // all experts have room where they are computed
  DenseOn dense_on = DenseOn::kHost;
};

class PartialState : public ::testing::TestWithParam<std::string> {
 protected:
  PartialState()
      : checkpoint_(store::open_checkpoint(kModels / GetParam())),
        model_(model::describe_model(*checkpoint_)),
        golden_(read_json_file(kGoldens / (GetParam() + ".golden") / "golden.json")) {}

  EngineOptions options_of(const Case& one) const {
    EngineOptions options;
    options.memory = kGiB;
    options.threads = 2;
    options.positions = 96;
    options.encoder_positions = 64;
    options.chunk = 5;
    options.sequences = one.sequences;
    options.cache = "lru";
    options.prefetch = "smoe-partial";
    options.fetch.io = fetch::IoMode::kBuffered;
    if (one.device) {
      options.device = "emulated:link=inf,compute=inf,latency=0us";
      options.device_slots = one.all ? model_.config.moe.experts : 1;
      options.device_cache = "lru";
      options.placement = "device";
      options.dense_on = one.dense_on;
    }
    return options;
  }
  std::unique_ptr<Engine> engine(const EngineOptions& options) const {
    return std::make_unique<Engine>(*checkpoint_, model_, resolve(options, *checkpoint_, model_),
                                    options.sequences);
  }
  std::vector<float> run(Engine& engine, std::size_t sequences) const {
    return logits_of(engine, golden_, {.sequences = sequences});
  }

  std::unique_ptr<store::Checkpoint> checkpoint_;
  model::Model model_;
  const Json golden_;
};

TEST_P(PartialState, SaysWhatTheNextRouterSaysAndChangesNothing) {
  const bool sparse = model_.config.sparse_layers() > 1;
  for (const Case& one :
       {Case{"host, all in memory", 1, false, true}, Case{"host, a batch", 3, false, true},
        Case{"host, little in memory", 3, false, false}, Case{"device, all in slots", 3, true, true},
        Case{"device, one slot a layer", 1, true, false},
        Case{"all on the device", 3, true, true, DenseOn::kDevice},
        Case{"all on the device, one slot a layer", 3, true, false, DenseOn::kDevice}}) {
    SCOPED_TRACE(one.name);
    EngineOptions options = options_of(one), plain = options;
    plain.prefetch = "none";
    const auto without = engine(plain);
    if (!one.all && !one.device)
      options.cache_bytes = 2 * without->report().experts.sizes().bytes({0, 0}).full;
    const auto with = engine(options);
    const std::vector<float> expected = run(*without, one.sequences);
    EXPECT_TRUE(same_bits(run(*with, one.sequences), expected));
    Comparison comparison;
    if (!model_.config.has_encoder()) with->observe(&comparison);
    EXPECT_TRUE(same_bits(run(*with, one.sequences), expected));  // now all is there that there is room for
    if (!model_.config.has_encoder()) {
      EXPECT_EQ(comparison.compared > 0, sparse);
      if (one.all) {
        EXPECT_EQ(comparison.same, comparison.compared);
      }
    }
    if (sparse) {
      EXPECT_GT(with->statistics().decode.predict_s, 0);
      EXPECT_LE(with->statistics().decode.predict_s, with->statistics().decode.policy_s);
    }
    with->observe(nullptr);
  }
}

// What is missing is left out, and shows.
TEST_P(PartialState, WithoutMissingExpertsItSaysSomethingElse) {
  if (model_.config.has_encoder() || model_.config.sparse_layers() < 2) return;
  EngineOptions options = options_of({"", 1, false, false});
  options.cache_bytes = 0;
  const auto engine = this->engine(options);
  Comparison comparison;
  engine->observe(&comparison);
  run(*engine, 1);
  EXPECT_GT(comparison.compared, 0);
  EXPECT_EQ(comparison.same, 0);
  engine->observe(nullptr);
}

INSTANTIATE_TEST_SUITE_P(AllModels, PartialState, ::testing::ValuesIn(sluice::testing::golden_model_names()));

}  // namespace
}  // namespace sluice::engine::partial_state_test
