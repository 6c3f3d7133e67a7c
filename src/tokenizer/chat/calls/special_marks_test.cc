// Marks that are special tokens match by their id alone.
#include <array>

#include "base/error.h"
#include "tokenizer/chat/calls/answer_cases.h"
#include "tokenizer/compiled_tokenizer.h"

namespace sluice::tokenizer {
namespace {

// Token i is a special token with the i-th text; all others are letters.
class FewTokens final : public Tokenizer {
 public:
  static constexpr std::array<std::string_view, 5> kSpecial = {"[TOOL_CALLS]", "[ARGS]", "<|message|>",
                                                               "<|channel|>", "</s>"};
  static constexpr TokenId kLetter = kSpecial.size();

  std::optional<TokenId> id_of(std::string_view token) const override {
    for (TokenId id = 0; id < kLetter; ++id)
      if (kSpecial[static_cast<std::size_t>(id)] == token) return id;
    return std::nullopt;
  }
  std::string bytes_of(TokenId) const override { return {}; }
  bool is_special(TokenId id) const override { return id < kLetter; }
  std::string decode(std::span<const TokenId> ids, ShowSpecial) const override {
    return std::string(kSpecial[static_cast<std::size_t>(ids.front())]);
  }
  std::vector<TokenId> encode(std::string_view, AddSpecial) const override { return {}; }
  std::vector<TokenId> encode(const MarkedText&) const override { return {}; }
  std::unique_ptr<TextStream> start_text(ShowSpecial) const override { return nullptr; }
  std::size_t vocab_size() const override { return kLetter + 1; }
  TokenizerTables compile() const override { throw Error(ErrorKind::kUnsupported, "no tables"); }
};

using Pieces = std::vector<std::pair<TokenId, std::string>>;
constexpr TokenId kCalls = 0, kArgs = 1, kMessage = 2, kChannel = 3, kEnd = 4, kText = FewTokens::kLetter;

std::vector<std::string> lines_of(const AnswerFormat& format, const Pieces& pieces,
                                  const std::vector<AnswerTool>& tools = test::case_tools(),
                                  const std::string& prompt = {}) {
  const FewTokens tokenizer;
  AnswerParser parser(format, &tokenizer, {.prompt = prompt, .begun = {}, .tools = tools});
  test::ShownAnswer shown;
  for (const auto& [id, text] : pieces) shown.add(parser.append(id, text));
  shown.add(parser.finish());
  return shown.lines();
}

using Lines = std::vector<std::string>;
const AnswerFormat kMistral = answer_format("<think>", "mistral-v11");

TEST(SpecialMarks, MatchByTheirIds) {
  EXPECT_EQ(
      lines_of(kMistral,
               {{kText, "a"}, {kCalls, "[TOOL_CALLS]"}, {kText, "f"}, {kArgs, "[ARGS]"}, {kText, "{}"}}),
      (Lines{"C a", "F f {}"}));
  EXPECT_EQ(lines_of(kMistral, {{kText, "a[TOOL_CALLS]f[ARGS]{}"}}), Lines{"C a[TOOL_CALLS]f[ARGS]{}"});
  // A decoder gives the end of a character before the token that follows it.
  EXPECT_EQ(lines_of(kMistral,
                     {{kCalls, "\xef\xbf\xbd[TOOL_CALLS]"}, {kText, "f"}, {kArgs, "[ARGS]"}, {kText, "1"}}),
            (Lines{"C \xef\xbf\xbd", "F f 1"}));
}

TEST(SpecialMarks, EndTheTextThatTheyStandIn) {
  const Pieces call = {{kCalls, "[TOOL_CALLS]"}, {kText, "f"}, {kArgs, "[ARGS]"}, {kText, "{\"a\": \"Q"}};
  Pieces two = call;
  two.insert(two.end(), call.begin(), call.end());
  EXPECT_EQ(lines_of(kMistral, two), (Lines{"F f {\"a\": \"Q", "F f {\"a\": \"Q"}));
  Pieces thought = {{kText, "<think>Hm, [TOOL_CALLS]"}};
  thought.insert(thought.end(), call.begin(), call.end());
  EXPECT_EQ(lines_of(kMistral, thought), (Lines{"R Hm, [TOOL_CALLS]", "F f {\"a\": \"Q"}));
}

// Tokens of the model's own are no text, unless a format knows them.
TEST(SpecialMarks, OthersAreLeftOut) {
  EXPECT_EQ(lines_of(kMistral, {{kText, "a"}, {kEnd, "</s>"}, {kText, "b</s>"}}), Lines{"C ab</s>"});
  EXPECT_EQ(lines_of(kMistral, {{kText, "a"}, {kCalls, "[TOOL_CALLS]"}, {kText, "b"}}, {}),
            Lines{"C a[TOOL_CALLS]b"});
}

// A mark may be special tokens and text between them; one of a prompt is text.
TEST(SpecialMarks, MayBePartsOfMarks) {
  const AnswerFormat harmony = answer_format("<|channel|>");
  const Pieces answer = {
      {kChannel, "<|channel|>"}, {kText, "analysis"}, {kMessage, "<|message|>"}, {kText, "Q<|message|>"}};
  EXPECT_EQ(lines_of(harmony, answer), Lines{"R Q<|message|>"});
  EXPECT_EQ(lines_of(harmony, {{kText, "<|channel|>analysis<|message|>Q"}}),
            Lines{"C <|channel|>analysis<|message|>Q"});
  EXPECT_EQ(lines_of(harmony, {{kText, "Q"}}, {}, "<|start|>assistant<|channel|>analysis<|message|>"),
            Lines{"R Q"});
}

TEST(SpecialMarks, AreKnown) {
  const FewTokens tokenizer;
  EXPECT_TRUE(has_special_marks(kMistral, tokenizer));
  EXPECT_TRUE(has_special_marks(answer_format("<|channel|>"), tokenizer));
  EXPECT_FALSE(has_special_marks(answer_format("<think>"), tokenizer));
}

}  // namespace
}  // namespace sluice::tokenizer
