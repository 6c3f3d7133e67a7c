#include "serve/server/gate.h"

#include <exception>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/machine/system_memory.h"
#include "base/setting.h"
#include "serve/server/access_log.h"
#include "serve/wire/refusal_error.h"
#include "serve/wire/routes.h"

namespace sluice::serve {
namespace {

constexpr std::size_t kLargeBody = 128 << 10;

http::AccessOptions access_of(const ServerOptions& options, const http::Listening& listening) {
  return {options.api_keys, options.allowed_hosts, options.cors_origins, listening.loopback,
          !listening.unix_path};
}

ServiceOptions service_of(const ServerOptions& options) {
  return {options.strict_model, options.keep_billing_header,   options.page,    options.sse_ping,
          SLUICE_VERSION,       options.limits.body_bytes / 2, options.log_text};
}

ApiError fault_error(http::HttpFault fault, std::string_view text) {
  const std::string message(text);
  switch (fault) {
    case http::HttpFault::kTimeout:
      return {408, "request_timeout", message};
    case http::HttpFault::kBodyTooLarge:
      return {413, "request_too_large", message};
    case http::HttpFault::kHeadersTooLarge:
      return {431, "headers_too_large", message};
    case http::HttpFault::kNoRoom:
      return ApiError(503, "out_of_memory_budget", message).retry_after(5);
    case http::HttpFault::kTooManyConnections:
      return ApiError(503, "out_of_memory_budget", message).retry_after(5);
    default:
      return {400, "", message};
  }
}

bool is_preflight(const http::Request& request) { return request.method == "OPTIONS"; }

}  // namespace

Gate::Gate(Backend& backend, const ServerOptions& options, const http::Listening& listening)
    : options_(options),
      rules_(access_of(options, listening)),
      site_(options.page ? std::optional<Site>(options.page_directory) : std::nullopt),
      service_(backend, service_of(options)) {}

void Gate::check_head(http::Request& request) const {
  switch (rules_.judge(request)) {
    case http::AccessRules::Verdict::kFine:
      break;
    case http::AccessRules::Verdict::kNoHost:
      throw ApiError(400, "", "the request must have one header Host");
    case http::AccessRules::Verdict::kHostRefused:
      throw ApiError(403, "host_not_allowed",
                     "this server is not asked by that name; its user can allow it (" +
                         flag(Setting::kAllowedHost) + ")");
    case http::AccessRules::Verdict::kOriginRefused:
      throw ApiError(403, "origin_not_allowed",
                     "pages of other sites may not ask this server; its user can allow them (" +
                         flag(Setting::kCorsOrigin) + ")");
  }
  for (auto& header : rules_.cors_headers(request)) request.answer_headers.push_back(std::move(header));
  if (is_preflight(request)) return;
  check_route(request);
  const std::string* coding = request.header("content-encoding");
  if (coding != nullptr && *coding != "identity")
    throw ApiError(415, "unsupported_content_encoding", "the body is compressed; send it as it is");
}

void Gate::check_route(const http::Request& request) const {
  const FoundRoute found = find_route(request.method, request.path);
  const bool page = is_page(request.path);
  const bool open = page || (found.route != nullptr && found.route->is_public);
  if (!open && !rules_.has_key(request))
    throw ApiError(401, "invalid_api_key", "a key is needed: send it as 'Authorization: Bearer KEY'");
  if (found.route != nullptr) return;
  if (page && (request.method == "GET" || request.method == "HEAD")) return;
  const std::string allow = page ? "GET, HEAD" : found.allow;
  if (allow.empty()) throw ApiError(404, "", "no such endpoint: " + request.method + ' ' + request.path);
  ApiError error(405, "", request.path + " does not take " + request.method);
  error.headers.emplace_back("Allow", allow);
  throw error;
}

std::optional<http::Response> Gate::on_head(http::Request& request) {
  const ErrorStyle style = find_route(request.method, request.path).style;
  if (style == ErrorStyle::kAnthropic) request.answer_headers.emplace_back("request-id", request.id);
  try {
    check_head(request);
    return std::nullopt;
  } catch (const ApiError& error) {
    return error_response(error, style, request.id);
  }
}

void Gate::answer(const std::shared_ptr<http::Writer>& writer) {
  const http::Request& request = writer->request();
  if (is_preflight(request)) {
    http::Response response;
    response.status = 204;
    response.headers = rules_.preflight_headers(request);
    return writer->send(std::move(response));
  }
  if (is_page(request.path)) {
    if (std::optional<http::Response> file = site_->answer(request)) return writer->send(std::move(*file));
    throw ApiError(404, "", "no such endpoint: " + request.method + ' ' + request.path);
  }
  const FoundRoute found = find_route(request.method, request.path);
  found.route->answer({service_, writer, found.style, found.argument});
}

void Gate::on_request(std::shared_ptr<http::Writer> writer) {
  const FoundRoute found = find_route(writer->request().method, writer->request().path);
  const bool large = writer->request().body.size() >= kLargeBody;
  const auto fail = [&](const ApiError& error) {
    if (found.route != nullptr && found.route->answers)
      service_.metrics.add("request_failure_total", error.status == 500 ? "error" : "refused");
    writer->send(error_response(error, found.style, writer->request().id));
  };
  try {
    answer(writer);
  } catch (const ApiError& error) {
    fail(error);
  } catch (const Error& error) {
    fail(error_from_below(error));
  } catch (const std::bad_alloc&) {
    fail(ApiError(503, "out_of_memory_budget", "there is no memory for this request").retry_after(5));
  } catch (const std::exception& error) {
    fail(ApiError(500, "", without_paths(error.what())));
  }
  if (large) trim_heap();  // its parts were many and small
}

http::Response Gate::on_fault(const http::Request* head, http::HttpFault fault, std::string_view text) {
  const ErrorStyle style = head == nullptr ? ErrorStyle::kOpenAi : find_route(head->method, head->path).style;
  return error_response(fault_error(fault, text), style, head == nullptr ? "" : head->id);
}

bool Gate::worth_a_line(const http::Request& request, unsigned status) {
  constexpr std::size_t kMostPaths = 256;
  if (status != 404) return true;
  const std::lock_guard lock(mutex_);
  if (missed_.size() >= kMostPaths && !missed_.contains(request.path)) missed_.clear();
  std::uint64_t count = ++missed_[request.path];
  while (count % 10 == 0) count /= 10;
  return count == 1;
}

void Gate::on_done(const http::Request& request, const http::AccessRecord& record) {
  const std::string_view label =
      is_page(request.path) ? std::string_view("/") : find_route(request.method, request.path).label;
  service_.metrics.add_http(label, record.status);
  if (options_.log && worth_a_line(request, record.status))
    options_.log(access_line(request, record, options_.log_json));
}

}  // namespace sluice::serve
