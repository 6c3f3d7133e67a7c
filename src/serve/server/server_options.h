// How a server is set up.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/http_limits.h"
#include "serve/http/listening_socket.h"

namespace sluice::serve {

struct ServerOptions {
  // Where it listens: on a socket that is there already (systemd), else on a path, else on an address.
  std::optional<http::Listening> inherited;
  std::string unix_path;
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: any; Server::address() says which

  std::vector<std::string> api_keys;
  bool no_auth = false;  // an address that others reach may be served without a key
  std::vector<std::string> allowed_hosts, cors_origins;

  bool strict_model = false, keep_billing_header = false;
  std::chrono::milliseconds sse_ping{15'000};  // 0: off
  bool page = true;
  std::string page_directory;  // Setting::kUiDir; empty: the files that the program brings with it

  unsigned threads = 0;     // threads of HTTP; 0: 1, or 2 from 8 CPUs on
  http::HttpLimits limits;  // serve_limits() scales them to a memory account

  // A line about each request, without a newline; called by several threads.
  std::function<void(std::string_view line)> log;
  bool log_json = false;
  // Prompts, if they are to be kept: the request's id, "prompt", and the text.
  std::function<void(std::string_view id, std::string_view what, std::string_view text)> log_text;
};

// Limits for an account `serve` of this many bytes: a body takes at most half of it, connections at most
// half.
http::HttpLimits serve_limits(std::size_t account_bytes);

}  // namespace sluice::serve
