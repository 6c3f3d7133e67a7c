#include "engine/engine_impl.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/machine/system_memory.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "base/stopwatch.h"
#include "engine/device_budget.h"
#include "engine/draft/exact_drafts.h"
#include "engine/forward/encode.h"
#include "engine/forward/moe_block.h"
#include "engine/forward/relative_bias.h"
#include "engine/model_identity.h"
#include "engine/plan/device_choice.h"
#include "engine/plan/gate_residual.h"
#include "engine/plan/run_policies.h"
#include "engine/plan/unit_parts.h"
#include "engine/session/chunks.h"
#include "kernels/check/self_check.h"
#include "kernels/products/packed/packed_matmul.h"

namespace sluice::engine {
namespace {

kernels::Context make_kernels(ThreadPool& pool, const EnginePlan& plan, std::string* warning) {
  const Isa isa = kernels::self_check(plan.isa, warning);
  return {.pool = &pool,
          .isa = isa,
          .products = plan.math == Math::kAuto ? kernels::rounded_products(isa) : kernels::Products::kExact,
          .activations = plan.activations.value_or(kernels::ActivationForm::kF32),
          .formats = plan.formats};
}

}  // namespace

Engine::Impl::Impl(const store::Checkpoint& checkpoint, const model::Model& model, EnginePlan plan,
                   device::DeviceFacts device, std::size_t logit_rows, const EngineHooks& hooks)
    : checkpoint_(checkpoint),
      model_(model),
      plan_(std::move(plan)),
      hooks_(hooks),
      drafting_(plan_.draft, model.config.sparse_layers(), static_cast<std::uint32_t>(model.config.moe.top_k),
                statistics_.decode),
      pool_(compute_threads(plan_, usable_cpus())),
      kernels_(make_kernels(pool_, plan_, &isa_warning_)),
      logit_rows_(logit_rows),
      device_facts_(std::move(device)),
      host_ops_(kernels_),
      rope_(model.config.attention.rope),
      forward_(models::find_forward(model.config.model_type)),
      encoder_(models::find_encoder(model.config.model_type)) {
  Stopwatch watch;
  process_baseline();
  accountant_ =
      std::make_unique<device::Accountant>(plan_.memory ? checked_budget(*plan_.memory) : default_budget());
  files_ = std::make_unique<fetch::WeightFiles>(checkpoint_, plan_.fetch);
  experts_ =
      std::make_unique<fetch::ExpertStore>(checkpoint_, model_, *files_, pool_, kernels_.isa, *accountant_);
  dense_formats_ = DenseWeights::formats(checkpoint_, model_);
  check_formats(budget_parts());
  divide_by_tiers();
  policies_ = plan_.where_all_fits && budget_.all_experts_fit ? &*plan_.where_all_fits : &plan_.policies;
  drafting_.set_lack(why_no_drafts(*policies_, model_.config));
  experts::LayerPolicies policies = make_policies(*policies_, model_.config.moe, experts_->sizes());
  if (plan_.device && !hooks_.second_unit) make_device();
  start_times_.plan_s = watch.lap();

  stop_if(plan_.stop);
  load_dense_weights();
  stop_if(plan_.stop);
  start_times_.dense_s = watch.lap();
  make_kv_pool();
  check_residual();
  experts_->configure({budget_.memory.experts, budget_.memory.staging, policies_->preset->synchronous});
  moe_ = std::make_unique<MoeBlock>(ops(), kernels_, model_.config, *weights_, *experts_, plan_.low_view,
                                    policies_->residual ? &policies_->residual->vectors : nullptr,
                                    layers_ahead(), statistics_);
  passes_ = std::make_unique<Passes>(forward_parts(), forward_);
  make_units();
  make_profile();
  make_decider(std::move(policies));
  start_times_.profile_s = watch.lap();
}

std::optional<LayersAhead> Engine::Impl::layers_ahead() const {
  if (workspace_->shape().ahead_tokens == 0) return std::nullopt;
  return LayersAhead{forward_, *workspace_};
}

void Engine::Impl::make_decider(experts::LayerPolicies policies) {
  pool_plan_ = plan_pools_of(plan_, *policies_, profile_, budget_.memory.experts);
  policies.residencies = make_caches(plan_, *policies_,
                                     {.bytes = budget_.memory.experts,
                                      .caches = cache_count(plan_, model_.config),
                                      .sparse_layers = model_.config.sparse_layers(),
                                      .top_k = model_.config.moe.top_k,
                                      .whole_only = !experts_->facts().split},
                                     pool_plan_, profile_, experts_->sizes());
  policies.costs = !profile_ ? experts_->assumed_costs()
                   : device_ ? profile_->device_costs()
                             : profile_->costs();
  if (hooks_.second_unit) hooks_.second_unit->put_policies(experts_->sizes(), policies);
  if (device_) device_->put_policies(*policies_, tiers_.tiers, policies);
  decider_ = std::make_unique<experts::LayerDecider>(
      std::move(policies),
      experts::SparseShape{model_.config.sparse_layers(), static_cast<std::uint32_t>(model_.config.moe.top_k),
                           model_.config.sparse_layers() - sparse_layers_of_step(model_.config)});
  moe_->decide_by(decider_.get());
  if (device_) device_->begin(*decider_, *experts_);
}

void Engine::Impl::check_residual() const {
  if (!policies_->residual) return;
  engine::check_residual(*policies_->residual,
                         {weights_->on_host() ? model_identity(checkpoint_, model_.config, *weights_)
                                              : model_identity(checkpoint_, model_, plan_.fetch),
                          model_.config.sparse_layers(), model_.config.hidden},
                         plan_.residual_name);
}

void Engine::Impl::make_device() {
  UnitParts parts = unit_parts(budget_.dense.view, budget_.memory.chunk);
  parts.recover_room = recover_room(budget_parts(), parts, budget_.dense.view);
  device_ = std::make_unique<EngineDevice>(plan_, parts, device_facts_,
                                           device_needs(budget_parts(), parts, budget_.dense.view), hooks_,
                                           *accountant_);
  if (dense_there_) device_ops_ = std::make_unique<kernels::StreamOps>(device_->device(), device_->kernels());
}

// What computes beside the host.
void Engine::Impl::make_units() {
  if (hooks_.second_unit) {
    second_unit_ = hooks_.second_unit->make_unit(unit_parts(budget_.dense.view, budget_.memory.chunk));
    moe_->compute_on(second_unit_.get());
  } else if (plan_.device) {
    if (dense_there_) device_->unit().join(workspace_->get());
    moe_->compute_on(&device_->unit());
    moe_->pace_host_by(device_->device().host_pace());
  }
}

// Also makes the workspace and the scratch, which are charged behind them.
void Engine::Impl::load_dense_weights() {
  const MemoryPlan& memory = budget_.memory;
  accountant_->charge(device::Account::kProcess, memory.process);
  accountant_->charge(device::Account::kTables, memory.tables);
  accountant_->charge(device::Account::kServe, memory.serve);
  const DenseView view = budget_.dense.view;
  fetch::PieceDecoder decoder(*files_, pool_, kernels_.isa, checkpoint_.codec());
  weights_ = std::make_unique<DenseWeights>(checkpoint_, model_, view, *files_, decoder, *accountant_,
                                            dense_device());
  embedding_ = std::make_unique<Embedding>(checkpoint_, model_, *weights_, plan_.fetch, *accountant_);
  workspace_ =
      std::make_unique<WorkspaceBuffer>(model_.config, workspace_shape(budget_parts(), memory.chunk),
                                        *accountant_, dense_there_ ? &device_->device().memory() : nullptr);
  const kernels::ScratchShape scratch = scratch_shape(budget_parts(), view, memory.chunk);
  scratch_memory_ = device::HostBuffer(*accountant_, device::Account::kActivations,
                                       kernels::Scratch::bytes(kernels_, scratch));
  scratch_ = kernels::Scratch(kernels_, scratch, scratch_memory_.data());
  kernels_.scratch = &scratch_;
  spread_bias();
}

RunReport Engine::Impl::report() const {
  return {.checkpoint = checkpoint_,
          .model = model_,
          .plan = plan_,
          .policies = *policies_,
          .memory = budget_.memory,
          .dense_choice = budget_.dense,
          .weights = *weights_,
          .embedding = *embedding_,
          .profile = profile_,
          .pool_plan = pool_plan_,
          .accountant = *accountant_,
          .statistics = statistics_,
          .drafting = drafting_,
          .prefixes = *prefixes_,
          .start_times = start_times_,
          .isa_warning = isa_warning_,
          .decider = *decider_,
          .input_prediction = moe_->input_prediction(),
          .device = device_.get(),
          .dense_place = dense_place_,
          .tiers = tiers_,
          .experts = *experts_,
          .files = *files_,
          .isa = kernels_.isa,
          .threads = pool_.threads(),
          .chunk = chunk()};
}

void Engine::Impl::observe(RoutingObserver* observer) {
  // Its encoder runs layer by layer over all chunks, which no reader of a recording expects.
  if (observer != nullptr && model_.config.has_encoder())
    throw Error(ErrorKind::kUnsupported, "the routing of an encoder-decoder cannot be recorded")
        .in(model_.config.model_type)
        .expected("a decoder without an encoder");
  passes_->observe(observer);
  moe_->observe(observer);
}

void Engine::Impl::spread_bias() {
  const model::ModelConfig& config = model_.config;
  if (config.attention.relative.buckets == 0) return;
  device::HostBuffer room;
  if (dense_there_)
    room = device::HostBuffer(*accountant_, device::Account::kStaging,
                              relative_bias_bytes(model_.config, plan_));
  const auto spread = [&](std::uint32_t layer, Directions directions, std::size_t center, std::size_t count,
                          kernels::Floats to) {
    const codec::MatrixRef& table =
        weights_->words(model::Role::kRelativeBias, static_cast<std::int32_t>(layer));
    float* const out = dense_there_ ? reinterpret_cast<float*>(room.data()) : kernels::host_floats(to);
    spread_relative_bias(table, directions, config.attention.relative, center, count, out);
    ops().send({out, table.shape.columns * count}, to, device::Traffic::kDemand);
    ops().settle();
  };
  const Workspace& w = workspace_->get();
  const std::size_t positions = plan_.positions, encoder_positions = plan_.encoder_positions;
  spread(config.encoder_layers, Directions::kBack, positions - 1, positions, w.decoder_bias);
  if (encoder_positions != 0)
    spread(0, Directions::kBoth, encoder_positions - 1, 2 * encoder_positions - 1, w.encoder_bias);
}

void Engine::Impl::record_timeline(fetch::Timeline* timeline) {
  experts_->record(timeline);
  moe_->record(timeline);
}

std::span<Candidate> Engine::Impl::candidates() const {
  return {workspace_->get().host.candidates, plan_.draws ? model_.config.vocab : 0};
}

void Engine::Impl::make_kv_pool() {
  const std::size_t rows = kv_rows(plan_);
  kv_pool_ = dense_there_ ? std::make_unique<KvPool>(model_.config, plan_.cache_dtype, rows,
                                                     device_->device().memory())
                          : std::make_unique<KvPool>(model_.config, plan_.cache_dtype, rows, *accountant_);
  prefixes_ = std::make_unique<PrefixCache>(model_.config, *kv_pool_, ops(), plan_.positions,
                                            [this] { return make_sequence(); });
}

std::unique_ptr<Sequence> Engine::Impl::make_sequence() {
  const auto encoder = [&](auto& memory) {
    return EncoderMemory(model_.config, plan_.cache_dtype, plan_.encoder_positions, memory);
  };
  return std::make_unique<Sequence>(
      sequences_made_++, model_.config, *kv_pool_,
      dense_there_ ? encoder(device_->device().memory()) : encoder(*accountant_),
      [this](const Sequence& sequence) {
        prefixes_->ended(sequence);
        if (decider_) decider_->end_sequence(sequence.id());  // none: still measuring
      });
}

std::unique_ptr<Sequence> Engine::Impl::new_sequence() { return prefixes_->begin_empty(plan_.positions); }

bool Engine::Impl::encode(Sequence& sequence, std::span<const tokenizer::TokenId> tokens,
                          const std::function<bool()>& go_on) {
  SLUICE_CHECK(encoder_.keys != nullptr && passes_->open() == 0);
  return encode_input(forward_parts(), encoder_, sequence, tokens, go_on);
}

void Engine::Impl::locate_damage(const Error& error) {
  if (!kernels::is_damaged_weight(error)) return;
  const fetch::PieceDecoder decoder(*files_, pool_, kernels_.isa, checkpoint_.codec());
  weights_->check_codes(decoder);
}

ForwardParts Engine::Impl::forward_parts() {
  return {ops(),
          model_.config,
          *weights_,
          rope_,
          *workspace_,
          *embedding_,
          *moe_,
          *experts_,
          statistics_,
          budget_.memory.chunk,
          [this](const Error& error) { locate_damage(error); }};
}

void Engine::Impl::step(const Step& step, const LogitSink& sink) {
  if (!step.tokens.empty()) begin(step).finish(sink);
}

Engine::~Engine() = default;

const store::Checkpoint& Engine::checkpoint() const { return impl_->checkpoint(); }
const model::Model& Engine::model() const { return impl_->model(); }
const EnginePlan& Engine::plan() const { return impl_->plan(); }
const PolicyPlan& Engine::policies() const { return impl_->policies(); }
const Statistics& Engine::statistics() const { return impl_->statistics(); }
std::size_t Engine::chunk() const { return impl_->chunk(); }
RunReport Engine::report() const { return impl_->report(); }

Profile Engine::measure(const MeasureOptions& options) { return impl_->measure(options); }
void Engine::observe(RoutingObserver* observer) { impl_->observe(observer); }
void Engine::record_timeline(fetch::Timeline* timeline) { impl_->record_timeline(timeline); }

std::unique_ptr<Sequence> Engine::new_sequence() { return impl_->new_sequence(); }
PrefixCache& Engine::prefixes() { return impl_->prefixes(); }
std::span<Candidate> Engine::candidates() const { return impl_->candidates(); }

Drafting& Engine::drafting() { return impl_->drafting(); }

bool Engine::encode(Sequence& sequence, std::span<const tokenizer::TokenId> tokens,
                    const std::function<bool()>& go_on) {
  return impl_->encode(sequence, tokens, go_on);
}
Pass Engine::begin(const Step& step) { return impl_->begin(step); }
void Engine::step(const Step& step, const LogitSink& sink) { impl_->step(step, sink); }

std::size_t Engine::prefill(Sequence& sequence, std::span<const tokenizer::TokenId> tokens,
                            const LogitSink& sink, const std::function<bool()>& go_on,
                            experts::Worlds* worlds) {
  return each_chunk(tokens, chunk(), [&](std::size_t fed, std::span<const tokenizer::TokenId> part) {
    const SequenceSpan span = next_span(sequence, 0, part.size(), StepKind::kPrompt);
    Pass pass = begin({.tokens = part, .spans = {&span, 1}, .worlds = worlds});
    for (; go_on && pass.layer() < model().config.layers; pass.advance(pass.layer() + 1))
      if (!go_on()) return false;
    pass.finish({[&](std::size_t t) { return sink.wants(fed + t); },
                 [&](std::size_t t, std::span<const float> logits) { sink.take(fed + t, logits); }});
    return true;
  });
}

void Engine::decode(Sequence& sequence, tokenizer::TokenId token, const LogitSink& sink) {
  const SequenceSpan span = next_span(sequence, 0, 1, StepKind::kDecode);
  step({{&token, 1}, {&span, 1}}, sink);
}

std::span<const float> Engine::decode(Sequence& sequence, tokenizer::TokenId token) {
  std::span<const float> result;
  decode(sequence, token,
         {[](std::size_t) { return true; },
          [&](std::size_t, std::span<const float> logits) { result = logits; }});
  return result;
}

}  // namespace sluice::engine
