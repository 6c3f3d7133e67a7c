// What the endpoints share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/backend.h"
#include "serve/event_queues.h"
#include "serve/http/http_limits.h"
#include "serve/http/writer.h"
#include "serve/wire/answer_binding.h"
#include "serve/wire/api_error.h"
#include "serve/wire/board_feed.h"
#include "serve/wire/service_metrics.h"

namespace sluice::serve {

struct ServiceOptions {
  bool strict_model = false;
  bool keep_billing_header = false;
  bool page = true;
  std::chrono::milliseconds sse_ping{15'000};  // 0: off
  std::string version;
  std::size_t body_memory = static_cast<std::size_t>(-1);  // that the parts of one body may take
  // Gets each prompt, if the user asks for it: the request's id, "prompt", and the text.
  std::function<void(std::string_view id, std::string_view what, std::string_view text)> log_text;
};

class Answering;

struct Service {
  Service(Backend& backend_of, ServiceOptions service_options)
      : backend(backend_of), options(std::move(service_options)) {}

  Backend& backend;
  const ServiceOptions options;
  ServiceMetrics metrics;
  // What HTTP counts, for the metrics page.
  std::function<std::pair<std::int64_t, std::uint64_t>()> http_counts;  // connections, bytes sent

  const std::shared_ptr<EventQueues> queues = std::make_shared<EventQueues>();
  BoardFeed board;
  GrammarShelf grammars;

  std::atomic<std::size_t> answers{0};  // being given
  std::mutex mutex;
  std::map<const Answering*, std::weak_ptr<Answering>> answering;
};

// One request on its way to an endpoint.
struct Call {
  Service& service;
  std::shared_ptr<http::Writer> writer;
  ErrorStyle style = ErrorStyle::kOpenAi;
  std::string argument{};  // the end of the path, where the endpoint takes one

  http::Request& request() const { return writer->request(); }
  void send_json(std::string body) const {
    http::Response response;
    response.body = std::move(body);
    writer->send(std::move(response));
  }
};

// What is served; ApiError 503 while the model loads, or for new answers while the server drains.
std::shared_ptr<const Served> need_served(const Service& service);
// As above, also while the server drains.
std::shared_ptr<const Served> need_loaded(const Service& service);

}  // namespace sluice::serve
