// Every row of the table of errors, in the style of each API.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "serve/server/test_server.h"

namespace sluice::serve {
namespace {

using testing::TestClient;
using testing::TestResponse;
using testing::TestServer;

std::string chat_with(std::string_view more) {
  return R"({"messages":[{"role":"user","content":"Hi"}],)" + std::string(more) + '}';
}

struct FieldCase {
  const char* path;
  std::string body;
  const char* code;
  const char* param;  // JSON
  const char* message;
};

TEST(ServeErrors, FieldsOfBodies) {
  TestServer server;
  const char *chat = "/v1/chat/completions", *text = "/v1/completions";
  const FieldCase cases[] = {
      {chat, chat_with(R"("temperature":"hot")"), "invalid_type", "\"temperature\"",
       R"('temperature' must be a number from 0 to 2, found \"hot\")"},
      {chat, chat_with(R"("temperature":2.5)"), "invalid_value", "\"temperature\"",
       "'temperature' must be a number from 0 to 2, found 2.5"},
      {chat, "{}", "missing_required_parameter", "\"messages\"", "'messages' is missing"},
      {chat, R"({"messages":[]})", "invalid_value", "\"messages\"", "at least one message"},
      {chat, "{", "invalid_json", "null", "the body is not JSON: byte 1: "},
      {chat, "[]", "invalid_type", "\"the body\"", "an object"},
      {chat, R"({"messages":[{"role":"king","content":"x"}]})", "invalid_value", "\"messages[0].role\"",
       "one of"},
      {chat, R"({"messages":[{"role":"user"}]})", "missing_required_parameter", "\"messages[0].content\"",
       ""},
      {chat, R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]})",
       "unsupported_value", "\"messages[0].content[0].type\"", ""},
      {chat, R"({"messages":[{"role":"tool","content":"x"}]})", "missing_required_parameter",
       "\"messages[0].tool_call_id\"", ""},
      {chat, chat_with(R"("response_format":{"type":"json_schema","json_schema":{}})"),
       "missing_required_parameter", "\"response_format.json_schema.schema\"", ""},
      {chat, chat_with(R"("response_format":{"type":"xml"})"), "invalid_value", "\"response_format.type\"",
       "xml"},
      {chat,
       chat_with(
           R"("response_format":{"type":"json_schema","json_schema":{"schema":{"properties":{"a":{"not":{}}}}}})"),
       "invalid_json_schema", "\"response_format.json_schema.schema.properties.a.not\"", "not supported"},
      {chat,
       chat_with(
           R"("response_format":{"type":"json_schema","json_schema":{"strict":true,"schema":{"multipleOf":2}}})"),
       "invalid_json_schema", "\"response_format.json_schema.schema.multipleOf\"", "strict"},
      {chat, chat_with(R"("response_format":{"type":"json_object"},"ignore_eos":true)"), "invalid_value",
       "\"ignore_eos\"", "bound"},
      {chat, chat_with(R"("tool_choice":"required")"), "invalid_value", "\"tool_choice\"", "no tools"},
      {chat,
       chat_with(
           R"("tool_choice":{"type":"function","function":{"name":"b"}},"tools":[{"type":"function","function":{"name":"a"}}])"),
       "invalid_value", "\"tool_choice\"", "\\\"b\\\""},
      {chat, chat_with(R"("modalities":["audio"])"), "unsupported_value", "\"modalities\"", ""},
      {chat, chat_with(R"("chat_template":"x")"), "unsupported_value", "\"chat_template\"", ""},
      {chat, chat_with(R"("tools":[{"type":"web"}])"), "unsupported_value", "\"tools[0].type\"", ""},
      {chat, chat_with(R"("tools":[{"type":"function","function":{"name":"a b"}}])"), "invalid_value",
       "\"tools[0].function.name\"", ""},
      {chat,
       chat_with(
           R"("tools":[{"type":"function","function":{"name":"a","strict":true,"parameters":{"if":{}}}}])"),
       "invalid_json_schema", "\"tools[0].function.parameters.if\"", ""},
      {chat, chat_with(R"("top_logprobs":3)"), "invalid_value", "\"top_logprobs\"", "unless logprobs"},
      {chat, chat_with(R"("logit_bias":{"x":1})"), "invalid_value", "\"logit_bias\"", "no token id"},
      {chat, chat_with(R"("max_tokens":5000)"), "context_length_exceeded", "\"messages\"",
       "This model's maximum context length is 2048 tokens. However,"},
      {text, "{}", "missing_required_parameter", "\"prompt\"", ""},
      {text, R"({"prompt":""})", "invalid_value", "\"prompt\"", "empty"},
      {text, R"({"prompt":"a","suffix":"b"})", "unsupported_value", "\"suffix\"", ""},
      {text, R"({"prompt":"a","best_of":2})", "unsupported_value", "\"best_of\"", ""},
      {text, R"({"prompt":"a","max_tokens":0})", "invalid_value", "\"max_tokens\"", ""},
      {text, R"({"prompt":[1,-1]})", "invalid_value", "\"prompt[1]\"", "a token id"},
      {text, R"({"prompt":"a","max_tokens":3000})", "context_length_exceeded", "\"prompt\"", ""},
  };
  for (const FieldCase& row : cases) {
    const TestResponse response = server.ask("POST", row.path, row.body);
    EXPECT_EQ(response.status, 400) << row.body;
    EXPECT_NE(response.body.find(std::string("\"type\":\"invalid_request_error\",\"param\":") + row.param +
                                 ",\"code\":\"" + row.code + '"'),
              std::string::npos)
        << row.body << "\n"
        << response.body;
    EXPECT_NE(response.body.find(row.message), std::string::npos) << row.body << "\n" << response.body;
  }
  EXPECT_EQ(server.backend.submitted(), 0u);
  const std::string long_one = server.ask("POST", chat, chat_with(R"("max_tokens":5000)")).body;
  EXPECT_NE(long_one.find("\"n_prompt_tokens\":"), std::string::npos);
  EXPECT_NE(long_one.find("\"n_ctx\":2048}}"), std::string::npos) << long_one;
}

TEST(ServeErrors, RefusalsOfTheBackend) {
  TestServer server;
  const auto ask = [&](Refusal refusal) {
    server.backend.set_refusal(std::move(refusal));
    return server.ask("POST", "/v1/chat/completions", chat_with("\"n\":1"));
  };
  const TestResponse full = ask({Refusal::Reason::kQueueFull, 7, 0, 0, {}});
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(full.header("Retry-After"), "7");
  EXPECT_NE(full.body.find(R"("type":"rate_limit_error","param":null,"code":"rate_limit_exceeded")"),
            std::string::npos);
  EXPECT_EQ(ask({Refusal::Reason::kQueueFull, 0, 0, 0, {}}).header("Retry-After"), "1");
  EXPECT_EQ(ask({Refusal::Reason::kQueueFull, 900, 0, 0, {}}).header("Retry-After"), "120");
  const TestResponse draining = ask({Refusal::Reason::kDraining, 1, 0, 0, {}});
  EXPECT_EQ(draining.status, 503);
  EXPECT_NE(draining.body.find(R"("type":"server_error","param":null,"code":"draining")"), std::string::npos);
  EXPECT_FALSE(draining.header("Retry-After").empty());
  EXPECT_EQ(ask({Refusal::Reason::kTooLong, 1, 3000, 2048, {}}).status, 400);
  const TestResponse invalid = ask({Refusal::Reason::kInvalid, 1, 0, 0, "temp is wrong in /a/b/c.json"});
  EXPECT_NE(invalid.body.find("temp is wrong in c.json"), std::string::npos) << invalid.body;
}

TEST(ServeErrors, KeysHostsAndOrigins) {
  ServerOptions options;
  options.api_keys = {"secret", "other"};
  options.allowed_hosts = {"box.example"};
  options.cors_origins = {"https://app.example"};
  TestServer server(std::move(options));
  const TestResponse none = server.ask("GET", "/v1/models");
  EXPECT_EQ(none.status, 401);
  EXPECT_EQ(none.header("WWW-Authenticate"), "Bearer");
  EXPECT_NE(none.body.find(R"("type":"invalid_request_error","param":null,"code":"invalid_api_key")"),
            std::string::npos);
  for (const char* good :
       {"Authorization: Bearer secret\r\n", "authorization: bearer other\r\n", "x-api-key: other\r\n"})
    EXPECT_EQ(server.ask("GET", "/v1/models", {}, good).status, 200) << good;
  for (const char* bad : {"Authorization: Bearer secre\r\n", "Authorization: secret\r\n", "x-api-key: \r\n",
                          "Authorization: Bearer secret2\r\n"})
    EXPECT_EQ(server.ask("GET", "/v1/models", {}, bad).status, 401) << bad;
  EXPECT_EQ(server.ask("GET", "/health").status, 200);
  EXPECT_EQ(server.ask("GET", "/metrics").status, 401);

  const std::string key = "x-api-key: secret\r\n";
  const TestResponse page = server.ask("GET", "/health", {}, "Origin: https://evil.example\r\n");
  EXPECT_EQ(page.status, 403);
  EXPECT_NE(page.body.find(R"("type":"permission_error","param":null,"code":"origin_not_allowed")"),
            std::string::npos);
  EXPECT_EQ(server.ask("GET", "/health", {}, "Sec-Fetch-Site: cross-site\r\n").status, 403);
  EXPECT_EQ(server.ask("GET", "/health", {}, "Origin: http://localhost\r\n").status, 200);
  const TestResponse allowed = server.ask("GET", "/v1/models", {}, key + "Origin: https://app.example\r\n");
  EXPECT_EQ(allowed.status, 200);
  EXPECT_EQ(allowed.header("Access-Control-Allow-Origin"), "https://app.example");
  EXPECT_EQ(allowed.header("Vary"), "Origin");
  const TestResponse preflight = server.ask("OPTIONS", "/v1/models", {}, "Origin: https://app.example\r\n");
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.header("Access-Control-Max-Age"), "600");
  EXPECT_EQ(preflight.header("Access-Control-Allow-Headers"), "authorization, content-type, x-api-key");
  EXPECT_EQ(preflight.head.find("Credentials"), std::string::npos);
}

TEST(ServeErrors, HostHeaders) {
  ServerOptions options;
  options.allowed_hosts = {"box.example"};
  TestServer server(std::move(options));
  const auto ask = [&](const std::string& hosts) {
    TestClient client(server.port());
    client.send("GET /health HTTP/1.1\r\n" + hosts + "\r\n");
    return client.response().status;
  };
  for (const char* good : {"Host: localhost:8080\r\n", "Host: 127.0.0.1\r\n", "Host: [::1]:80\r\n",
                           "Host: a.localhost\r\n", "Host: LOCALHOST\r\n", "Host: box.example:1\r\n"})
    EXPECT_EQ(ask(good), 200) << good;
  for (const char* bad : {"Host: evil.example\r\n", "Host: 10.0.0.1\r\n", "Host: localhost.evil.example\r\n"})
    EXPECT_EQ(ask(bad), 403) << bad;
  EXPECT_EQ(ask(""), 400);
  EXPECT_EQ(ask("Host: localhost\r\nHost: localhost\r\n"), 400);
  TestClient absolute(server.port());
  absolute.send("GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(absolute.response().status, 403);
  TestClient own(server.port());
  own.send("GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(own.response().status, 200);
}

TEST(ServeErrors, OthersOfTheTable) {
  ServerOptions options;
  options.strict_model = true;
  TestServer server(std::move(options));
  const TestResponse model = server.ask("POST", "/v1/chat/completions", chat_with(R"("model":"gpt-9")"));
  EXPECT_EQ(model.status, 404);
  EXPECT_NE(model.body.find(R"("param":"model","code":"model_not_found")"), std::string::npos);
  const TestResponse packed = server.ask("POST", "/v1/completions", "{}", "Content-Encoding: gzip\r\n");
  EXPECT_EQ(packed.status, 415);
  EXPECT_NE(packed.body.find("unsupported_content_encoding"), std::string::npos);
  EXPECT_EQ(server.ask("POST", "/v1/embeddings", "{}").status, 501);
}

TEST(ServeErrors, AnthropicStyle) {
  ServerOptions options;
  options.api_keys = {"secret"};
  TestServer server(std::move(options));
  const std::string key = "x-api-key: secret\r\n";
  const auto type_of = [](const TestResponse& response) {
    const std::size_t at = response.body.find(R"("error":{"type":")");
    return response.body.substr(at + 17, response.body.find('"', at + 17) - at - 17);
  };
  EXPECT_EQ(type_of(server.ask("POST", "/v1/messages", "{}")), "authentication_error");
  const TestResponse missing = server.ask("POST", "/v1/messages", "{}", key);
  EXPECT_EQ(missing.status, 400);
  EXPECT_TRUE(missing.body.starts_with(
      R"({"type":"error","error":{"type":"invalid_request_error","message":"'max_tokens' is missing"},"request_id":"req_)"))
      << missing.body;
  EXPECT_EQ(missing.header("request-id"), missing.header("x-request-id"));
  const TestResponse too_long = server.ask(
      "POST", "/v1/messages", R"({"max_tokens":5000,"messages":[{"role":"user","content":"Hi"}]})", key);
  EXPECT_NE(too_long.body.find("\"message\":\"prompt is too long: "), std::string::npos) << too_long.body;
  EXPECT_NE(too_long.body.find(" tokens > 2048 maximum\""), std::string::npos);
  EXPECT_EQ(type_of(server.ask("GET", "/v1/messages", {}, key)), "not_found_error");
  EXPECT_EQ(type_of(server.ask("POST", "/v1/messages", "{}", key + "Host: x\r\n")), "invalid_request_error");
  server.backend.set_refusal(Refusal{Refusal::Reason::kQueueFull, 3, 0, 0, {}});
  const std::string body = R"({"max_tokens":5,"messages":[{"role":"user","content":"Hi"}]})";
  EXPECT_EQ(type_of(server.ask("POST", "/v1/messages", body, key)), "rate_limit_error");
  server.backend.set_refusal(std::nullopt);
  server.backend.set_script([](const auto&, EventQueue& events) {
    events.push({0, Failure{Failure::Kind::kError, "broken"}, {}});
  });
  EXPECT_EQ(type_of(server.ask("POST", "/v1/messages", body, key)), "api_error");
  server.backend.set_state({Phase::kDraining, 1, {}});
  const TestResponse draining = server.ask("POST", "/v1/messages", body, key);
  EXPECT_EQ(draining.status, 529);
  EXPECT_EQ(type_of(draining), "overloaded_error");
}

TEST(ServeErrors, WithoutATemplate) {
  TestServer server({}, false);
  const TestResponse response = server.ask("POST", "/v1/chat/completions", chat_with("\"n\":1"));
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(response.body.find("\"code\":\"chat_template_missing\""), std::string::npos);
}

TEST(ServeErrors, AddressesThatNeedAKey) {
  testing::ScriptedBackend backend;
  ServerOptions options;
  options.host = "0.0.0.0";
  options.port = 0;
  EXPECT_THROW(Server(backend, options), Error);
  options.no_auth = true;
  Server open(backend, options);
  options.no_auth = false;
  options.api_keys = {"k"};
  Server locked(backend, options);
  options.api_keys.clear();
  options.host = "127.0.0.1";
  options.cors_origins = {"*"};
  EXPECT_THROW(Server(backend, options), Error);
  ServerOptions taken;
  taken.port = open.port();
  taken.host = "0.0.0.0";
  taken.no_auth = true;
  EXPECT_THROW(Server(backend, taken), Error);
}

TEST(ServeSockets, OnAPath) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("serve" + std::to_string(getpid()))).string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  testing::ScriptedBackend backend;
  ServerOptions options;
  options.unix_path = path;
  for (int round = 0; round < 2; ++round) {
    Server server(backend, options);
    server.start();
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    EXPECT_EQ(server.address(), "unix:" + path);
    EXPECT_THROW(Server(backend, options), Error);  // somebody listens there
    const int client = socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    const std::string request = "GET /health HTTP/1.1\r\nHost: any.name\r\nConnection: close\r\n\r\n";
    ASSERT_EQ(send(client, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
    char answer[15] = {};
    EXPECT_EQ(recv(client, answer, sizeof(answer), MSG_WAITALL), 15);
    EXPECT_EQ(std::string_view(answer, 15), "HTTP/1.1 200 OK");
    ::close(client);
    server.stop();
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

TEST(ServeSockets, OfSystemd) {
  const http::Listening one = http::listen_on("127.0.0.1", 0);
  setenv("LISTEN_PID", "1", 1);
  setenv("LISTEN_FDS", "1", 1);
  EXPECT_FALSE(http::inherited_socket().has_value());  // for another process
  unsetenv("LISTEN_PID");
  unsetenv("LISTEN_FDS");
  testing::ScriptedBackend backend;
  ServerOptions options;
  options.inherited = one;
  Server server(backend, options);
  server.start();
  testing::TestClient client(one.port);
  client.send(testing::request_text("GET", "/health"));
  EXPECT_EQ(client.response().status, 200);

  const std::string path =
      (std::filesystem::temp_directory_path() / ("notify" + std::to_string(getpid()))).string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int manager = socket(AF_UNIX, SOCK_DGRAM, 0);
  ASSERT_EQ(bind(manager, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  setenv("NOTIFY_SOCKET", path.c_str(), 1);
  http::notify_service_manager("READY=1");
  unsetenv("NOTIFY_SOCKET");
  char told[16] = {};
  EXPECT_EQ(recv(manager, told, sizeof(told), MSG_DONTWAIT), 7);
  EXPECT_STREQ(told, "READY=1");
  ::close(manager);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace sluice::serve
