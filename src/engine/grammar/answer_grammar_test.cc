#include "engine/grammar/answer_grammar.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/error_of.h"
#include "engine/grammar/answer_guide.h"
#include "engine/grammar/schema_testing.h"
#include "engine/grammar/schema_validator_testing.h"
#include "tokenizer/chat/calls/answer_parser.h"

namespace sluice::engine {
namespace {

using testing::below;
using testing::Random;
using tokenizer::AnswerEvent;

const char* const kSchema =
    R"({"type":"object","properties":{"city":{"enum":["Paris","Rome & <Oslo>"]},"days":{"type":"integer","minimum":1,"maximum":9},)"
    R"("unit":{"enum":["c","f"]},"where":{"type":"array","items":{"type":"number"},"maxItems":2}},)"
    R"("required":["city","days"],"additionalProperties":false})";

class BoundCalls : public ::testing::Test {
 protected:
  BoundCalls()
      : tokenizer_(tokenizer::load_tokenizer(SLUICE_SOURCE_DIR "/models/fable-moe-18m")),
        masks_(*tokenizer_, std::size_t{4} << 20) {
    for (std::size_t id = 0; id < tokenizer_->vocab_size(); ++id)
      if (masks_.bytes_of(static_cast<tokenizer::TokenId>(id)).find_first_of("\"}]<>") != std::string::npos)
        closing_.push_back(static_cast<tokenizer::TokenId>(id));
  }

  static AnswerBinding binding(Calls calls) {
    AnswerBinding bound;
    bound.calls = calls;
    bound.tools.push_back({"get_weather", {testing::schema_of(Json::parse(kSchema)), "tools[0]", true}});
    bound.tools.push_back(
        {"wait",
         {testing::schema_of(Json::parse(R"({"type":"object","properties":{}})")), "tools[1]", false}});
    return bound;
  }

  // A token of those that are allowed; what closes something is preferred, so that answers end.
  tokenizer::TokenId draw(Random& random, std::span<const std::uint64_t> allowed) {
    std::vector<tokenizer::TokenId> some;
    if (!testing::coin(random, 4))
      for (const tokenizer::TokenId id : closing_)
        if (has_bit(allowed, static_cast<std::size_t>(id))) some.push_back(id);
    for (int i = 0; i < 64 && some.empty(); ++i)
      if (const std::size_t id = below(random, tokenizer_->vocab_size()); has_bit(allowed, id))
        some.push_back(static_cast<tokenizer::TokenId>(id));
    for (std::size_t id = 0; id < tokenizer_->vocab_size() && some.empty(); ++id)
      if (has_bit(allowed, id)) some.push_back(static_cast<tokenizer::TokenId>(id));
    return some[below(random, some.size())];
  }

  // Empty: it was too long.
  std::string walk(Random& random, const std::shared_ptr<const Grammar>& grammar,
                   std::string_view begin = {}) {
    GrammarMachine machine(*grammar);
    AnswerGuide guide(grammar, masks_);
    std::string text;
    for (const char byte : begin) {  // tokens of one byte each
      const auto id = byte_token(byte);
      guide.accept(id);
      text += byte;
    }
    for (int i = 0; i < 900; ++i) {
      if (guide.complete() || (guide.may_end() && testing::coin(random, 3))) return text;
      const tokenizer::TokenId id = draw(random, guide.allowed());
      guide.accept(id);
      text += masks_.bytes_of(id);
    }
    return {};
  }
  tokenizer::TokenId byte_token(char byte) const {
    for (std::size_t id = 0; id < tokenizer_->vocab_size(); ++id)
      if (masks_.bytes_of(static_cast<tokenizer::TokenId>(id)) == std::string(1, byte) &&
          !masks_.is_special(static_cast<tokenizer::TokenId>(id)))
        return static_cast<tokenizer::TokenId>(id);
    ADD_FAILURE() << "no token of this byte: " << byte;
    return 0;
  }

  struct Call {
    std::string name, arguments;
  };
  static std::vector<Call> calls_of(const tokenizer::AnswerFormat& format, const std::string& text,
                                    std::string* content) {
    tokenizer::AnswerStart start;
    start.tools = {{"get_weather", Json::parse(kSchema)}, {"wait", Json::object()}};
    start.prompt = "<|start|>assistant";
    tokenizer::AnswerParser parser(format, nullptr, std::move(start));
    std::vector<AnswerEvent> events = parser.append(text);
    for (AnswerEvent& event : parser.finish()) events.push_back(std::move(event));
    std::vector<Call> calls;
    for (const AnswerEvent& event : events) {
      if (event.kind == AnswerEvent::Kind::kCallBegin) calls.push_back({event.name, {}});
      if (event.kind == AnswerEvent::Kind::kCallArguments) calls.back().arguments += event.text;
      if (event.kind == AnswerEvent::Kind::kContent) *content += event.text;
    }
    return calls;
  }

  static void expect_fits(const Call& call, const std::string& text) {
    if (call.name == "wait") {
      // Its object is free, so that a random walk may name a key twice, which our parser refuses.
      const std::string error =
          sluice::testing::error_of([&] { EXPECT_TRUE(Json::parse(call.arguments).is_object()) << text; });
      EXPECT_TRUE(error == "no error" || error.find("duplicate key") != std::string::npos) << error << text;
      return;
    }
    EXPECT_EQ(call.name, "get_weather") << text;
    const Json arguments = Json::parse(call.arguments);
    const Json schema = Json::parse(kSchema);
    EXPECT_TRUE(testing::fits(schema, arguments, schema)) << text;
  }

  const std::unique_ptr<tokenizer::Tokenizer> tokenizer_;
  GrammarMasks masks_;
  std::vector<tokenizer::TokenId> closing_;
};

// The judge is the parser that takes answers apart.
TEST_F(BoundCalls, AreReadAsCallsInEachFamily) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (const tokenizer::CallFamily& family : tokenizer::call_families()) {
    SCOPED_TRACE(std::string(family.name));
    tokenizer::AnswerFormat format;
    format.family = &family;
    for (const bool one_call : {true, false}) {
      AnswerBinding bound = binding(Calls::kMust);
      bound.one_call = one_call;
      const auto grammar = bound_answer(bound, format, *tokenizer_).grammar;
      std::size_t ended = 0;
      for (int i = 0; i < 8 || (ended == 0 && i < 1000); ++i) {
        const std::string text = walk(random, grammar);
        if (text.empty()) continue;
        ++ended;
        std::string content;
        const std::vector<Call> calls = calls_of(format, text, &content);
        EXPECT_EQ(content, "") << text;
        EXPECT_GE(calls.size(), 1u) << text;
        EXPECT_TRUE(!one_call || calls.size() == 1) << text;
        for (const Call& call : calls) expect_fits(call, text);
      }
      EXPECT_GT(ended, 0u);
    }
  }
}

TEST_F(BoundCalls, HaveTextsBetweenMarksAsTheyAre) {
  tokenizer::AnswerFormat format;
  format.family = &tokenizer::call_family("minimax");
  AnswerBinding bound;
  bound.calls = Calls::kMust;
  const Json schema = Json::parse(
      R"({"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]})");
  bound.tools.push_back({"f", {testing::schema_of(schema), "tools[0]", true}});
  const auto grammar = bound_answer(bound, format, *tokenizer_).grammar;
  const std::string begin = "<minimax:tool_call>\n<invoke name=\"f\">\n",
                    end = "</invoke>\n</minimax:tool_call>",
                    city = "<parameter name=\"city\">New \"<York></param</parameter>\n";
  EXPECT_TRUE(testing::accepts(*grammar, begin + city + end));
  EXPECT_TRUE(testing::accepts(*grammar, begin + city + "<parameter name=\"days\">3</parameter>" + end));
  EXPECT_FALSE(testing::accepts(*grammar, begin + city + "<parameter name=\"days\">soon</parameter>" + end));
  EXPECT_FALSE(testing::accepts(*grammar, begin + end));
}

TEST_F(BoundCalls, StandInFreeTextWhereTheyAreStrict) {
  Random random(11);
  tokenizer::AnswerFormat format;
  format.family = &tokenizer::call_family("hermes");
  AnswerBinding bound = binding(Calls::kMay);
  bound.one_call = true;
  const auto grammar = bound_answer(bound, format, *tokenizer_).grammar;
  EXPECT_TRUE(grammar->has_free_text());
  EXPECT_TRUE(testing::accepts(*grammar, ""));
  EXPECT_TRUE(testing::accepts(*grammar, "I know {\"that\"} <tool_cal"));
  EXPECT_FALSE(testing::accepts(*grammar, "I ask: <tool_call>nonsense</tool_call>"));
  const std::string call =
      "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", \"days\": "
      "3}}\n</tool_call>";
  EXPECT_TRUE(testing::accepts(*grammar, "I ask: <" + call));
  EXPECT_FALSE(testing::accepts(*grammar, call + call)) << "one call alone";
  std::size_t ended = 0;
  for (int i = 0; i < 8; ++i) {
    const std::string text = walk(random, grammar, "A fox <tool_call>");
    if (text.empty()) continue;
    ++ended;
    std::string content;
    for (const Call& one : calls_of(format, text, &content)) expect_fits(one, text);
  }
  EXPECT_GT(ended, 0u);
}

TEST_F(BoundCalls, BeginBehindReasoning) {
  tokenizer::AnswerFormat format;
  format.family = &tokenizer::call_family("hermes");
  format.reasoning = {"<think>", "</think>"};
  AnswerBinding bound;
  bound.form = {testing::schema_of(Json::parse(R"({"enum":["yes","no"]})")), "schema", true};
  const auto grammar = [&](const char* tail) {
    bound.prompt_tail = tail;
    return bound_answer(bound, format, *tokenizer_).grammar;
  };
  const auto open = grammar("assistant\n<think>\n");
  EXPECT_TRUE(testing::accepts(*open, "Is it \"no\"?\n</think>\n\n\"yes\""));
  EXPECT_FALSE(testing::accepts(*open, "\"yes\""));
  const auto closed = grammar("<think>\n\n</think>\n\n");
  EXPECT_TRUE(testing::accepts(*closed, "\"no\""));
  EXPECT_FALSE(testing::accepts(*closed, "<think>a</think>\"no\""));
  const auto either = grammar("assistant\n");
  EXPECT_TRUE(testing::accepts(*either, "\"no\""));
  EXPECT_TRUE(testing::accepts(*either, "<think>a</think>\n\"no\""));
  EXPECT_FALSE(testing::accepts(*either, "<think>a\"no\""));
}

TEST_F(BoundCalls, OrATextOfTheForm) {
  tokenizer::AnswerFormat format;
  format.family = &tokenizer::call_family("hermes");
  AnswerBinding bound = binding(Calls::kMay);
  bound.form = {testing::schema_of(Json::parse(R"({"type":"object"})")), "schema", true};
  const auto grammar = bound_answer(bound, format, *tokenizer_).grammar;
  EXPECT_TRUE(testing::accepts(*grammar, "{\"a\": 1}"));
  EXPECT_TRUE(testing::accepts(*grammar, "<tool_call>{\"name\": \"wait\", \"arguments\": {}}</tool_call>"));
  EXPECT_FALSE(testing::accepts(*grammar, "Hello"));
}

}  // namespace
}  // namespace sluice::engine
