#include "serve/wire/openai/chat_messages_body.h"

#include <algorithm>
#include <utility>

#include "serve/wire/tool_name.h"

namespace sluice::serve {
namespace {

constexpr std::size_t kMostMessages = 4096, kMostTools = 256;

BodyValue text_part(std::string text) {
  return BodyValue(
      BodyValue::Object{{"type", BodyValue(std::string("text"))}, {"text", BodyValue(std::move(text))}});
}

BodyValue read_part(const BodyValue& part, const std::string& path) {
  const Fields fields(part, path);
  fields.need("type");
  const std::string type = *fields.string("type");
  if (type != "text" && type != "refusal")
    throw unsupported_value(fields.path("type"), "must be \"text\": this model reads text alone, found " +
                                                     shown(part.find("type") ? *part.find("type") : part));
  fields.need(type);
  return text_part(*fields.string(type));
}

void check_content(const Fields& message, bool may_be_absent) {
  const BodyValue* content = message.find("content");
  if (content == nullptr) {
    if (!may_be_absent) throw missing_field(message.path("content"));
    return;
  }
  if (!content->is_string() && !content->is_array())
    message.wrong_type("content", "a string or an array of parts");
}

void check_calls(const Fields& message) {
  const BodyValue* calls = message.array("tool_calls", kMostMessages);
  if (calls == nullptr) return;
  for (std::size_t i = 0; i < calls->array().size(); ++i) {
    const Fields call(calls->array()[i], element_path(message.path("tool_calls"), i));
    call.need("function");
    const Fields function = *call.object("function");
    function.need("name");
    function.string("name");
    function.need("arguments");
    function.string("arguments");
  }
}

// A call of the time before tools.
BodyValue call_of_function(const Fields& message) {
  const Fields function = *message.object("function_call");
  function.need("name");
  function.string("name");
  function.string("arguments");
  BodyValue::Object call{{"type", BodyValue(std::string("function"))}, {"function", function.value()}};
  return BodyValue(BodyValue::Array{BodyValue(std::move(call))});
}

BodyValue read_message(const BodyValue& value, const std::string& path) {
  const Fields message(value, path);
  message.need("role");
  const std::string role =
      *message.word("role", {"system", "developer", "user", "assistant", "tool", "function"});
  const bool calls = message.has("tool_calls") || message.has("function_call");
  const bool reasons =
      message.has("reasoning_content") || message.has("reasoning") || message.has("thinking");
  check_content(message, role == "assistant" && (calls || reasons));
  for (const char* name : {"reasoning_content", "reasoning", "thinking"}) message.string(name);
  if (role == "tool") {
    message.need("tool_call_id");
    message.string("tool_call_id");
  }
  check_calls(message);
  BodyValue result = value;
  if (const BodyValue* content = message.find("content"); content != nullptr && content->is_array()) {
    BodyValue::Array parts;
    for (std::size_t i = 0; i < content->array().size(); ++i)
      parts.push_back(read_part(content->array()[i], element_path(message.path("content"), i)));
    set_member(result, "content", BodyValue(std::move(parts)));
  }
  if (role == "function") set_member(result, "role", BodyValue(std::string("tool")));
  if (message.has("function_call")) {
    set_member(result, "tool_calls", call_of_function(message));
    set_member(result, "function_call", {});
  }
  return result;
}

void check_function(const Fields& function) {
  function.need("name");
  const std::string name = *function.string("name");
  if (!is_tool_name(name)) function.wrong_value("name", "1 to 64 of [A-Za-z0-9_.-]");
  function.string("description");
  function.object("parameters");
  function.boolean("strict");
}

BodyValue tools_of_functions(const Fields& body) {
  const BodyValue* functions = body.array("functions", kMostTools);
  BodyValue::Array tools;
  if (functions == nullptr) return {};
  for (std::size_t i = 0; i < functions->array().size(); ++i) {
    check_function(Fields(functions->array()[i], element_path("functions", i)));
    tools.emplace_back(
        BodyValue::Object{{"type", BodyValue(std::string("function"))}, {"function", functions->array()[i]}});
  }
  return tools.empty() ? BodyValue() : BodyValue(std::move(tools));
}

std::string name_of_function(const Fields& choice) {
  choice.need("name");
  return *choice.string("name");
}

// {"type": "allowed_tools", "allowed_tools": {"mode": …, "tools": […]}}, or the members of the inner one.
ToolChoice read_allowed(const Fields& choice) {
  const std::optional<Fields> inner = choice.object("allowed_tools");
  const Fields& allowed = inner ? *inner : choice;
  ToolChoice read;
  allowed.need("tools");
  const BodyValue& tools = *allowed.array("tools", kMostTools);
  if (tools.array().empty()) allowed.wrong_value("tools", "an array of at least one tool");
  if (allowed.word("mode", {"auto", "required"}).value_or("auto") == "required")
    read.calls = engine::Calls::kMust;
  for (std::size_t i = 0; i < tools.array().size(); ++i) {
    const Fields tool(tools.array()[i], element_path(allowed.path("tools"), i));
    const std::optional<Fields> function = tool.object("function");
    read.names.push_back(name_of_function(function ? *function : tool));
  }
  return read;
}

// Empty: nothing is called.
std::optional<ToolChoice> read_choice(const Fields& body) {
  for (const char* name : {"tool_choice", "function_call"}) {
    const BodyValue* choice = body.find(name);
    if (choice == nullptr) continue;
    if (choice->is_string()) {
      const std::string word = *body.word(name, {"none", "auto", "required"});
      if (word == "none") return std::nullopt;
      return ToolChoice{word == "required" ? engine::Calls::kMust : engine::Calls::kMay, {}, name};
    }
    if (!choice->is_object()) body.wrong_type(name, "a string or an object");
    const Fields fields = *body.object(name);
    if (fields.string("type").value_or("function") == "allowed_tools") return read_allowed(fields);
    const std::optional<Fields> function = fields.object("function");
    return ToolChoice{engine::Calls::kMust, {name_of_function(function ? *function : fields)}, name};
  }
  return ToolChoice{};
}

NamedTool named_tool(const Fields& function) {
  return {*function.string("name"), function.find("parameters"), function.path("parameters"),
          function.boolean("strict").value_or(false)};
}

std::vector<NamedTool> named_tools(const Fields& body) {
  std::vector<NamedTool> named;
  if (const BodyValue* tools = body.array("tools", kMostTools)) {
    for (std::size_t i = 0; i < tools->array().size(); ++i)
      named.push_back(named_tool(*Fields(tools->array()[i], element_path("tools", i)).object("function")));
  } else if (const BodyValue* functions = body.array("functions", kMostTools)) {
    for (std::size_t i = 0; i < functions->array().size(); ++i)
      named.push_back(named_tool(Fields(functions->array()[i], element_path("functions", i))));
  }
  return named;
}

// The tools of the request, checked, in the form that templates know.
BodyValue checked_tools(const Fields& body) {
  const BodyValue* tools = body.array("tools", kMostTools);
  if (tools == nullptr) return tools_of_functions(body);
  for (std::size_t i = 0; i < tools->array().size(); ++i) {
    const Fields tool(tools->array()[i], element_path("tools", i));
    tool.need("type");
    if (*tool.string("type") != "function")
      throw unsupported_value(tool.path("type"), "must be \"function\", found " + shown(*tool.find("type")));
    tool.need("function");
    check_function(*tool.object("function"));
  }
  return tools->array().empty() ? BodyValue() : *tools;
}

}  // namespace

void set_member(BodyValue& object, std::string_view name, BodyValue value) {
  for (auto& [key, member] : object.object()) {
    if (key != name) continue;
    member = std::move(value);
    return;
  }
  object.object().emplace_back(std::string(name), std::move(value));
}

BodyValue read_messages(const Fields& body) {
  body.need("messages");
  const BodyValue* messages = body.array("messages", kMostMessages);
  if (messages->array().empty()) body.wrong_value("messages", "an array of at least one message");
  BodyValue::Array result;
  for (std::size_t i = 0; i < messages->array().size(); ++i)
    result.push_back(read_message(messages->array()[i], element_path("messages", i)));
  return BodyValue(std::move(result));
}

void read_tools(const Fields& body, ChatPrompt& chat) {
  const std::optional<ToolChoice> choice = read_choice(body);
  BodyValue tools = checked_tools(body);
  if (!choice) return;
  bind_calls(named_tools(body), *choice, chat);
  chat.tools = std::move(tools);
}

}  // namespace sluice::serve
