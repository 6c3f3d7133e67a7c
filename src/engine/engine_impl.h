// The parts of an engine, and what it does with them. Only its own sources (engine*.cc) include this header:
// what the parts need would make every user of an engine slow to compile.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/machine/thread_pool.h"
#include "device/accountant.h"
#include "device/host_buffer.h"
#include "engine/device_budget.h"
#include "engine/draft/drafting.h"
#include "engine/engine.h"
#include "engine/engine_budget.h"
#include "engine/engine_device.h"
#include "engine/engine_hooks.h"
#include "engine/forward/common/measure_profile.h"
#include "engine/forward/common/workspace.h"
#include "engine/forward/dense/dense_weights.h"
#include "engine/forward/embedding.h"
#include "engine/forward/models.h"
#include "engine/forward/moe_block.h"
#include "engine/forward/passes.h"
#include "engine/forward/unit/measure_device.h"
#include "engine/plan/pool_plan.h"
#include "engine/plan/unit_parts.h"
#include "engine/run_report.h"
#include "engine/session/kv_pool.h"
#include "engine/session/prefix_cache.h"
#include "engine/session/rope_table.h"
#include "engine/watch/statistics.h"
#include "experts/layer_decider.h"
#include "experts/tier_choice.h"
#include "fetch/memory/expert_store.h"
#include "fetch/weight_files.h"
#include "kernels/context.h"
#include "kernels/ops/host_ops.h"
#include "kernels/ops/stream_ops.h"
#include "kernels/products/scratch.h"

namespace sluice::engine {

// Functions that Engine has, too, are documented there.
class Engine::Impl {
 public:
  // `device`: of the plan's device, which is open.
  Impl(const store::Checkpoint& checkpoint, const model::Model& model, EnginePlan plan,
       device::DeviceFacts device, std::size_t logit_rows, const EngineHooks& hooks);

  const store::Checkpoint& checkpoint() const { return checkpoint_; }
  const model::Model& model() const { return model_; }
  const EnginePlan& plan() const { return plan_; }
  const PolicyPlan& policies() const { return *policies_; }
  const Statistics& statistics() const { return statistics_; }
  std::size_t chunk() const { return budget_.memory.chunk; }
  RunReport report() const;

  Profile measure(const MeasureOptions& options);
  ProfiledMachine machine() const;
  void observe(RoutingObserver* observer);
  void record_timeline(fetch::Timeline* timeline);

  std::unique_ptr<Sequence> new_sequence();
  PrefixCache& prefixes() { return *prefixes_; }
  std::span<Candidate> candidates() const;

  bool encode(Sequence& sequence, std::span<const tokenizer::TokenId> tokens,
              const std::function<bool()>& go_on);
  Pass begin(const Step& step) { return passes_->begin(step); }
  void step(const Step& step, const LogitSink& sink);
  Drafting& drafting() { return drafting_; }

 private:
  ForwardParts forward_parts();
  BudgetParts budget_parts() const;
  // The profile that the plan was given, if it was measured for this model and machine; else null.
  const Profile* given_profile() const;
  UnitParts unit_parts(DenseView view, std::size_t chunk);
  // Divides both memories, and says where the dense part goes.
  void divide();
  // The same, and says whether an expert of the device stays in the host's memory, too.
  void divide_by_tiers();
  void divide_for(experts::TierChoice tiers);
  experts::TierChoice usual_tiers() const;
  void make_device();
  kernels::Ops& ops() { return device_ops_ ? static_cast<kernels::Ops&>(*device_ops_) : host_ops_; }
  device::Device* dense_device() { return dense_there_ ? &device_->device() : nullptr; }
  void load_dense_weights();
  void make_kv_pool();
  std::unique_ptr<Sequence> make_sequence();  // without room
  void make_units();
  // engine_profile.cc: costs that policies need, given or measured.
  void make_profile();
  // Completes the policies with caches and costs, and gives them their state.
  std::optional<LayersAhead> layers_ahead() const;  // empty: no prefetch asks for them
  void make_decider(experts::LayerPolicies policies);
  void measure_with(const std::function<void(const MeasureTools&)>& measure);
  std::string_view link_view() const;     // DeviceProfile::view of this run. REQUIRES: a device
  DeviceMeasures measured_there() const;  // likewise
  DeviceProfile measured_device(const MeasureTools& tools, const MeasureOptions& options);
  void check_residual() const;  // Error(kInvalid): it is of another model
  // Called with the error of a step: adds the place of impossible codes of dense weights.
  void locate_damage(const Error& error);
  void spread_bias();  // relative position bias of both stacks, if they have one

  const store::Checkpoint& checkpoint_;
  const model::Model& model_;
  const EnginePlan plan_;
  const EngineHooks hooks_;
  Statistics statistics_;  // before drafting_, which refers to it
  Drafting drafting_;      // made early, so that `tables` counts its memory
  ThreadPool pool_;
  std::string isa_warning_;  // before kernels_, whose choice writes it
  kernels::Context kernels_;
  const std::size_t logit_rows_;
  std::unique_ptr<device::Accountant> accountant_;
  std::unique_ptr<fetch::WeightFiles> files_;
  std::unique_ptr<fetch::ExpertStore> experts_;
  std::vector<const codec::MatrixFormat*> dense_formats_;  // formats of dense matrices, each once
  bool dense_there_ = false;                               // on the device
  std::size_t most_chunk_ = SIZE_MAX;                      // for which it has room
  const device::DeviceFacts device_facts_;
  DensePlace dense_place_;  // where it was asked for, or may be
  DividedBudget budget_;
  experts::TierChoice tiers_;
  const PolicyPlan* policies_ = nullptr;  // the policies of plan_
  std::optional<Profile> profile_;
  std::optional<PoolPlan> pool_plan_;
  std::unique_ptr<EngineDevice> device_;            // before what is in its memory
  std::unique_ptr<kernels::StreamOps> device_ops_;  // null: the host computes the dense part
  std::unique_ptr<DenseWeights> weights_;
  std::unique_ptr<Embedding> embedding_;
  std::unique_ptr<WorkspaceBuffer> workspace_;
  device::HostBuffer scratch_memory_;  // charged to `activations`, as the workspace is
  kernels::Scratch scratch_;
  kernels::HostOps host_ops_;
  std::unique_ptr<KvPool> kv_pool_;
  std::unique_ptr<PrefixCache> prefixes_;
  RopeTable rope_;
  StartTimes start_times_;
  std::unique_ptr<experts::LayerDecider> decider_;  // made last, after what its caches need is measured
  std::unique_ptr<ComputeUnit> second_unit_;
  std::unique_ptr<MoeBlock> moe_;
  std::unique_ptr<Passes> passes_;
  models::LayerForward forward_;
  models::EncoderForward encoder_;
  experts::SequenceId sequences_made_ = 0;
};

}  // namespace sluice::engine
