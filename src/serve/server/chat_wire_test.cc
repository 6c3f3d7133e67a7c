// The examples of chat completions, byte for byte, through a socket.
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "serve/server/test_server.h"

namespace sluice::serve {
namespace {

using testing::example_finish;
using testing::TestClient;
using testing::TestResponse;
using testing::TestServer;

constexpr std::string_view kChatBody = R"({"model":"qwen3","messages":[{"role":"user","content":"Hi"}])";

std::string chat_body(std::string_view more = {}) { return std::string(kChatBody) + std::string(more) + '}'; }

// Ids and times differ from answer to answer.
std::string masked(std::string text) {
  text = std::regex_replace(text, std::regex("chatcmpl-[0-9A-Za-z]{16}"), "chatcmpl-7Qk2mV9xT4bN8sLw");
  return std::regex_replace(text, std::regex("\"created\":[0-9]+"), "\"created\":1795440000");
}

const std::string kHead =
    R"("id":"chatcmpl-7Qk2mV9xT4bN8sLw","object":"chat.completion.chunk","created":1795440000,"model":"qwen3","system_fingerprint":"sluice-0.3-8c1f2ab4")";
const std::string kExtras =
    R"("timings":{"cache_n":32,"prompt_n":9,"prompt_ms":20.0,"prompt_per_token_ms":2.2,"prompt_per_second":450.0,)"
    R"("predicted_n":9,"predicted_ms":80.0,"predicted_per_token_ms":10.0,"predicted_per_second":100.0},)"
    R"("sluice":{"queue_ms":1.5,"stalled_ms":0.0,"batch_mean":1.0,"accesses":10,"hits":7,"misses":3,"bytes_read":1024})";

void push_greeting(EventQueue& events) {
  events.push({0, Admitted{41, 32}, {}});
  events.push({0, ReasoningDelta{"Short."}, {}});
  events.push({0, TextDelta{"Hel", {}}, {}});
  events.push({0, TextDelta{"lo.", {}}, {}});
  events.push({0, example_finish(), {}});
}

TEST(ChatWire, AStreamWithUsage) {
  ServerOptions options;
  options.sse_ping = std::chrono::milliseconds(60);
  TestServer server(std::move(options));
  server.backend.set_place(QueuePlace{1, 3});
  TestClient client(server.port());
  client.send(testing::request_text("POST", "/v1/chat/completions",
                                    chat_body(R"(,"stream":true,"stream_options":{"include_usage":true})")));
  std::string begin = client.receive_until(": waiting 1 of 3\n\n");
  EXPECT_NE(begin.find(": waiting 1 of 3\n\n"), std::string::npos);
  EXPECT_NE(begin.find("HTTP/1.1 200 OK\r\n"), std::string::npos);
  EXPECT_NE(begin.find("\r\nContent-Type: text/event-stream; charset=utf-8\r\n"), std::string::npos);
  EXPECT_NE(begin.find("\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n"), std::string::npos);
  EXPECT_TRUE(std::regex_search(begin, std::regex("\r\nx-request-id: req_[0-9A-Za-z]{24}\r\n")));
  EXPECT_NE(begin.find("\r\nServer: sluice/"), std::string::npos);
  const std::string first =
      "data: {" + kHead +
      R"(,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null})"
      "\n\n";
  EXPECT_NE(masked(begin).find(first), std::string::npos) << masked(begin);
}

// As the client of the specification sees it: everything of one stream.
std::string whole_stream(TestServer& server, const std::string& body) {
  const TestResponse response = server.ask("POST", "/v1/chat/completions", body);
  EXPECT_EQ(response.status, 200) << response.body;
  return masked(response.body);
}

std::string event(const std::string& rest) { return "data: {" + kHead + rest + "}\n\n"; }
std::string chunk(std::string_view delta, std::string_view finish, const std::string& more) {
  return event(R"(,"choices":[{"index":0,"delta":)" + std::string(delta) +
               R"(,"logprobs":null,"finish_reason":)" + std::string(finish) + "}]" + more);
}

TEST(ChatWire, BytesOfTheExample) {
  TestServer server;
  server.backend.set_script([](const auto&, EventQueue& events) { push_greeting(events); });
  const std::string usage = R"(,"usage":null)";
  const std::string expected =
      chunk(R"({"role":"assistant","content":""})", "null", usage) +
      chunk(R"({"reasoning_content":"Short.","reasoning":"Short."})", "null", usage) +
      chunk(R"({"content":"Hel"})", "null", usage) + chunk(R"({"content":"lo."})", "null", usage) +
      chunk("{}", "\"stop\"", usage + ',' + kExtras) +
      event(
          R"(,"choices":[],"usage":{"prompt_tokens":41,"completion_tokens":9,"total_tokens":50,)"
          R"("prompt_tokens_details":{"cached_tokens":32},"completion_tokens_details":{"reasoning_tokens":4}})") +
      "data: [DONE]\n\n";
  EXPECT_EQ(whole_stream(server, chat_body(R"(,"stream":true,"stream_options":{"include_usage":true})")),
            expected);
}

TEST(ChatWire, WithoutUsageNoChunkHasAny) {
  TestServer server;
  server.backend.set_script([](const auto&, EventQueue& events) { push_greeting(events); });
  const std::string stream = whole_stream(server, chat_body(R"(,"stream":true)"));
  EXPECT_EQ(stream.find("usage"), std::string::npos);
  EXPECT_EQ(stream.find("\"choices\":[]"), std::string::npos);
  EXPECT_TRUE(stream.ends_with("data: [DONE]\n\n"));
}

TEST(ChatWire, ACallOfATool) {
  TestServer server;
  server.backend.set_script([](const auto&, EventQueue& events) {
    events.push({0, ToolBegin{0, "call_Zk3vQ0aT9mX2cR7bL5nD1eWs", "get_weather"}, {}});
    events.push({0, ToolArguments{0, "{\"city\": "}, {}});
    events.push({0, ToolArguments{0, "\"Paris\"}"}, {}});
    events.push({0, example_finish(FinishReason::kToolCalls), {}});
  });
  const std::string tools =
      R"(,"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object"}}}])";
  const std::string expected =
      chunk(R"({"role":"assistant","content":""})", "null", "") +
      chunk(
          R"({"tool_calls":[{"index":0,"id":"call_Zk3vQ0aT9mX2cR7bL5nD1eWs","type":"function","function":{"name":"get_weather","arguments":""}}]})",
          "null", "") +
      chunk(R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"city\": "}}]})", "null", "") +
      chunk(R"({"tool_calls":[{"index":0,"function":{"arguments":"\"Paris\"}"}}]})", "null", "") +
      chunk("{}", "\"tool_calls\"", ',' + kExtras) + "data: [DONE]\n\n";
  EXPECT_EQ(whole_stream(server, chat_body(tools + R"(,"stream":true)")), expected);
  const AnswerParsing parsing = *server.backend.last_request().front().parsing;
  EXPECT_TRUE(parsing.calls);
  ASSERT_EQ(parsing.tools.size(), 1u);
  EXPECT_EQ(parsing.tools[0].name, "get_weather");
  EXPECT_EQ(parsing.tools[0].parameters, R"({"type":"object"})");

  const TestResponse whole = server.ask("POST", "/v1/chat/completions", chat_body(tools));
  EXPECT_NE(
      whole.body.find(
          R"("message":{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"call_Zk3vQ0aT9mX2cR7bL5nD1eWs","type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Paris\"}"}}]},"logprobs":null,"finish_reason":"tool_calls")"),
      std::string::npos)
      << whole.body;
}

// Before there were tools, a request had functions, and its answer one call.
TEST(ChatWire, ACallOfAFunction) {
  TestServer server;
  server.backend.set_script([](const auto&, EventQueue& events) {
    events.push({0, ToolBegin{0, "call_Zk3vQ0aT9mX2cR7bL5nD1eWs", "get_weather"}, {}});
    events.push({0, ToolArguments{0, "{\"city\": \"Paris\"}"}, {}});
    events.push({0, example_finish(FinishReason::kToolCalls), {}});
  });
  const std::string functions = R"(,"functions":[{"name":"get_weather","parameters":{"type":"object"}}])";
  const std::string expected =
      chunk(R"({"role":"assistant","content":""})", "null", "") +
      chunk(R"({"function_call":{"name":"get_weather","arguments":""}})", "null", "") +
      chunk(R"({"function_call":{"arguments":"{\"city\": \"Paris\"}"}})", "null", "") +
      chunk("{}", "\"function_call\"", ',' + kExtras) + "data: [DONE]\n\n";
  EXPECT_EQ(whole_stream(server, chat_body(functions + R"(,"stream":true)")), expected);
  EXPECT_TRUE(server.backend.last_request().at(0).parsing->one_call);
  const TestResponse whole = server.ask("POST", "/v1/chat/completions", chat_body(functions));
  EXPECT_NE(
      whole.body.find(
          R"("content":null,"refusal":null,"function_call":{"name":"get_weather","arguments":"{\"city\": \"Paris\"}"}},"logprobs":null,"finish_reason":"function_call")"),
      std::string::npos)
      << whole.body;
}

// llama-server's field: each chunk of an answer says what there is so far.
TEST(ChatWire, TimingsOfEachToken) {
  TestServer server;
  server.backend.set_script([](const auto&, EventQueue& events) {
    const auto push = [&](EventBody body, std::size_t generated) {
      events.push({.sequence = 0, .body = std::move(body), .generated = generated});
    };
    push(Admitted{41, 32}, 0);
    push(TextDelta{"Hel", {}}, 1);
    push(TextDelta{"lo", {}}, 3);
    push(example_finish(), 3);
  });
  const auto numbers = [](std::string text) {
    return std::regex_replace(text, std::regex("(_ms|_second)\":[-+.0-9e]+"), "$1\":1");
  };
  const auto timings = [](int tokens) {
    return R"("timings":{"cache_n":32,"prompt_n":9,"prompt_ms":1,"prompt_per_token_ms":1,"prompt_per_second":1,"predicted_n":)" +
           std::to_string(tokens) +
           R"(,"predicted_ms":1,"predicted_per_token_ms":1,"predicted_per_second":1}})";
  };
  const std::string stream =
      numbers(whole_stream(server, chat_body(R"(,"timings_per_token":true,"stream":true)")));
  EXPECT_NE(stream.find(R"("content":"Hel"},"logprobs":null,"finish_reason":null}],)" + timings(1)),
            std::string::npos)
      << stream;
  EXPECT_NE(stream.find(R"("content":"lo"},"logprobs":null,"finish_reason":null}],)" + timings(3)),
            std::string::npos)
      << stream;
  EXPECT_NE(stream.find(R"("content":""},"logprobs":null,"finish_reason":null}]})"), std::string::npos)
      << stream;
  const std::string text = numbers(
      server.ask("POST", "/v1/completions", R"({"prompt":"a","timings_per_token":true,"stream":true})").body);
  EXPECT_NE(text.find(R"("text":"lo","logprobs":null,"finish_reason":null}],)" + timings(3)),
            std::string::npos)
      << text;
  EXPECT_EQ(numbers(whole_stream(server, chat_body(R"(,"stream":true)"))).find(timings(1)),
            std::string::npos);
}

TEST(ChatWire, OneObject) {
  TestServer server;
  server.backend.set_script([](const auto&, EventQueue& events) { push_greeting(events); });
  const TestResponse response = server.ask("POST", "/chat/completions", chat_body());
  const std::string head = std::regex_replace(kHead, std::regex("\\.chunk"), "");
  EXPECT_EQ(
      masked(response.body),
      "{" + head +
          R"(,"choices":[{"index":0,"message":{"role":"assistant","content":"Hello.","refusal":null,"reasoning_content":"Short.","reasoning":"Short."},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":41,"completion_tokens":9,"total_tokens":50,"prompt_tokens_details":{"cached_tokens":32},"completion_tokens_details":{"reasoning_tokens":4}},)" +
          kExtras + "}");
  EXPECT_EQ(response.header("Content-Type"), "application/json");
}

TEST(ChatWire, RolesOfAllChoicesComeFirst) {
  TestServer server;
  server.backend.set_script([](const std::vector<TextRequest>& sequences, EventQueue& events) {
    ASSERT_EQ(sequences.size(), 3u);
    EXPECT_EQ(sequences[2].sampling.seed, sequences[0].sampling.seed + 2);
    for (const std::size_t i : {2, 0, 1}) {
      events.push({i, TextDelta{"t" + std::to_string(i), {}}, {}});
      events.push({i, example_finish(), {}});
    }
  });
  const std::string stream = whole_stream(server, chat_body(R"(,"n":3,"seed":7,"stream":true)"));
  std::string order;
  for (std::size_t at = 0; (at = stream.find("\"index\":", at)) != std::string::npos; ++at)
    order += stream[at + 8];
  EXPECT_EQ(order, "012220011");
}

TEST(ChatWire, Logprobs) {
  TestServer server;
  server.backend.set_token(7, " the");
  server.backend.set_token(8, "\xe2\x80");
  server.backend.set_script([](const std::vector<TextRequest>& sequences, EventQueue& events) {
    EXPECT_EQ(sequences[0].logprobs, 1u);
    events.push({0, TextDelta{" the", {{7, -0.25, {{7, -0.25}}}}}, {}});
    events.push({0, TextDelta{"", {{8, -1, {}}}}, {}});  // its text is held back
    events.push({0, example_finish(), {}});
  });
  const std::string stream =
      whole_stream(server, chat_body(R"(,"logprobs":true,"top_logprobs":1,"stream":true)"));
  EXPECT_NE(
      stream.find(
          R"("delta":{"content":" the"},"logprobs":{"content":[{"token":" the","logprob":-0.25,"bytes":[32,116,104,101],"top_logprobs":[{"token":" the","logprob":-0.25,"bytes":[32,116,104,101]}]}],"refusal":null},"finish_reason":null)"),
      std::string::npos)
      << stream;
  EXPECT_NE(
      stream.find("{\"token\":\"\xef\xbf\xbd\",\"logprob\":-1.0,\"bytes\":[226,128],\"top_logprobs\":[]}"),
      std::string::npos)
      << stream;
}

TEST(ChatWire, Progress) {
  TestServer server;
  server.backend.set_script([](const std::vector<TextRequest>& sequences, EventQueue& events) {
    EXPECT_TRUE(sequences[0].progress);
    events.push({0, PrefillProgress{1024, 4096, 32, 2100}, {}});
    events.push({0, example_finish(), {}});
  });
  const std::string stream = whole_stream(server, chat_body(R"(,"return_progress":true,"stream":true)"));
  EXPECT_NE(
      stream.find(event(
          R"(,"choices":[],"prompt_progress":{"total":4096,"cache":32,"processed":1024,"time_ms":2100})")),
      std::string::npos)
      << stream;
}

TEST(ChatWire, AFailureInAStreamIsOneEventAndTheEnd) {
  TestServer server;
  server.backend.set_script([](const auto&, EventQueue& events) {
    events.push({0, TextDelta{"Hel", {}}, {}});
    events.push({0, Failure{Failure::Kind::kError, "/srv/models/x/experts.bin at byte 4096: checksum"}, {}});
  });
  TestClient client(server.port());
  client.send(testing::request_text("POST", "/v1/chat/completions", chat_body(R"(,"stream":true)")));
  const TestResponse response = client.response();
  EXPECT_TRUE(
      response.body.ends_with("data: {\"error\":{\"message\":\"experts.bin at byte 4096: "
                              "checksum\",\"type\":\"server_error\",\"param\":null,"
                              "\"code\":null}}\n\n"))
      << response.body;
  EXPECT_EQ(response.body.find("[DONE]"), std::string::npos);
  EXPECT_EQ(client.receive(), "");
  EXPECT_TRUE(client.ended());
  const TestResponse whole = server.ask("POST", "/v1/chat/completions", chat_body());
  EXPECT_EQ(whole.status, 500);
}

TEST(ChatWire, WhatTheRequestSays) {
  TestServer server;
  server.backend.set_script([](const auto&, EventQueue& events) { events.push({0, example_finish(), {}}); });
  server.ask(
      "POST", "/v1/chat/completions",
      chat_body(R"(,"temperature":0.5,"top_p":0.9,"top_k":-1,"min_p":0.1,"repeat_penalty":1.1,)"
                R"("presence_penalty":-1,"frequency_penalty":2,"logit_bias":{"5":-100},"seed":-1,)"
                R"("stop":["a","",null,"b"],"max_tokens":9,"max_completion_tokens":5,"ignore_eos":true,)"
                R"("cache_prompt":false,"parallel_tool_calls":false,"reasoning_format":"none","user":"u")"));
  const TextRequest request = server.backend.last_request().at(0);
  EXPECT_EQ(request.sampling.temperature, 0.5);
  EXPECT_EQ(request.sampling.top_p, 0.9);
  EXPECT_EQ(request.sampling.top_k, 0);
  EXPECT_EQ(request.sampling.min_p, 0.1);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.1);
  EXPECT_EQ(request.sampling.presence_penalty, -1);
  EXPECT_EQ(request.sampling.frequency_penalty, 2);
  EXPECT_EQ(request.sampling.seed, ~std::uint64_t{0});
  EXPECT_EQ(request.sampling.logit_bias, (std::vector<std::pair<tokenizer::TokenId, double>>{{5, -100}}));
  EXPECT_EQ(request.stops, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.max_tokens, 5u);
  EXPECT_TRUE(request.sampling.ignore_eos);
  EXPECT_FALSE(request.cache_prompt);
  EXPECT_TRUE(request.parsing->one_call);
  EXPECT_FALSE(request.parsing->reasoning);
  EXPECT_TRUE(request.parsing->prompt_tail.ends_with("<|im_start|>assistant\n"))
      << request.parsing->prompt_tail;
}

TEST(ChatWire, AtTemperatureZeroOnlyPenaltiesOfTheRequestAct) {
  TestServer server;
  server.backend.served_for_change().defaults.sampling.repetition_penalty = 1.2;
  server.backend.set_script([](const auto&, EventQueue& events) { events.push({0, example_finish(), {}}); });
  const auto penalty = [&](std::string_view more) {
    server.ask("POST", "/v1/chat/completions", chat_body(more));
    return server.backend.last_request().at(0).sampling.repetition_penalty;
  };
  EXPECT_EQ(penalty(""), 1.2);
  EXPECT_EQ(penalty(R"(,"temperature":0)"), 1);
  EXPECT_EQ(penalty(R"(,"temperature":0,"repetition_penalty":1.3)"), 1.3);
  server.backend.served_for_change().defaults.penalties_by_user = true;
  EXPECT_EQ(penalty(R"(,"temperature":0)"), 1.2);
}

}  // namespace
}  // namespace sluice::serve
