#include "serve/wire/api_error.h"

#include "serve/json/json_writer.h"

namespace sluice::serve {
namespace {

std::string_view openai_type(unsigned status) {
  if (status == 403) return "permission_error";
  if (status == 429) return "rate_limit_error";
  if (status == 500 || status == 503) return "server_error";
  return "invalid_request_error";
}

std::string_view anthropic_type(unsigned status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
    case 405:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 500:
      return "api_error";
    case 503:
      return "overloaded_error";
    default:
      return "invalid_request_error";
  }
}

void optional_string(JsonWriter& out, std::string_view name, const std::string& text) {
  out.key(name);
  if (text.empty()) {
    out.null();
  } else {
    out.string(text);
  }
}

std::string openai_json(const ApiError& error) {
  JsonWriter out;
  out.begin_object().key("error").begin_object();
  out.member("message", error.message).member("type", openai_type(error.status));
  optional_string(out, "param", error.param);
  optional_string(out, "code", error.code);
  for (const auto& [name, number] : error.numbers) out.member(name, number);
  out.end_object();
  std::string text = out.take();
  if (!error.beside.empty()) text += ',' + error.beside;
  return text + '}';
}

}  // namespace

ApiError not_supported(std::string_view what) {
  return {501, "not_supported", std::string(what) + " is not supported by this server"};
}

ApiError unsupported_value(std::string_view field, std::string_view what) {
  return ApiError(400, "unsupported_value", "'" + std::string(field) + "' " + std::string(what))
      .about(std::string(field));
}

ApiError missing_field(std::string_view field) {
  return ApiError(400, "missing_required_parameter", "'" + std::string(field) + "' is missing")
      .about(std::string(field));
}

std::string error_json(const ApiError& error, ErrorStyle style, std::string_view request_id) {
  if (style == ErrorStyle::kOpenAi) return openai_json(error);
  JsonWriter out;
  out.begin_object().member("type", "error").key("error").begin_object();
  out.member("type", anthropic_type(error.status));
  out.member("message", error.anthropic_message.empty() ? error.message : error.anthropic_message);
  out.end_object().member("request_id", request_id).end_object();
  return out.take();
}

http::Response error_response(const ApiError& error, ErrorStyle style, std::string_view request_id) {
  http::Response response;
  response.status = style == ErrorStyle::kAnthropic && error.status == 503 ? 529 : error.status;
  response.body = error_json(error, style, request_id);
  response.headers = error.headers;
  if (error.retry_s) response.headers.emplace_back("Retry-After", std::to_string(*error.retry_s));
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace sluice::serve
