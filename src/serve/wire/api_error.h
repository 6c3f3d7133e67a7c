// Errors that a client gets: status, kind and words, rendered in the style of the API that was spoken.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/http/request.h"

namespace sluice::serve {

enum class ErrorStyle { kOpenAi, kAnthropic };

class ApiError : public std::exception {
 public:
  ApiError(unsigned error_status, std::string error_code, std::string text)
      : status(error_status), code(std::move(error_code)), message(std::move(text)) {}
  const char* what() const noexcept override { return message.c_str(); }

  ApiError& about(std::string field) {
    param = std::move(field);
    return *this;
  }
  ApiError& retry_after(unsigned seconds) {
    retry_s = seconds;
    return *this;
  }

  unsigned status;
  std::string code;  // empty: null
  std::string message;
  std::string param = {};             // the field; empty: null
  std::optional<unsigned> retry_s{};  // for the header Retry-After
  // More members of the error, and of the body beside it; OpenAI's style alone has them.
  std::vector<std::pair<std::string, std::size_t>> numbers{};
  std::string beside{};             // `"status":"loading","progress":0.42`
  std::string anthropic_message{};  // where it differs
  http::Headers headers{};
};

ApiError not_supported(std::string_view what);                              // 501
ApiError unsupported_value(std::string_view field, std::string_view what);  // 400
ApiError missing_field(std::string_view field);                             // 400

// The object as a body, or in the event of a stream.
std::string error_json(const ApiError& error, ErrorStyle style, std::string_view request_id);
http::Response error_response(const ApiError& error, ErrorStyle style, std::string_view request_id);

}  // namespace sluice::serve
