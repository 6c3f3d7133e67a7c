// One request of HTTP, read.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::serve::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string id;              // "req_" and 24 of [0-9A-Za-z], which every answer carries
  std::string peer;            // "127.0.0.1:51234", or "unix"
  std::string method, target;  // as they came
  std::string authority;       // from a target in absolute form; else empty
  std::string path, query;     // parts of the target, as they came: no escape is resolved
  unsigned version = 11;       // 10 or 11
  Headers headers;             // names in lower case
  std::string body;
  std::chrono::steady_clock::time_point complete{};  // the last byte was there
  Headers answer_headers;                            // every answer to it carries these, too

  const std::string* header(std::string_view name) const {
    for (const auto& [key, value] : headers)
      if (key == name) return &value;
    return nullptr;
  }
  std::size_t count(std::string_view name) const {
    std::size_t found = 0;
    for (const auto& member : headers) found += member.first == name;
    return found;
  }
};

// A whole answer.
struct Response {
  unsigned status = 200;
  std::string content_type = "application/json";  // empty: there is no content
  std::string body;
  Headers headers;     // more of them
  bool close = false;  // the connection ends behind it
};

// What is wrong with bytes that should be a request.
enum class HttpFault {
  kNone,
  kMalformed,          // 400
  kTimeout,            // 408
  kBodyTooLarge,       // 413
  kHeadersTooLarge,    // 431
  kNoRoom,             // 503: memory for the body
  kTooManyConnections  // 503
};

}  // namespace sluice::serve::http
