#include "commands/chat/chat_request.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "base/unknown_name.h"
#include "tokenizer/template/value_json.h"
#include "tokenizer/text/utf8.h"

namespace sluice::app {
namespace {

using tokenizer::Origin;
using tokenizer::jinja::Dict;
using tokenizer::jinja::Value;

Value read_value(const std::string& json, const std::string& name) {
  try {
    return tokenizer::jinja::read_json(json, Origin::kRequest);
  } catch (const tokenizer::jinja::Fault& fault) {
    throw Error(ErrorKind::kInvalid, fault.message).in(name);
  }
}

[[noreturn]] void fail_member(const std::string& name, std::string_view member, std::string_view expected,
                              const Value& found) {
  throw Error(ErrorKind::kInvalid, "wrong type")
      .in(name + ": " + std::string(member))
      .expected(expected)
      .found(found.type_name());
}

}  // namespace

tokenizer::ChatRequest one_message(const std::string& text) {
  if (const auto at = tokenizer::find_invalid_utf8(text))
    throw Error(ErrorKind::kInvalid, "the text is not UTF-8").in(Setting::kPrompt, *at);
  auto message = std::make_shared<Dict>(nullptr, tokenizer::jinja::Frozen::kYes);
  message->set("role", Value::string("user"));
  message->set("content", Value::string(text, Origin::kRequest));
  tokenizer::ChatRequest request;
  request.messages = tokenizer::jinja::make_list(nullptr, {Value(std::move(message))});
  return request;
}

tokenizer::ChatRequest read_chat_request(const std::string& json, const std::string& name) {
  static const std::vector<std::string> kMembers = {"messages",
                                                    "tools",
                                                    "chat_template_kwargs",
                                                    "reasoning_effort",
                                                    "add_generation_prompt",
                                                    "continue_final_message"};
  tokenizer::ChatRequest request;
  const Value value = read_value(json, name);
  if (value.is_list()) {
    request.messages = value;
    return request;
  }
  if (!value.is_mapping())
    throw Error(ErrorKind::kInvalid, "no messages")
        .in(name)
        .expected("a list of messages, or an object with a member \"messages\"")
        .found(value.type_name());
  for (const auto& [key, member] : value.dict().members()) {
    const std::string_view what = key.bytes();
    if (std::find(kMembers.begin(), kMembers.end(), what) == kMembers.end())
      throw Error(ErrorKind::kInvalid, "unknown member \"" + std::string(what) + "\"")
          .in(name)
          .expected(listed(kMembers, "or"));
    if (what == "messages") request.messages = member;
    if (member.is_none()) continue;
    if (what == "tools") {
      if (!member.is_list()) fail_member(name, what, "a list", member);
      request.tools = member;
    } else if (what == "chat_template_kwargs") {
      if (!member.is_mapping()) fail_member(name, what, "an object", member);
      request.kwargs = member;
    } else if (what == "reasoning_effort") {
      if (!member.is_string()) fail_member(name, what, "a string", member);
      request.reasoning_effort = std::string(member.bytes());
    } else if (what != "messages") {
      if (!member.is_boolean()) fail_member(name, what, "true or false", member);
      (what == "add_generation_prompt" ? request.add_generation_prompt : request.continue_final_message) =
          member.boolean();
    }
  }
  return request;
}

void add_template_variables(const std::vector<std::string>& variables, tokenizer::ChatRequest& request) {
  if (variables.empty()) return;
  auto all = std::make_shared<Dict>(nullptr, tokenizer::jinja::Frozen::kYes);
  if (request.kwargs.is_mapping())
    for (const auto& [key, value] : request.kwargs.dict().members()) all->set(key, value);
  for (const std::string& variable : variables) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos || equals == 0 || tokenizer::find_invalid_utf8(variable))
      throw Error(ErrorKind::kUsage, "no variable")
          .in(Setting::kSet)
          .expected("NAME=JSON, such as enable_thinking=false")
          .found(variable);
    const std::string text = variable.substr(equals + 1);
    Value value;
    try {
      value = tokenizer::jinja::read_json(text, Origin::kRequest);
    } catch (const tokenizer::jinja::Fault&) {  // a word needs no quotes of its own
      value = Value::string(text, Origin::kRequest);
    }
    all->set(std::string_view(variable).substr(0, equals), std::move(value));
  }
  request.kwargs = Value(std::move(all));
}

}  // namespace sluice::app
