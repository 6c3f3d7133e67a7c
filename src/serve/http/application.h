// What the HTTP server serves.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "serve/http/request.h"
#include "serve/http/writer.h"

namespace sluice::serve::http {

// Called by several threads, each request by one at a time.
class Application {
 public:
  virtual ~Application() = default;
  // The head has been read, the body has not: an answer refuses it. May set Request::answer_headers.
  virtual std::optional<Response> on_head(Request& request) = 0;
  // The request is there. Answers now, or keeps the writer and answers later.
  virtual void on_request(std::shared_ptr<Writer> writer) = 0;
  // The answer to what is no request. `head` is null where nothing of it could be read.
  virtual Response on_fault(const Request* head, HttpFault fault, std::string_view text) = 0;
  // The answer has been sent, or will never be.
  virtual void on_done(const Request& request, const AccessRecord& record) = 0;
};

}  // namespace sluice::serve::http
