#include "tokenizer/chat/chat_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/error.h"
#include "tokenizer/chat/calls/call_ids.h"
#include "tokenizer/template/value_json.h"

namespace sluice::tokenizer {
namespace {

using jinja::Dict;
using jinja::Value;
using DictPtr = std::shared_ptr<Dict>;

constexpr std::array<std::string_view, 6> kRoles = {"system",    "developer", "user",
                                                    "assistant", "tool",      "function"};
constexpr std::array<std::string_view, 3> kReasoningKeys = {"reasoning_content", "reasoning", "thinking"};

[[noreturn]] void fail(std::size_t message, std::string_view what, std::string_view expected,
                       std::string_view found) {
  throw Error(ErrorKind::kInvalid, what)
      .in(fmt::format("messages[{}]", message))
      .expected(expected)
      .found(found);
}

DictPtr new_dict() { return std::make_shared<Dict>(nullptr, jinja::Frozen::kYes); }

Value list_of(std::vector<Value> items) {
  return Value(
      std::make_shared<jinja::List>(nullptr, jinja::ListKind::kList, std::move(items), jinja::Frozen::kYes));
}

bool is_plain_list(const Value& value) { return value.is_list(); }

// A known word of the protocol, which a template may put into a control token ("<|user|>").
Value trusted_word(const Value& value) {
  if (!value.is_string()) return value;
  const bool known = std::ranges::find(kRoles, value.bytes()) != kRoles.end() || value.bytes() == "text";
  return known ? Value::string(std::string(value.bytes())) : value;
}

Value with_trusted_types(const Value& parts) {
  std::vector<Value> items;
  for (const Value& part : parts.list().items) {
    if (!part.is_mapping()) {
      items.push_back(part);
      continue;
    }
    DictPtr copy = new_dict();
    for (const auto& [key, value] : part.dict().members())
      copy->set(key, key.bytes() == "type" ? trusted_word(value) : value);
    items.emplace_back(std::move(copy));
  }
  return list_of(std::move(items));
}

// A call with its arguments as an object, if they are a string that holds one.
Value with_argument_object(const Value& call) {
  if (!call.is_mapping()) return call;
  const Value* function = call.dict().find("function");
  if (function == nullptr || !function->is_mapping()) return call;
  const Value* arguments = function->dict().find("arguments");
  if (arguments == nullptr || !arguments->is_string()) return call;
  Value object;
  try {
    object = jinja::read_json(arguments->bytes(), Origin::kRequest);
  } catch (const jinja::Fault&) {
    return call;
  }
  if (!object.is_mapping()) return call;
  DictPtr inner = new_dict(), outer = new_dict();
  for (const auto& [key, value] : function->dict().members())
    inner->set(key, key.bytes() == "arguments" ? object : value);
  for (const auto& [key, value] : call.dict().members())
    outer->set(key, key.bytes() == "function" ? Value(inner) : value);
  return Value(std::move(outer));
}

Value with_argument_string(const Value& call) {
  if (!call.is_mapping()) return call;
  const Value* function = call.dict().find("function");
  if (function == nullptr || !function->is_mapping()) return call;
  const Value* arguments = function->dict().find("arguments");
  if (arguments == nullptr || arguments->is_string()) return call;
  jinja::Meter meter{TemplateLimits{}};
  DictPtr inner = new_dict(), outer = new_dict();
  const MarkedText text = jinja::write_json(*arguments, {}, meter);
  for (const auto& [key, value] : function->dict().members())
    inner->set(key, key.bytes() == "arguments" ? Value::string(text) : value);
  for (const auto& [key, value] : call.dict().members())
    outer->set(key, key.bytes() == "function" ? Value(inner) : value);
  return Value(std::move(outer));
}

// A member that is an id, as nine letters and digits.
void shorten_id(Dict& holder, std::string_view member) {
  const Value* id = holder.find(member);
  if (id != nullptr && id->is_string())
    holder.set(member, Value::string(nine_letters(id->bytes()), Origin::kRequest));
}

Value with_short_id(const Value& call) {
  if (!call.is_mapping()) return call;
  DictPtr copy = new_dict();
  for (const auto& [key, value] : call.dict().members()) copy->set(key, value);
  shorten_id(*copy, "id");
  return Value(std::move(copy));
}

DictPtr with_calls(const Dict& message, Value (*change)(const Value&)) {
  DictPtr copy = new_dict();
  for (const auto& [key, value] : message.members()) {
    if (key.bytes() != "tool_calls" || !is_plain_list(value)) {
      copy->set(key, value);
      continue;
    }
    std::vector<Value> calls;
    for (const Value& call : value.list().items) calls.push_back(change(call));
    copy->set(key, list_of(std::move(calls)));
  }
  return copy;
}

std::vector<DictPtr> read_messages(const Value& messages) {
  if (!messages.is_list())
    throw Error(ErrorKind::kInvalid, "messages are no list")
        .in("messages")
        .expected("a list of objects")
        .found(messages.type_name());
  std::vector<DictPtr> result;
  for (std::size_t i = 0; i < messages.list().items.size(); ++i) {
    const Value& message = messages.list().items[i];
    if (!message.is_mapping()) fail(i, "a message is no object", "an object", message.type_name());
    const Value* role = message.dict().find("role");
    if (role == nullptr || !role->is_string())
      fail(i, "a message has no role", "a member \"role\" that is a string",
           role == nullptr ? "none" : role->type_name());
    DictPtr copy = new_dict();
    for (const auto& [key, value] : message.dict().members()) {
      if (value.is_none()) continue;
      if (key.bytes() == "role") {
        copy->set(key, trusted_word(value));
      } else if (key.bytes() == "content" && is_plain_list(value)) {
        copy->set(key, with_trusted_types(value));
      } else {
        copy->set(key, value);
      }
    }
    for (const std::string_view name : kReasoningKeys) {
      const Value* found = copy->find(name);
      if (found == nullptr) continue;
      const Value reasoning = *found;
      for (const std::string_view other : {kReasoningKeys[0], kReasoningKeys[2]})
        if (copy->find(other) == nullptr) copy->set(other, reasoning);
      break;
    }
    result.push_back(with_calls(*copy, with_argument_object));
  }
  return result;
}

std::string_view role_of(const Dict& message) { return message.find("role")->bytes(); }

// The text of a message's content; parts of text are joined.
MarkedText content_of(const Dict& message, std::size_t place) {
  const Value* content = message.find("content");
  if (content == nullptr || content->is_none()) return {};
  if (content->is_string()) return content->text();
  if (!content->is_list())
    fail(place, "content is of a wrong kind", "a string or a list of parts", content->type_name());
  MarkedText joined;
  for (const Value& part : content->list().items) {
    const Value* type = part.is_mapping() ? part.dict().find("type") : nullptr;
    const Value* text = part.is_mapping() ? part.dict().find("text") : nullptr;
    if (text == nullptr || !text->is_string() ||
        (type != nullptr && type->is_string() && type->bytes() != "text"))
      fail(place, "the chat template takes text alone", "parts of type \"text\"",
           type != nullptr && type->is_string() ? type->bytes() : std::string_view("another part"));
    joined.append(text->text());
  }
  return joined;
}

void set_content(Dict& message, MarkedText text) { message.set("content", Value::string(std::move(text))); }
void set_role(Dict& message, std::string_view role) { message.set("role", Value::string(std::string(role))); }

// The first text, an empty line, the second one; a text alone where the other is empty.
MarkedText with_empty_line(MarkedText first, const MarkedText& second) {
  if (!first.empty() && !second.empty()) first.append("\n\n", Origin::kTemplate);
  first.append(second);
  return first;
}

MarkedText described_tools(const Value& tools) {
  jinja::Meter meter{TemplateLimits{}};
  MarkedText text(
      "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
      "You are provided with function signatures within <tools></tools> XML tags:\n<tools>");
  for (const Value& tool : tools.list().items) {
    text.append("\n", Origin::kTemplate);
    text.append(jinja::write_json(tool, {}, meter));
  }
  text.append(
      "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
      "<tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": "
      "<args-json-object>}\n</tool_call>",
      Origin::kTemplate);
  return text;
}

// Calls and results as text, for templates that do not know them.
void describe_calls(Dict& message, std::size_t place) {
  jinja::Meter meter{TemplateLimits{}};
  MarkedText text = content_of(message, place);
  if (role_of(message) == "tool") {
    MarkedText result("<tool_response>\n");
    result.append(text);
    result.append("\n</tool_response>", Origin::kTemplate);
    set_role(message, "user");
    set_content(message, std::move(result));
    return;
  }
  const Value* calls = message.find("tool_calls");
  if (calls == nullptr || !calls->is_list()) return;
  const Value list = *calls;
  for (const Value& call : list.list().items) {
    const Value* function = call.is_mapping() ? call.dict().find("function") : nullptr;
    if (function == nullptr || !function->is_mapping())
      fail(place, "a call has no function", "an object with a member \"function\"", "another value");
    DictPtr shown = new_dict();
    for (const std::string_view key : {"name", "arguments"})
      if (const Value* value = function->dict().find(key)) shown->set(key, *value);
    if (!text.empty()) text.append("\n", Origin::kTemplate);
    text.append("<tool_call>\n", Origin::kTemplate);
    text.append(jinja::write_json(Value(std::move(shown)), {}, meter));
    text.append("\n</tool_call>", Origin::kTemplate);
  }
  message.remove(Value::string("tool_calls"));
  set_content(message, std::move(text));
}

void put_system_first(std::vector<DictPtr>& messages, MarkedText text) {
  if (messages.empty() || role_of(*messages[0]) != "system") {
    DictPtr system = new_dict();
    set_role(*system, "system");
    set_content(*system, std::move(text));
    messages.insert(messages.begin(), std::move(system));
    return;
  }
  set_content(*messages[0], with_empty_line(content_of(*messages[0], 0), text));
}

// System messages become the beginning of the first user message.
void move_system(std::vector<DictPtr>& messages) {
  MarkedText text;
  std::vector<DictPtr> others;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (role_of(*messages[i]) == "system") {
      text = with_empty_line(std::move(text), content_of(*messages[i], i));
    } else {
      others.push_back(messages[i]);
    }
  }
  messages = std::move(others);
  if (text.empty()) return;
  const auto user =
      std::ranges::find_if(messages, [](const DictPtr& one) { return role_of(*one) == "user"; });
  if (user != messages.end()) {
    const auto place = static_cast<std::size_t>(user - messages.begin());
    set_content(**user, with_empty_line(std::move(text), content_of(**user, place)));
    return;
  }
  DictPtr message = new_dict();
  set_role(*message, "user");
  set_content(*message, std::move(text));
  messages.insert(messages.begin(), std::move(message));
}

// Neighbours of one role become one message. Calls stay apart.
void merge_neighbours(std::vector<DictPtr>& messages) {
  std::vector<DictPtr> merged;
  const auto mergeable = [](const Dict& message) {
    const std::string_view role = role_of(message);
    return (role == "user" || role == "assistant" || role == "system") &&
           message.find("tool_calls") == nullptr;
  };
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const bool joins = !merged.empty() && role_of(*merged.back()) == role_of(*messages[i]) &&
                       mergeable(*merged.back()) && mergeable(*messages[i]);
    if (joins) {
      set_content(*merged.back(),
                  with_empty_line(content_of(*merged.back(), i), content_of(*messages[i], i)));
    } else {
      merged.push_back(messages[i]);
    }
  }
  messages = std::move(merged);
}

Value as_value(const std::vector<DictPtr>& messages) {
  std::vector<Value> items;
  for (const DictPtr& message : messages) items.emplace_back(message);
  return list_of(std::move(items));
}

}  // namespace

ChatMessages fitted_messages(const Value& given, const Value& tools, const ChatCaps& caps) {
  std::vector<DictPtr> messages = read_messages(given);
  const bool has_tools = tools.is_list() && !tools.list().items.empty();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!caps.developer && role_of(*messages[i]) == "developer") set_role(*messages[i], "system");
    if (!caps.parts && messages[i]->find("content") != nullptr && messages[i]->find("content")->is_list())
      set_content(*messages[i], content_of(*messages[i], i));
    if (caps.nine_letter_ids) {
      messages[i] = with_calls(*messages[i], with_short_id);
      shorten_id(*messages[i], "tool_call_id");
    }
    if (!caps.calls) describe_calls(*messages[i], i);
    if (caps.calls && !caps.argument_object) messages[i] = with_calls(*messages[i], with_argument_string);
  }
  const bool describe = has_tools && !caps.tools;
  if (describe) put_system_first(messages, described_tools(tools));
  if (!caps.system) move_system(messages);
  if (caps.alternates) merge_neighbours(messages);
  return {as_value(messages), has_tools && !describe ? tools : Value(jinja::None{})};
}

}  // namespace sluice::tokenizer
