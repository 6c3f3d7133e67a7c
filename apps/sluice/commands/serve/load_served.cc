#include "commands/serve/load_served.h"

#include <sys/stat.h>

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "commands/chat/open_chat_template.h"
#include "engine/draft/drafting.h"
#include "engine/generate/generate.h"
#include "engine/plan/memory_plan.h"
#include "engine/plan/server_defaults.h"
#include "engine/run_report.h"
#include "engine/session/kv_pool.h"
#include "report/plan_json.h"
#include "report/start_warnings.h"
#include "serve/engine/sampling_defaults.h"
#include "setup/kept_measurements.h"
#include "setup/open_model.h"
#include "streams/standard_error.h"
#include "tokenizer/chat/chat_sources.h"

namespace sluice::app {
namespace {

serve::SamplingDefaults defaults_of(const SamplingFlags& flags, const model::GenerationConfig& generation) {
  const engine::SamplerConfig config = serve::sampling_defaults(generation);
  serve::SamplingDefaults defaults;
  serve::Sampling& sampling = defaults.sampling;
  sampling.temperature = flags.temperature.value_or(config.temperature);
  sampling.top_p = flags.top_p.value_or(config.top_p);
  sampling.min_p = flags.min_p.value_or(config.min_p);
  sampling.top_k = flags.top_k.value_or(config.top_k);
  sampling.repetition_penalty = flags.repetition_penalty.value_or(config.repetition_penalty);
  defaults.penalties_by_user = flags.repetition_penalty.has_value();
  return defaults;
}

// A template that cannot be read is a warning: everything but chats works.
void open_template(const ServeFlags& flags, serve::LoadedModel& loaded) {
  if (loaded.tokenizer == nullptr) return;
  if (flags.chat_template.empty() && tokenizer::read_chat_sources(*loaded.checkpoint).templates.empty())
    return;
  try {
    loaded.chat =
        std::make_unique<tokenizer::ChatTemplate>(chat_template_of(*loaded.checkpoint, flags.chat_template));
  } catch (const Error& error) {
    if (!flags.chat_template.empty()) throw;
    loaded.chat_failure = error.what();
    print_warning("no chats: {}", error.what());
  }
}

// The sizes of a server, which need the model.
void size_server(const ServeFlags& flags, const serve::LoadedModel& loaded, engine::EngineOptions& options) {
  const Bytes budget = options.memory ? *options.memory : engine::default_budget();
  const model::ModelConfig& config = loaded.model.config;
  options.serve = engine::serve_bytes(budget);
  options.draws = true;
  engine::ServerWishes wishes{.parallel =
                                  config.has_encoder() ? 1 : static_cast<std::size_t>(flags.parallel)};
  if (flags.engine.context != 0) wishes.context = context_tokens(flags.engine, loaded.model);
  if (flags.kv_tokens != 0) wishes.kv_tokens = static_cast<std::size_t>(flags.kv_tokens);
  const engine::ServerSizes sizes = engine::server_sizes(
      budget, engine::kv_bytes_per_token(config, options.cache_dtype()), config.max_positions, wishes);
  options.positions = sizes.context;
  options.sequences = sizes.parallel;
  if (config.has_encoder())
    options.encoder_positions = sizes.context;
  else
    options.kv_tokens = sizes.kv_tokens;
  options.suspended_passes = sizes.parallel > 1 ? 1 : 0;
}

}  // namespace

serve::ModelCard served_card(const ServeFlags& flags) {
  std::filesystem::path path(flags.engine.model);
  if (!path.has_filename()) path = path.parent_path();
  serve::ModelCard card;
  card.id = !flags.alias.empty() ? flags.alias : path.filename().string();
  for (const std::string_view end : {".sluice", ".gguf"})
    if (flags.alias.empty() && card.id.ends_with(end))
      card.id = card.id.substr(0, card.id.size() - end.size());
  struct stat facts {};
  if (::stat((flags.engine.model + "/config.json").c_str(), &facts) == 0 ||
      ::stat(flags.engine.model.c_str(), &facts) == 0)
    card.created = facts.st_mtime;
  return card;
}

serve::LoadModel load_served(const ServeFlags& flags, const engine::EngineOptions& options) {
  return [flags, options](const std::function<void(double)>& progress) {
    auto loaded = std::make_unique<serve::LoadedModel>();
    OpenModel open = open_model(flags.engine.model, WithTokenizer::kIfThere, flags.engine);
    loaded->checkpoint = std::move(open.checkpoint);
    loaded->model = std::move(open.model);
    loaded->tokenizer = std::move(open.tokenizer);
    progress(0.1);
    open_template(flags, *loaded);
    loaded->defaults = defaults_of(flags.sampling, loaded->model.generation);
    engine::EngineOptions sized = options;
    size_server(flags, *loaded, sized);
    sized.draft = flags.draft.kind();
    progress(0.2);
    loaded->engine = std::make_unique<engine::Engine>(
        *loaded->checkpoint, loaded->model, engine::resolve(sized, *loaded->checkpoint, loaded->model),
        engine::generation_logit_rows(decoded_tokens(sized.sequences, flags.draft.kind())));
    if (const std::string why = loaded->engine->report().drafting.why_off();
        !why.empty() && !flags.draft.name.empty() && !flags.engine.quiet)
      print_warning("{}: off {}", flag(Setting::kDraft), why);
    write_start_warnings(loaded->engine->report());
    keep_profile(flags.engine, *loaded->engine);
    loaded->plan = plan_json(loaded->engine->report(), sized.positions);
    progress(1);
    return loaded;
  };
}

}  // namespace sluice::app
