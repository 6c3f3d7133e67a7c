// A second compute unit, and placements that divide the experts: each expert is computed exactly where it was
// assigned, and logits have the same bits as on the host alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "engine/engine.h"
#include "engine/engine_hooks.h"
#include "engine/forward/common/gating.h"
#include "engine/forward/unit/host_unit.h"
#include "engine/plan/unit_parts.h"
#include "engine/shared_steps_testing.h"
#include "experts/placement/placement.h"
#include "fetch/timeline.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine::placement_test {
namespace {

namespace fs = std::filesystem;
using experts::ExpertId;
using experts::Unit;

const fs::path kModels = sluice::testing::kGoldenModels;
const fs::path kGoldens = sluice::testing::kGoldens;

using Counts = std::map<ExpertId, std::size_t>;

// Host kernels, and a count of how often each expert was computed.
class CountingUnit final : public ComputeUnit {
 public:
  CountingUnit(const UnitParts& parts, Counts& counts)
      : host_(parts.kernels, parts.low_view, gating_of(parts.config.activation)), counts_(counts) {}
  void compute(const ExpertWork& work, std::optional<fetch::ExpertStore::Pin>,
               const HostWorkspace& w) override {
    EXPECT_GT(work.rows, 0u);
    counts_[work.id] += 1;
    host_.compute(work, w);
  }

 private:
  HostUnit host_;
  Counts& counts_;
};

constexpr experts::DeviceCosts kCosts{.run = {.fixed = 2e-4, .per_token = 1e-5}, .transfer = 3e-3};

// Odd experts to the device; remembers what it assigned.
class ParityPlacement final : public experts::Placement {
 public:
  ParityPlacement(Counts& host, Counts& device) : host_(host), device_(device) {}
  void assign(const experts::Demand& demand, const experts::PlacementCosts& costs,
              experts::Assignment& out) override {
    see(demand, costs);
    out.unit.clear();
    for (const ExpertId id : demand.experts) {
      out.unit.push_back(id.index % 2 == 1 ? Unit::kDevice : Unit::kHost);
      (id.index % 2 == 1 ? device_ : host_)[id] += 1;
    }
  }
  std::string name() const override { return "parity"; }

 private:
  // Nothing stays on the unit: every expert has all of its way before it.
  static void see(const experts::Demand& demand, const experts::PlacementCosts& costs) {
    const std::size_t experts = demand.experts.size();
    EXPECT_EQ(costs.t_host.size(), experts);
    ASSERT_EQ(costs.t_device.size(), experts);
    for (std::size_t i = 0; i < experts; ++i) EXPECT_EQ(costs.t_device[i], kCosts.run.of(demand.tokens[i]));
    EXPECT_EQ(std::vector(costs.transfer.begin(), costs.transfer.end()),
              std::vector<double>(experts, kCosts.transfer));
    EXPECT_EQ(std::vector(costs.on_device.begin(), costs.on_device.end()),
              std::vector<std::uint8_t>(experts, 0));
    EXPECT_FALSE(costs.slots);
  }

  Counts &host_, &device_;
};

struct Outcome {
  std::vector<float> logits;
  Counts computed;            // by either unit
  Counts on_host, on_device;  // as assigned
  Counts by_device;           // computed by the second unit
};

class PlacementTest : public ::testing::TestWithParam<std::string> {
 protected:
  PlacementTest()
      : checkpoint_(store::open_checkpoint(kModels / GetParam())),
        model_(model::describe_model(*checkpoint_)),
        golden_(read_json_file(kGoldens / (GetParam() + ".golden") / "golden.json")) {}

  // Prompts of `sequences` sequences, in chunks, and some decode steps of all of them together.
  Outcome run(std::size_t sequences, Math math, bool second_unit) const {
    Outcome run;
    const EngineOptions options = engine_options(sequences, math);
    EngineHooks hooks;
    if (second_unit)
      hooks.second_unit.emplace(SecondUnit{
          .make_unit =
              [&](const UnitParts& parts) { return std::make_unique<CountingUnit>(parts, run.by_device); },
          .make_placement = [&] { return std::make_unique<ParityPlacement>(run.on_host, run.on_device); },
          .costs = kCosts});
    fetch::Timeline timeline;
    {  // reads ahead are entered until the engine is gone
      Engine engine(*checkpoint_, model_, resolve(options, *checkpoint_, model_), sequences, hooks);
      engine.record_timeline(&timeline);
      run.logits = logits_of(engine, golden_, {.sequences = sequences});
    }
    for (const fetch::TimelineEntry& entry : timeline.entries())
      if (entry.kind == fetch::TimelineEntry::Kind::kCompute) run.computed[entry.expert] += 1;
    return run;
  }

  std::unique_ptr<store::Checkpoint> checkpoint_;
  const model::Model model_;
  const Json golden_;
};

TEST_P(PlacementTest, EachExpertIsComputedWhereItWasAssignedWithTheSameBits) {
  for (const std::size_t sequences : {1, 4})
    for (const Math math : {Math::kF32, Math::kAuto}) {
      SCOPED_TRACE(std::to_string(sequences) + (math == Math::kF32 ? " f32" : " auto"));
      const Outcome host = run(sequences, math, false), both = run(sequences, math, true);
      EXPECT_TRUE(host.by_device.empty());
      EXPECT_EQ(both.by_device, both.on_device);
      Counts by_host = both.computed;
      for (const auto& [id, count] : both.by_device)
        if ((by_host[id] -= count) == 0) by_host.erase(id);
      EXPECT_EQ(by_host, both.on_host);
      EXPECT_EQ(both.computed, host.computed);
      EXPECT_EQ(both.logits, host.logits);
      EXPECT_FALSE(both.logits.empty());
      if (model_.config.moe.experts > 1 && !model_.experts.empty()) {
        EXPECT_FALSE(both.by_device.empty());
      }
    }
}

INSTANTIATE_TEST_SUITE_P(AllModels, PlacementTest,
                         ::testing::ValuesIn(sluice::testing::golden_model_names()));

}  // namespace
}  // namespace sluice::engine::placement_test
