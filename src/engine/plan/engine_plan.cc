#include "engine/plan/engine_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "engine/plan/device_choice.h"
#include "engine/plan/settled_device.h"
#include "experts/decision_log.h"
#include "experts/routing/slice_names.h"
#include "kernels/gpu/gpu_formats.h"
#include "model/architecture.h"
#include "store/checkpoint.h"

namespace sluice::engine {
namespace {

using experts::PrecisionMode;

// For weights in slices and in codes of 8 bits. docs/slicemoe.md has its cost.
constexpr kernels::ActivationForm kUsualActivations = kernels::ActivationForm::kInt8;

experts::Family family_of_experts(store::Family family) {
  switch (family) {
    case store::Family::kRaw:
      return experts::Family::kRaw;
    case store::Family::kSplit:
      return experts::Family::kSplit;
    case store::Family::kSliced:
      return experts::Family::kSliced;
  }
  SLUICE_CHECK(false, std::string(store::family_name(family)));
}

// Names what the user asked for: nobody chose the parts of a preset one by one.
void check_preset(const EngineOptions& asked, const PolicyPlan& chosen, const ModelFacts& facts) {
  if (!asked.preset.is_chosen()) return;
  const std::string name(asked.preset.name());
  if (asked.preset.host().sliced() && !facts.sliced())
    throw Error(ErrorKind::kUsage, "this preset is for models in slices")
        .in(Setting::kPreset)
        .expected("a store of family sliced")
        .found(name + ", and " + facts.path + " has none")
        .fix("pack the model in slices: sluice pack MODEL " + flag(Setting::kOutput) + " NAME.sluice " +
             flag(Setting::kSlices) + " 8/4");
  if (facts.sliced() && asked.scheduler.empty() && chosen.scheduler->by_costs)
    throw Error(ErrorKind::kUsage, "this preset is for models without slices")
        .in(Setting::kPreset)
        .expected("a model directory, or a store of family raw or split")
        .found(name + ", and " + facts.path + " is of family sliced")
        .fix("use the preset slicemoe, or none");
}

// Rounded weights are used only if the user asked for them, and only as asked.
void check_precision(PrecisionMode chosen, const ModelFacts& facts) {
  if (!facts.slices || chosen != PrecisionMode::kFull) return;
  throw Error(ErrorKind::kUsage, "the experts of this store are rounded, and no precision was chosen")
      .in(facts.path)
      .expected(Setting::kPrecision + " high, low or dbsc, " + Setting::kPreset + " slicemoe, or " +
                Setting::kMaxLoss)
      .found(
          fmt::format("family sliced, {}/{} bits, and none of these", facts.slices->high, facts.slices->low))
      .fix("give " + Setting::kPrecision +
           " high to use every stored bit, or run the model that the store was packed from");
}

// Empty for a model without weights in codes or blocks. Blocks are multiplied with fp32, unless the user says
// otherwise.
std::optional<kernels::ActivationForm> activations_of(const EngineOptions& options, const ModelFacts& facts) {
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
  const bool codes = facts.slices.has_value();  // only such stores have dense matrices in codes
  if (!codes && !facts.blocks) {
    if (wanted)
      throw refuse(
          "this model has no weights in slices, 8-bit codes or blocks of codes, so its activations "
          "are always fp32",
          "a store of family sliced, or a model in types such as Q8_0, Q4_K or MXFP4",
          "leave " + Setting::kActivations + " out");
    return std::nullopt;
  }
  if (exact && wanted == ActivationForm::kInt8)
    throw refuse(Setting::kMath + " f32 computes everything in fp32", "fp32",
                 "leave out " + Setting::kActivations + " or " + Setting::kMath);
  return wanted.value_or(exact || !codes ? ActivationForm::kF32 : kUsualActivations);
}

void check_kv_tokens(const EngineOptions& options) {
  if (!options.kv_tokens || *options.kv_tokens >= options.positions) return;
  throw Error(ErrorKind::kUsage, "the key/value cache has no room for the context of one sequence")
      .in(Setting::kKvTokens)
      .expected(fmt::format("at least {} positions", options.positions))
      .found(std::to_string(*options.kv_tokens))
      .fix("raise " + Setting::kKvTokens + ", or lower " + Setting::kContext);
}

bool is_in_blocks(const store::TensorInfo& tensor) {
  return tensor.format != nullptr && tensor.format->input == codec::InputForm::kBlocks;
}

experts::Parts kept_parts(Keep keep, const PolicyPlan& policies, const ModelFacts& facts) {
  using experts::Part;
  if (facts.sliced() && keep == Keep::kFull)
    return experts::kept_slices(policies.precision.mode, policies.cache->sliced);
  if (keep == Keep::kFull) return Part::kFull;
  if (!facts.split)
    throw Error(ErrorKind::kUsage,
                "caches cannot keep experts packed, because this model does not store them packed")
        .in(Setting::kKeep)
        .expected("a store of family split")
        .found(facts.path + (facts.sliced() ? ", of family sliced" : ", which has its experts whole"))
        .fix("keep them in full, or pack a BF16 model with any codec but none");
  return Part::kSm | Part::kExp;
}

// Adds what follows from how the experts are stored. Error(kUsage).
void complete(PolicyPlan& policies, Keep keep, const ModelFacts& facts) {
  check_policies(policies, facts.family);
  policies.precision.critical.validate(facts.top_k);
  policies.cache_aware.validate_for(facts.experts);
  policies.smoe.validate();
  policies.kept = kept_parts(keep, policies, facts);
  experts::ConstraintConfig& limits = policies.limits;
  if (facts.sliced())
    experts::set_views(policies.precision.mode, limits);
  else
    limits.low = limits.high = policies.kept;
}

PolicyPlan without_loss(PolicyPlan policies, const EngineOptions& options) {
  policies.contract->planned_low = 0;
  if (policies.precision.mode != PrecisionMode::kFull) policies.precision.mode = PrecisionMode::kHigh;
  policies.router = experts::Named<experts::RouterPolicy>("exact").row();
  policies.limits.mode = experts::ConstraintMode::kNone;
  policies.slices.warmup.rho = options.rho.value_or(experts::usual_rho(PrecisionMode::kHigh));
  return policies;
}

// What is always there need not be foretold.
PolicyPlan without_learning(PolicyPlan policies) {
  constexpr experts::Named<experts::CachePolicy> kPools = "zip-pools", kWhole = "lru";
  policies.cache = policies.cache->pooled ? kPools.row() : kWhole.row();
  policies.learns_unasked = false;
  return policies;
}

EnginePlan resolve_settled(const EngineOptions& asked, const ModelFacts& facts) {
  const SlotChoice slots = choose_slots(asked, facts);
  EngineOptions options = asked;
  options.keep = asked.keep.value_or(slots.packed ? Keep::kPacked : Keep::kFull);
  EnginePlan plan;
  plan.memory = options.memory;
  plan.threads = options.threads;
  plan.isa = parse_isa(options.isa);
  plan.math = options.math;
  plan.kv = options.kv;
  plan.cache_dtype = options.cache_dtype();
  plan.policies = choose_policies(options, facts.packed_states(), facts.sliced());
  check_preset(options, plan.policies, facts);
  check_precision(plan.policies.precision.mode, facts);
  plan.activations = activations_of(options, facts);
  if (options.contract) plan.where_all_fits = without_loss(plan.policies, options);
  if (!plan.where_all_fits && plan.policies.learns_unasked)
    plan.where_all_fits = without_learning(plan.policies);
  complete(plan.policies, *options.keep, facts);
  if (plan.where_all_fits) complete(*plan.where_all_fits, *options.keep, facts);
  if (options.chunk == 0)
    throw Error(ErrorKind::kUsage, "unknown value")
        .in(Setting::kChunk)
        .expected("at least 1")
        .found("0")
        .fix("give such a number");
  plan.chunk = options.chunk;
  plan.positions = options.positions;
  plan.encoder_positions = facts.has_encoder ? std::max<std::size_t>(options.encoder_positions, 1) : 0;
  plan.sequences = options.sequences;
  check_kv_tokens(options);
  plan.kv_tokens = options.kv_tokens;
  plan.serve = options.serve;
  plan.suspended_passes = options.suspended_passes;
  plan.draft = options.draft;
  plan.draws = options.draws;
  plan.cache_scope = options.cache_scope;
  plan.keep = *options.keep;
  plan.dense = options.dense;
  plan.profile = options.profile;
  plan.profile_if_it_fits = options.profile_if_it_fits;
  plan.stop = options.stop;
  plan.ranks = options.ranks;
  plan.residual_name = options.residual_name;
  plan.seed = options.seed;
  plan.recording = options.recording;
  plan.low_view = options.low_view;
  plan.cache_bytes = options.cache_bytes;
  plan.less_cache_will_do = options.less_cache_will_do;
  plan.formats = options.formats;
  plan.fetch = options.fetch;
  plan.device = device_of(options, facts);
  if (!plan.device) return plan;
  check_device_math(options, plan.policies);
  plan.device->prefetch_size = prefetch_size_of(options, plan.policies, facts);
  plan.device->slot_form = facts.sliced() ? choose_slice_slots(options, plan.policies.precision.mode) : slots;
  plan.device->copies_packed = facts.packable && plan.keep == Keep::kPacked;
  if (plan.device->experts_lack.all()) leave_experts_to_host(plan);
  return plan;
}

EnginePlan without_device(EngineOptions options, const ModelFacts& facts, std::string why) {
  drop_device(options, why);
  EnginePlan plan = resolve_settled(options, facts);
  plan.no_device = std::move(why);
  return plan;
}

// Nobody has asked for the device: what does not go with it goes before it.
EnginePlan resolve_with_found(const EngineOptions& options, const ModelFacts& facts) {
  const bool placed = !options.placement.empty() && options.placement->needs_device;
  const bool named = given_device_setting(options) || options.preset.device() != nullptr || placed;
  if (named) return resolve_settled(options, facts);
  if (!facts.has_experts) return without_device(options, facts, "");
  if (facts.gpus_lack.all())
    return without_device(options, facts, "a GPU has no kernels for experts in " + facts.gpus_lack.formats);
  try {
    EnginePlan plan = resolve_settled(options, facts);
    plan.without_device = std::make_shared<const EnginePlan>(without_device(options, facts, ""));
    return plan;
  } catch (const Error& error) {
    return without_device(options, facts, error.what());
  }
}

}  // namespace

std::string_view SlotChoice::form() const {
  return !slices.empty() ? experts::parts_name(slices) : packed ? "packed" : "full";
}

ModelFacts facts_of(const store::Checkpoint& checkpoint, const model::Model& model) {
  ModelFacts facts{.path = checkpoint.path(),
                   .slices = checkpoint.slices(),
                   .blocks = std::ranges::any_of(checkpoint.tensors(), is_in_blocks),
                   .family = family_of_experts(checkpoint.family()),
                   .has_experts = !model.experts.empty(),
                   .has_encoder = model.config.has_encoder(),
                   .experts = model.config.moe.experts,
                   .top_k = model.config.moe.top_k};
  const auto all = [&](const auto& property) {
    return std::ranges::all_of(model.experts, [&](const model::ExpertPieces& pieces) {
      return std::ranges::all_of(
          pieces.all(), [&](const store::Piece& piece) { return property(checkpoint.locate(piece)); });
    });
  };
  facts.split = all([](const store::StoredPiece& piece) { return piece.coded(); });
  facts.packable = all([](const store::StoredPiece& piece) { return piece.coded() && piece.own_columns; });
  facts.gpus_lack = experts_lacking(checkpoint, model, [](const codec::MatrixFormat* format) {
    return format != nullptr && kernels::gpu_multiplies(*format);
  });
  return facts;
}

EnginePlan resolve(const EngineOptions& asked, const ModelFacts& facts) {
  EngineOptions options = asked;
  settle_device(options);
  return options.device_is_found ? resolve_with_found(options, facts) : resolve_settled(options, facts);
}

EnginePlan resolve(const EngineOptions& options, const store::Checkpoint& checkpoint,
                   const model::Model& model) {
  return resolve(options, facts_of(checkpoint, model));
}

}  // namespace sluice::engine
