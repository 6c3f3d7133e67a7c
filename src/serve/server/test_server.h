// For tests: a server that answers from a script, on a port of its own.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "serve/server/scripted_backend.h"
#include "serve/server/server.h"
#include "serve/server/test_client.h"

namespace sluice::serve::testing {

inline std::string request_text(std::string_view method, std::string_view target, std::string_view body = {},
                                std::string_view headers = {}) {
  std::string text = std::string(method) + ' ' + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n";
  text += headers;
  if (!body.empty() || method == "POST") text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + std::string(body);
}

class TestServer {
 public:
  explicit TestServer(ServerOptions options = {}, bool with_template = true)
      : backend(with_template), server(backend, on_any_port(std::move(options))) {
    server.start();
  }
  TestResponse ask(std::string_view method, std::string_view target, std::string_view body = {},
                   std::string_view headers = {}) {
    TestClient client(server.port());
    client.send(request_text(method, target, body, headers));
    return client.response(method != "HEAD");
  }
  std::uint16_t port() const { return server.port(); }

  ScriptedBackend backend;
  Server server;

 private:
  static ServerOptions on_any_port(ServerOptions options) {
    options.port = 0;
    return options;
  }
};

}  // namespace sluice::serve::testing
