#include "engine/engine_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/compared_bytes.h"
#include "base/error.h"
#include "base/machine/system_memory.h"
#include "base/setting.h"
#include "codec/exponents/plane_decoder.h"
#include "engine/forward/dense/dense_weights.h"
#include "engine/forward/embedding.h"
#include "engine/session/attention_dims.h"
#include "engine/session/encoder_memory.h"
#include "engine/session/kv_pool.h"
#include "experts/prefetch/prefetch.h"
#include "fetch/dense/layout_reads.h"
#include "kernels/products/format_kernels.h"
#include "kernels/products/input_form.h"
#include "kernels/products/packed/packed_matmul.h"

namespace sluice::engine {
namespace {

experts::ExpertId id_of(const model::ExpertPieces& pieces) {
  return {static_cast<std::uint16_t>(pieces.layer), static_cast<std::uint16_t>(pieces.index)};
}

bool computes_layers_ahead(const EnginePlan& plan) {
  const auto asks = [](const PolicyPlan& policies) {
    return policies.prefetch->predictor == experts::PredictorKind::kPartial;
  };
  return asks(plan.policies) || (plan.where_all_fits && asks(*plan.where_all_fits));
}

// Whether some matrix that is multiplied with is in a format for whose row of kernels `wanted` is true.
template <class Wanted>
bool has_format(const BudgetParts& parts, const Wanted& wanted) {
  const auto any = [&](std::span<const codec::MatrixFormat* const> formats) {
    return std::ranges::any_of(formats, [&](const codec::MatrixFormat* format) {
      return wanted(kernels::format_row(parts.kernels, format));
    });
  };
  return any(parts.dense_formats) || any(parts.experts.facts().formats);
}

Bytes dense_bytes(const BudgetParts& parts, DenseView dense) {
  return DenseWeights::resident_bytes(parts.checkpoint, parts.model, dense, parts.dense_there) +
         Embedding::resident_bytes(parts.checkpoint, parts.model, parts.dense_there);
}

// What a cache that learns remembers of all layers.
Bytes learned_bytes(const PolicyPlan& policies, const model::ModelConfig& config) {
  if (policies.cache->bytes_of_layer == nullptr) return 0;
  return round_up(config.sparse_layers() * policies.cache->bytes_of_layer(config.moe.experts), kBlockBytes);
}

// What requests take that run together, besides keys and values: each by itself (a short one about 2.9 KiB),
// and its tokens with their text and what is known of them.
Bytes request_bytes(const EnginePlan& plan) {
  constexpr Bytes kRequest = 3072, kToken = 16;
  return plan.sequences * kRequest + kv_rows(plan) * kToken;
}

// The growth of the heap: tokenizer, tensor tables. The memory of requests, observers and caches besides.
Bytes table_bytes(const EnginePlan& plan, const model::ModelConfig& config) {
  trim_heap();
  const Bytes heap = heap_in_use(), at_start = process_baseline().heap;
  return (heap > at_start ? round_up(heap - at_start, kBlockBytes) : 0) + request_bytes(plan) +
         plan.recording + learned_bytes(plan.policies, config);
}

// What the threads that decode keep for that.
Bytes decoding_bytes(const BudgetParts& parts) {
  const Bytes of_each =
      codec::kept_decoding_bytes(parts.checkpoint.codec(), widest_columns(parts.model.config));
  return round_up(parts.kernels.pool->threads() * of_each, kBlockBytes);
}

Bytes kv_need(const EnginePlan& plan, const model::ModelConfig& config) {
  return KvPool::bytes(config, plan.cache_dtype, kv_rows(plan)) +
         plan.sequences * EncoderMemory::bytes(config, plan.cache_dtype, plan.encoder_positions);
}

// Tokens of the longest prompts that one step must be able to have.
std::size_t longest_step(const EnginePlan& plan) {
  const std::size_t tokens = plan.kv_tokens ? kv_rows(plan) : plan.positions;
  return std::max(plan.sequences, std::min(plan.chunk, std::max(tokens, plan.encoder_positions)));
}

// Those of prompts of all sequences in one step, where their activations are a small part of the budget: what
// they take, the cache of experts lacks in every step.
std::size_t shared_step(const EnginePlan& plan, const MemoryNeeds& needs, Bytes budget) {
  constexpr Bytes kShare = 32;
  std::size_t tokens = std::min(plan.chunk, plan.positions * plan.sequences);
  while (tokens > needs.most_chunk && needs.activations(needs.self, tokens) > budget / kShare) tokens /= 2;
  return std::max(tokens, needs.most_chunk);
}

MemoryPlan memory_plan(const BudgetParts& parts, Bytes budget, DenseView dense) {
  struct Shape {
    const BudgetParts& parts;
    kernels::ScratchShape scratch;
  } shape{parts, scratch_shape(parts, dense, 0)};

  const EnginePlan& plan = parts.plan;
  const model::ModelConfig& config = parts.model.config;
  MemoryNeeds needs;
  needs.tables = table_bytes(plan, config);
  needs.dense = dense_bytes(parts, dense);
  needs.load_staging =
      DenseWeights::load_staging_bytes(parts.checkpoint, parts.model, dense, parts.dense_there);
  if (plan.fetch.io != fetch::IoMode::kDirect) needs.load_staging += fetch::kMostPages;
  needs.serve = plan.serve;
  needs.server = {.context = plan.positions, .kv_tokens = kv_rows(plan), .parallel = plan.sequences};
  if (!parts.dense_there) {
    needs.kv = kv_need(plan, config);
    needs.kv_per_token = kv_bytes_per_token(config, plan.cache_dtype);
  }
  needs.least_staging = std::max(parts.experts.staging_needs().least,
                                 parts.dense_there ? relative_bias_bytes(config, plan) : Bytes{0});
  needs.staging_per_expert = parts.experts.staging_needs().per_expert;
  needs.expert_bytes = parts.experts.facts().largest_resident;
  needs.experts = parts.model.experts.size();
  needs.top_k = config.moe.top_k;
  needs.sequences = plan.sequences;
  needs.most_chunk = std::max(plan.sequences, std::min(longest_step(plan), parts.most_chunk));
  needs.same_chunk = plan.cache_bytes.has_value();
  needs.self = &shape;
  needs.activations = [](const void* self, std::size_t chunk) {
    Shape shape = *static_cast<const Shape*>(self);
    shape.scratch.tokens = chunk;
    return workspace_bytes(shape.parts.model.config, workspace_shape(shape.parts, chunk)).host +
           round_up(kernels::Scratch::bytes(shape.parts.kernels, shape.scratch), kBlockBytes);
  };
  if (!plan.kv_tokens)
    needs.most_chunk = std::min(shared_step(plan, needs, budget), std::max(parts.most_chunk, plan.sequences));
  // A budget that is too small is told what suffices, so its page tables are those of the least that does.
  const std::size_t least_chunk = std::min(engine::least_chunk(needs.sequences), needs.most_chunk);
  const Bytes least = needs.dense + needs.kv + needs.serve + needs.tables + needs.least_staging +
                      needs.activations(&shape, least_chunk);
  const Bytes all = needs.dense + needs.kv + needs.serve +
                    needs.experts * (needs.expert_bytes + needs.staging_per_expert) +
                    needs.activations(&shape, needs.most_chunk);
  needs.process = process_bytes(std::min(std::max(budget, least), all)) + decoding_bytes(parts);
  return plan_memory(budget, needs);
}

// Divides beside either view of the dense matrices, and chooses.
DividedBudget divide_with_best_dense(const BudgetParts& parts, Bytes budget, DenseQuestion question,
                                     const Profile* profile) {
  const MemoryPlan packed = memory_plan(parts, budget, DenseView::kPacked);
  std::optional<MemoryPlan> words;
  try {
    words = memory_plan(parts, budget, DenseView::kWords);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBudget) throw;
  }
  const Bytes expert = std::max<Bytes>(parts.experts.facts().largest_resident, 1);
  question.packed = packed.dense;
  question.words = dense_bytes(parts, DenseView::kWords);
  question.words_fit = words.has_value();
  question.fast_packed = kernels::multiplies_packed(parts.kernels.isa);
  question.experts_beside_packed = packed.experts / expert;
  question.experts_beside_words = words ? words->experts / expert : 0;
  const DenseChoice choice = choose_dense_view(question, profile);
  return {choice.view == DenseView::kPacked ? packed : *words, choice};
}

DividedBudget divide_with_dense(const BudgetParts& parts, Bytes budget, const Profile* profile) {
  DenseQuestion question;
  question.either_way = DenseWeights::either_way_bytes(parts.checkpoint, parts.model);
  const DenseForm asked = parts.plan.dense;
  if (parts.dense_there && asked == DenseForm::kAuto)
    return {memory_plan(parts, budget, DenseView::kWords), {DenseView::kWords, "on a device, words"}};
  if (asked == DenseForm::kAuto && question.either_way != 0)
    return divide_with_best_dense(parts, budget, question, profile);
  const DenseView view = asked == DenseForm::kPacked ? DenseView::kPacked : DenseView::kWords;
  const DenseChoice choice =
      asked == DenseForm::kAuto
          ? choose_dense_view(question, nullptr)
          : asked_dense_view(view, question.either_way, parts.checkpoint.path(), parts.checkpoint.codec());
  return {memory_plan(parts, budget, choice.view), choice};
}

// Bytes of the least that the caches keep of an expert.
Bytes least_kept_bytes(const BudgetParts& parts) {
  const PolicyPlan& policies = parts.plan.policies;
  experts::Parts least = policies.kept;
  if (policies.cache->sliced) least = experts::Part::kMsb;
  if (policies.cache->pooled && parts.experts.facts().split) least = experts::Part::kExp;
  Bytes bytes = std::numeric_limits<Bytes>::max();
  for (const model::ExpertPieces& pieces : parts.model.experts)
    bytes = std::min(bytes, parts.experts.sizes().bytes(id_of(pieces)).of(least));
  return parts.model.experts.empty() ? 0 : bytes;
}

// The bytes for experts, of which the user asked for `asked`.
Bytes limited(const BudgetParts& parts, Bytes asked, Bytes room) {
  const bool exactly = !parts.plan.less_cache_will_do;
  const std::size_t caches = cache_count(parts.plan, parts.model.config);
  const Bytes least = least_kept_bytes(parts) * caches;
  if (exactly && asked > 0 && asked < least)
    throw Error(ErrorKind::kUsage, "nothing of an expert fits in a cache of this size")
        .in(Setting::kCapacity)
        .expected(
            fmt::format("at least {}B{}", least, caches > 1 ? fmt::format(", for {} caches", caches) : ""))
        .found(fmt::format("{}B", asked))
        .fix("give more, or 0 to keep nothing");
  const Bytes all = parts.model.experts.size() * parts.experts.facts().largest_resident;
  if (exactly && room < std::min(asked, all)) {
    const ComparedBytes sizes = compared_bytes(asked, room);
    throw Error(ErrorKind::kBudget, "the memory budget leaves less for experts than was asked for")
        .in(Setting::kCapacity)
        .expected("at most " + sizes.found)
        .found(sizes.expected)
        .fix("raise " + Setting::kMemory + ", or lower " + Setting::kCapacity);
  }
  return std::min(room, asked);
}

}  // namespace

void check_formats(const BudgetParts& parts) {
  const auto check = [&](std::span<const codec::MatrixFormat* const> formats) {
    for (const codec::MatrixFormat* const format : formats)
      if (!kernels::has_kernels(parts.kernels, format))
        throw Error(ErrorKind::kUnsupported, "the model has matrices in a format without kernels")
            .in(parts.checkpoint.path())
            .found(std::string(format->name))
            .fix("use a newer version of Sluice");
  };
  check(parts.dense_formats);
  check(parts.experts.facts().formats);
}

WorkspaceShape workspace_shape(const BudgetParts& parts, std::size_t chunk) {
  const EnginePlan& plan = parts.plan;
  return {.tokens = chunk,
          .positions = plan.positions,
          .encoder_positions = plan.encoder_positions,
          .logit_rows = parts.logit_rows,
          .threads = parts.dense_there ? plan.device->spec.attention_items() : parts.kernels.pool->threads(),
          .apart = parts.dense_there,
          .dense = kernels::input_forms_of(parts.dense_formats),
          .experts = kernels::input_forms_of(parts.experts.facts().formats),
          .draws = plan.draws,
          .passes = 1 + plan.suspended_passes,
          .ahead_tokens = computes_layers_ahead(plan) ? std::min(plan.sequences, chunk) : 0};
}

kernels::ScratchShape scratch_shape(const BudgetParts& parts, DenseView dense, std::size_t chunk) {
  kernels::ScratchShape shape;
  shape.tokens = chunk;
  shape.columns = widest_columns(parts.model.config);
  shape.coded = parts.checkpoint.slices().has_value();
  shape.packed =
      (parts.experts.facts().can_be_packed && !parts.model.experts.empty()) ||
      (dense == DenseView::kPacked && DenseWeights::either_way_bytes(parts.checkpoint, parts.model) > 0);
  shape.wide = parts.kernels.rounds() && has_format(parts, [](const kernels::FormatRow& row) {
                 return row.format->words && row.driver->widens;
               });
  shape.decoded = has_format(parts, [&parts](const kernels::FormatRow& row) {
    return row.driver == &kernels::kDecodedProducts && row.of(parts.kernels.isa).blocks == nullptr;
  });
  return shape;
}

Bytes relative_bias_bytes(const model::ModelConfig& config, const EnginePlan& plan) {
  if (config.attention.relative.buckets == 0) return 0;
  const std::size_t encoder = plan.encoder_positions == 0 ? 0 : 2 * plan.encoder_positions - 1;
  return round_up(AttentionDims(config.attention).heads * std::max(plan.positions, encoder) * sizeof(float),
                  kBlockBytes);
}

std::size_t kv_rows(const EnginePlan& plan) {
  return plan.kv_tokens ? round_up(*plan.kv_tokens, kernels::kCacheBlock)
                        : KvPool::rows_for(plan.sequences, plan.positions);
}

std::size_t cache_count(const EnginePlan& plan, const model::ModelConfig& config) {
  return plan.cache_scope == CacheScope::kLayer ? config.sparse_layers() : 1;
}

DividedBudget divide_budget(const BudgetParts& parts, Bytes budget, const Profile* profile) {
  DividedBudget divided = divide_with_dense(parts, budget, profile);
  Bytes& room = divided.memory.experts;
  if (parts.plan.cache_bytes) room = limited(parts, *parts.plan.cache_bytes, room);
  divided.all_experts_fit = room >= parts.model.experts.size() * parts.experts.facts().largest_resident;
  return divided;
}

}  // namespace sluice::engine
