// Completions of OpenAI's API, and messages of Anthropic's, through a socket.
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "base/json/json.h"
#include "serve/server/test_server.h"

namespace sluice::serve {
namespace {

using testing::example_finish;
using testing::TestResponse;
using testing::TestServer;

std::string masked_ids(std::string text) {
  text = std::regex_replace(text, std::regex("(cmpl-|msg_|req_)[0-9A-Za-z]+"), "$1x");
  return std::regex_replace(text, std::regex("\"created\":[0-9]+"), "\"created\":1");
}

const std::string kTextHead =
    R"("id":"cmpl-x","object":"text_completion","created":1,"model":"qwen3","system_fingerprint":"sluice-0.3-8c1f2ab4")";
const std::string kTextExtras =
    R"("timings":{"cache_n":32,"prompt_n":9,"prompt_ms":20.0,"prompt_per_token_ms":2.2,"prompt_per_second":450.0,)"
    R"("predicted_n":9,"predicted_ms":80.0,"predicted_per_token_ms":10.0,"predicted_per_second":100.0},)"
    R"("sluice":{"queue_ms":1.5,"stalled_ms":0.0,"batch_mean":1.0,"accesses":10,"hits":7,"misses":3,"bytes_read":1024})";

TEST(CompletionWire, AStream) {
  TestServer server;
  server.backend.set_place(QueuePlace{2, 5});
  server.backend.set_script([](const auto&, EventQueue& events) {
    events.push({0, TextDelta{" Paris", {}}, {}});
    events.push({0, example_finish(FinishReason::kLength), {}});
  });
  const std::string body =
      masked_ids(server
                     .ask("POST", "/v1/completions",
                          R"({"prompt":"The capital","stream":true,"stream_options":{"include_usage":true}})")
                     .body);
  EXPECT_EQ(
      body,
      ": waiting 2 of 5\n\ndata: {" + kTextHead +
          R"(,"choices":[{"index":0,"text":" Paris","logprobs":null,"finish_reason":null}],"usage":null})"
          "\n\ndata: {" +
          kTextHead +
          R"(,"choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"length"}],"usage":null,)" +
          kTextExtras + "}\n\ndata: {" + kTextHead +
          R"(,"choices":[],"usage":{"prompt_tokens":41,"completion_tokens":9,"total_tokens":50,)"
          R"("prompt_tokens_details":{"cached_tokens":32},"completion_tokens_details":{"reasoning_tokens":4}}})"
          "\n\ndata: [DONE]\n\n");
  EXPECT_EQ(server.backend.last_request().at(0).max_tokens, 16u);
  EXPECT_FALSE(server.backend.last_request().at(0).parsing.has_value());
}

TEST(CompletionWire, EchoWithLogprobs) {
  TestServer server;
  server.backend.set_token(5, "The");
  server.backend.set_token(6, " capital");
  server.backend.set_token(7, " of");
  server.backend.set_token(8, " same");
  server.backend.set_token(9, "\xe2\x80");
  server.backend.set_script([](const std::vector<TextRequest>& sequences, EventQueue& events) {
    EXPECT_TRUE(sequences[0].prompt_logprobs);
    EXPECT_EQ(sequences[0].logprobs, 1u);
    events.push({0, PromptScores{{{6, -6.5, {{8, -2}}}, {7, -0.5, {{7, -0.5}}}}}, {}});
    events.push({0, TextDelta{"", {{9, -1, {{9, -1}}}}}, {}});
    events.push({0, example_finish(FinishReason::kLength), {}});
  });
  const TestResponse response =
      server.ask("POST", "/v1/completions",
                 R"({"prompt":[5,6,7],"echo":true,"max_tokens":1,"logprobs":1,"temperature":0})");
  EXPECT_NE(
      response.body.find(
          R"("logprobs":{"tokens":["The"," capital"," of","bytes:\\xe2\\x80"],"token_logprobs":[null,-6.5,-0.5,-1.0],"top_logprobs":[null,{" same":-2.0," capital":-6.5},{" of":-0.5},{"bytes:\\xe2\\x80":-1.0}],"text_offset":[0,3,11,14]},"finish_reason":"length")"),
      std::string::npos)
      << response.body;
}

TEST(CompletionWire, AllFormsOfPrompts) {
  TestServer server;
  server.backend.set_script([](const std::vector<TextRequest>& sequences, EventQueue& events) {
    for (std::size_t i = sequences.size(); i-- > 0;) {
      events.push({i, TextDelta{"t" + std::to_string(i), {}}, {}});
      events.push({i, example_finish(), {}});
    }
  });
  const auto count = [&](const std::string& prompt, int n) {
    const TestResponse response =
        server.ask("POST", "/v1/completions",
                   "{\"prompt\":" + prompt + ",\"n\":" + std::to_string(n) + ",\"max_tokens\":3}");
    EXPECT_EQ(response.status, 200) << response.body;
    const Json json = Json::parse(response.body);
    for (std::size_t i = 0; i < json["choices"].size(); ++i) {
      EXPECT_EQ(json["choices"][i]["index"].get<std::size_t>(), i);
      EXPECT_EQ(json["choices"][i]["text"], Json("t" + std::to_string(i)));
    }
    return json["choices"].size();
  };
  EXPECT_EQ(count("\"a\"", 1), 1u);
  EXPECT_EQ(count("[\"a\",\"b\"]", 2), 4u);
  EXPECT_EQ(count("[5,6]", 3), 3u);
  EXPECT_EQ(server.backend.last_request()[2].prompt, (std::vector<tokenizer::TokenId>{5, 6}));
  EXPECT_EQ(count("[[5],[6,7]]", 1), 2u);
  std::string many = "[\"a\"", too_many;
  for (int i = 1; i < 64; ++i) many += ",\"a\"";
  EXPECT_EQ(count(many + "]", 1), 64u);
  EXPECT_EQ(server.ask("POST", "/v1/completions", "{\"prompt\":" + many + ",\"a\"]}").status, 400);
}

const std::string kMessages =
    R"({"max_tokens":50,"model":"qwen3","messages":[{"role":"user","content":"Hi"}])";

TEST(MessagesWire, AStream) {
  TestServer server;
  server.backend.set_script([](const std::vector<TextRequest>& sequences, EventQueue& events) {
    events.push({0, Admitted{sequences[0].prompt.size(), 2}, {}});
    events.push({0, ReasoningDelta{"Short."}, {}});
    events.push({0, TextDelta{"Hello.", {}}, {}});
    events.push({0, ToolBegin{0, "toolu_Zk3vQ0aT9mX2cR7bL5nD1eWs", "get_weather"}, {}});
    events.push({0, ToolArguments{0, "{\"city\": \"Paris\"}"}, {}});
    Finish finish = example_finish(FinishReason::kToolCalls);
    finish.usage.generated = 17;
    events.push({0, finish, {}});
  });
  const TestResponse response = server.ask("POST", "/v1/messages", kMessages + ",\"stream\":true}");
  const std::size_t prompt = server.backend.last_request().at(0).prompt.size();
  std::string expected;
  for (
      const std::string& json : {
          R"({"type":"message_start","message":{"id":"msg_x","type":"message","role":"assistant","model":"qwen3","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":)" +
              std::to_string(prompt - 2) +
              R"(,"cache_creation_input_tokens":0,"cache_read_input_tokens":2,"output_tokens":0}}})",
          std::string(R"({"type":"ping"})"),
          std::string(
              R"({"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}})"),
          std::string(
              R"({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Short."}})"),
          std::string(
              R"({"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2x1aWNl"}})"),
          std::string(R"({"type":"content_block_stop","index":0})"),
          std::string(
              R"({"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}})"),
          std::string(
              R"({"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hello."}})"),
          std::string(R"({"type":"content_block_stop","index":1})"),
          std::string(
              R"({"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_Zk3vQ0aT9mX2cR7bL5nD1eWs","name":"get_weather","input":{}}})"),
          std::string(
              R"({"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"city\": \"Paris\"}"}})"),
          std::string(R"({"type":"content_block_stop","index":2})"),
          std::string(
              R"({"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":17}})"),
          std::string(R"({"type":"message_stop"})"),
      }) {
    const std::size_t end = json.find('"', 9);
    expected += "event: " + json.substr(9, end - 9) + "\ndata: " + json + "\n\n";
  }
  EXPECT_EQ(masked_ids(response.body), expected);
}

TEST(MessagesWire, OneObject) {
  TestServer server;
  server.backend.set_script([](const auto&, EventQueue& events) {
    events.push({0, TextDelta{"Hello.", {}}, {}});
    Finish finish = example_finish(FinishReason::kStopString);
    finish.stop = "END";
    finish.usage.cached = 0;
    events.push({0, finish, {}});
  });
  const std::string body =
      masked_ids(server.ask("POST", "/v1/messages", kMessages + R"(,"stop_sequences":["END"]})").body);
  EXPECT_TRUE(body.starts_with(
      R"({"id":"msg_x","type":"message","role":"assistant","model":"qwen3","content":[{"type":"text","text":"Hello."}],"stop_reason":"stop_sequence","stop_sequence":"END","usage":{"input_tokens":)"))
      << body;
  EXPECT_EQ(server.backend.last_request()[0].stops, std::vector<std::string>{"END"});
}

std::string prompt_of(TestServer& server, const std::string& more) {
  server.ask("POST", "/v1/messages", R"({"max_tokens":50,)" + more + "}");
  return server.backend.last_request().at(0).parsing->prompt_tail;
}

TEST(MessagesWire, Blocks) {
  TestServer server;
  server.backend.set_script([](const auto&, EventQueue& events) { events.push({0, example_finish(), {}}); });
  const std::string prompt = prompt_of(
      server,
      R"("system":[{"type":"text","text":"x-anthropic-billing-header: 7\nBe kind."}],"messages":[)"
      R"({"role":"user","content":[{"type":"text","text":"Weather?","cache_control":{"type":"ephemeral"}}]},)"
      R"({"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"x"},{"type":"tool_use","id":"toolu_1","name":"w","input":{"a":1}}]},)"
      R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","is_error":true,"content":[{"type":"text","text":"Rain"}]},{"type":"text","text":"So?"}]}])");
  EXPECT_NE(prompt.find("<|im_start|>system\nBe kind.<|im_end|>"), std::string::npos) << prompt;
  EXPECT_EQ(prompt.find("billing"), std::string::npos);
  EXPECT_NE(prompt.find("Error: Rain"), std::string::npos) << prompt;
  EXPECT_NE(prompt.find("So?<|im_end|>"), std::string::npos) << prompt;
  const TestResponse image =
      server.ask("POST", "/v1/messages",
                 R"({"max_tokens":5,"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]})");
  EXPECT_EQ(image.status, 400);
  EXPECT_NE(image.body.find("messages[0].content[0].type"), std::string::npos) << image.body;
  EXPECT_EQ(server.ask("POST", "/v1/messages", kMessages + R"(,"temperature":1.5})").status, 400);
  EXPECT_EQ(server.ask("POST", "/v1/messages", kMessages + R"(,"tool_choice":{"type":"any"}})").status, 400);
}

}  // namespace
}  // namespace sluice::serve
