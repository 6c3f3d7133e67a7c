// The parts of an engine that depend on its budget: the plan, and the dense weights and caches that follow
// from it.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/compared_bytes.h"
#include "base/error.h"
#include "base/machine/system_memory.h"
#include "base/setting.h"
#include "engine/engine.h"
#include "experts/registry.h"
#include "kernels/products/format_kernels.h"
#include "kernels/products/input_form.h"
#include "kernels/products/packed/packed_matmul.h"

namespace sluice::engine {

const Profile* Engine::given_profile() const {
  if (experts_->sliced()) return nullptr;
  if (!options_.profile || model_.experts.empty()) return nullptr;
  const bool fit = fits(*options_.profile, profiled_model(checkpoint_, model_, *experts_), machine());
  return fit ? &*options_.profile : nullptr;
}

void Engine::plan_with_dense(std::size_t logit_rows) {
  DenseQuestion question;
  question.either_way = DenseWeights::either_way_bytes(checkpoint_, model_);
  if (options_.dense != "auto" || question.either_way == 0) {
    const DenseView asked = options_.dense == "packed" ? DenseView::kPacked : DenseView::kWords;
    dense_choice_ = options_.dense == "auto" ? choose_dense_view(question, nullptr)
                                             : asked_dense_view(asked, question.either_way,
                                                                checkpoint_.path(), checkpoint_.codec());
    plan_ = make_plan(logit_rows, dense_choice_.view);
    return;
  }
  const MemoryPlan packed = make_plan(logit_rows, DenseView::kPacked);
  std::optional<MemoryPlan> words;
  try {
    words = make_plan(logit_rows, DenseView::kWords);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBudget) throw;
  }
  const Bytes expert = std::max<Bytes>(experts_->bytes_per_expert(), 1);
  question.packed = packed.dense;
  question.words = DenseWeights::resident_bytes(checkpoint_, model_, DenseView::kWords) +
                   Embedding::resident_bytes(checkpoint_, model_);
  question.words_fit = words.has_value();
  question.fast_packed = kernels::multiplies_packed(kernels_.isa);
  question.experts_beside_packed = packed.experts / expert;
  question.experts_beside_words = words ? words->experts / expert : 0;
  dense_choice_ = choose_dense_view(question, given_profile());
  plan_ = dense_choice_.view == DenseView::kPacked ? packed : *words;
}

WorkspaceShape Engine::workspace_shape(std::size_t logit_rows, std::size_t chunk) const {
  return {.tokens = chunk,
          .positions = options_.positions,
          .encoder_positions = options_.encoder_positions,
          .logit_rows = logit_rows,
          .threads = pool_.threads(),
          .dense = kernels::input_forms_of(dense_formats_),
          .experts = kernels::input_forms_of(experts_->formats()),
          .draws = options_.draws,
          .passes = 1 + options_.suspended_passes};
}

bool Engine::has_format(bool (*wanted)(const kernels::FormatRow& row)) const {
  const auto any = [&](std::span<const codec::MatrixFormat* const> formats) {
    return std::ranges::any_of(formats, [&](const codec::MatrixFormat* format) {
      return wanted(kernels::format_row(kernels_, format));
    });
  };
  return any(dense_formats_) || any(experts_->formats());
}

kernels::ScratchShape Engine::scratch_shape(DenseView dense, std::size_t chunk) const {
  kernels::ScratchShape shape;
  shape.tokens = chunk;
  shape.columns = widest_columns(model_.config);
  shape.coded = checkpoint_.slices().has_value();
  shape.packed = (experts_->can_be_packed() && !model_.experts.empty()) ||
                 (dense == DenseView::kPacked && DenseWeights::either_way_bytes(checkpoint_, model_) > 0);
  shape.wide = kernels_.rounds() && has_format([](const kernels::FormatRow& row) {
                 return row.format->words && row.driver->widens;
               });
  shape.decoded =
      has_format([](const kernels::FormatRow& row) { return row.driver == &kernels::kDecodedProducts; });
  return shape;
}

void Engine::check_formats() {
  dense_formats_ = DenseWeights::formats(checkpoint_, model_);
  const auto check = [&](std::span<const codec::MatrixFormat* const> formats) {
    for (const codec::MatrixFormat* const format : formats)
      if (!kernels::has_kernels(kernels_, format))
        throw Error(ErrorKind::kUnsupported, "the model has matrices in a format without kernels")
            .in(checkpoint_.path())
            .found(std::string(format->name))
            .fix("use a newer version of Sluice");
  };
  check(dense_formats_);
  check(experts_->formats());
}

MemoryPlan Engine::make_plan(std::size_t logit_rows, DenseView dense) {
  struct Shape {
    const Engine& engine;
    std::size_t logit_rows;
    kernels::ScratchShape scratch;
  } shape{*this, logit_rows, scratch_shape(dense, 0)};

  MemoryNeeds needs;
  // The tables' size is the growth of the heap: tokenizer, tensor tables, policies.
  trim_heap();
  const Bytes heap = heap_in_use();
  needs.tables = heap > process_baseline().heap ? round_up(heap - process_baseline().heap, kBlockBytes) : 0;
  needs.tables += options_.recording;
  needs.dense = DenseWeights::resident_bytes(checkpoint_, model_, dense) +
                Embedding::resident_bytes(checkpoint_, model_);
  needs.load_staging = DenseWeights::load_staging_bytes(checkpoint_, model_, dense);
  needs.kv = kv_bytes(model_.config, cache_dtype(), options_.sequences, options_.positions,
                      options_.encoder_positions);
  needs.least_staging = experts_->least_staging();
  needs.staging_per_expert = experts_->staging_per_expert();
  needs.expert_bytes = experts_->bytes_per_expert();
  needs.experts = model_.experts.size();
  needs.top_k = model_.config.moe.top_k;
  needs.sequences = options_.sequences;
  needs.most_chunk = std::max(
      options_.sequences, std::min(options_.chunk, std::max(options_.positions, options_.encoder_positions)));
  needs.same_chunk = options_.cache_bytes.has_value();
  needs.self = &shape;
  needs.activations = [](const void* self, std::size_t chunk) {
    Shape shape = *static_cast<const Shape*>(self);
    shape.scratch.tokens = chunk;
    return workspace_bytes(shape.engine.model_.config,
                           shape.engine.workspace_shape(shape.logit_rows, chunk)) +
           round_up(kernels::Scratch::bytes(shape.engine.kernels_, shape.scratch), kBlockBytes);
  };
  const Bytes all = needs.dense + needs.kv + needs.experts * (needs.expert_bytes + needs.staging_per_expert) +
                    needs.activations(&shape, needs.most_chunk);
  needs.process = process_bytes(std::min(accountant_->budget(), all));
  return plan_memory(accountant_->budget(), needs);
}

Bytes Engine::least_kept_bytes() const {
  const experts::CachePolicy& cache = experts::find_cache(options_.cache);
  experts::Parts least = kept_parts();
  if (cache.sliced) least = experts::Part::kMsb;
  if (cache.pooled && experts_->split()) least = experts::Part::kExp;
  Bytes bytes = std::numeric_limits<Bytes>::max();
  for (const model::ExpertPieces& pieces : model_.experts)
    bytes = std::min(bytes, experts_->sizes()
                                .bytes({static_cast<std::uint16_t>(pieces.layer),
                                        static_cast<std::uint16_t>(pieces.index)})
                                .of(least));
  return model_.experts.empty() ? 0 : bytes;
}

void Engine::limit_caches(Bytes bytes) {
  const std::size_t caches = cache_count();
  if (const Bytes least = least_kept_bytes() * caches;
      !options_.less_cache_will_do && bytes > 0 && bytes < least)
    throw Error(ErrorKind::kUsage, "nothing of an expert fits in a cache of this size")
        .in(Setting::kCapacity)
        .expected(
            fmt::format("at least {}B{}", least, caches > 1 ? fmt::format(", for {} caches", caches) : ""))
        .found(fmt::format("{}B", bytes))
        .fix("give more, or 0 to keep nothing");
  const Bytes all = model_.experts.size() * experts_->bytes_per_expert();
  if (!options_.less_cache_will_do && plan_.experts < std::min(bytes, all)) {
    const ComparedBytes sizes = compared_bytes(bytes, plan_.experts);
    throw Error(ErrorKind::kBudget, "the memory budget leaves less for experts than was asked for")
        .in(Setting::kCapacity)
        .expected("at most " + sizes.found)
        .found(sizes.expected)
        .fix("raise " + Setting::kMemory + ", or lower " + Setting::kCapacity);
  }
  plan_.experts = std::min(plan_.experts, bytes);
}

}  // namespace sluice::engine
