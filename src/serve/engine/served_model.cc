#include "serve/engine/served_model.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/json/json.h"
#include "base/machine/cpu.h"
#include "engine/model_identity.h"
#include "engine/run_report.h"
#include "experts/routing/precision.h"
#include "tokenizer/chat/chat_sources.h"

namespace sluice::serve {
namespace {

// Equal for servers that give the same bits: of version, arithmetic and model.
std::string fingerprint(const engine::Engine& engine, const std::string& version) {
  const engine::EnginePlan& plan = engine.report().plan;
  const std::string facts = fmt::format("{} {} {} {} {} {}", version, isa_name(plan.isa),
                                        static_cast<int>(plan.math), static_cast<int>(plan.cache_dtype),
                                        plan.activations ? engine::activations_name(*plan.activations) : "",
                                        engine::model_identity(engine));
  return fmt::format("sluice-{}-{:08x}", version, XXH3_64bits(facts.data(), facts.size()) & 0xFFFFFFFF);
}

std::optional<std::string> lossy_modes(const engine::PolicyPlan& policies) {
  Json lossy = Json::object();
  if (policies.router->lossy) {
    lossy["router"] = policies.router->name;
    if (policies.router->name == "smoe") lossy["alpha"] = policies.smoe.alpha;
  }
  if (policies.precision.mode == experts::PrecisionMode::kDbsc)
    lossy["precision"] = experts::precision_name(policies.precision.mode);
  if (policies.limits.mode != experts::ConstraintMode::kNone)
    lossy["constraint"] = experts::constraint_name(policies.limits.mode);
  return lossy.empty() ? std::nullopt : std::optional(lossy.dump());
}

std::optional<std::string> named(const tokenizer::ChatSources& sources, std::string_view name) {
  for (const auto& [token, content] : sources.tokens)
    if (token == name) return content;
  return std::nullopt;
}

}  // namespace

std::shared_ptr<const Served> served_model(const LoadedModel& model, const EngineBackendOptions& options,
                                           const tokenizer::AnswerFormat& format) {
  auto served = std::make_shared<Served>();
  served->context = model.engine->report().plan.positions;
  served->vocabulary = model.model.config.vocab;
  served->parallel = model.engine->report().plan.sequences;
  served->queue = options.queue;
  served->defaults = model.defaults;
  served->fingerprint = fingerprint(*model.engine, options.version);
  served->lossy = lossy_modes(model.engine->report().policies);
  served->tokenizer = model.tokenizer.get();
  served->chat = model.chat.get();
  served->chat_failure = model.chat_failure;
  served->answer_format = format;
  served->trust_special = options.trust_special;
  served->bytes_of = [tokenizer = model.tokenizer.get()](tokenizer::TokenId id) {
    return tokenizer != nullptr ? tokenizer->bytes_of(id) : std::string();
  };
  const tokenizer::ChatSources sources = tokenizer::read_chat_sources(*model.checkpoint);
  served->tokenizer_class =
      sources.tokenizer_class.empty() ? "PreTrainedTokenizerFast" : sources.tokenizer_class;
  served->bos_token = named(sources, "bos_token");
  served->eos_token = named(sources, "eos_token");
  served->pad_token = named(sources, "pad_token");
  return served;
}

std::vector<std::string> build_labels(const LoadedModel& model, const EngineBackendOptions& options,
                                      const Served& served) {
  const engine::EnginePlan& plan = model.engine->report().plan;
  return {options.version, std::string(isa_name(plan.isa)), plan.math == engine::Math::kF32 ? "f32" : "auto",
          std::string(dtype_name(plan.cache_dtype)), served.fingerprint};
}

ModelCard model_card(const LoadedModel& model, ModelCard card) {
  const model::ModelConfig& config = model.model.config;
  CardMeta& meta = card.meta.emplace();
  meta.n_ctx = model.engine->report().plan.positions;
  meta.n_ctx_train = config.max_positions;
  for (const store::TensorInfo& tensor : model.checkpoint->tensors()) meta.n_params += tensor.elements();
  std::error_code ignored;
  for (const std::string& file : model.checkpoint->weight_files()) {
    const std::uintmax_t bytes = std::filesystem::file_size(file, ignored);
    if (!ignored) meta.size += bytes;
  }
  meta.n_experts = config.moe.experts;
  meta.n_experts_used = config.moe.top_k;
  meta.architecture = config.model_type;
  meta.family = store::family_name(model.checkpoint->family());
  return card;
}

}  // namespace sluice::serve
