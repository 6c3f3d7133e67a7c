#include "tokenizer/chat/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tokenizer/chat/calls/family.h"
#include "tokenizer/chat/chat_messages.h"
#include "tokenizer/template/value_json.h"

namespace sluice::tokenizer {
namespace {

using jinja::Dict;
using jinja::Value;

// A text that stands in no string of the messages.
std::string unique_tag(const Value& messages) {
  jinja::Meter meter{TemplateLimits{}};
  const MarkedText all = jinja::write_json(messages, {}, meter);
  for (int i = 0;; ++i) {
    std::string tag = fmt::format("[[the answer goes on here {}]]", i);
    if (all.bytes().find(tag) == std::string::npos) return tag;
  }
}

Value with_tag(const Value& content, const std::string& tag) {
  MarkedText text = content.is_string() ? content.text() : MarkedText();
  text.append(tag, Origin::kRequest);
  return Value::string(std::move(text));
}

// The messages with `tag` behind the text of the last one.
Value with_last_tagged(const Value& messages, const std::string& tag) {
  std::vector<Value> items = messages.list().items;
  if (items.empty())
    throw Error(ErrorKind::kInvalid, "there is no message to go on with")
        .in("messages")
        .expected("at least one message")
        .found("none");
  auto last = std::make_shared<Dict>(nullptr, jinja::Frozen::kYes);
  for (const auto& [key, value] : items.back().dict().members()) last->set(key, value);
  const Value* content = last->find("content");
  if (content != nullptr && content->is_list() && !content->list().items.empty() &&
      content->list().items.back().is_mapping()) {
    std::vector<Value> parts = content->list().items;
    auto part = std::make_shared<Dict>(nullptr, jinja::Frozen::kYes);
    for (const auto& [key, value] : parts.back().dict().members())
      part->set(key, key.bytes() == "text" ? with_tag(value, tag) : value);
    parts.back() = Value(std::move(part));
    last->set("content", jinja::make_list(nullptr, std::move(parts)));
  } else {
    last->set("content", with_tag(content != nullptr ? *content : Value(), tag));
  }
  items.back() = Value(std::move(last));
  return jinja::make_list(nullptr, std::move(items));
}

}  // namespace

ChatTemplate::ChatTemplate(const ChatSources& sources) : tokens_(sources.tokens) {
  SLUICE_CHECK(!sources.templates.empty());
  for (const ChatSource& source : sources.templates)
    templates_.push_back({source.name, Template::parse(source.text, source.place), {}});
  for (Named& one : templates_) {
    one.caps = probe_chat_template([&](const Dict& given) -> std::optional<std::string> {
      Dict variables(nullptr);
      set_tokens(variables);
      variables.set("documents", jinja::None{});
      for (const auto& [key, value] : given.members()) variables.set(key, value);
      try {
        return one.parsed.render(variables).bytes();
      } catch (const Error&) {
        return std::nullopt;
      }
    });
    one.caps.nine_letter_ids = detected_call_family(one.parsed.source()).ids == CallIds::kNine;
  }
}

const ChatTemplate::Named& ChatTemplate::chosen(bool with_tools) const {
  for (const std::string_view name : {"tool_use", "default"}) {
    if (name == "tool_use" && !with_tools) continue;
    const auto at = std::ranges::find(templates_, name, &Named::name);
    if (at != templates_.end()) return *at;
  }
  return templates_.front();
}

void ChatTemplate::set_tokens(Dict& variables) const {
  for (const auto& [name, content] : tokens_) variables.set(name, Value::string(content));
}

MarkedText ChatTemplate::render_with(const Named& one, const ChatRequest& request, const Value& messages,
                                     const Value& tools) const {
  Dict variables(nullptr);
  set_tokens(variables);
  variables.set("messages", messages);
  variables.set("tools", tools);
  variables.set("documents", jinja::None{});
  variables.set("add_generation_prompt", request.add_generation_prompt && !request.continue_final_message);
  if (request.reasoning_effort) {
    variables.set("reasoning_effort", Value::string(*request.reasoning_effort, Origin::kRequest));
    if (*request.reasoning_effort == "none") variables.set("enable_thinking", false);
  }
  if (request.kwargs.is_mapping())
    for (const auto& [key, value] : request.kwargs.dict().members()) variables.set(key, value);
  return one.parsed.render(variables, {.now = request.now});
}

MarkedText ChatTemplate::render(const ChatRequest& request) const {
  try {
    return render_fitted(request);
  } catch (const jinja::Fault& fault) {  // while the messages are made to fit
    throw Error(ErrorKind::kInvalid, fault.message).in("messages");
  }
}

MarkedText ChatTemplate::render_fitted(const ChatRequest& request) const {
  const bool with_tools = request.tools.is_list() && !request.tools.list().items.empty();
  const Named& one = chosen(with_tools);
  ChatMessages fitted = fitted_messages(request.messages, request.tools, one.caps);
  if (!request.continue_final_message) return render_with(one, request, fitted.messages, fitted.tools);
  const std::string tag = unique_tag(fitted.messages);
  const MarkedText text = render_with(one, request, with_last_tagged(fitted.messages, tag), fitted.tools);
  const std::size_t end = text.bytes().rfind(tag);
  if (end == std::string::npos)
    throw Error(ErrorKind::kInvalid,
                "the chat template does not show the last message, so it cannot be continued")
        .in(one.parsed.name())
        .fix("ask without continue_final_message");
  return text.part(0, end);
}

}  // namespace sluice::tokenizer
