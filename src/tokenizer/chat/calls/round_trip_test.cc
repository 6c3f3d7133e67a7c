// Calls that a model's own template renders are parsed into the same calls: an oracle that knows nothing of
// the parser.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "base/error_of.h"
#include "tokenizer/chat/calls/answer_cases.h"
#include "tokenizer/chat/published_templates.h"
#include "tokenizer/template/value_json.h"

namespace sluice::tokenizer {
namespace {

Json messages_of(const Json& conversation, std::size_t count) {
  Json messages = Json::array();
  for (std::size_t i = 0; i < count; ++i) messages.push_back(conversation["messages"][i]);
  return messages;
}

std::optional<std::string> rendered(const ChatTemplate& chat, const Json& conversation, std::size_t count,
                                    bool prompt) {
  ChatRequest request;
  request.messages = jinja::read_json(messages_of(conversation, count).dump(), Origin::kRequest);
  request.tools = jinja::read_json(conversation["tools"].dump(), Origin::kRequest);
  request.add_generation_prompt = prompt;
  std::optional<std::string> text;
  testing::error_of([&] { text = chat.render(request).bytes(); });
  return text;
}

struct Answer {
  std::string prompt, text;
};

// The text of the message at `place`, as the template renders it behind a prompt, without the end of its
// turn.
std::optional<Answer> answer_of(const ChatTemplate& chat, const Json& conversation, std::size_t place) {
  const auto prompt = rendered(chat, conversation, place, true);
  const auto whole = rendered(chat, conversation, place + 1, false);
  if (!prompt || !whole) return std::nullopt;
  // The prompt may go on in another way, as with <think>, which old answers lack.
  std::size_t alike = std::ranges::mismatch(*prompt, *whole).in1 - prompt->begin();
  const std::size_t mark = whole->substr(0, alike).rfind('<');
  if (mark != std::string::npos && whole->substr(mark, alike - mark).find('>') == std::string::npos)
    alike = mark;
  // Or it has the system message in another user message.
  constexpr std::string_view kUser = "[/INST]";
  if (const std::size_t user = whole->find(kUser, alike); user != std::string::npos)
    alike = user + kUser.size();
  constexpr std::string_view kEmpty = "</think>";
  if (whole->substr(alike).starts_with(kEmpty)) alike += kEmpty.size();
  Answer answer{whole->substr(0, alike), whole->substr(alike)};
  for (const char* end : {"<|im_end|>", "<EOS>", "<｜end▁of▁sentence｜>", "[e~[", "<|eot_id|>", "<sep>",
                          "<|end_of_text|>", "<|end|>\n"})
    answer.text.resize(std::min(answer.text.find(end), answer.text.size()));
  return answer;
}

// Its calls as lines of name and arguments.
std::vector<std::string> calls_of(const Json& message, std::size_t most) {
  std::vector<std::string> calls;
  for (const Json& call : message["tool_calls"]) {
    const Json& function = call["function"];
    const Json arguments = function["arguments"].is_string()
                               ? Json::parse(function["arguments"].get<std::string>())
                               : function["arguments"];
    if (calls.size() < most) calls.push_back(function["name"].get<std::string>() + " " + arguments.dump());
  }
  return calls;
}

// With arguments as JSON, whose members are sorted.
std::vector<std::string> normalised(const std::vector<std::string>& lines) {
  std::vector<std::string> calls;
  for (const std::string& line : lines) {
    if (line[0] != 'F') continue;
    const std::size_t blank = line.find(' ', 2);
    calls.push_back(line.substr(2, blank - 1) + Json::parse(line.substr(blank + 1)).dump());
  }
  return calls;
}

TEST(RoundTrip, PublishedTemplatesRenderCallsThatAreParsed) {
  std::map<std::string, int> answers;  // by family
  for (const std::string& name : test::published_template_names()) {
    const auto source = test::published_template(name);
    if (!source || source->find("tool_calls") == std::string::npos) continue;
    const AnswerFormat format = answer_format(*source, {}, test::chat_of(*source).caps(true).tools);
    // Models that write calls in another way are counted as hermes, whose marks their templates lack.
    if (format.family->name == "hermes" && source->find("<tool_call>\\n{\\\"name\\\"") == std::string::npos &&
        source->find("<tool_call>\\n{\"name\"") == std::string::npos)
      continue;
    const ChatTemplate chat = test::chat_of(*source);
    for (const char* label : {"call", "two_calls", "call_string", "reasoning_call"}) {
      SCOPED_TRACE(name + " " + label);
      const Json conversation = parse_json(test::chat_goldens()["cases"][label].get<std::string>(), label);
      std::size_t place = 0;
      while (!conversation["messages"][place].contains("tool_calls")) ++place;
      const auto answer = answer_of(chat, conversation, place);
      if (!answer) continue;
      const bool one_alone = format.family->body == CallBody::kChannels;
      const auto shown =
          test::parsed(format, answer->prompt, {answer->text}, answer_tools(conversation["tools"]));
      ++answers[std::string(format.family->name)];
      EXPECT_EQ(normalised(shown.lines()), calls_of(conversation["messages"][place], one_alone ? 1 : 9))
          << answer->prompt.substr(answer->prompt.size() - std::min<std::size_t>(40, answer->prompt.size()))
          << "|" << answer->text << "|\n"
          << shown.text();
      for (const std::string& line : shown.lines()) EXPECT_TRUE(line[0] == 'F' || line == "R Hm.") << line;
    }
  }
  for (const auto& [family, count] : answers) std::cout << family << ": " << count << " answers\n";
  EXPECT_GE(answers.size(), 9u);
}

}  // namespace
}  // namespace sluice::tokenizer
