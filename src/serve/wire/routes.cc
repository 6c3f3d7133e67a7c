#include "serve/wire/routes.h"

#include "serve/wire/endpoints.h"

namespace sluice::serve {
namespace {

constexpr auto kOpenAi = ErrorStyle::kOpenAi, kClaude = ErrorStyle::kAnthropic;

constexpr Route kRoutes[] = {
    {"GET", "/health", answer_health, true},
    {"GET", "/models", answer_models},
    {"GET", "/models/*", answer_model},
    {"POST", "/chat/completions", answer_chat, false, kOpenAi, true},
    {"POST", "/completions", answer_completions, false, kOpenAi, true},
    {"GET", "/metrics", answer_metrics},
    {"GET", "/experts", answer_experts},
    {"GET", "/plan", answer_plan},
    {"GET", "/events", answer_events},
    {"POST", "/messages", answer_messages, false, kClaude, true},
    {"POST", "/messages/count_tokens", answer_count_tokens, false, kClaude},
    {"POST", "/tokenize", answer_tokenize},
    {"POST", "/detokenize", answer_detokenize},
    {"POST", "/apply-template", answer_apply_template},
    {"POST", "/chat/completions/input_tokens", answer_input_tokens},
    {"GET", "/tokenizer_info", answer_tokenizer_info},
    {"GET", "/props", answer_props},
    {"GET", "/slots", answer_slots},
    {"POST", "/responses", answer_not_supported},
    {"POST", "/responses/input_tokens", answer_not_supported},
    {"GET", "/responses/*", answer_nothing_stored},
    {"DELETE", "/responses/*", answer_nothing_stored},
    {"POST", "/embeddings", answer_not_supported},
    {"POST", "/audio/*", answer_not_supported},
    {"POST", "/images/*", answer_not_supported},
    {"POST", "/moderations", answer_not_supported},
    {"POST", "/completion", answer_not_supported},
    {"POST", "/infill", answer_not_supported},
    {"POST", "/slots/*", answer_not_supported},
    {"POST", "/props", answer_not_supported},
    {"GET", "/api/version", answer_not_supported},
    {"GET", "/api/tags", answer_not_supported},
    {"GET", "/api/ps", answer_not_supported},
    {"POST", "/api/chat", answer_not_supported},
    {"POST", "/api/generate", answer_not_supported},
    {"POST", "/api/show", answer_not_supported},
};

bool fits(const Route& route, std::string_view path, std::string& argument) {
  if (!route.path.ends_with("/*")) return path == route.path;
  const std::string_view front = route.path.substr(0, route.path.size() - 1);
  if (!path.starts_with(front) || path.size() == front.size() || path.find('/', front.size()) != path.npos)
    return false;
  argument = std::string(path.substr(front.size()));
  return true;
}

void allow(std::string& list, std::string_view method) {
  if (list.find(method) != list.npos) return;
  if (!list.empty()) list += ", ";
  list += method;
  if (method == "GET") list += ", HEAD";
}

}  // namespace

std::span<const Route> routes() { return kRoutes; }

FoundRoute find_route(std::string_view method, std::string_view path) {
  if (path.starts_with("/v1/")) path.remove_prefix(3);
  if (method == "HEAD") method = "GET";
  FoundRoute found;
  for (const Route& route : kRoutes) {
    if (!fits(route, path, found.argument)) continue;
    found.label = route.path;
    found.style = route.style;
    if (route.method == method) found.route = &route;
    allow(found.allow, route.method);
  }
  return found;
}

void answer_not_supported(const Call& call) { throw not_supported(call.request().path); }

void answer_nothing_stored(const Call&) {
  throw ApiError(404, "", "no response is stored: this server keeps none");
}

}  // namespace sluice::serve
