#include "engine/grammar/answer_grammar.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/grammar/call_grammar.h"
#include "engine/grammar/json_parts.h"
#include "engine/grammar/marks_of_text.h"
#include "engine/grammar/schema_grammar.h"

namespace sluice::engine {
namespace {

using tokenizer::AnswerFormat;
using tokenizer::CallBody;

std::string_view without_blanks_behind(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

class AnswerWriter {
 public:
  AnswerWriter(const AnswerBinding& binding, const AnswerFormat& format,
               const tokenizer::Tokenizer& tokenizer)
      : binding_(binding),
        format_(format),
        tokenizer_(tokenizer),
        harmony_(format.family != nullptr && format.family->body == CallBody::kChannels),
        calls_(builder_, parts_, format.told != nullptr ? format.told : format.family, tokenizer) {}

  BoundAnswer whole() {
    BoundAnswer answer;
    const GrammarRule start = builder_.rule_of(builder_.in_order({reasoning(), behind_reasoning()}));
    builder_.at(binding_.form ? binding_.form->path : "tools");
    answer.left_out = std::move(left_out_);
    answer.grammar = std::make_shared<const Grammar>(builder_.build(start));
    return answer;
  }

 private:
  GrammarMark mark(std::string_view text) const { return mark_of_text(text, tokenizer_); }
  GrammarPart blanks() {
    GrammarPart part = builder_.nothing();
    for (int i = 0; i < 4; ++i)
      part = builder_.in_order(
          {part, builder_.perhaps(builder_.one_of({builder_.text(" "), builder_.text("\n")}))});
    return part;
  }

  // What may stand before: the model may begin to reason by itself unless the prompt has closed that.
  GrammarPart reasoning() {
    const auto& [begin, end] = format_.reasoning;
    if (end.empty()) return builder_.nothing();
    const std::string_view prompt = without_blanks_behind(binding_.prompt_tail);
    if (prompt.ends_with(end) && !harmony_) return builder_.nothing();
    const auto rest = [&] {
      const GrammarPart text = builder_.text_until(mark(end), !harmony_);
      return harmony_ ? builder_.in_order({text, builder_.mark(mark("<|start|>assistant"))})
                      : builder_.in_order({text, blanks()});
    };
    if (prompt.ends_with(begin)) return rest();
    return builder_.perhaps(builder_.in_order({blanks(), builder_.mark(mark(begin)), rest()}));
  }

  GrammarPart behind_reasoning() {
    if (binding_.calls == Calls::kNone) return form();
    check_tools();
    if (binding_.calls == Calls::kMust) return calls_.calls(tools(), binding_.one_call);
    if (binding_.form) return builder_.one_of({form(), calls_.calls(tools(), binding_.one_call)});
    if (harmony_)
      throw Error(ErrorKind::kUnsupported,
                  "calls of this model cannot be bound while they are free to be left out")
          .expected("calls that are forced, or tools without strict")
          .found("strict tools, in a model of the family harmony");
    builder_.allow_free_text();
    return calls_.free_calls(tools(), binding_.one_call);
  }

  GrammarPart form() {
    const BoundSchema& bound = *binding_.form;
    schemas_.push_back(
        std::make_unique<SchemaGrammar>(builder_, parts_, bound.schema, bound.path, bound.strict));
    const GrammarPart text = builder_.call(schemas_.back()->whole());
    keep_left_out(*schemas_.back());
    return harmony_ ? builder_.in_order({builder_.mark(mark("<|channel|>final<|message|>")), text}) : text;
  }

  void check_tools() const {
    if (binding_.tools.empty())
      throw Error(ErrorKind::kUnsupported, "a call is asked for, and there is no tool")
          .expected("a tool")
          .found("none");
  }

  std::vector<CallableTool> tools() {
    std::vector<CallableTool> callable;
    for (const BoundTool& tool : binding_.tools) {
      const BoundSchema& bound = tool.arguments;
      schemas_.push_back(
          std::make_unique<SchemaGrammar>(builder_, parts_, bound.schema, bound.path, bound.strict));
      callable.push_back({tool.name, &bound, schemas_.back().get()});
      try {
        calls_.prepare(callable.back());
      } catch (const Error&) {
        // Nobody has asked that these arguments fit.
        if (binding_.calls == Calls::kMust || bound.strict ||
            builder_.states() >= GrammarBuilder::kMostStates)
          throw;
        callable.back().body = builder_.call(parts_.object());
      }
      keep_left_out(*schemas_.back());
    }
    return callable;
  }

  void keep_left_out(const SchemaGrammar& schema) {
    for (const std::string& keyword : schema.left_out())
      if (std::ranges::find(left_out_, keyword) == left_out_.end()) left_out_.push_back(keyword);
  }

  const AnswerBinding& binding_;
  const AnswerFormat& format_;
  const tokenizer::Tokenizer& tokenizer_;
  const bool harmony_;
  GrammarBuilder builder_;
  JsonParts parts_{builder_};
  CallGrammar calls_;
  std::vector<std::unique_ptr<SchemaGrammar>> schemas_;
  std::vector<std::string> left_out_;
};

}  // namespace

BoundAnswer bound_answer(const AnswerBinding& binding, const AnswerFormat& format,
                         const tokenizer::Tokenizer& tokenizer) {
  return AnswerWriter(binding, format, tokenizer).whole();
}

}  // namespace sluice::engine
