// Reasoning, content and calls are told apart in the same way however the text is cut, and nothing is lost.
#include "tokenizer/chat/calls/answer_parser.h"

#include <algorithm>
#include <iostream>
#include <random>
#include <set>

#include "tokenizer/chat/calls/answer_cases.h"
#include "tokenizer/chat/calls/json_cursor.h"

namespace sluice::tokenizer {
namespace {

using test::answer_cases;
using test::AnswerCase;
using test::case_format;
using test::parsed;
using test::ShownAnswer;

using Lines = std::vector<std::string>;

std::vector<std::string> cut(const std::string& text, std::mt19937_64& random, std::size_t longest) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < text.size(); at += pieces.back().size())
    pieces.push_back(text.substr(at, 1 + random() % longest));
  return pieces;
}

TEST(AnswerParser, ReadsEachFamily) {
  std::set<std::string> families;
  for (const AnswerCase& one : answer_cases()) {
    families.insert(one.family);
    EXPECT_EQ(parsed(case_format(one.family), one.prompt, {one.text}).lines(), one.lines)
        << one.family << ": " << one.text;
  }
  EXPECT_EQ(families.size(), call_families().size());
}

TEST(AnswerParser, GivesTheSameHoweverTheTextIsCut) {
  for (const AnswerCase& one : answer_cases()) {
    SCOPED_TRACE(one.family + ": " + one.text);
    const AnswerFormat format = case_format(one.family);
    Lines bytes;
    for (const char byte : one.text) bytes.emplace_back(1, byte);
    EXPECT_EQ(parsed(format, one.prompt, bytes).lines(), one.lines);
    for (std::size_t at = 0; at <= one.text.size(); ++at)
      ASSERT_EQ(parsed(format, one.prompt, {one.text.substr(0, at), one.text.substr(at)}).lines(), one.lines)
          << at;
  }
}

// The letters that stand in no mark.
std::string letters(const std::string& text) {
  std::string found;
  for (const char one : text)
    if (one == 'Q' || one == 'X' || one == 'Z') found += one;
  std::ranges::sort(found);
  return found;
}

void expect_nothing_lost(const AnswerFormat& format, const std::string& prompt, const std::string& text,
                         std::mt19937_64& random) {
  const ShownAnswer whole = parsed(format, prompt, {text});
  // What a model calls its call is not shown.
  const bool has_id = text.find("[CALL_ID]") != std::string::npos ||
                      text.find("\"id\"") != std::string::npos || text.find("\"type\"") != std::string::npos;
  if (!has_id) {
    ASSERT_EQ(letters(whole.text()), letters(text)) << text << "\n" << whole.text();
  }
  ASSERT_EQ(parsed(format, prompt, cut(text, random, 9)).lines(), whole.lines()) << text;
}

TEST(AnswerParser, LosesNothingOfATextThatBreaksOff) {
  std::mt19937_64 random(1);
  for (const AnswerCase& one : answer_cases())
    for (std::size_t size = 0; size <= one.text.size(); ++size)
      expect_nothing_lost(case_format(one.family), one.prompt, one.text.substr(0, size), random);
}

// A text with some of its parts left out, doubled, moved or put in from other texts.
std::string garbled(const std::string& text, std::mt19937_64& random) {
  const std::vector<AnswerCase>& all = answer_cases();
  std::string result = text;
  for (std::uint64_t times = 1 + random() % 4; times > 0; --times) {
    const std::size_t at = random() % (result.size() + 1), length = random() % 24;
    const std::string& other = random() % 2 == 0 ? text : all[random() % all.size()].text;
    const std::string part = other.substr(random() % (other.size() + 1), length);
    switch (random() % 4) {
      case 0:
        result.erase(at, length);
        break;
      case 1:
        result.insert(at, part);
        break;
      case 2:
        result.replace(at, part.size(), part);
        break;
      default:
        result.insert(at, 1, "\"\\{}[]<>,:QXZ \n"[random() % 15]);
    }
  }
  return result;
}

TEST(AnswerParser, LosesNothingOfGarbledTexts) {
  const std::uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  for (int i = 0; i < 100'000 && !::testing::Test::HasFatalFailure(); ++i) {
    const AnswerCase& one = answer_cases()[random() % answer_cases().size()];
    SCOPED_TRACE(one.family);
    expect_nothing_lost(case_format(one.family), one.prompt, garbled(one.text, random), random);
  }
}

// Wherever the arguments of a model are JSON, so are those given.
TEST(AnswerParser, GivesArgumentsThatAreJson) {
  std::size_t calls = 0;
  for (const AnswerCase& one : answer_cases()) {
    const ShownAnswer shown = parsed(case_format(one.family), one.prompt, {one.text});
    for (const std::string& line : shown.lines()) {
      if (line[0] != 'F' || !line.ends_with('}') || line.find('\\') != std::string::npos) continue;
      ++calls;
      EXPECT_TRUE(is_json(line.substr(line.find(' ', 2) + 1))) << line;
    }
  }
  EXPECT_GE(calls, 25u);
}

TEST(AnswerParser, ReadsNoReasoningWhereTheTemplateHasNone) {
  EXPECT_EQ(parsed(answer_format(""), "", {"a <think>b</think> c"}).lines(), Lines{"C a <think>b</think> c"});
}

TEST(AnswerParser, ReadsNoCallsWithoutTools) {
  const auto lines = [](const std::string& family, const std::string& text) {
    return parsed(case_format(family), "", {text}, {}).lines();
  };
  const std::string call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
  EXPECT_EQ(lines("hermes", "<think>a</think> b " + call), (Lines{"R a", "C b " + call}));
  const std::string harmony = "<|channel|>commentary to=functions.f<|message|>{}";
  EXPECT_EQ(lines("harmony", harmony), (Lines{"C " + harmony}));
}

// The model may write as it was told, or as it knows.
TEST(AnswerParser, ReadsWhatTheSystemMessageToldOfCalls) {
  const std::string told = "<tool_call>{\"name\": \"f\"}</tool_call>";
  const std::string known = "<｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜>";
  AnswerFormat format = answer_format("<think>", "deepseek-v3.1", true);
  EXPECT_EQ(parsed(format, "", {told}).lines(), Lines{"C " + told});
  format = answer_format("<think>", "deepseek-v3.1", false);
  EXPECT_EQ(parsed(format, "", {told + known + told}).lines(), (Lines{"F f {}", "F g {}", "F f {}"}));
  EXPECT_EQ(answer_format("", "", false).told, nullptr);
}

TEST(AnswerParser, GivesTheNameAsSoonAsItIsComplete) {
  AnswerParser parser(case_format("hermes"), nullptr,
                      {.prompt = "", .begun = {}, .tools = test::case_tools()});
  using Kind = AnswerEvent::Kind;
  EXPECT_TRUE(parser.append("<tool_call>\n{\"name\": \"ad").empty());
  auto events = parser.append("d\"");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].name, "add");
  EXPECT_EQ(events[0].kind, Kind::kCallBegin);
  EXPECT_TRUE(parser.append(", \"arguments\": ").empty());
  events = parser.append("{\"a\"");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].text, "{\"a\"");
  events = parser.append(": 1}");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].text, ": 1}");
  events = parser.append("}");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, Kind::kCallEnd);
  // What can be no mark comes at once, but blanks that a mark may follow wait.
  events = parser.append("\n</tool_call>\nHello <b> ");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].text, "Hello <b>");
  EXPECT_TRUE(parser.append("<tool").empty());
  EXPECT_EQ(parser.append("s>")[0].text, " <tools>");
}

TEST(AnswerParser, NamesCalls) {
  const auto ids = [](const std::string& family, const std::string& text, std::size_t past) {
    AnswerParser parser(
        case_format(family), nullptr,
        {.prompt = "", .begun = {}, .tools = test::case_tools(), .past_calls = past, .seed = 7});
    ShownAnswer shown;
    shown.add(parser.append(text));
    shown.add(parser.finish());
    return shown.ids;
  };
  const std::string hermes = "<tool_call>{\"name\": \"add\"}</tool_call>";
  const Lines called = ids("hermes", hermes + hermes, 0);
  ASSERT_EQ(called.size(), 2u);
  EXPECT_EQ(called, ids("hermes", hermes + hermes, 3));
  EXPECT_NE(called[0], called[1]);
  for (const std::string& id : called) {
    EXPECT_EQ(id.size(), 29u);
    EXPECT_TRUE(id.starts_with("call_"));
    EXPECT_TRUE(std::ranges::all_of(id.substr(5), [](char one) { return std::isalnum(one) != 0; })) << id;
  }
  const Lines nine =
      ids("mistral-v11", "[TOOL_CALLS]add[CALL_ID]aB3dE6gH9[ARGS]{}[TOOL_CALLS]add[ARGS]{}", 0);
  ASSERT_EQ(nine.size(), 2u);
  EXPECT_EQ(nine[0], "aB3dE6gH9");
  EXPECT_EQ(nine[1].size(), 9u);
  const std::string kimi =
      "<|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{}<|tool_call_end|>";
  EXPECT_EQ(ids("kimi-k2", kimi + kimi, 2), (Lines{"functions.add:2", "functions.add:3"}));
}

TEST(AnswerParser, GoesOnWithAnAnswer) {
  const auto go_on = [](const std::string& prompt, const std::string& begun, const std::string& text) {
    AnswerParser parser(case_format("hermes"), nullptr,
                        {.prompt = prompt, .begun = begun, .tools = test::case_tools()});
    ShownAnswer shown;
    shown.add(parser.append(text));
    shown.add(parser.finish());
    return shown.lines();
  };
  EXPECT_EQ(go_on("what is <think>?<|im_start|>assistant\n", "", "Q"), Lines{"C Q"});
  EXPECT_EQ(go_on("<think>\nHm, ", "<think>\nHm, ", "so</think>Q"), (Lines{"R so", "C Q"}));
  EXPECT_EQ(go_on("Well, ", "Well, ", "Q"), Lines{"C Q"});
  EXPECT_EQ(go_on("Well <tool_call>{\"name\": \"add\", \"argu", "Well <tool_call>{\"name\": \"add\", \"argu",
                  "ments\": {}}</tool_call>"),
            Lines{"F add {}"});
}

}  // namespace
}  // namespace sluice::tokenizer
