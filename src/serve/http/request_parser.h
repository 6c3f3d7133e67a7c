// Reads one request from bytes that come in pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http/http_limits.h"
#include "serve/http/request.h"

namespace sluice::serve::http {

// Thread-compatible.
class RequestParser {
 public:
  enum class Stage { kHead, kBody, kDone, kFault };

  explicit RequestParser(const HttpLimits& limits);
  ~RequestParser();

  // Takes bytes from the front of all that is there and was not taken before, and says how many. It stops
  // behind the head, at the end of the request, and where more bytes are needed.
  std::size_t put(std::string_view bytes);
  Stage stage() const { return stage_; }

  Request& request() { return request_; }  // its head from kBody on
  bool has_body() const { return chunked_ || length_ > 0; }
  std::uint64_t length() const { return length_; }  // that the head says; 0: none, or in chunks
  bool keep_alive() const { return keep_alive_; }
  bool expects_continue() const { return expects_continue_; }

  HttpFault fault() const { return fault_; }
  const std::string& fault_text() const { return fault_text_; }

 private:
  struct Beast;
  void fail(HttpFault fault, std::string text);
  void read_head();
  void split_target();
  void check_framing();
  bool check_head_size(std::size_t more);

  const HttpLimits limits_;
  std::unique_ptr<Beast> beast_;
  Request request_;
  Stage stage_ = Stage::kHead;
  HttpFault fault_ = HttpFault::kNone;
  std::string fault_text_;
  bool chunked_ = false, keep_alive_ = false, expects_continue_ = false;
  std::uint64_t length_ = 0;
  std::size_t head_bytes_ = 0;  // taken
};

}  // namespace sluice::serve::http
