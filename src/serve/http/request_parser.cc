#include "serve/http/request_parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <limits>
#include <utility>

namespace sluice::serve::http {
namespace {

namespace beast_http = boost::beast::http;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

struct RequestParser::Beast {
  beast_http::request_parser<beast_http::string_body> parser;
};

RequestParser::RequestParser(const HttpLimits& limits) : limits_(limits), beast_(std::make_unique<Beast>()) {
  auto& parser = beast_->parser;
  parser.eager(false);
  parser.header_limit(static_cast<std::uint32_t>(limits.head_bytes));
  // Checked here, where the head is known.
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());
}

RequestParser::~RequestParser() = default;

void RequestParser::fail(HttpFault fault, std::string text) {
  stage_ = Stage::kFault;
  fault_ = fault;
  fault_text_ = std::move(text);
}

std::size_t RequestParser::put(std::string_view bytes) {
  auto& parser = beast_->parser;
  std::size_t taken = 0;
  while (stage_ == Stage::kHead || stage_ == Stage::kBody) {
    boost::system::error_code error;
    const std::string_view rest = bytes.substr(taken);
    const std::size_t used = parser.put(boost::asio::const_buffer(rest.data(), rest.size()), error);
    taken += used;
    if (stage_ == Stage::kHead) head_bytes_ += used;
    if (error && error != beast_http::error::need_more) {
      const bool large = error == beast_http::error::header_limit;
      fail(large ? HttpFault::kHeadersTooLarge : HttpFault::kMalformed,
           large ? "the headers have more than " + std::to_string(limits_.head_bytes) + " bytes"
                 : "this is no HTTP request: " + error.message());
    } else if (stage_ == Stage::kHead && parser.is_header_done()) {
      if (check_head_size(0)) read_head();
      return taken;
    } else if (stage_ == Stage::kHead && !check_head_size(bytes.size() - taken)) {
      return taken;
    } else if (stage_ == Stage::kBody && parser.get().body().size() > limits_.body_bytes) {
      fail(HttpFault::kBodyTooLarge,
           "the body has more than " + std::to_string(limits_.body_bytes) + " bytes");
    } else if (parser.is_done()) {
      request_.body = std::move(parser.get().body());
      stage_ = Stage::kDone;
    } else if (error == beast_http::error::need_more || used == 0) {
      if (rest.size() - used > limits_.head_bytes) fail(HttpFault::kMalformed, "a chunk's size has no end");
      break;
    }
  }
  return taken;
}

// Beast's limit lets a little more pass.
bool RequestParser::check_head_size(std::size_t more) {
  if (head_bytes_ + more <= limits_.head_bytes) return true;
  fail(HttpFault::kHeadersTooLarge,
       "the headers have more than " + std::to_string(limits_.head_bytes) + " bytes");
  return false;
}

void RequestParser::read_head() {
  auto& parser = beast_->parser;
  const auto& message = parser.get();
  request_.method = std::string(view(message.method_string()));
  request_.target = std::string(view(message.target()));
  request_.version = message.version();
  for (const auto& field : message)
    request_.headers.emplace_back(lower(view(field.name_string())), std::string(view(field.value())));
  keep_alive_ = parser.keep_alive();
  stage_ = Stage::kBody;
  split_target();
  constexpr std::size_t kAround = sizeof("  HTTP/1.1\r\n") - 1;
  if (request_.method.size() + request_.target.size() + kAround > limits_.line_bytes)
    return fail(HttpFault::kHeadersTooLarge,
                "the request line has more than " + std::to_string(limits_.line_bytes) + " bytes");
  if (request_.version != 10 && request_.version != 11)
    return fail(HttpFault::kMalformed, "the version of HTTP is neither 1.0 nor 1.1");
  check_framing();
  if (stage_ == Stage::kBody && !has_body()) stage_ = Stage::kDone;
}

void RequestParser::split_target() {
  std::string_view rest = request_.target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (lower(rest.substr(0, scheme.size())) != scheme) continue;
    rest.remove_prefix(scheme.size());
    const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
    request_.authority = std::string(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  const std::size_t question = rest.find('?');
  request_.path = std::string(rest.substr(0, question));
  if (question != rest.npos) request_.query = std::string(rest.substr(question + 1));
  if (request_.path.empty()) request_.path = "/";
}

// A body's end is where the head says, in one way alone: what two readers may understand differently is
// refused.
void RequestParser::check_framing() {
  const std::string* coding = request_.header("transfer-encoding");
  const std::string* length = request_.header("content-length");
  if (coding != nullptr && length != nullptr)
    return fail(HttpFault::kMalformed, "both Content-Length and Transfer-Encoding are there");
  if (request_.count("content-length") > 1 || request_.count("transfer-encoding") > 1)
    return fail(HttpFault::kMalformed, "the length of the body is given twice");
  if (coding != nullptr) {
    if (lower(*coding) != "chunked" || request_.version != 11)
      return fail(HttpFault::kMalformed, "the only Transfer-Encoding is chunked, in HTTP/1.1");
    chunked_ = true;
  }
  if (length != nullptr && length->find_first_not_of("0123456789") != length->npos)
    return fail(HttpFault::kMalformed, "Content-Length is no number");
  if (length != nullptr) length_ = beast_->parser.content_length().value_or(0);
  if (length_ > limits_.body_bytes)
    return fail(HttpFault::kBodyTooLarge, "the body has " + std::to_string(length_) +
                                              " bytes, expected at most " +
                                              std::to_string(limits_.body_bytes));
  if (const std::string* expect = request_.header("expect"))
    expects_continue_ = has_body() && request_.version == 11 && lower(*expect) == "100-continue";
}

}  // namespace sluice::serve::http
