// A running model: weights in memory, experts on their way, one step at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/machine/thread_pool.h"
#include "device/accountant.h"
#include "engine/forward/dense_choice.h"
#include "engine/forward/dense_weights.h"
#include "engine/forward/embedding.h"
#include "engine/forward/measure_profile.h"
#include "engine/forward/models/models.h"
#include "engine/forward/moe_block.h"
#include "engine/forward/passes.h"
#include "engine/forward/workspace.h"
#include "engine/plan/memory_plan.h"
#include "engine/plan/options.h"
#include "engine/plan/pool_plan.h"
#include "engine/session/sequence.h"
#include "engine/session/step.h"
#include "engine/watch/statistics.h"
#include "experts/layer_decider.h"
#include "fetch/memory/expert_store.h"
#include "fetch/weight_files.h"
#include "kernels/products/format_kernels.h"
#include "kernels/products/scratch.h"
#include "model/architecture.h"
#include "store/checkpoint.h"

namespace sluice::engine {

struct DiskReport {
  Bytes bytes_read = 0;
  std::uint64_t reads = 0;  // requests to the device
  double seconds = 0;       // during which at least one read was in flight
  std::string method;       // "io_uring" "pread" "mmap"
};

// Seconds of the constructor's stages.
struct StartTimes {
  double plan_s = 0;   // weight files opened, experts laid out, the budget divided
  double dense_s = 0;  // dense weights read
  // Costs measured, if a policy needs costs and none were given; caches made.
  double profile_s = 0;
};

// Thread-compatible. Two engines may run in one process, each with its own threads and budget.
class Engine {
 public:
  // Plans the budget, then loads the dense weights; experts are read when they are first needed. `checkpoint`
  // must outlive the engine. Error(kBudget) before anything is loaded; Error(kIo), (kCorrupt), (kUsage),
  // (kUnsupported). `logit_rows`: tokens whose logits are made at a time (1 for generation).
  Engine(const store::Checkpoint& checkpoint, const model::Model& model, const EngineOptions& options,
         std::size_t logit_rows = 1);
  ~Engine();

  const store::Checkpoint& checkpoint() const { return checkpoint_; }
  const model::Model& model() const { return model_; }
  const EngineOptions& options() const { return options_; }
  const MemoryPlan& plan() const { return plan_; }
  const DenseChoice& dense_choice() const { return dense_choice_; }
  const std::optional<Profile>& profile() const { return profile_; }       // if a policy needed it
  const std::optional<PoolPlan>& pool_plan() const { return pool_plan_; }  // for caches with pools
  const device::Accountant& accountant() const { return *accountant_; }
  const Statistics& statistics() const { return statistics_; }
  const StartTimes& start_times() const { return start_times_; }
  // Whether read-ahead pays, as decode steps have shown; null without read-ahead.
  const experts::PrefetchTrial* prefetch_trial() const { return decider_->prefetch_trial(); }
  DiskReport disk() const;  // reads since the engine was made, loading included
  fetch::ExpertCounters expert_counters() const { return experts_->counters(); }
  experts::Parts parts(experts::ExpertId id) const { return experts_->parts(id); }           // in memory now
  const experts::MissConstraint* constraint() const { return policies().constraint.get(); }  // may be null
  const experts::LossGuard* loss_guard() const { return policies().guard.get(); }            // may be null
  // How often the scheduler's cost guard gave up a search.
  std::uint64_t scheduler_fallbacks() const { return policies().scheduler->fallbacks(); }
  std::uint64_t decision_hash() const;                                  // over all cache decisions so far
  experts::Parts kept_parts() const;                                    // parts of an expert that caches keep
  std::size_t caches() const { return policies().residencies.size(); }  // 1, or one per sparse layer
  Bytes cache_capacity() const { return policies().residencies.front()->capacity(); }  // bytes of each cache
  // Bytes of the weight files in the page cache, whoever put them there. Empty under O_DIRECT: then none of
  // them are ours.
  std::optional<Bytes> page_cache_bytes() const {
    return files_->uses_page_cache() ? std::optional(files_->cached_bytes()) : std::nullopt;
  }
  const experts::ExpertSizes& expert_sizes() const { return experts_->sizes(); }
  // Bytes that a miss of this expert reads.
  Bytes expert_disk_bytes(experts::ExpertId id) const { return experts_->disk_bytes(id); }
  Bytes exponent_disk_bytes(experts::ExpertId id) const { return experts_->layout(id).rest.disk_bytes(); }
  Bytes expert_disk_bytes() const;    // mean bytes that a miss reads
  Bytes expert_memory_bytes() const;  // mean bytes of an expert as the cache keeps it
  const DenseWeights& weights() const { return *weights_; }
  const std::string& isa_warning() const { return isa_warning_; }
  Isa isa() const { return kernels_.isa; }
  DType cache_dtype() const;  // of keys and values
  unsigned threads() const { return pool_.threads(); }
  std::size_t chunk() const { return plan_.chunk; }

  // Measures the costs of this machine for this model. Nothing may be running; caches do not change, and
  // observers are not called. After an Error(kIo) or (kCorrupt) the engine is as before. Error(kUnsupported)
  // for slices, for which no policy has costs.
  Profile measure(const MeasureOptions& options);
  ProfiledMachine machine() const;
  // `observer` watches all steps from now on; null: no observer. It must outlive the engine or its successor.
  void observe(RoutingObserver* observer);
  // Records every read, decode, merge and computation of an expert from the next step on; null: stops.
  // `timeline` must live as long as an observer.
  void record_timeline(fetch::Timeline* timeline);

  // A new sequence of at most options.positions tokens (and options.encoder_positions of an encoder's input).
  // The plan has room for options.sequences of them at a time.
  std::unique_ptr<Sequence> new_sequence();
  // Scratch of samplers, (vocab), part of the plan; empty unless options.draws. One sampler at a time.
  std::span<Candidate> candidates() const;

  // For encoder-decoders: computes the encoder's whole input of a sequence, at least one token, before its
  // first step. False when `go_on` (called before every chunk; may be empty) returned false: the sequence
  // then has no input. Error(kInvalid) as for step().
  bool encode(Sequence& sequence, std::span<const tokenizer::TokenId> tokens,
              const std::function<bool()>& go_on = {});
  // Begins a pass of 1 … chunk() tokens, as Passes::begin. The plan has room for 1 + options.suspended_passes
  // open passes.
  Pass begin(const Step& step) { return passes_->begin(step); }
  // One step of at most chunk() tokens, from begin to finish. Token ids are checked. After an Error(kIo) or
  // (kCorrupt) the sequences are as before the step, and the engine can go on.
  void step(const Step& step, const LogitSink& sink);
  // Feeds a prompt's tokens of one sequence in chunks; `sink` gets the logits that it wants, by index in
  // `tokens`. `go_on` is asked before every chunk, and may be empty; false ends. Returns the tokens fed.
  std::size_t prefill(Sequence& sequence, std::span<const tokenizer::TokenId> tokens, const LogitSink& sink,
                      const std::function<bool()>& go_on = {});
  // Feeds one decoded token of one sequence, for its logits if `sink` wants them. Or returns its logits,
  // valid until the next step.
  void decode(Sequence& sequence, tokenizer::TokenId token, const LogitSink& sink);
  std::span<const float> decode(Sequence& sequence, tokenizer::TokenId token);

 private:
  ForwardParts forward_parts();
  MemoryPlan make_plan(std::size_t logit_rows, DenseView dense);
  WorkspaceShape workspace_shape(std::size_t logit_rows, std::size_t chunk) const;
  kernels::ScratchShape scratch_shape(DenseView dense, std::size_t chunk) const;
  // Error(kUnsupported) naming a format of the model for which there are no kernels.
  void check_formats();
  bool has_format(bool (*wanted)(const kernels::FormatRow& row)) const;
  void plan_with_dense(std::size_t logit_rows);  // plan_ and dense_choice_
  const Profile* given_profile() const;          // from the options, if measured for this model and machine
  const experts::LayerPolicies& policies() const { return decider_->policies(); }
  experts::LayerPolicies make_policies();
  std::unique_ptr<experts::MissConstraint> make_constraint(const experts::LossGuard* guard) const;
  std::size_t cache_count() const;
  Bytes least_kept_bytes() const;  // bytes of the least that the cache keeps of an expert
  void limit_caches(Bytes bytes);
  // Under a contract: if all experts fit, changes the options so that nothing is lost, and returns true.
  bool lose_nothing_where_all_fits();
  void make_profile();
  std::vector<std::unique_ptr<experts::Residency>> make_caches();  // also makes pool_plan_
  // Called with the error of a step: adds the place of impossible codes of dense weights.
  void locate_damage(const Error& error);
  void spread_bias();  // relative position bias of both stacks, if they have one

  const store::Checkpoint& checkpoint_;
  const model::Model& model_;
  EngineOptions options_;
  ThreadPool pool_;
  kernels::Context kernels_;
  std::string isa_warning_;
  std::unique_ptr<device::Accountant> accountant_;
  std::unique_ptr<fetch::WeightFiles> files_;
  std::unique_ptr<fetch::ExpertStore> experts_;
  std::vector<const codec::MatrixFormat*> dense_formats_;  // of dense matrices, each once
  MemoryPlan plan_;
  DenseChoice dense_choice_;
  std::optional<Profile> profile_;
  std::optional<PoolPlan> pool_plan_;
  std::unique_ptr<DenseWeights> weights_;
  std::unique_ptr<Embedding> embedding_;
  std::unique_ptr<WorkspaceBuffer> workspace_;
  device::HostBuffer scratch_memory_;  // charged to `activations`, as the workspace is
  kernels::Scratch scratch_;
  std::unique_ptr<KvPool> kv_pool_;
  RopeTable rope_;
  Statistics statistics_;
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
