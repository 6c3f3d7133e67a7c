// Limits of bodies, at both ends of each.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "serve/server/test_server.h"

namespace sluice::serve {
namespace {

using testing::example_finish;
using testing::TestServer;

constexpr const char* kChatPath = "/v1/chat/completions";
constexpr const char* kTextPath = "/v1/completions";

std::string repeated(const std::string& one, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i > 0 ? "," : "") + one;
  return text;
}

std::string with_messages(const std::string& more) {
  return R"({"messages":[{"role":"user","content":"Hi"}])" + (more.empty() ? "" : "," + more) + "}";
}

std::string biases(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":1";
  return "\"logit_bias\":{" + text + "}";
}

std::string kwargs(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":1";
  return "\"chat_template_kwargs\":{" + text + "}";
}

std::string tool(const std::string& name) {
  return R"({"type":"function","function":{"name":")" + name + "\"}}";
}

struct LimitCase {
  const char* name;
  const char* path;
  std::string fits, passes_it;
};

std::vector<LimitCase> limit_cases() {
  const auto chat = [](const char* name, const std::string& fits, const std::string& beyond) {
    return LimitCase{name, kChatPath, with_messages(fits), with_messages(beyond)};
  };
  return {
      chat("n", "\"n\":8", "\"n\":9"),
      chat("n below", "\"n\":1", "\"n\":0"),
      chat("stops", "\"stop\":[" + repeated("\"a\"", 16) + "]", "\"stop\":[" + repeated("\"a\"", 17) + "]"),
      chat("bytes of a stop", "\"stop\":\"" + std::string(256, 'a') + "\"",
           "\"stop\":\"" + std::string(257, 'a') + "\""),
      chat("logit_bias", biases(1024), biases(1025)),
      chat("a bias", R"("logit_bias":{"1":100})", R"("logit_bias":{"1":100.5})"),
      chat("a bias below", R"("logit_bias":{"1":-100})", R"("logit_bias":{"1":-101})"),
      chat("top_logprobs", R"("logprobs":true,"top_logprobs":20)", R"("logprobs":true,"top_logprobs":21)"),
      chat("names of tools", "\"tools\":[" + tool(std::string(64, 'f')) + "]",
           "\"tools\":[" + tool(std::string(65, 'f')) + "]"),
      chat("chat_template_kwargs", kwargs(64), kwargs(65)),
      chat("temperature", "\"temperature\":2", "\"temperature\":2.01"),
      chat("temperature below", "\"temperature\":0", "\"temperature\":-0.01"),
      chat("top_p", "\"top_p\":1", "\"top_p\":1.01"),
      chat("top_p below", "\"top_p\":0.001", "\"top_p\":0"),
      chat("min_p", "\"min_p\":1", "\"min_p\":1.1"),
      chat("min_p below", "\"min_p\":0", "\"min_p\":-0.1"),
      chat("top_k", "\"top_k\":2147483648", "\"top_k\":2147483649"),
      chat("top_k below", "\"top_k\":-1", "\"top_k\":-2"),
      chat("presence_penalty", "\"presence_penalty\":2", "\"presence_penalty\":2.1"),
      chat("presence_penalty below", "\"presence_penalty\":-2", "\"presence_penalty\":-2.1"),
      chat("frequency_penalty", "\"frequency_penalty\":2", "\"frequency_penalty\":2.1"),
      chat("frequency_penalty below", "\"frequency_penalty\":-2", "\"frequency_penalty\":-2.1"),
      chat("repetition_penalty", "\"repetition_penalty\":10", "\"repetition_penalty\":10.1"),
      chat("repetition_penalty below", "\"repetition_penalty\":0.01", "\"repetition_penalty\":0"),
      chat("seed", "\"seed\":9223372036854775807", "\"seed\":9223372036854775808"),
      chat("seed below", "\"seed\":-9223372036854775808", "\"seed\":-9223372036854775809"),
      chat("max_tokens", "\"max_tokens\":1", "\"max_tokens\":0"),
      {"logprobs of completions", kTextPath, R"({"prompt":"a","logprobs":20})",
       R"({"prompt":"a","logprobs":21})"},
      {"prompts", kTextPath, "{\"prompt\":[" + repeated("\"a\"", 64) + "]}",
       "{\"prompt\":[" + repeated("\"a\"", 65) + "]}"},
      {"max_tokens of completions", kTextPath, R"({"prompt":"a","echo":true,"max_tokens":0})",
       R"({"prompt":"a","echo":true,"max_tokens":-1})"},
  };
}

TEST(Limits, AtBothEnds) {
  TestServer server;
  server.backend.set_script([](const std::vector<TextRequest>& sequences, EventQueue& events) {
    for (std::size_t i = 0; i < sequences.size(); ++i) events.push({i, example_finish(), {}});
  });
  std::size_t rows = 0;
  for (const LimitCase& row : limit_cases()) {
    const auto fits = server.ask("POST", row.path, row.fits);
    EXPECT_EQ(fits.status, 200) << row.name << ": " << fits.body;
    const auto beyond = server.ask("POST", row.path, row.passes_it);
    EXPECT_EQ(beyond.status, 400) << row.name << ": " << beyond.body;
    ++rows;
  }
  std::printf("%zu limits\n", rows);
}

TEST(Limits, OfMessagesAndTools) {
  TestServer server;
  const auto code = [&](const std::string& body) {
    const std::string answer = server.ask("POST", kChatPath, body).body;
    const std::size_t at = answer.find("\"code\":\"");
    return at == std::string::npos ? answer : answer.substr(at + 8, answer.find('"', at + 8) - at - 8);
  };
  const auto messages = [](int count) {
    return "{\"messages\":[" + repeated(R"({"role":"user","content":""})", count) + "]}";
  };
  EXPECT_EQ(code(messages(4096)), "context_length_exceeded");  // as many are read; the test's model is small
  EXPECT_EQ(code(messages(4097)), "invalid_value");
  const auto tools = [](int count) {
    return with_messages("\"tools\":[" + repeated(tool("f"), count) + "]");
  };
  EXPECT_EQ(code(tools(256)), "context_length_exceeded");
  EXPECT_EQ(code(tools(257)), "invalid_value");
}

TEST(Limits, PromptsAreRefusedByBytesFirst) {
  TestServer server;
  const std::string huge(32 * 2048 + 1, 'a');
  EXPECT_EQ(server.ask("POST", kTextPath, "{\"prompt\":\"" + huge + "\"}").status, 400);
}

TEST(Limits, ScaleWithTheAccount) {
  const http::HttpLimits large = serve_limits(std::size_t{64} << 20),
                         small = serve_limits(std::size_t{4} << 20);
  EXPECT_EQ(large.body_bytes, std::size_t{32} << 20);
  EXPECT_EQ(large.connections, 256u);
  EXPECT_EQ(small.body_bytes, std::size_t{2} << 20);
  EXPECT_EQ(small.connections, 128u);
}

// Where Prometheus' own checker is installed, it reads the page.
TEST(Metrics, ArePrometheusText) {
  TestServer server;
  server.backend.set_script([](const auto&, EventQueue& events) { events.push({0, example_finish(), {}}); });
  server.ask("POST", kChatPath, with_messages(""));
  server.ask("GET", "/nowhere");
  const std::string page = server.ask("GET", "/metrics").body;
  for (const char* line :
       {"sluice_request_success_total{model_name=\"qwen3\",finished_reason=\"stop\"} 1\n",
        "sluice_prompt_tokens_total{model_name=\"qwen3\"} 41\n",
        "sluice_http_requests_total{model_name=\"qwen3\",path=\"/chat/completions\",code=\"200\"} 1\n",
        "sluice_http_requests_total{model_name=\"qwen3\",path=\"other\",code=\"404\"} 1\n",
        "sluice_request_prefill_time_seconds_sum{model_name=\"qwen3\"} 0.02\n",
        "sluice_request_prompt_tokens_bucket{model_name=\"qwen3\",le=\"50\"} 1\n",
        "sluice_kv_blocks{model_name=\"qwen3\",state=\"free\"} 3\n", "math=\"a\\\"b\\\\c\""})
    EXPECT_NE(page.find(line), std::string::npos) << line << page;
  if (std::system("command -v promtool > /dev/null") != 0) GTEST_SKIP() << "promtool is not installed";
  const auto path = std::filesystem::temp_directory_path() / ("metrics" + std::to_string(server.port()));
  std::ofstream(path) << page;
  EXPECT_EQ(std::system(("promtool check metrics < " + path.string()).c_str()), 0);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace sluice::serve
