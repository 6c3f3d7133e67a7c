// `sluice serve`: answers programs and browsers over HTTP, inside a memory budget.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/json/json.h"
#include "base/setting.h"
#include "command.h"
#include "commands/serve/api_keys.h"
#include "commands/serve/load_served.h"
#include "commands/serve/prompt_log.h"
#include "commands/serve/serve_flags.h"
#include "engine/plan/memory_plan.h"
#include "engine/plan/server_defaults.h"
#include "serve/engine/engine_backend.h"
#include "serve/http/listening_socket.h"
#include "serve/server/server.h"
#include "setup/engine_options.h"
#include "streams/exit_code.h"
#include "streams/interrupt.h"
#include "streams/standard_error.h"

namespace sluice::app {
namespace {

constexpr auto kLook = std::chrono::milliseconds(50);  // how often the main thread looks for a signal

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds));
}

serve::ServerOptions server_options(const ServeFlags& flags, Bytes budget) {
  serve::ServerOptions options;
  options.inherited = serve::http::inherited_socket();
  options.unix_path = flags.unix_path;
  options.host = flags.host;
  options.port = static_cast<std::uint16_t>(flags.port);
  options.api_keys = api_keys(flags);
  options.no_auth = flags.no_auth;
  options.allowed_hosts = flags.allowed_hosts;
  options.cors_origins = flags.cors_origins;
  options.strict_model = flags.strict_model;
  options.keep_billing_header = flags.keep_billing_header;
  options.sse_ping = milliseconds(flags.sse_ping_s);
  options.page = !flags.no_ui;
  options.page_directory = flags.ui_dir;
  options.limits = serve::serve_limits(engine::serve_bytes(budget));
  options.log_json = flags.log_json || flags.engine.json;
  if (!flags.engine.quiet)
    options.log = [lock = std::make_shared<std::mutex>()](std::string_view line) {
      const std::lock_guard guard(*lock);
      write_message(line);
    };
  if (!flags.log_prompts.empty()) options.log_text = prompt_log(flags.log_prompts);
  return options;
}

// Until the model is loaded, or a signal comes; then false. The loader's Error.
bool wait_for_model(serve::EngineBackend& backend) {
  while (!interrupted()) {
    const serve::LoadState state = backend.state();
    if (!state.failure.empty() || state.phase == serve::Phase::kReady) {
      backend.wait_until_loaded();
      return true;
    }
    std::this_thread::sleep_for(kLook);
  }
  return false;
}

void say_ready(const ServeFlags& flags, const serve::Server& server, const serve::EngineBackend& backend,
               Bytes budget) {
  if (flags.engine.quiet) return;
  const auto served = backend.served();
  const serve::ModelCard card = backend.card();
  if (flags.log_json || flags.engine.json) {
    write_message(Json{{"ready", server.address()},
                       {"model", card.id},
                       {"context", served->context},
                       {"parallel", served->parallel},
                       {"budget", budget},
                       {"chat", served->chat != nullptr}}
                      .dump());
    return;
  }
  print_message("{} serves {}: context {}, {} answers at once, {}{}", server.address(), card.id,
                served->context, served->parallel, format_bytes(budget),
                served->chat != nullptr
                    ? std::string()
                    : ", no chats: the model has no template (" + flag(Setting::kChatTemplate) + " chatml)");
}

void serve_model(const ServeFlags& flags) {
  check_sampling(flags.sampling);
  const engine::EngineOptions options = engine_options(flags.engine);
  const Bytes budget = options.memory ? *options.memory : engine::default_budget();
  serve::EngineBackend backend({.card = served_card(flags),
                                .version = SLUICE_VERSION,
                                .queue = static_cast<std::size_t>(flags.queue),
                                .decode_share = flags.decode_share,
                                .trust_special = flags.trust_special,
                                .tool_format = flags.tool_format});
  serve::Server server(backend, server_options(flags, budget));
  server.start();
  backend.load(load_served(flags, options));
  if (!wait_for_model(backend)) return;
  say_ready(flags, server, backend, budget);
  serve::http::notify_service_manager("READY=1");
  while (!interrupted() && backend.state().failure.empty()) std::this_thread::sleep_for(kLook);
  if (!backend.state().failure.empty()) backend.wait_until_loaded();  // throws it
  serve::http::notify_service_manager("STOPPING=1");
  const bool clean = server.drain(milliseconds(flags.drain_s));
  server.stop();
  if (!clean && !flags.engine.quiet)
    print_warning("some answers were ended, since {} s were over", flags.drain_s);
}

}  // namespace

void add_serve(Command& app) {
  Command* command =
      app.add_command("serve", "Answer programs and browsers over HTTP, inside a memory budget");
  auto flags = std::make_shared<ServeFlags>();
  add_serve_flags(*command, *flags);
  add_sampling_flags(*command, flags->sampling, SamplingChoice::kAll);
  add_engine_flags(
      *command, flags->engine,
      {.seed = "For what draws beside answers; a request has a seed of its own",
       .context = "Most tokens of a prompt with its answer; default: by the budget, 2048 to 8192",
       .json = "The log, and what says that the server is ready, as JSON, an object a line",
       .devices = true,
       .finds_device = true});
  command->footer(
      "Examples:\n"
      "  sluice serve qwen.sluice --memory 8GiB\n"
      "  sluice serve models/fable-moe-18m --chat-template chatml --memory 64MiB\n"
      "  sluice serve qwen.sluice --host 0.0.0.0 --api-key-file keys.txt");
  command->callback([flags] { serve_model(*flags); });
}

}  // namespace sluice::app
