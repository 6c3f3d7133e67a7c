// Answers as models of each family write them, and what they say; and how a test parses them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "tokenizer/chat/calls/answer_parser.h"

namespace sluice::tokenizer::test {

// A line for each part: "R text", "C text", "F name arguments". A call is shown once it has ended.
class ShownAnswer {
 public:
  void add(const std::vector<AnswerEvent>& events) {
    using Kind = AnswerEvent::Kind;
    for (const AnswerEvent& event : events) {
      const bool is_text = event.kind == Kind::kReasoning || event.kind == Kind::kContent;
      const char letter = event.kind == Kind::kReasoning ? 'R' : 'C';
      EXPECT_EQ(event.text.empty(), event.kind == Kind::kCallBegin || event.kind == Kind::kCallEnd);
      EXPECT_TRUE(is_text ? !open_ : open_ || event.kind == Kind::kCallBegin);
      if (is_text && (lines_.empty() || lines_.back()[0] != letter)) lines_.push_back({letter, ' '});
      if (event.kind == Kind::kCallBegin) {
        EXPECT_FALSE(open_);
        EXPECT_EQ(event.call, ids.size());
        EXPECT_FALSE(event.id.empty() || event.name.empty());
        lines_.push_back("F " + event.name + " ");
        ids.push_back(event.id);
        open_ = true;
      } else {
        lines_.back() += event.text;
      }
      EXPECT_EQ(event.call, is_text ? 0 : ids.size() - 1);
      if (event.kind == Kind::kCallEnd) open_ = false;
    }
  }
  bool call_is_open() const { return open_; }
  std::string text() const {
    std::string joined;
    for (const std::string& line : lines_) joined += line + '\n';
    return joined;
  }
  const std::vector<std::string>& lines() const { return lines_; }

  std::vector<std::string> ids;

 private:
  std::vector<std::string> lines_;
  bool open_ = false;
};

struct AnswerCase {
  std::string family, prompt, text;
  std::vector<std::string> lines;
};

inline const std::vector<AnswerTool>& case_tools() {
  static const std::vector<AnswerTool> kTools = answer_tools(parse_json(
      R"([{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{
           "city":{"type":"string"},"days":{"type":"integer"},"exact":{"type":"boolean"},
           "near":{"type":"array","items":{"type":"string"}},"note":{"type":["string","null"]}}}}},
          {"type":"function","function":{"name":"add"}}])",
      "tools"));
  return kTools;
}

// As for templates of these families that think.
inline AnswerFormat case_format(std::string_view family) {
  const std::string_view source = family.starts_with("mistral") ? "[THINK]"
                                  : family == "harmony"         ? ""
                                                                : "<think>";
  return answer_format(source, family);
}

inline ShownAnswer parsed(const AnswerFormat& format, const std::string& prompt,
                          const std::vector<std::string>& pieces,
                          const std::vector<AnswerTool>& tools = case_tools()) {
  AnswerParser parser(format, nullptr, {.prompt = prompt, .begun = {}, .tools = tools});
  ShownAnswer shown;
  for (const std::string& piece : pieces) shown.add(parser.append(piece));
  shown.add(parser.finish());
  EXPECT_FALSE(shown.call_is_open());
  EXPECT_EQ(parser.calls(), shown.ids.size());
  return shown;
}

// Letters that stand in no mark: Q, X, Z.
const std::vector<AnswerCase>& answer_cases();

}  // namespace sluice::tokenizer::test
