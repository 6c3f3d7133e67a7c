// Every row of the table of endpoints, and the errors that do not depend on one.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/json/json.h"
#include "serve/server/test_server.h"
#include "serve/wire/routes.h"

namespace sluice::serve {
namespace {

using testing::example_finish;
using testing::TestClient;
using testing::TestResponse;
using testing::TestServer;

constexpr std::string_view kChat = R"({"messages":[{"role":"user","content":"Hi"}]})";

struct EndpointCase {
  const char* method;
  const char* path;
  const char* body;
  int status;
  const char* expected;  // stands in the body
};

constexpr EndpointCase kCases[] = {
    {"GET", "/health", "", 200, R"({"status":"ok"})"},
    {"GET", "/models", "", 200, R"("first_id":"qwen3","last_id":"qwen3"})"},
    {"GET", "/models/qwen3", "", 200, R"({"id":"qwen3","object":"model","created":1795440000)"},
    {"POST", "/chat/completions", kChat.data(), 200, R"("object":"chat.completion")"},
    {"POST", "/completions", R"({"prompt":"Hi"})", 200, R"("object":"text_completion")"},
    {"GET", "/metrics", "", 200, "# TYPE sluice_num_requests_running gauge"},
    {"GET", "/experts", "", 200, R"({"layers":1,"experts":2,"layer_ids":[3])"},
    {"GET", "/plan", "", 200, R"({"budget":67108864})"},
    {"POST", "/messages", R"({"max_tokens":5,"messages":[{"role":"user","content":"Hi"}]})", 200,
     R"("stop_reason":"end_turn")"},
    {"POST", "/messages/count_tokens", kChat.data(), 200, R"({"input_tokens":)"},
    {"POST", "/tokenize", R"({"content":"Hi"})", 200, R"("max_model_len":2048)"},
    {"POST", "/detokenize", R"({"tokens":[5,6]})", 200, R"({"content":")"},
    {"POST", "/apply-template", kChat.data(), 200,
     R"({"prompt":"<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"})"},
    {"POST", "/chat/completions/input_tokens", kChat.data(), 200,
     R"({"object":"response.input_tokens","input_tokens":)"},
    {"GET", "/tokenizer_info", "", 200, R"({"tokenizer_class":"PreTrainedTokenizerFast","bos_token":"<s>")"},
    {"GET", "/props", "", 200, R"("modalities":{"vision":false,"audio":false})"},
    {"GET", "/slots", "", 200, R"([{"id":0,"id_task":0,"n_ctx":2048,"is_processing":false,"state":"idle")"},
    {"POST", "/responses", "{}", 501, "not_supported"},
    {"POST", "/responses/input_tokens", "{}", 501, "not_supported"},
    {"GET", "/responses/resp_1", "", 404, "no response is stored"},
    {"DELETE", "/responses/resp_1", "", 404, "no response is stored"},
    {"POST", "/embeddings", "{}", 501, "not_supported"},
    {"POST", "/audio/speech", "{}", 501, "not_supported"},
    {"POST", "/images/generations", "{}", 501, "not_supported"},
    {"POST", "/moderations", "{}", 501, "not_supported"},
    {"POST", "/completion", "{}", 501, "not_supported"},
    {"POST", "/infill", "{}", 501, "not_supported"},
    {"POST", "/slots/0", "{}", 501, "not_supported"},
    {"POST", "/props", "{}", 501, "not_supported"},
    {"GET", "/api/version", "", 501, "not_supported"},
    {"GET", "/api/tags", "", 501, "not_supported"},
    {"GET", "/api/ps", "", 501, "not_supported"},
    {"POST", "/api/chat", "{}", 501, "not_supported"},
    {"POST", "/api/generate", "{}", 501, "not_supported"},
    {"POST", "/api/show", "{}", 501, "not_supported"},
};

void set_up(testing::ScriptedBackend& backend) {
  backend.set_script([](const auto& sequences, EventQueue& events) {
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      events.push({i, TextDelta{"Hello.", {}}, {}});
      events.push({i, example_finish(), {}});
    }
  });
  backend.set_board({1, 2, {3}, false, "FM", {4, 0}, {255, 1}, {9, 0}, {{"F", 1000}}, {}});
}

TEST(Endpoints, EachAnswersWithAndWithoutV1) {
  TestServer server;
  set_up(server.backend);
  std::size_t rows = 0;
  for (const EndpointCase& row : kCases) {
    for (const std::string& path : {std::string(row.path), "/v1" + std::string(row.path)}) {
      const TestResponse response = server.ask(row.method, path, row.body);
      EXPECT_EQ(response.status, row.status) << row.method << ' ' << path << ": " << response.body;
      EXPECT_NE(response.body.find(row.expected), std::string::npos) << path << ": " << response.body;
      EXPECT_EQ(response.header("x-request-id").substr(0, 4), "req_") << path;
      ++rows;
    }
  }
  std::printf("%zu answers of endpoints\n", rows);
}

TEST(Endpoints, EachRouteHasACase) {
  for (const Route& route : routes()) {
    const std::string front(route.path.substr(0, route.path.find('*')));
    bool found = route.path == "/events";  // has a test of its own
    for (const EndpointCase& row : kCases)
      found |= route.method == row.method && std::string_view(row.path).starts_with(front);
    EXPECT_TRUE(found) << route.method << ' ' << route.path;
  }
}

TEST(Endpoints, HeadOfEachGet) {
  TestServer server;
  set_up(server.backend);
  for (const EndpointCase& row : kCases) {
    if (std::string_view(row.method) != "GET") continue;
    TestClient client(server.port());
    client.send(testing::request_text("HEAD", row.path));
    EXPECT_EQ(client.response(false).status, row.status) << row.path;
    client.send(testing::request_text("GET", "/health"));  // nothing of a body stands in the way
    EXPECT_EQ(client.response().body, R"({"status":"ok"})") << row.path;
  }
  EXPECT_EQ(server.ask("HEAD", "/events").status, 200);
}

TEST(Endpoints, WrongMethodsAndPaths) {
  TestServer server;
  const TestResponse wrong = server.ask("DELETE", "/v1/chat/completions");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("Allow"), "POST");
  EXPECT_EQ(server.ask("POST", "/health", "{}").header("Allow"), "GET, HEAD");
  EXPECT_EQ(server.ask("PUT", "/props").header("Allow"), "GET, HEAD, POST");
  const TestResponse unknown = server.ask("POST", "/v1/foo", "{}");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(
      unknown.body,
      R"({"error":{"message":"no such endpoint: POST /v1/foo","type":"invalid_request_error","param":null,"code":null}})");
  for (const char* path : {"/health/", "/v1", "/v1/", "//health", "/v1/v1/health", "/models/", "/models/a/b",
                           "/ui/../health", "/%2e%2e/health", "/ui/%2e%2e/x"})
    EXPECT_EQ(server.ask("GET", path).status, 404) << path;
  EXPECT_EQ(server.ask("GET", "/v1/models/other").status, 404);
  EXPECT_EQ(server.ask("GET", "/v1/models/qwe%6e3").status, 200);
  EXPECT_EQ(server.ask("GET", "/health?x=1").status, 200);
}

TEST(Endpoints, ModelsWhileLoading) {
  TestServer server;
  EXPECT_EQ(
      server.ask("GET", "/v1/models").body,
      R"({"object":"list","data":[{"id":"qwen3","object":"model","created":1795440000,"owned_by":"sluice","type":"model","display_name":"qwen3","created_at":"2026-11-23T13:20:00Z","meta":{"n_ctx":8192,"n_ctx_train":40960,"n_params":30532122624,"size":61064245248,"n_experts":128,"n_experts_used":8,"architecture":"qwen3_moe","family":"split"}}],"models":[{"id":"qwen3","object":"model","created":1795440000,"owned_by":"sluice","type":"model","display_name":"qwen3","created_at":"2026-11-23T13:20:00Z","meta":{"n_ctx":8192,"n_ctx_train":40960,"n_params":30532122624,"size":61064245248,"n_experts":128,"n_experts_used":8,"architecture":"qwen3_moe","family":"split"}}],"has_more":false,"first_id":"qwen3","last_id":"qwen3"})");
  server.backend.set_state({Phase::kLoading, 0.42, {}});
  const TestResponse health = server.ask("GET", "/health");
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(
      health.body,
      R"({"error":{"message":"the model is being loaded","type":"server_error","param":null,"code":"loading"},"status":"loading","progress":0.42})");
  EXPECT_NE(server.ask("GET", "/v1/models").body.find("\"meta\":null"), std::string::npos);
  EXPECT_EQ(server.ask("POST", "/v1/chat/completions", kChat).status, 503);
  EXPECT_EQ(server.ask("GET", "/v1/plan").status, 503);
  EXPECT_EQ(server.ask("POST", "/v1/messages", kChat).status, 529);
  EXPECT_EQ(server.ask("GET", "/metrics").status, 200);
}

TEST(Endpoints, HealthKnowsFreePlaces) {
  TestServer server;
  EXPECT_EQ(server.ask("GET", "/health?fail_on_no_slot=1").status, 200);
  SlotState busy;
  busy.kind = SlotState::Kind::kDecode;
  server.backend.set_slots({busy});
  EXPECT_EQ(server.ask("GET", "/health?fail_on_no_slot=1").status, 503);
  EXPECT_EQ(server.ask("GET", "/health").status, 200);
}

TEST(Endpoints, EventsTellChanges) {
  TestServer server;
  set_up(server.backend);
  TestClient client(server.port());
  client.send(testing::request_text("GET", "/events"));
  const std::string begin = client.receive_until("event: requests\ndata: []\n\n");
  EXPECT_NE(begin.find("event: hello\ndata: {\"version\":\""), std::string::npos) << begin;
  EXPECT_NE(begin.find(
                "\"model\":\"qwen3\",\"chat\":true,\"limits\":{\"n_ctx\":2048,\"parallel\":4,\"queue\":64}}"),
            std::string::npos);
  EXPECT_NE(begin.find("event: plan\ndata: {\"budget\":67108864}\n\n"), std::string::npos);
  EXPECT_NE(begin.find("event: stats\ndata: {\"t\":1.5}\n\nevent: requests\n"), std::string::npos);
  EXPECT_EQ(server.backend.watchers(), 1u);
  const Json before = Json::parse(server.ask("GET", "/v1/experts").body);
  EXPECT_EQ(before["state"], Json("BAA="));
  EXPECT_EQ(before["heat"], Json("/wE="));
  EXPECT_EQ(before["uses"], Json("CQAAAAAAAAA="));
  server.backend.set_board({1, 2, {3}, false, "FM", {4, 3}, {255, 9}, {9, 1}, {{"F", 1000}}, {}});
  const std::string change = client.receive_until("\"used\":[1]}\n\n");
  const std::string expected =
      "event: experts\ndata: {\"sequence\":" + std::to_string(before["sequence"].get<std::uint64_t>() + 1) +
      ",\"set\":[[1,3]],\"used\":[1]}\n\n";
  EXPECT_NE(change.find(expected), std::string::npos) << change;
  SlotState busy;
  busy.task = 7;
  busy.kind = SlotState::Kind::kPrefill;
  busy.prompt = 10, busy.prefilled = 4;
  server.backend.set_slots({busy});
  const std::string requests = client.receive_until("event: requests\n");
  EXPECT_NE(
      (requests + client.receive_until("\n\n"))
          .find(R"([{"id":"7","state":"prefill","prompt":10,"cached":0,"done":4,"generated":0,"max":0}])"),
      std::string::npos);
  client.close();
  for (int i = 0; i < 200 && server.backend.watchers() > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(server.backend.watchers(), 0u);
}

TEST(Endpoints, AnIdleSlotHasWhatARequestThatSaysNothingGets) {
  TestServer server;
  server.backend.served_for_change().defaults.sampling.temperature = 0.75;
  server.backend.served_for_change().defaults.sampling.top_k = 20;
  const Json props = Json::parse(server.ask("GET", "/props").body);
  const Json slots = Json::parse(server.ask("GET", "/slots").body);
  EXPECT_EQ(props["default_generation_settings"]["params"]["top_k"], Json(20));
  EXPECT_EQ(slots[0]["params"], props["default_generation_settings"]["params"]);
}

// A client that begins to watch is told at once of what runs.
TEST(Endpoints, EventsBeginWithTheRequests) {
  TestServer server;
  SlotState busy;
  busy.task = 7;
  busy.kind = SlotState::Kind::kDecode;
  server.backend.set_slots({busy});
  TestClient client(server.port());
  client.send(testing::request_text("GET", "/events"));
  EXPECT_NE(client.receive_until("\"max\":0}]\n\n").find(R"(event: requests
data: [{"id":"7","state":"decode")"),
            std::string::npos);
}

TEST(Endpoints, SixteenMayWatch) {
  TestServer server;
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 16; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    clients.back()->send(testing::request_text("GET", "/events"));
    EXPECT_NE(clients.back()->receive_until("event: hello").find("200 OK"), std::string::npos) << i;
  }
  EXPECT_EQ(server.ask("GET", "/events").status, 429);
}

TEST(Endpoints, ThePage) {
  ServerOptions options;
  const auto directory = std::filesystem::temp_directory_path() / ("page" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "index.html") << "<!doctype html><title>x</title>";
  std::ofstream(directory / "a.js") << "export const a = 1;\n";
  options.page_directory = directory.string();
  options.api_keys = {"secret"};
  TestServer server(std::move(options));
  const TestResponse index = server.ask("GET", "/");
  EXPECT_EQ(index.status, 200);
  EXPECT_EQ(index.body, "<!doctype html><title>x</title>");
  EXPECT_EQ(index.header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(
      index.header("Content-Security-Policy"),
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'");
  EXPECT_EQ(index.header("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(index.header("Referrer-Policy"), "no-referrer");
  EXPECT_EQ(index.header("Cross-Origin-Opener-Policy"), "same-origin");
  EXPECT_EQ(index.header("Cross-Origin-Resource-Policy"), "same-origin");
  EXPECT_EQ(index.header("Cache-Control"), "no-cache");
  EXPECT_EQ(server.ask("GET", "/", {}, "If-None-Match: " + index.header("ETag") + "\r\n").status, 304);
  EXPECT_EQ(server.ask("GET", "/ui/a.js").body, "export const a = 1;\n");
  EXPECT_EQ(server.ask("GET", "/ui/b.js").status, 404);
  EXPECT_EQ(server.ask("POST", "/", "{}").status, 405);
  std::filesystem::remove_all(directory);
}

// The program's own files come compressed to those who can read that, and as they are to others.
TEST(Endpoints, ThePageIsCompressedForWhoTakesIt) {
  TestServer server;
  const auto ask = [&](const std::string& coding) {
    return server.ask("GET", "/", {}, coding.empty() ? "" : "Accept-Encoding: " + coding + "\r\n");
  };
  const TestResponse plain = ask("");
  EXPECT_EQ(plain.header("Content-Encoding"), "");
  EXPECT_TRUE(plain.body.starts_with("<!doctype html>") || plain.body.starts_with("<!DOCTYPE html>"));
  for (const char* coding : {"identity", "br", "gzip;q=0, br", "*;q=0", "deflate, gzip ; q=0.0"})
    EXPECT_EQ(ask(coding).body, plain.body) << coding;
  const TestResponse gzip = ask("br, GZIP;q=0.5");
  EXPECT_EQ(gzip.header("Content-Encoding"), "gzip");
  EXPECT_EQ(gzip.header("Vary"), "Accept-Encoding");
  EXPECT_TRUE(gzip.body.starts_with("\x1f\x8b"));
  EXPECT_LT(gzip.body.size(), plain.body.size());
  EXPECT_NE(gzip.header("ETag"), plain.header("ETag"));
  EXPECT_EQ(ask("*").body, gzip.body);
  const std::string same = "If-None-Match: " + gzip.header("ETag") + "\r\n";
  EXPECT_EQ(server.ask("GET", "/", {}, same + "Accept-Encoding: gzip\r\n").status, 304);
  EXPECT_EQ(server.ask("GET", "/", {}, same).status, 200);
}

TEST(Endpoints, WithoutThePage) {
  ServerOptions options;
  options.page = false;
  TestServer server(std::move(options));
  EXPECT_EQ(server.ask("GET", "/").status, 404);
}

// Requests that nobody has answered, by the reason.
TEST(Endpoints, FailuresAreCountedByTheirReason) {
  TestServer server;
  const auto counts = [&] {
    const std::string page = server.ask("GET", "/metrics").body;
    std::string found;
    for (const std::string reason : {"refused", "error", "cancelled"}) {
      const std::string line =
          "sluice_request_failure_total{model_name=\"qwen3\",reason=\"" + reason + "\"} ";
      const std::size_t at = page.find(line);
      EXPECT_NE(at, page.npos) << page;
      if (at != page.npos)
        found += page.substr(at + line.size(), page.find('\n', at) - at - line.size()) + ' ';
    }
    return found;
  };
  const auto push_failure = [&](Failure::Kind kind, bool admitted) {
    server.backend.set_script([=](const auto&, EventQueue& events) {
      if (admitted) events.push({0, Admitted{1, 0}, {}});
      events.push({0, Failure{kind, "x"}, {}});
    });
    return server.ask("POST", "/v1/completions", R"({"prompt":"a"})").status;
  };
  EXPECT_EQ(counts(), "0 0 0 ");
  EXPECT_EQ(server.ask("POST", "/v1/chat/completions", R"({"messages":7})").status, 400);
  EXPECT_EQ(counts(), "1 0 0 ");
  server.backend.set_refusal(Refusal{Refusal::Reason::kQueueFull, 3, 0, 0, {}});
  EXPECT_EQ(
      server.ask("POST", "/v1/messages", R"({"max_tokens":5,"messages":[{"role":"user","content":"Hi"}]})")
          .status,
      429);
  EXPECT_EQ(counts(), "2 0 0 ");
  server.backend.set_refusal(std::nullopt);
  EXPECT_EQ(push_failure(Failure::Kind::kError, true), 500);
  EXPECT_EQ(counts(), "2 1 0 ");
  EXPECT_EQ(push_failure(Failure::Kind::kDraining, true), 503);
  EXPECT_EQ(counts(), "2 1 1 ");
  EXPECT_EQ(push_failure(Failure::Kind::kDraining, false), 503);
  EXPECT_EQ(counts(), "3 1 1 ");
  EXPECT_EQ(server.ask("POST", "/tokenize", "{}").status, 400);  // the model was not asked
  EXPECT_EQ(counts(), "3 1 1 ");
}

// Without a tokenizer prompts and answers are ids.
TEST(Endpoints, AModelWithoutATokenizerGivesIds) {
  TestServer server;
  server.backend.served_for_change().tokenizer = nullptr;
  server.backend.served_for_change().chat = nullptr;
  server.backend.set_script([](const auto&, EventQueue& events) {
    events.push({0, TextDelta{"", {{7, -0.5, {}}}}, {}});
    events.push({0, TextDelta{"", {{9, -1, {}}}}, {}});
    events.push({0, testing::example_finish(FinishReason::kLength), {}});
  });
  const std::string prompt = R"({"prompt":[5,6],"max_tokens":2)";
  const auto choice = [&](const std::string& more) {
    return Json::parse(server.ask("POST", "/v1/completions", prompt + more + "}").body)["choices"][0];
  };
  EXPECT_EQ(choice("")["token_ids"], Json({7, 9}));
  EXPECT_EQ(choice("")["text"], Json(""));
  EXPECT_EQ(choice(R"(,"logprobs":1)")["logprobs"]["tokens"], Json({"token_id:7", "token_id:9"}));
  const std::string stream = server.ask("POST", "/v1/completions", prompt + R"(,"stream":true})").body;
  EXPECT_NE(stream.find(R"("finish_reason":null,"token_ids":[7])"), std::string::npos) << stream;
  EXPECT_NE(stream.find(R"("finish_reason":null,"token_ids":[9])"), std::string::npos) << stream;
  EXPECT_NE(stream.find(R"("finish_reason":"length","token_ids":[])"), std::string::npos) << stream;
  EXPECT_EQ(server.ask("POST", "/v1/completions", R"({"prompt":"a"})").status, 400);
  EXPECT_EQ(server.ask("POST", "/v1/chat/completions", kChat).status, 400);
}

TEST(Endpoints, TokensBothWays) {
  TestServer server;
  const Json tokens = Json::parse(server.ask("POST", "/tokenize", R"({"content":"Once upon a time"})").body);
  EXPECT_EQ(tokens["count"].get<std::size_t>(), tokens["tokens"].size());
  EXPECT_GT(tokens["tokens"].size(), 1u);
  const Json text =
      Json::parse(server.ask("POST", "/detokenize", R"({"tokens":)" + tokens["tokens"].dump() + "}").body);
  EXPECT_EQ(text["content"], Json("Once upon a time"));
  EXPECT_EQ(text["prompt"], text["content"]);
  const Json pieces =
      Json::parse(server.ask("POST", "/tokenize", R"({"content":"Once upon","with_pieces":true})").body);
  EXPECT_TRUE(pieces["tokens"][0].contains("piece"));
  const Json strings =
      Json::parse(server.ask("POST", "/tokenize", R"({"prompt":"Once upon","return_token_strs":true})").body);
  EXPECT_EQ(strings["token_strs"].size(), strings["tokens"].size());
  const Json chat = Json::parse(server.ask("POST", "/tokenize", kChat).body);
  EXPECT_EQ(chat["count"],
            Json::parse(server.ask("POST", "/chat/completions/input_tokens", kChat).body)["input_tokens"]);
  EXPECT_EQ(server.ask("POST", "/detokenize", R"({"tokens":[999999999]})").status, 400);
  EXPECT_EQ(server.ask("POST", "/tokenize", "{}").status, 400);
}

}  // namespace
}  // namespace sluice::serve
