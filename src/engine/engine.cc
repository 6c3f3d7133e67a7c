#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/machine/system_memory.h"
#include "base/setting.h"
#include "base/stopwatch.h"
#include "engine/forward/encode.h"
#include "engine/forward/relative_bias.h"
#include "experts/decision_log.h"
#include "experts/registry.h"
#include "experts/routing/slice_names.h"
#include "kernels/check/self_check.h"
#include "kernels/products/packed/packed_matmul.h"

namespace sluice::engine {
namespace {

// docs/slicemoe.md has its cost.
constexpr kernels::ActivationForm kUsualActivations = kernels::ActivationForm::kInt8;

kernels::Context make_kernels(ThreadPool& pool, const EngineOptions& options, std::string* warning) {
  const Isa isa = kernels::self_check(parse_isa(options.isa), warning);
  return {
      .pool = &pool,
      .isa = isa,
      .products = options.math == Math::kAuto ? kernels::rounded_products(isa) : kernels::Products::kExact,
      .formats = options.formats};
}

// Rounded weights are used only if the user asked for them, and only as asked.
void check_precision(const store::Checkpoint& checkpoint, const EngineOptions& options) {
  const auto bits = checkpoint.slices();
  if (!bits || options.precision != experts::PrecisionMode::kFull) return;
  throw Error(ErrorKind::kUsage, "the experts of this store are rounded, and no precision was chosen")
      .in(checkpoint.path())
      .expected(Setting::kPrecision + " high, low or dbsc, " + Setting::kPreset + " slicemoe, or " +
                Setting::kMaxLoss)
      .found(fmt::format("family sliced, {}/{} bits, and none of these", bits->high, bits->low))
      .fix("give " + Setting::kPrecision +
           " high to use every stored bit, or run the model that the store was packed from");
}

kernels::ActivationForm activations_of(const store::Checkpoint& checkpoint, const EngineOptions& options) {
  using kernels::ActivationForm;
  const bool exact = options.math == Math::kF32;
  const auto wanted = options.activations;
  const auto refuse = [&](std::string_view message, const char* expected, const std::string& fix) {
    return Error(ErrorKind::kUsage, message)
        .in(Setting::kActivations)
        .expected(expected)
        .found(activations_name(*wanted))
        .fix(fix);
  };
  if (!checkpoint.slices()) {  // only such stores have dense matrices in codes
    if (wanted)
      throw refuse("this model has no weights in slices or 8-bit codes, so its activations are always fp32",
                   "a store of family sliced", "leave " + Setting::kActivations + " out");
    return ActivationForm::kF32;
  }
  if (exact && wanted == ActivationForm::kInt8)
    throw refuse(Setting::kMath + " f32 computes everything in fp32", "fp32",
                 "leave out " + Setting::kActivations + " or " + Setting::kMath);
  return wanted.value_or(exact ? ActivationForm::kF32 : kUsualActivations);
}

// Names what the user asked for: nobody chose the parts of a preset one by one.
void check_preset(const EngineOptions& asked, const EngineOptions& options, bool sliced,
                  const std::string& path) {
  if (asked.preset.empty() || asked.preset == "auto") return;
  const bool of_slices = experts::find_preset(asked.preset).sliced();
  if (of_slices && !sliced)
    throw Error(ErrorKind::kUsage, "this preset is for models in slices")
        .in(Setting::kPreset)
        .found(asked.preset + ", and " + path + " has none")
        .fix("pack the model in slices: sluice pack MODEL " + flag(Setting::kOutput) + " NAME.sluice " +
             flag(Setting::kSlices) + " 8/4");
  if (sliced && asked.scheduler.empty() && experts::find_scheduler(options.scheduler).by_costs)
    throw Error(ErrorKind::kUsage, "this preset is for models without slices")
        .in(Setting::kPreset)
        .found(asked.preset)
        .fix("use the preset slicemoe, or none");
}

}  // namespace

Engine::Engine(const store::Checkpoint& checkpoint, const model::Model& model, const EngineOptions& options,
               std::size_t logit_rows)
    : checkpoint_(checkpoint),
      model_(model),
      options_(options),
      pool_(options.threads != 0 ? options.threads : usable_cpus()),
      kernels_(make_kernels(pool_, options, &isa_warning_)),
      rope_(model.config.attention.rope),
      forward_(models::find_forward(model.config.model_type)),
      encoder_(models::find_encoder(model.config.model_type)) {
  Stopwatch watch;
  options_.encoder_positions =
      model.config.has_encoder() ? std::max<std::size_t>(options_.encoder_positions, 1) : 0;
  process_baseline();
  accountant_ = std::make_unique<device::Accountant>(options_.memory ? checked_budget(*options_.memory)
                                                                     : default_budget());
  files_ = std::make_unique<fetch::WeightFiles>(checkpoint_, options_.fetch);
  experts_ =
      std::make_unique<fetch::ExpertStore>(checkpoint_, model_, *files_, pool_, kernels_.isa, *accountant_);
  check_formats();
  options_ =
      with_preset(std::move(options_), experts_->split() && !model_.experts.empty(), experts_->sliced());
  check_preset(options, options_, experts_->sliced(), checkpoint_.path());
  check_precision(checkpoint_, options_);
  kernels_.activations = activations_of(checkpoint_, options_);
  if (checkpoint_.slices()) options_.activations = kernels_.activations;
  // Making words first would take longer on any machine.
  experts_->compute_packed(experts_->can_be_packed());
  experts::LayerPolicies policies = make_policies();
  plan_with_dense(logit_rows);
  if (options_.cache_bytes) limit_caches(*options_.cache_bytes);
  if (lose_nothing_where_all_fits()) policies = make_policies();
  start_times_.plan_s = watch.lap();

  accountant_->charge(device::Account::kProcess, plan_.process);
  accountant_->charge(device::Account::kTables, plan_.tables);
  fetch::PieceDecoder decoder(*files_, pool_, kernels_.isa, checkpoint_.codec());
  weights_ =
      std::make_unique<DenseWeights>(checkpoint_, model_, dense_choice_.view, *files_, decoder, *accountant_);
  embedding_ = std::make_unique<Embedding>(checkpoint_, model_, *weights_, options_.fetch, *accountant_);
  start_times_.dense_s = watch.lap();
  workspace_ = std::make_unique<WorkspaceBuffer>(model_.config, workspace_shape(logit_rows, plan_.chunk),
                                                 *accountant_);
  const kernels::ScratchShape scratch = scratch_shape(dense_choice_.view, plan_.chunk);
  scratch_memory_ = device::HostBuffer(*accountant_, device::Account::kActivations,
                                       kernels::Scratch::bytes(kernels_, scratch));
  scratch_ = kernels::Scratch(kernels_, scratch, scratch_memory_.data());
  kernels_.scratch = &scratch_;
  spread_bias();
  kv_pool_ = std::make_unique<KvPool>(model_.config, cache_dtype(),
                                      KvPool::rows_for(options_.sequences, options_.positions), *accountant_);
  experts_->configure({plan_.experts, plan_.staging, options_.synchronous});
  moe_ = std::make_unique<MoeBlock>(kernels_, model_.config, *weights_, *experts_, options_.low_view,
                                    statistics_);
  passes_ = std::make_unique<Passes>(forward_parts(), forward_);
  if (options_.second_unit) {
    second_unit_ = options_.second_unit->make_unit(kernels_, options_.low_view);
    moe_->compute_on(second_unit_.get());
  }
  make_profile();
  policies.residencies = make_caches();
  policies.costs = profile_ ? profile_->costs() : experts_->assumed_costs();
  decider_ = std::make_unique<experts::LayerDecider>(
      std::move(policies), experts::SparseShape{model_.config.sparse_layers(),
                                                static_cast<std::uint32_t>(model_.config.moe.top_k)});
  moe_->decide_by(decider_.get());
  start_times_.profile_s = watch.lap();
}

void Engine::make_profile() {
  const bool pooled = experts::find_cache(options_.cache).pooled;
  const bool plans = experts::find_scheduler(options_.scheduler).by_costs;
  if (experts_->sliced()) return;  // no policy for slices uses costs
  if (model_.experts.empty() || !(pooled || plans || options_.profile)) return;
  const ProfiledModel model = profiled_model(checkpoint_, model_, *experts_);
  if (options_.profile && !options_.profile_if_it_fits)
    check_profile(*options_.profile, model, machine(), mark(Setting::kProfile));
  if (options_.profile && fits(*options_.profile, model, machine())) {
    profile_ = options_.profile;
  } else {
    // A short measurement: reads a small part of the experts; of a small model more.
    const Bytes part = model_.experts.size() * experts_->bytes_per_expert() / 64;
    profile_ =
        measure({.repeats = 9, .seed = options_.seed, .sample_bytes = std::clamp(part, 4 * kMiB, 32 * kMiB)});
  }
}

std::size_t Engine::cache_count() const {
  return options_.cache_scope == "layer" ? model_.config.sparse_layers() : 1;
}

std::vector<std::unique_ptr<experts::Residency>> Engine::make_caches() {
  const std::size_t caches = cache_count();
  experts::CacheConfig config;
  config.keep = kept_parts();
  config.seed = options_.seed;
  config.slices = options_.slices;
  if (experts::find_cache(options_.cache).pooled && profile_) {
    const PoolShares shares =
        options_.sharing == experts::PoolSharing::kEqual ? PoolShares::kEqual : PoolShares::kPlanned;
    const std::vector<double>& ranks = options_.ranks.empty() ? profile_->ranks : options_.ranks;
    pool_plan_ = plan_pools(*profile_, {.shares = shares,
                                        .memory = plan_.experts,
                                        .sequences = options_.sequences,
                                        .ranks = ranks,
                                        .prefetch = options_.prefetch});
    config.pools.slots = {pool_plan_->chosen.slots};
    config.pools.whole_only = !experts_->split();
    const ProfiledModel& sizes = profile_->model;
    config.pools.room = {.layers = static_cast<std::uint32_t>(model_.config.sparse_layers() / caches),
                         .largest = {.full = sizes.full, .sm = sizes.sm, .exp = sizes.exp},
                         .capacity = plan_.experts / caches};
  }
  std::vector<std::unique_ptr<experts::Residency>> made;
  for (std::size_t i = 0; i < caches; ++i)
    made.push_back(std::make_unique<experts::Residency>(experts::make_cache(options_.cache, config),
                                                        experts_->sizes(), plan_.experts / caches));
  return made;
}

Engine::~Engine() = default;

void Engine::observe(RoutingObserver* observer) {
  // Its encoder runs layer by layer over all chunks, which no reader of a recording expects.
  if (observer != nullptr && model_.config.has_encoder())
    throw Error(ErrorKind::kUnsupported, "the routing of an encoder-decoder cannot be recorded")
        .in(model_.config.model_type)
        .expected("a decoder without an encoder");
  passes_->observe(observer);
  moe_->observe(observer);
}

void Engine::spread_bias() {
  const model::ModelConfig& config = model_.config;
  if (config.attention.relative.buckets == 0) return;
  const Workspace& w = workspace_->get();
  const std::size_t positions = options_.positions, encoder_positions = options_.encoder_positions;
  spread_relative_bias(
      weights_->words(model::Role::kRelativeBias, static_cast<std::int32_t>(config.encoder_layers)),
      Directions::kBack, config.attention.relative, positions - 1, positions, w.decoder_bias);
  if (encoder_positions != 0)
    spread_relative_bias(weights_->words(model::Role::kRelativeBias, 0), Directions::kBoth,
                         config.attention.relative, encoder_positions - 1, 2 * encoder_positions - 1,
                         w.encoder_bias);
}

void Engine::record_timeline(fetch::Timeline* timeline) {
  experts_->record(timeline);
  moe_->record(timeline);
}

DType Engine::cache_dtype() const {
  return options_.kv.value_or(options_.math == Math::kF32 ? DType::kF32 : DType::kBF16);
}

experts::LayerPolicies Engine::make_policies() {
  const model::MoeConfig& moe = model_.config.moe;
  experts::LayerPolicies policies;
  check_combination(options_, checkpoint_.family());
  policies.precision = {options_.precision, options_.critical};
  options_.critical.validate(moe.top_k);
  options_.cache_aware.validate_for(moe.experts);
  if (options_.contract) policies.guard = std::make_unique<experts::LossGuard>(*options_.contract);
  policies.constraint = make_constraint(policies.guard.get());
  policies.router = experts::find_router(options_.router)
                        .make({.select = {moe.top_k, moe.groups, moe.top_groups, moe.capacity},
                               .combine = {moe.renormalise, moe.renormalise_epsilon,
                                           moe.renormalise ? 1.0f : moe.routed_scale},
                               .cache_aware = options_.cache_aware,
                               .constraint = policies.constraint.get()});
  policies.scheduler = experts::find_scheduler(options_.scheduler).make();
  policies.prefetch = experts::find_prefetch(options_.prefetch).make();
  policies.placement = options_.second_unit ? options_.second_unit->make_placement()
                                            : experts::find_placement(options_.placement).make();
  const auto require = [](bool legal, Setting setting, const char* expected, const std::string& found) {
    if (!legal) throw Error(ErrorKind::kUsage, "unknown value").in(setting).expected(expected).found(found);
  };
  require(options_.cache_scope == "global" || options_.cache_scope == "layer", Setting::kCacheScope,
          "global or layer", options_.cache_scope);
  require(options_.keep == "full" || options_.keep == "packed", Setting::kKeep, "full or packed",
          options_.keep);
  require(options_.dense == "auto" || options_.dense == "words" || options_.dense == "packed",
          Setting::kDense, "auto, words or packed", options_.dense);
  require(options_.chunk > 0, Setting::kChunk, "at least 1", "0");
  policies.whole_layers = options_.whole_layers;
  return policies;
}

bool Engine::lose_nothing_where_all_fits() {
  if (!options_.contract || plan_.experts < model_.experts.size() * experts_->bytes_per_expert())
    return false;
  options_.contract->planned_low = 0;
  options_.precision = experts::PrecisionMode::kHigh;
  options_.router = "exact";
  options_.constraint = experts::ConstraintMode::kNone;
  options_.slices.warmup.rho = options_.rho.value_or(experts::usual_rho(options_.precision));
  return true;
}

std::unique_ptr<experts::MissConstraint> Engine::make_constraint(const experts::LossGuard* guard) const {
  if (*options_.constraint == experts::ConstraintMode::kNone && !experts_->sliced()) return nullptr;
  experts::ConstraintConfig config = options_.limits;
  config.mode = *options_.constraint;
  if (config.mode != experts::ConstraintMode::kHard) config.lambda = options_.cache_aware.lambda;
  if (guard != nullptr) config.lambda = 0;  // the guard is not asked about routing that lambda changes
  config.top_j = options_.cache_aware.top_j;
  if (experts_->sliced())
    config.low = experts::least_parts(options_.precision);
  else
    config.low = config.high = kept_parts();
  return std::make_unique<experts::MissConstraint>(config, experts_->sizes(), guard);
}

DiskReport Engine::disk() const {
  const DiskCounters counters = files_->reader().counters(), rows = embedding_->counters();
  return {counters.bytes + rows.bytes, counters.requests + rows.requests, counters.busy_s + rows.busy_s,
          files_->reader().name()};
}

std::uint64_t Engine::decision_hash() const { return experts::decision_hash(policies().residencies); }

Bytes Engine::expert_disk_bytes() const {
  Bytes sum = 0;
  for (const model::ExpertPieces& pieces : model_.experts)
    sum += experts_->disk_bytes(
        {static_cast<std::uint16_t>(pieces.layer), static_cast<std::uint16_t>(pieces.index)});
  return model_.experts.empty() ? 0 : sum / model_.experts.size();
}

experts::Parts Engine::kept_parts() const {
  if (experts_->sliced() && options_.keep == "full") {  // caches of whole experts know one size
    const bool low =
        options_.precision == experts::PrecisionMode::kLow && !experts::find_cache(options_.cache).sliced;
    return low ? experts::Parts(experts::Part::kMsb) : experts::Part::kMsb | experts::Part::kLsb;
  }
  if (options_.keep == "full") return experts::Part::kFull;
  if (!experts_->split())
    throw Error(ErrorKind::kUsage,
                "caches cannot keep experts packed, because this model does not store them packed")
        .in(Setting::kKeep)
        .fix("keep them in full, or pack a BF16 model with any codec but none");
  return experts::Part::kSm | experts::Part::kExp;
}

Bytes Engine::expert_memory_bytes() const {
  Bytes sum = 0;
  for (const model::ExpertPieces& pieces : model_.experts)
    sum += experts_->sizes()
               .bytes({static_cast<std::uint16_t>(pieces.layer), static_cast<std::uint16_t>(pieces.index)})
               .of(kept_parts());
  return model_.experts.empty() ? 0 : sum / model_.experts.size();
}

ProfiledMachine Engine::machine() const {
  return {cpu_info().model, std::string(isa_name(kernels_.isa)),
          std::string(fetch::io_mode_name(options_.fetch.io)), pool_.threads()};
}

Profile Engine::measure(const MeasureOptions& options) {
  if (experts_->sliced())
    throw Error(ErrorKind::kUnsupported,
                "costs of experts in slices are not measured: no policy plans with them")
        .in(checkpoint_.path())
        .expected("a model directory, or a store of family raw or split")
        .found("family sliced");
  // Runs in any case: after a failed read the engine must still have its experts.
  struct Restore {
    Engine& engine;
    Statistics statistics = engine.statistics_;
    RoutingObserver* observer = engine.passes_->observer();
    ~Restore() {
      engine.moe_->decide_by(engine.decider_.get());
      engine.statistics_ = statistics;
      engine.passes_->observe(observer);
    }
  } restore{*this};
  moe_->decide_by(nullptr);
  passes_->observe(nullptr);  // these steps have no routing
  const std::unique_ptr<Sequence> sequence = new_sequence();
  if (model_.config.has_encoder()) encode(*sequence, std::vector<tokenizer::TokenId>{0});
  const auto step = [&] {
    sequence->clear();
    decode(*sequence, 0);
  };
  return measure_profile(
      {checkpoint_, model_, *files_, *experts_, pool_, kernels_, *accountant_, *workspace_, step}, machine(),
      options);
}

std::span<Candidate> Engine::candidates() const {
  return {workspace_->get().candidates, options_.draws ? model_.config.vocab : 0};
}

std::unique_ptr<Sequence> Engine::new_sequence() {
  return std::make_unique<Sequence>(
      sequences_made_++, model_.config, *kv_pool_, options_.positions,
      EncoderMemory(model_.config, cache_dtype(), options_.encoder_positions, *accountant_),
      [this](experts::SequenceId id) {
        if (decider_) decider_->end_sequence(id);  // none: still measuring
      });
}

bool Engine::encode(Sequence& sequence, std::span<const tokenizer::TokenId> tokens,
                    const std::function<bool()>& go_on) {
  SLUICE_CHECK(encoder_.keys != nullptr && passes_->open() == 0);
  return encode_input(forward_parts(), encoder_, sequence, tokens, go_on);
}

void Engine::locate_damage(const Error& error) {
  if (!kernels::is_damaged_weight(error)) return;
  const fetch::PieceDecoder decoder(*files_, pool_, kernels_.isa, checkpoint_.codec());
  weights_->check_codes(decoder);
}

ForwardParts Engine::forward_parts() {
  return {kernels_,
          model_.config,
          *weights_,
          rope_,
          *workspace_,
          *embedding_,
          *moe_,
          *experts_,
          statistics_,
          plan_.chunk,
          [this](const Error& error) { locate_damage(error); }};
}

void Engine::step(const Step& step, const LogitSink& sink) {
  if (!step.tokens.empty()) begin(step).finish(sink);
}

std::size_t Engine::prefill(Sequence& sequence, std::span<const tokenizer::TokenId> tokens,
                            const LogitSink& sink, const std::function<bool()>& go_on) {
  for (std::size_t begin = 0; begin < tokens.size(); begin += plan_.chunk) {
    if (go_on && !go_on()) return begin;
    const std::span<const tokenizer::TokenId> chunk =
        tokens.subspan(begin, std::min(plan_.chunk, tokens.size() - begin));
    const SequenceSpan span{&sequence, 0, chunk.size(), StepKind::kPrompt, begin == 0};
    step({chunk, {&span, 1}},
         {[&](std::size_t t) { return sink.wants(begin + t); },
          [&](std::size_t t, std::span<const float> logits) { sink.take(begin + t, logits); }});
  }
  return tokens.size();
}

void Engine::decode(Sequence& sequence, tokenizer::TokenId token, const LogitSink& sink) {
  const SequenceSpan span{&sequence, 0, 1, StepKind::kDecode};
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
