#include "commands/chat/dialogue.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/shown_text.h"

namespace sluice::app {
namespace {

[[noreturn]] void wrong(const std::string& file, std::size_t index, std::string_view expected,
                        const std::string& found) {
  throw Error(ErrorKind::kInvalid, "a message cannot be taken")
      .in(fmt::format("{}: [{}]", file, index))
      .expected(expected)
      .found(found)
      .fix("load what /save has written, or messages like it");
}

// The tool_calls of a message, where it has some.
std::vector<ChatCall> calls_of(const Json& message, const std::string& file, std::size_t index) {
  std::vector<ChatCall> calls;
  if (!message.contains("tool_calls")) return calls;
  const Json& all = message["tool_calls"];
  const auto text = [&](const Json& object, const char* name) {
    if (!object.contains(name) || !object[name].is_string())
      wrong(file, index, "calls as /save writes them", shown_text(all.dump()));
    return object[name].get<std::string>();
  };
  if (!all.is_array()) wrong(file, index, "a list of calls", std::string(all.type_name()));
  for (const Json& call : all) {
    if (!call.contains("function")) wrong(file, index, "calls with a function", shown_text(call.dump()));
    const Json& function = call["function"];
    calls.push_back({text(call, "id"), text(function, "name"), text(function, "arguments")});
  }
  return calls;
}

}  // namespace

void Dialogue::ask(const std::string& text) { messages_.push_back({text, {}, {}}); }

void Dialogue::answer(const std::string& text, const std::string& reasoning, std::vector<ChatCall> calls) {
  messages_.push_back({text, reasoning, std::move(calls)});
}

bool Dialogue::take_back_answer() {
  if (messages_.empty()) return false;
  if (answered()) messages_.pop_back();
  return true;
}

bool Dialogue::take_back(std::string* question) {
  if (!take_back_answer()) return false;
  if (question != nullptr) *question = messages_.back().content;
  messages_.pop_back();
  return true;
}

Json Dialogue::messages() const {
  Json all = Json::array();
  if (!system_.empty()) all.push_back({{"role", "system"}, {"content", system_}});
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    Json message = {{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", messages_[i].content}};
    if (!messages_[i].reasoning.empty()) message["reasoning_content"] = messages_[i].reasoning;
    if (!messages_[i].calls.empty()) message["tool_calls"] = calls_json(messages_[i].calls);
    all.push_back(std::move(message));
  }
  return all;
}

void Dialogue::load(const Json& messages, const std::string& file) {
  if (!messages.is_array()) wrong(file, 0, "a list of messages", std::string(messages.type_name()));
  Dialogue loaded;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i];
    const auto text = [&](const char* name) {
      if (!message.is_object() || !message.contains(name) || !message[name].is_string())
        wrong(file, i, fmt::format("an object with \"{}\", a text", name), shown_text(message.dump()));
      return message[name].get<std::string>();
    };
    const std::string role = text("role"), content = text("content");
    if (role == "system" && i == 0)
      loaded.system_ = content;
    else if (role == "user" && loaded.answered())
      loaded.ask(content);
    else if (role == "assistant" && !loaded.answered())
      loaded.answer(content, message.contains("reasoning_content") ? text("reasoning_content") : "",
                    calls_of(message, file, i));
    else
      wrong(file, i, loaded.answered() ? "the role user" : "the role assistant", shown_text(role));
  }
  if (!loaded.answered()) wrong(file, messages.size(), "the answer to the last question", "no message");
  *this = std::move(loaded);
}

Json calls_json(const std::vector<ChatCall>& calls) {
  Json all = Json::array();
  for (const ChatCall& call : calls)
    all.push_back({{"id", call.id},
                   {"type", "function"},
                   {"function", Json({{"name", call.name}, {"arguments", call.arguments}})}});
  return all;
}

}  // namespace sluice::app
