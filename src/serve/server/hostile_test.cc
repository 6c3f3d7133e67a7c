// Clients that mean no good, or have bad luck.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "serve/server/test_server.h"

namespace sluice::serve {
namespace {

using std::chrono::milliseconds;
using testing::example_finish;
using testing::request_text;
using testing::TestClient;
using testing::TestResponse;
using testing::TestServer;

constexpr std::string_view kBody = R"({"messages":[{"role":"user","content":"Hi"}],"stream":true})";

ServerOptions quick() {  // deadlines that a test can wait for
  ServerOptions options;
  options.limits.head = milliseconds(150);
  options.limits.body = milliseconds(150);
  options.limits.idle = milliseconds(300);
  options.limits.stall = milliseconds(300);
  options.limits.linger = milliseconds(50);
  return options;
}

std::string answer_to(TestServer& server, const std::string& bytes) {
  TestClient client(server.port());
  client.send(bytes);
  return client.receive_all();
}

int status_of(TestServer& server, const std::string& bytes) {
  const std::string answer = answer_to(server, bytes);
  return answer.size() > 12 ? std::atoi(answer.c_str() + 9) : 0;
}

TEST(Hostile, SlowHeads) {
  TestServer server(quick());
  TestClient client(server.port());
  client.send("GET /health HT");
  std::thread drip([&] {
    for (int i = 0; i < 20 && client.send("T"); ++i) std::this_thread::sleep_for(milliseconds(25));
  });
  const std::string answer = client.receive_all();
  drip.join();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 408 ") || answer.starts_with("HTTP/1.1 400 ")) << answer;
}

TEST(Hostile, SlowBodies) {
  TestServer server(quick());
  TestClient client(server.port());
  client.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{");
  const TestResponse response = client.response();
  EXPECT_EQ(response.status, 408);
  EXPECT_NE(response.body.find("\"code\":\"request_timeout\""), std::string::npos) << response.body;
  EXPECT_EQ(client.receive(), "");
}

TEST(Hostile, ABodyMayComeSlowlyAsLongAsItComes) {
  TestServer server(quick());
  TestClient client(server.port());
  const std::string body = R"({"tokens":[5]})";
  const std::string text = request_text("POST", "/detokenize", body);
  client.send(text.substr(0, text.size() - body.size()));
  for (const char c : body) {
    std::this_thread::sleep_for(milliseconds(30));
    client.send({&c, 1});
  }
  EXPECT_EQ(client.response().status, 200);
}

TEST(Hostile, IdleConnectionsEnd) {
  TestServer server(quick());
  TestClient silent(server.port());
  EXPECT_EQ(silent.receive_all(), "");
  TestClient once(server.port());
  once.send(request_text("GET", "/health"));
  EXPECT_EQ(once.response().status, 200);
  EXPECT_EQ(once.receive(), "");
  EXPECT_TRUE(once.ended());
}

TEST(Hostile, OneByteAtATime) {
  TestServer server;
  TestClient client(server.port());
  for (const char c : request_text("POST", "/detokenize", R"({"tokens":[5]})")) client.send({&c, 1});
  EXPECT_EQ(client.response().status, 200);
}

TEST(Hostile, TenThousandRequestsAtOnce) {
  ServerOptions options;
  options.limits.requests = 20'000;
  TestServer server(std::move(options));
  TestClient client(server.port());
  constexpr int kRequests = 10'000;
  std::thread sender([&] {
    std::string text;
    for (int i = 0; i < kRequests; ++i) text += request_text("GET", "/health");
    client.send(text);
  });
  int answered = 0;
  while (answered < kRequests && client.response().status == 200) ++answered;
  sender.join();
  EXPECT_EQ(answered, kRequests);
}

TEST(Hostile, ARequestTooMany) {
  ServerOptions options;
  options.limits.requests = 3;
  TestServer server(std::move(options));
  const std::string answer =
      answer_to(server, request_text("GET", "/health") + request_text("GET", "/health") +
                            request_text("GET", "/health") + request_text("GET", "/health"));
  std::size_t answers = 0;
  for (std::size_t at = 0; (at = answer.find("HTTP/1.1 200", at)) != std::string::npos; ++at) ++answers;
  EXPECT_EQ(answers, 3u);
}

TEST(Hostile, HeadersWithoutEnd) {
  TestServer server;
  const std::string front = "GET /health HTTP/1.1\r\nHost: localhost\r\n";
  const auto padded = [&](std::size_t size) {  // with this many bytes in all
    return front + "X: " + std::string(size - front.size() - 7, 'x') + "\r\n\r\n";
  };
  TestClient fits(server.port());
  fits.send(padded(16 << 10));
  EXPECT_EQ(fits.response().status, 200);
  EXPECT_EQ(status_of(server, padded((16 << 10) + 1)), 431);
  EXPECT_EQ(status_of(server, front + std::string(100'000, 'y')), 431);
  const auto line = [&](std::size_t size) {
    return "GET /" + std::string(size - 16, 'x') +
           " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  };
  EXPECT_EQ(status_of(server, line(8 << 10)), 404);
  EXPECT_EQ(status_of(server, line((8 << 10) + 1)), 431);
}

TEST(Hostile, BodiesTooLarge) {
  ServerOptions options;
  options.limits.body_bytes = 1000;
  TestServer server(std::move(options));
  const auto body = [](std::size_t size) { return "{\"tokens\":[5]" + std::string(size - 14, ' ') + "}"; };
  EXPECT_EQ(server.ask("POST", "/detokenize", body(1000)).status, 200);
  const TestResponse large = server.ask("POST", "/detokenize", body(1001));
  EXPECT_EQ(large.status, 413);
  EXPECT_NE(large.body.find("request_too_large"), std::string::npos);
  EXPECT_EQ(large.header("Connection"), "close");
  const std::string chunked =
      "POST /detokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(status_of(server, chunked + "400\r\n" + std::string(0x400, ' ') + "\r\n0\r\n\r\n"), 413);
}

TEST(Hostile, NoMemoryForABody) {
  ServerOptions options;
  options.limits.room_bytes = 100'000;
  TestServer server(std::move(options));
  const TestResponse response = server.ask("POST", "/detokenize", std::string(90'000, ' '));
  EXPECT_EQ(response.status, 503);
  EXPECT_NE(response.body.find("out_of_memory_budget"), std::string::npos);
  EXPECT_EQ(server.ask("POST", "/detokenize", R"({"tokens":[5]})").status, 200);
}

TEST(Hostile, FramesThatReadersUnderstandDifferently) {
  TestServer server;
  const std::string front = "POST /detokenize HTTP/1.1\r\nHost: localhost\r\n";
  const std::string body = R"({"tokens":[5]})";
  for (const char* lengths :
       {"Content-Length: 14\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 14\r\nContent-Length: 14\r\n", "Content-Length: 14\r\nContent-Length: 15\r\n",
        "Content-Length: -1\r\n", "Content-Length: 14, 14\r\n", "Content-Length: 99999999999999999999999\r\n",
        "Content-Length: 0x0e\r\n", "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: xchunked\r\n"})
    EXPECT_EQ(status_of(server, front + lengths + "\r\n" + body), 400) << lengths;
  const std::string chunked = front + "Transfer-Encoding: chunked\r\n\r\n";
  for (const char* chunks : {"-2\r\n", "fffffffffffffffff\r\nx", "zz\r\n", "5\r\nhelloXY\r\n", "\r\n"})
    EXPECT_EQ(status_of(server, chunked + chunks), 400) << chunks;
  EXPECT_EQ(status_of(server, chunked + std::string(100'000, '1')), 400);
  TestClient extension(server.port());
  extension.send(chunked + "5;a=b\r\n{\"tok\r\n9;x\r\nens\":[5]}\r\n0\r\nTrailer: x\r\n\r\n");
  EXPECT_EQ(extension.response().status, 200);
}

TEST(Hostile, BytesThatAreNoRequest) {
  TestServer server;
  for (const std::string& bytes :
       {std::string("\0\0\0\0\r\n\r\n", 8), std::string("GET\r\n\r\n"),
        std::string("GET / HTTP/9.9\r\nHost: localhost\r\n\r\n"),
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15),
        std::string("GET /\x01 HTTP/1.1\r\n\r\n"), std::string("GET / HTTP/1.1\r\nHost : localhost\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nA\x00: b\r\n\r\n", 25)})
    EXPECT_EQ(status_of(server, bytes), 400);
  EXPECT_EQ(server.ask("GET", "/health").status, 200);
}

TEST(Hostile, BodiesThatAreNoJson) {
  TestServer server;
  const std::string deep(129, '['), fits(127, '[');
  for (const std::string& body :
       {std::string("\xff\xfe"), std::string("\xef\xbb\xbf{}"), std::string(R"({"a":"\ud800"})"),
        std::string("{\"a\":\"\x01\"}"), std::string("{\"a\":\"\xc0\x80\"}"), std::string("{} {}"),
        std::string("{\"a\":1e999}"), std::string("{\"a\":01}"), std::string(), "{\"a\":" + deep,
        std::string("{\"a\":nul}"), std::string("{\"a\\u0000")})
    EXPECT_NE(server.ask("POST", "/tokenize", body).body.find("invalid_json"), std::string::npos) << body;
  const std::string inner = "{\"content\":\"a\",\"b\":" + fits + std::string(127, ']') + "}";
  EXPECT_EQ(server.ask("POST", "/tokenize", inner).status, 200);
}

TEST(Hostile, ExpectContinue) {
  TestServer server;
  TestClient client(server.port());
  const std::string body = R"({"tokens":[5]})";
  client.send(
      "POST /detokenize HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 14\r\n\r\n");
  EXPECT_EQ(client.receive_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send(body);
  EXPECT_EQ(client.response().status, 200);
  TestClient refused(server.port());
  refused.send(
      "POST /nowhere HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 14\r\n\r\n");
  EXPECT_EQ(refused.response().status, 404);
}

TEST(Hostile, AnOldClient) {
  TestServer server;
  const std::string answer = answer_to(server, "GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.0 200 OK\r\n")) << answer;
  EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos);
  server.backend.set_script([](const auto&, EventQueue& events) {
    events.push({0, TextDelta{"Hello.", {}}, {}});
    events.push({0, example_finish(), {}});
  });
  const std::string stream =
      answer_to(server, "POST /v1/chat/completions HTTP/1.0\r\nHost: localhost\r\nContent-Length: " +
                            std::to_string(kBody.size()) + "\r\n\r\n" + std::string(kBody));
  EXPECT_EQ(stream.find("Transfer-Encoding"), std::string::npos);
  EXPECT_TRUE(stream.ends_with("data: [DONE]\n\n")) << stream;
}

TEST(Hostile, WhoGoesAwayIsCancelled) {
  TestServer server;
  std::size_t count = 0;
  for (const bool stream : {true, false}) {
    for (const bool reset : {true, false}) {
      TestClient client(server.port());
      const std::string body =
          stream ? std::string(kBody) : R"({"messages":[{"role":"user","content":"Hi"}]})";
      client.send(request_text("POST", "/v1/chat/completions", body));
      ASSERT_TRUE(server.backend.wait_for_submitted(++count));
      if (stream) client.receive_until("assistant");
      if (reset) {
        client.reset();
      } else {
        client.close();
      }
      EXPECT_TRUE(server.backend.wait_for_cancelled(count)) << stream << reset;
      EXPECT_FALSE(server.backend.push(0, TextDelta{"late", {}}));
    }
  }
}

// Pushes so much to the newest request, or until it is lost.
bool push_text(TestServer& server, std::size_t bytes) {
  const std::string text(10'000, 'x');
  bool taken = true;
  for (std::size_t done = 0; done < bytes && taken; done += text.size()) {
    taken = server.backend.push(0, TextDelta{text, {}});
    if (done % 200'000 == 0) std::this_thread::sleep_for(milliseconds(1));
  }
  return taken;
}

TEST(Hostile, ASlowReaderIsCancelled) {
  TestServer server(quick());
  TestClient client(server.port(), 4096);
  client.send(request_text("POST", "/v1/chat/completions", kBody));
  ASSERT_TRUE(server.backend.wait_for_submitted(1));
  EXPECT_FALSE(push_text(server, 20'000'000));
  EXPECT_TRUE(server.backend.wait_for_cancelled(1));
}

// Many readers that take nothing share what memory there is, and one that reads gets all.
TEST(Hostile, SlowReadersTogetherTakeNoMoreThanThereIs) {
  ServerOptions options = quick();
  options.limits.stall = std::chrono::seconds(60);
  options.limits.room_bytes = 1'500'000;
  TestServer server(std::move(options));
  std::vector<std::unique_ptr<TestClient>> slow;
  constexpr std::size_t kSlow = 30;
  for (std::size_t i = 1; i <= kSlow; ++i) {
    slow.push_back(std::make_unique<TestClient>(server.port(), 4096));
    slow.back()->send(request_text("POST", "/v1/chat/completions", kBody));
    ASSERT_TRUE(server.backend.wait_for_submitted(i));
    push_text(server, 700'000);
  }
  EXPECT_TRUE(server.backend.wait_for_cancelled(1));
  TestClient reader(server.port());
  reader.send(request_text("POST", "/v1/chat/completions", kBody));
  ASSERT_TRUE(server.backend.wait_for_submitted(kSlow + 1));
  // It is given no more than it can have read by then.
  std::atomic<std::size_t> read = 0;
  std::thread pushes([&] {
    for (std::size_t pushed = 0; pushed < 3'000'000; pushed += 100'000) {
      EXPECT_TRUE(push_text(server, 100'000));
      while (read + 100'000 < pushed) std::this_thread::sleep_for(milliseconds(1));
    }
    server.backend.push(0, example_finish());
  });
  std::string body;
  while (body.find("[DONE]") == body.npos) {
    const std::string piece = reader.receive();
    if (piece.empty()) break;
    body += piece;
    read = body.size();
  }
  read = std::size_t{1} << 40;  // whatever came, the other thread ends
  pushes.join();
  EXPECT_GT(body.size(), 3'000'000u);
  EXPECT_NE(body.find("data: [DONE]\n\n"), std::string::npos);
  // A client that was too slow is told so, behind what had been sent.
  EXPECT_NE(slow.front()->response().body.find("was not read in time"), std::string::npos);
}

// An answer that does not stream is kept until its end, and that memory counts.
TEST(Hostile, AnAnswerThatDoesNotFitIsOneError) {
  ServerOptions options = quick();
  options.limits.room_bytes = 300'000;
  TestServer server(std::move(options));
  std::atomic<EventQueue*> queue = nullptr;
  server.backend.set_script([&](const auto&, EventQueue& events) { queue = &events; });
  TestClient client(server.port());
  client.send(request_text("POST", "/v1/completions", R"({"prompt":"a"})"));
  ASSERT_TRUE(server.backend.wait_for_submitted(1));
  while (queue.load() == nullptr) std::this_thread::sleep_for(milliseconds(1));  // the script runs after that
  for (int i = 0; i < 50 && server.backend.push(0, TextDelta{std::string(10'000, 'x'), {}}); ++i)
    while (queue.load()->bytes() > 0) std::this_thread::sleep_for(milliseconds(1));
  const TestResponse response = client.response();
  EXPECT_GE(response.status, 500);
  EXPECT_NE(response.body.find("there is no memory for"), std::string::npos) << response.body;
  EXPECT_TRUE(server.backend.wait_for_cancelled(1));
  server.backend.set_script([](const auto&, EventQueue& events) {
    events.push({0, TextDelta{std::string(10'000, 'x'), {}}, {}});
    events.push({0, example_finish(), {}});
  });
  EXPECT_EQ(server.ask("POST", "/v1/completions", R"({"prompt":"a"})").status, 200);
}

TEST(Hostile, RequestsMayComeBeforeTheAnswerHasEnded) {
  TestServer server;
  TestClient client(server.port());
  client.send(
      request_text("POST", "/v1/chat/completions", R"({"messages":[{"role":"user","content":"Hi"}]})") +
      request_text("GET", "/health"));
  ASSERT_TRUE(server.backend.wait_for_submitted(1));
  server.backend.push(0, TextDelta{"Hello.", {}});
  server.backend.push(0, example_finish());
  EXPECT_EQ(client.response().status, 200);
  EXPECT_EQ(client.response().body, R"({"status":"ok"})");
}

TEST(Hostile, TooManyConnections) {
  ServerOptions options;
  options.limits.connections = 3;
  options.limits.linger = milliseconds(50);
  TestServer server(std::move(options));
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    clients.back()->send(request_text("GET", "/health"));
    EXPECT_EQ(clients.back()->response().status, 200);
  }
  TestClient more(server.port());
  EXPECT_EQ(more.response().status, 503);
  clients.clear();
  for (int i = 0; i < 100 && server.ask("GET", "/health").status != 200; ++i)
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(server.ask("GET", "/health").status, 200);
}

TEST(Hostile, ConnectSendClose) {
  ServerOptions options;
  options.limits.connections = 2000;
  TestServer server(std::move(options));
  for (int i = 0; i < 1000; ++i) {
    TestClient client(server.port());
    client.send(request_text("POST", "/v1/chat/completions", kBody));
    if (i % 2 == 0) client.reset();
  }
  EXPECT_TRUE(server.backend.wait_for_cancelled(server.backend.submitted()));
  EXPECT_EQ(server.ask("GET", "/health").status, 200);
}

TEST(Drain, RunningAnswersEndFirst) {
  TestServer server;
  TestClient client(server.port());
  client.send(request_text("POST", "/v1/chat/completions", kBody));
  ASSERT_TRUE(server.backend.wait_for_submitted(1));
  bool clean = false;
  std::thread drain([&] { clean = server.server.drain(std::chrono::seconds(10)); });
  for (int i = 0; i < 500 && server.ask("GET", "/health").status != 503; ++i)
    std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(server.ask("POST", "/v1/chat/completions", kBody).status, 503);
  server.backend.push(0, TextDelta{"Hello.", {}});
  server.backend.push(0, example_finish());
  drain.join();
  EXPECT_TRUE(clean);
  EXPECT_TRUE(client.response().body.ends_with("data: [DONE]\n\n"));
}

TEST(Drain, WhatTakesTooLongEndsWithAnError) {
  TestServer server;
  TestClient client(server.port());
  client.send(request_text("POST", "/v1/chat/completions", kBody));
  ASSERT_TRUE(server.backend.wait_for_submitted(1));
  EXPECT_FALSE(server.server.drain(milliseconds(50)));
  server.server.stop();
  const std::string body = client.response().body;
  EXPECT_NE(body.find("\"code\":\"draining\""), std::string::npos) << body;
  EXPECT_FALSE(client.connected() && client.send("x") && !client.receive().empty());
}

}  // namespace
}  // namespace sluice::serve
