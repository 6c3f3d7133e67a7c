// Answers that `sluice serve` binds to a form, as clients get them from the bundled model at temperature 1.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/json/json.h"
#include "http_client.h"
#include "program.h"

namespace sluice::program::bound_answers_test {
namespace {

using testing::HasSubstr;

const std::string kModel = SLUICE_SOURCE_DIR "/models/fable-moe-18m";
constexpr int kSeeds = 50;

class BoundAnswers : public testing::Test {
 protected:
  BoundAnswers()
      : running_({"serve", kModel, "--port", "0", "--memory", "64MiB", "--chat-template", "chatml"}) {
    std::string said;
    while (said.find(" serves ") == said.npos) {
      const std::string more = running_.read();
      if (more.empty()) break;
      said += more;
    }
    const std::size_t at = said.find("http://127.0.0.1:");
    EXPECT_NE(at, said.npos) << said;
    if (at != said.npos) port_ = static_cast<std::uint16_t>(std::atoi(said.c_str() + at + 17));
  }

  Reply chat(const std::string& more, int seed, const char* path = "/v1/chat/completions") {
    return ask(
        port_, "POST", path,
        R"({"messages":[{"role":"user","content":"Tell me about a fox."}],"temperature":1,"max_tokens":600,)" +
            more + (seed < 0 ? "" : R"(,"seed":)" + std::to_string(seed)) + "}");
  }

  Running running_;
  std::uint16_t port_ = 0;
};

// A key may come twice: RFC 8259 allows that, and the last one counts.
bool is_object(const std::string& text) {
  try {
    return parse_json(text, "content").is_object();
  } catch (const Error& error) {
    return error.message().find("duplicate key") != std::string::npos && text.starts_with("{") &&
           text.ends_with("}");
  }
}

Json json_of(const Reply& reply) { return parse_json(reply.body, "reply"); }

const std::string kFox =
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":12},"age":{"type":"integer","minimum":0,"maximum":20},)"
    R"("colours":{"type":"array","items":{"enum":["red","grey","white"]},"minItems":1,"maxItems":3},"wild":{"type":"boolean"}},)"
    R"("required":["name","age","colours"],"additionalProperties":false})";

// Written by hand: nothing of it comes from the schema.
void expect_fox(const Json& fox) {
  ASSERT_TRUE(fox.is_object());
  for (const auto& [key, value] : fox.items()) {
    if (key == "name") {
      EXPECT_TRUE(value.is_string() && value.get<std::string>().size() <= 48);
    } else if (key == "age") {
      EXPECT_TRUE(value.is_number_integer() && value.get<int>() >= 0 && value.get<int>() <= 20);
    } else if (key == "wild") {
      EXPECT_TRUE(value.is_boolean());
    } else {
      ASSERT_EQ(key, "colours");
      EXPECT_TRUE(value.size() >= 1 && value.size() <= 3);
      for (const Json& one : value)
        EXPECT_THAT(one.get<std::string>(), testing::AnyOf("red", "grey", "white"));
    }
  }
  EXPECT_TRUE(fox.contains("name") && fox.contains("age") && fox.contains("colours"));
}

TEST_F(BoundAnswers, FitTheirSchema) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Reply reply = chat(
        R"("response_format":{"type":"json_schema","json_schema":{"name":"fox","strict":true,"schema":)" +
            kFox + "}}",
        seed);
    ASSERT_EQ(reply.status, 200) << reply.body;
    const Json choice = json_of(reply)["choices"][0];
    EXPECT_EQ(choice["finish_reason"], Json("stop"));
    expect_fox(parse_json(choice["message"]["content"].get<std::string>(), "content"));
  }
}

TEST_F(BoundAnswers, AreObjectsOfJson) {
  constexpr int kObjects = 16;  // long ones: a program that a test has begun lives for a minute
  int whole = 0;
  for (int seed = 0; seed < kObjects; ++seed) {
    SCOPED_TRACE(seed);
    const Reply reply = chat(R"("response_format":{"type":"json_object"})", seed);
    ASSERT_EQ(reply.status, 200) << reply.body;
    const Json choice = json_of(reply)["choices"][0];
    if (choice["finish_reason"] == Json("length")) continue;  // cut, and so no JSON
    ++whole;
    EXPECT_TRUE(is_object(choice["message"]["content"].get<std::string>())) << reply.body;
  }
  EXPECT_GT(whole, kObjects / 2);
}

TEST_F(BoundAnswers, AreCallsWhereTheseAreForced) {
  const std::string tools =
      R"("parallel_tool_calls":false,"tools":[{"type":"function","function":{"name":"add_fox","parameters":)" +
      kFox + R"(}},{"type":"function","function":{"name":"wait"}}])";
  int foxes = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const bool named = seed % 2 == 1;
    const Reply reply =
        chat(tools + (named ? R"(,"tool_choice":{"type":"function","function":{"name":"add_fox"}})"
                            : R"(,"tool_choice":"required")"),
             seed);
    ASSERT_EQ(reply.status, 200) << reply.body;
    const Json choice = json_of(reply)["choices"][0];
    ASSERT_EQ(choice["finish_reason"], Json("tool_calls")) << reply.body;
    EXPECT_TRUE(choice["message"]["content"].is_null()) << reply.body;
    ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u);
    const Json call = choice["message"]["tool_calls"][0]["function"];
    const Json arguments = parse_json(call["arguments"].get<std::string>(), "arguments");
    EXPECT_TRUE(!named || call["name"] == Json("add_fox"));
    if (call["name"] == Json("add_fox")) {
      ++foxes;
      expect_fox(arguments);
    } else {
      EXPECT_EQ(call["name"], Json("wait"));
      EXPECT_EQ(arguments, Json::object());
    }
  }
  EXPECT_GE(foxes, kSeeds / 2);
}

TEST_F(BoundAnswers, StreamTheSameText) {
  const std::string format =
      R"("response_format":{"type":"json_schema","json_schema":{"name":"fox","schema":)" + kFox + "}}";
  for (int seed = 0; seed < 5; ++seed) {
    const Json whole = json_of(chat(format, seed))["choices"][0];
    const Reply streamed = chat(format + R"(,"stream":true)", seed);
    std::string text;
    for (std::size_t at = 0; (at = streamed.body.find("data: {", at)) != std::string::npos;) {
      const std::size_t end = streamed.body.find('\n', at);
      const Json chunk = parse_json(streamed.body.substr(at + 6, end - at - 6), "chunk");
      const Json& delta = chunk["choices"][0]["delta"];
      if (delta.contains("content")) text += delta["content"].get<std::string>();
      at = end;
    }
    EXPECT_EQ(text, whole["message"]["content"].get<std::string>());
  }
}

// Nothing but what the form allows may be chosen by a bias, and greedy answers are bound, too.
TEST_F(BoundAnswers, AreGreedyAndBiasedToo) {
  const std::string format =
      R"("response_format":{"type":"json_schema","json_schema":{"name":"fox","schema":)" + kFox + "}}";
  const Reply reply = ask(
      port_, "POST", "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"A fox?"}],"temperature":0,"max_tokens":600,)" + format + "}");
  ASSERT_EQ(reply.status, 200) << reply.body;
  expect_fox(parse_json(json_of(reply)["choices"][0]["message"]["content"].get<std::string>(), "content"));
  const Reply biased =
      chat(format + R"(,"logit_bias":{"5":100,"6":100,"100":100},"top_k":40,"repetition_penalty":1.3)", 3);
  ASSERT_EQ(biased.status, 200) << biased.body;
  expect_fox(parse_json(json_of(biased)["choices"][0]["message"]["content"].get<std::string>(), "content"));
}

TEST_F(BoundAnswers, SpeakTheOtherApi) {
  for (int seed = 0; seed < 10; ++seed) {
    const Reply reply = chat(R"("output_config":{"format":{"type":"json_schema","schema":)" + kFox + "}}", -1,
                             "/v1/messages");
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(json_of(reply)["stop_reason"], Json("end_turn"));
    expect_fox(parse_json(json_of(reply)["content"][0]["text"].get<std::string>(), "text"));
    const Reply called = chat(
        R"("tool_choice":{"type":"any","disable_parallel_tool_use":true},"tools":[{"name":"add_fox","input_schema":)" +
            kFox + "}]",
        -1, "/v1/messages");
    ASSERT_EQ(called.status, 200) << called.body;
    EXPECT_EQ(json_of(called)["stop_reason"], Json("tool_use"));
    expect_fox(json_of(called)["content"][0]["input"]);
  }
}

TEST_F(BoundAnswers, NameWhatTheGrammarDoesNotHold) {
  const Reply reply = chat(
      R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"array","items":{"type":"integer"},"uniqueItems":true,"maxItems":3}}})",
      1);
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_THAT(reply.head, HasSubstr("x-sluice-schema-ignored: uniqueItems"));
}

}  // namespace
}  // namespace sluice::program::bound_answers_test
