#include "serve/wire/refusal_error.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error_text.h"
#include "base/setting.h"
#include "serve/json/json_writer.h"
#include "serve/wire/service.h"

namespace sluice::serve {
namespace {

constexpr unsigned kLoadingRetry_s = 5, kMostRetry_s = 120;

}  // namespace

std::string without_paths(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const bool begins = text[at] == '/' &&
                        (at == 0 || std::string_view(" '\"(=:").find(text[at - 1]) != std::string_view::npos);
    const std::size_t end = std::min(text.find_first_of(" '\"):;,", at), text.size());
    if (!begins || end - at < 2) {
      result += text[at++];
      continue;
    }
    const std::string_view path = text.substr(at, end - at);
    result += path.substr(path.rfind('/') + 1);
    at = end;
  }
  return result;
}

ApiError too_long_error(std::size_t prompt, std::size_t asked, std::size_t context, const std::string& field,
                        bool at_least) {
  const std::string_view about = at_least ? "at least " : "";
  ApiError error(
      400, "context_length_exceeded",
      fmt::format("This model's maximum context length is {} tokens. However, you requested {}{} tokens "
                  "({} in the {}, {} in the answer).",
                  context, about, prompt + asked, prompt, field, asked));
  error.about(field);
  error.numbers = {{"n_prompt_tokens", prompt}, {"n_ctx", context}};
  error.anthropic_message =
      fmt::format("prompt is too long: {}{} tokens > {} maximum", about, prompt + asked, context);
  return error;
}

ApiError loading_error(const LoadState& state) {
  ApiError error(503, "loading",
                 state.failure.empty() ? "the model is being loaded"
                                       : "the model could not be loaded: " + without_paths(state.failure));
  error.retry_after(kLoadingRetry_s);
  JsonWriter progress;
  progress.real(std::clamp(state.progress, 0.0, 1.0));
  error.beside = "\"status\":\"loading\",\"progress\":" + progress.take();
  return error;
}

ApiError draining_error() {
  ApiError error(503, "draining", "the server is about to stop");
  error.retry_after(kLoadingRetry_s);
  error.beside = R"("status":"draining","progress":1.0)";
  return error;
}

ApiError refusal_error(const Refusal& refusal, const std::string& field) {
  switch (refusal.reason) {
    case Refusal::Reason::kQueueFull:
      return ApiError(429, "rate_limit_exceeded",
                      "the queue is full: more requests wait than the server takes")
          .retry_after(std::clamp(refusal.retry_after_s, 1u, kMostRetry_s));
    case Refusal::Reason::kTooLong:
      return too_long_error(refusal.prompt_tokens, 0, refusal.context, field);
    case Refusal::Reason::kDraining:
      return draining_error();
    case Refusal::Reason::kLoading:
      return loading_error({});
    case Refusal::Reason::kInvalid:
      break;
  }
  return {400, "invalid_value", without_paths(with_names(refusal.message, NamedBy::kField))};
}

ApiError failure_error(const Failure& failure) {
  switch (failure.kind) {
    case Failure::Kind::kDraining:
      return draining_error();
    case Failure::Kind::kCancelled:
      return {500, "", "the request was cancelled: " + without_paths(failure.message)};
    case Failure::Kind::kError:
      break;
  }
  return {500, "", without_paths(with_names(failure.message, NamedBy::kField))};
}

ApiError error_from_below(const Error& error) {
  const std::string text = without_paths(error_text(error, NamedBy::kField));
  const bool clients = error.kind() == ErrorKind::kUsage || error.kind() == ErrorKind::kInvalid;
  if (!clients) return {500, "", text};
  ApiError answer(400, "invalid_value", text);
  if (const auto setting = marked_setting(error.where())) answer.about(std::string(name_of(*setting).field));
  return answer;
}

std::shared_ptr<const Served> need_loaded(const Service& service) {
  const LoadState state = service.backend.state();
  std::shared_ptr<const Served> served = service.backend.served();
  if (state.phase == Phase::kLoading || served == nullptr) throw loading_error(state);
  return served;
}

std::shared_ptr<const Served> need_served(const Service& service) {
  if (service.backend.state().phase == Phase::kDraining) throw draining_error();
  return need_loaded(service);
}

}  // namespace sluice::serve
