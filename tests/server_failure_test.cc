// A server whose engine fails while it answers: reads that fail for a while, or for good, and an engine that
// breaks altogether.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/json/json.h"
#include "engine/engine.h"
#include "engine/generate/generate.h"
#include "engine/plan/memory_plan.h"
#include "serve/engine/engine_backend.h"
#include "serve/server/server.h"
#include "serve/server/test_client.h"
#include "store/source/open_checkpoint.h"

namespace sluice::serve {
namespace {

using testing::TestClient;
using testing::TestResponse;

const std::string kModel = SLUICE_SOURCE_DIR "/models/fable-moe-18m";

std::string completion(const std::string& prompt, int tokens, const std::string& more = "") {
  return R"({"prompt":)" + Json(prompt).dump() + R"(,"temperature":0,"ignore_eos":true,"max_tokens":)" +
         std::to_string(tokens) + more + "}";
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

// The bundled model, which keeps no expert in memory, so that each token reads; and its server.
class ServerFailure : public ::testing::Test {
 protected:
  enum class Reads { kGood, kEio, kThrow };

  void SetUp() override {
    backend_.load([this](const std::function<void(double)>&) { return load(); });
    backend_.wait_until_loaded();
    ServerOptions options;
    options.port = 0;
    server_ = std::make_unique<Server>(backend_, options);
    server_->start();
  }
  void TearDown() override { server_->stop(); }

  std::unique_ptr<LoadedModel> load() {
    auto loaded = std::make_unique<LoadedModel>();
    loaded->checkpoint = store::open_checkpoint(kModel);
    loaded->model = model::describe_model(*loaded->checkpoint);
    loaded->tokenizer = tokenizer::load_tokenizer(kModel);
    engine::EngineOptions options;
    options.memory = engine::process_bytes(58 * kMiB) + 58 * kMiB;
    options.threads = 1;
    options.positions = 512;
    options.sequences = 4;
    options.suspended_passes = 1;
    options.draws = true;
    options.cache = "none";
    options.prefetch = "none";
    options.fetch.io = fetch::IoMode::kBuffered;
    options.fetch.wrap_reader = [this](std::unique_ptr<DiskReader> inner) {
      return make_faulty_reader(std::move(inner), [this](const DiskRead&) {
        if (reads_ == Reads::kThrow) throw std::runtime_error("the engine's own bug");
        int left = fail_next_;
        while (left > 0 && !fail_next_.compare_exchange_weak(left, left - 1)) continue;
        return left > 0 || reads_ == Reads::kEio ? EIO : 0;
      });
    };
    loaded->engine = std::make_unique<engine::Engine>(
        *loaded->checkpoint, loaded->model, engine::resolve(options, *loaded->checkpoint, loaded->model),
        engine::generation_logit_rows(options.sequences));
    loaded->plan = Json::object();
    return loaded;
  }

  TestResponse ask(const std::string& method, const std::string& path, const std::string& body = "") {
    TestClient client(server_->port());
    send(client, method, path, body);
    return client.response();
  }
  static void send(TestClient& client, const std::string& method, const std::string& path,
                   const std::string& body) {
    client.send(method + ' ' + path + " HTTP/1.1\r\nHost: localhost\r\n" +
                (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") + "\r\n" +
                body);
  }
  // Streams that have begun to answer.
  std::vector<std::unique_ptr<TestClient>> streams(const std::vector<std::string>& prompts,
                                                   int tokens = 400) {
    std::vector<std::unique_ptr<TestClient>> clients;
    for (const std::string& prompt : prompts) {
      clients.push_back(std::make_unique<TestClient>(server_->port()));
      send(*clients.back(), "POST", "/v1/completions", completion(prompt, tokens, R"(,"stream":true)"));
    }
    for (const auto& client : clients)
      EXPECT_NE(client->receive_until("\"text\":\"").find("200 OK"), std::string::npos);
    return clients;
  }
  double failures(const std::string& reason) {
    const std::string page = ask("GET", "/metrics").body;
    const std::size_t at = page.find("reason=\"" + reason + "\"} ");
    return at == page.npos ? -1 : std::atof(page.c_str() + at + reason.size() + 11);
  }
  // The text of an answer, or its error's message.
  std::string text_of(const std::string& prompt, int tokens) {
    const TestResponse response = ask("POST", "/v1/completions", completion(prompt, tokens));
    const Json json = parse_json(response.body, "answer");
    return response.status == 200
               ? json["choices"][0]["text"].get<std::string>()
               : std::to_string(response.status) + ' ' + json["error"]["message"].get<std::string>();
  }

  std::atomic<Reads> reads_ = Reads::kGood;
  std::atomic<int> fail_next_ = 0;  // reads
  EngineBackend backend_{{}};
  std::unique_ptr<Server> server_;
};

// What comes behind the start of a stream that fails: one error, no end as of a good answer, a closed
// connection.
void expect_one_error(TestClient& client, const std::string& message) {
  const std::string rest = client.receive_all();
  EXPECT_EQ(count(rest, "data: {\"error\":"), 1u) << rest;
  EXPECT_EQ(count(rest, "[DONE]"), 0u) << rest;
  EXPECT_NE(rest.find(message), std::string::npos) << rest;
  EXPECT_EQ(rest.find(kModel), std::string::npos) << "a client learns nothing of the machine's folders";
  EXPECT_TRUE(client.ended());
}

TEST_F(ServerFailure, ReadsThatFailEndAnswersAndNotTheServer) {
  const std::string before = text_of("Once upon a time", 12);
  auto clients = streams({"Once", "The fox said", "In the sea"});
  reads_ = Reads::kEio;
  for (const auto& client : clients) expect_one_error(*client, "model.safetensors at byte ");
  // The disk stays broken: each request that comes gets an error of its own, and the server lives.
  for (int i = 0; i < 3; ++i) {
    const std::string error = text_of("Once upon a time", 12);
    EXPECT_TRUE(error.starts_with("500 model.safetensors at byte ")) << error;
  }
  EXPECT_EQ(ask("GET", "/health").status, 200);
  EXPECT_EQ(failures("error"), 6);
  EXPECT_EQ(failures("cancelled"), 0);
  // The disk is well again.
  reads_ = Reads::kGood;
  EXPECT_EQ(text_of("Once upon a time", 12), before);
  EXPECT_EQ(ask("GET", "/v1/plan").status, 200);
  EXPECT_TRUE(server_->drain(std::chrono::seconds(10)));
}

// A pass is tried again, and no client learns of it.
TEST_F(ServerFailure, AReadThatFailsOnceIsNotSeen) {
  const std::string before = text_of("The fox said", 40);
  auto clients = streams({"The fox said"}, 60);
  fail_next_ = 1;
  EXPECT_EQ(text_of("The fox said", 40), before);
  EXPECT_EQ(fail_next_, 0);
  EXPECT_NE(clients.front()->receive_all().find("[DONE]"), std::string::npos);
  EXPECT_EQ(failures("error"), 0);
}

// A broken disk does not hold up the end.
TEST_F(ServerFailure, AServerWhoseDiskIsBrokenStops) {
  auto clients = streams({"Once", "The fox said"});
  server_->drain(std::chrono::milliseconds(0));
  reads_ = Reads::kEio;
  EXPECT_EQ(ask("GET", "/health").status, 503);
  for (const auto& client : clients) {
    const std::string rest = client->receive_all();
    EXPECT_EQ(count(rest, "data: {\"error\":"), 1u) << rest;
    EXPECT_EQ(count(rest, "[DONE]"), 0u) << rest;
  }
}

// What nobody has foreseen ends the engine: whoever waits is told, and whoever comes later.
TEST_F(ServerFailure, AnEngineThatBreaksTellsAll) {
  auto clients = streams({"Once", "The fox said"});
  TestClient whole(server_->port());
  send(whole, "POST", "/v1/completions", completion("In the sea", 400));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  reads_ = Reads::kThrow;
  for (const auto& client : clients) expect_one_error(*client, "the engine has failed");
  const int status = whole.response().status;
  EXPECT_TRUE(status == 500 || status == 503) << status;
  while (backend_.state().failure.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_NE(backend_.state().failure.find("the engine's own bug"), std::string::npos);
  EXPECT_EQ(ask("POST", "/v1/completions", completion("Once", 4)).status, 503);
  EXPECT_EQ(ask("GET", "/health").status, 503);
  EXPECT_THROW(backend_.wait_until_loaded(), Error);  // which ends the program
}

}  // namespace
}  // namespace sluice::serve
