#include "tokenizer/chat/calls/answer_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "tokenizer/chat/calls/answer_sink.h"
#include "tokenizer/chat/calls/channel_answer.h"
#include "tokenizer/chat/calls/marked_answer.h"
#include "tokenizer/chat/calls/marks.h"

namespace sluice::tokenizer {

class AnswerParser::Impl {
 public:
  Impl(const AnswerFormat& format, const Tokenizer* tokenizer, AnswerStart start)
      : tools_(std::move(start.tools)),
        tokens_(tokenizer),
        sink_(format.family->ids, start.past_calls, start.seed) {
    const bool calls = start.any_calls || !tools_.empty();
    if (format.family->body == CallBody::kChannels) {
      machine_ = std::make_unique<ChannelAnswer>(tokens_, calls, sink_);
    } else {
      std::optional<ToolSchema> schema;
      if (calls) schema = [this](std::string_view name) { return schema_of(name); };
      machine_ = std::make_unique<MarkedAnswer>(format, tokens_, schema, sink_, start.marks_first);
    }
    const bool ends = start.prompt.ends_with(start.begun);
    machine_->begin(start.prompt.substr(0, start.prompt.size() - (ends ? start.begun.size() : 0)));
    machine_->append(tokens_.tagged_plain(start.begun));
    sink_.forget();
  }

  std::vector<AnswerEvent> append(std::string_view tagged) {
    machine_->append(tagged);
    return sink_.take();
  }
  std::vector<AnswerEvent> finish() {
    machine_->finish();
    return sink_.take();
  }
  const MarkTokens& tokens() const { return tokens_; }
  const AnswerSink& sink() const { return sink_; }

 private:
  const Json* schema_of(std::string_view name) const {
    const auto tool = std::ranges::find(tools_, name, &AnswerTool::name);
    return tool == tools_.end() ? nullptr : &tool->parameters;
  }

  const std::vector<AnswerTool> tools_;
  MarkTokens tokens_;
  AnswerSink sink_;
  std::unique_ptr<AnswerMachine> machine_;
};

AnswerParser::AnswerParser(const AnswerFormat& format, const Tokenizer* tokenizer, AnswerStart start) {
  SLUICE_CHECK(format.family != nullptr);
  impl_ = std::make_unique<Impl>(format, tokenizer, std::move(start));
}
AnswerParser::~AnswerParser() = default;
AnswerParser::AnswerParser(AnswerParser&&) noexcept = default;

std::vector<AnswerEvent> AnswerParser::append(TokenId id, std::string_view text) {
  return impl_->append(impl_->tokens().tagged(id, text));
}
std::vector<AnswerEvent> AnswerParser::append(std::string_view text) {
  return impl_->append(impl_->tokens().tagged_plain(text));
}
std::vector<AnswerEvent> AnswerParser::finish() { return impl_->finish(); }
bool AnswerParser::reasons() const { return impl_->sink().reasons(); }
std::size_t AnswerParser::calls() const { return impl_->sink().calls(); }

bool has_special_marks(const AnswerFormat& format, const Tokenizer& tokenizer) {
  AnswerSink sink(CallIds::kCall, 0, 0);
  MarkTokens tokens(&tokenizer);
  if (format.family->body == CallBody::kChannels)
    ChannelAnswer(tokens, false, sink);
  else
    MarkedAnswer(format, tokens, std::nullopt, sink);
  return tokens.has_special();
}

std::vector<AnswerTool> answer_tools(const Json& tools) {
  std::vector<AnswerTool> result;
  if (!tools.is_array()) return result;
  for (const Json& tool : tools) {
    if (!tool.contains("function") || !tool["function"].contains("name")) continue;
    const Json& function = tool["function"];
    if (!function["name"].is_string()) continue;
    result.push_back({function["name"].get<std::string>(),
                      function.contains("parameters") ? function["parameters"] : Json::object()});
  }
  return result;
}

std::size_t calls_in(const Json& messages) {
  std::size_t calls = 0;
  if (!messages.is_array()) return calls;
  for (const Json& message : messages)
    if (message.contains("tool_calls") && message["tool_calls"].is_array())
      calls += message["tool_calls"].size();
  return calls;
}

}  // namespace sluice::tokenizer
