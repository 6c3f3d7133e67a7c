#include "serve/wire/anthropic/messages_body.h"

#include <utility>
#include <vector>

#include "serve/wire/anthropic/messages_blocks.h"
#include "serve/wire/openai/chat_messages_body.h"
#include "serve/wire/sampling_fields.h"
#include "serve/wire/schema_of_body.h"
#include "serve/wire/tool_name.h"

namespace sluice::serve {
namespace {

constexpr std::size_t kMostTools = 256;

BodyValue read_anthropic_tools(const Fields& body, std::vector<NamedTool>& named) {
  const BodyValue* tools = body.array("tools", kMostTools);
  if (tools == nullptr) return {};
  BodyValue::Array result;
  for (std::size_t i = 0; i < tools->array().size(); ++i) {
    const Fields tool(tools->array()[i], element_path("tools", i));
    if (tool.string("type").value_or("custom") != "custom") continue;  // tools of another server
    tool.need("name");
    const std::string name = *tool.string("name");
    if (!is_tool_name(name)) tool.wrong_value("name", "1 to 64 of [A-Za-z0-9_.-]");
    BodyValue::Object function{{"name", BodyValue(name)}};
    if (const auto description = tool.string("description"))
      function.emplace_back("description", BodyValue(*description));
    if (const auto schema = tool.object("input_schema")) function.emplace_back("parameters", schema->value());
    named.push_back(
        {name, tool.find("input_schema"), tool.path("input_schema"), tool.boolean("strict").value_or(false)});
    result.emplace_back(BodyValue::Object{{"type", BodyValue(std::string("function"))},
                                          {"function", BodyValue(std::move(function))}});
  }
  return result.empty() ? BodyValue() : BodyValue(std::move(result));
}

void read_tool_choice(const Fields& body, const std::vector<NamedTool>& tools, ChatPrompt& chat) {
  ToolChoice read;
  if (const std::optional<Fields> choice = body.object("tool_choice")) {
    choice->need("type");
    const std::string type = *choice->word("type", {"auto", "any", "tool", "none"});
    chat.one_call = choice->boolean("disable_parallel_tool_use").value_or(false);
    if (type == "none") {
      chat.tools = {};
      return;
    }
    if (type == "any" || type == "tool") read.calls = engine::Calls::kMust;
    if (type == "tool") {
      choice->need("name");
      read.names.push_back(*choice->string("name"));
    }
  }
  bind_calls(tools, read, chat);
}

void read_config_format(const Fields& config, ChatPrompt& chat) {
  const std::optional<Fields> format = config.object("format");
  if (!format) return;
  format->need("type");
  format->word("type", {"json_schema"});
  const std::string path = format->path("schema");
  chat.binding.form = {schema_of_body(format->need("schema"), path), path, false};
}

void read_thinking(const Fields& body, ChatPrompt& chat) {
  if (const std::optional<Fields> thinking = body.object("thinking")) {
    thinking->need("type");
    const std::string type = *thinking->word("type", {"enabled", "adaptive", "disabled"});
    chat.kwargs = BodyValue(BodyValue::Object{{"enable_thinking", BodyValue(type != "disabled")}});
  }
  if (const std::optional<Fields> config = body.object("output_config")) {
    chat.reasoning_effort = config->string("effort");
    read_config_format(*config, chat);
  }
}

void read_sampling_fields(const Fields& body, const Served& served, MessagesBody& messages) {
  const BodyValue none{BodyValue::Object{}};
  messages.sampling = read_sampling(Fields(none, {}), served);
  Sampling& sampling = messages.sampling;
  sampling.temperature = body.number("temperature", 0, 1).value_or(sampling.temperature);
  sampling.top_p = body.number_above("top_p", 0, 1).value_or(sampling.top_p);
  sampling.top_k = body.integer("top_k", 0, std::int64_t{1} << 31).value_or(sampling.top_k);
  if (sampling.temperature == 0 && !served.defaults.penalties_by_user) sampling.repetition_penalty = 1;
  if (const BodyValue* stops = body.find("stop_sequences"); stops != nullptr && stops->is_string())
    body.wrong_type("stop_sequences", "an array of strings");
  messages.stops = read_stops(body, "stop_sequences");
}

}  // namespace

MessagesBody read_anthropic(const Fields& body, const Served& served, const MessagesRules& rules) {
  MessagesBody messages;
  messages.model = body.string("model").value_or("");
  if (rules.needs_max_tokens) body.need("max_tokens");
  messages.max_tokens = static_cast<std::size_t>(body.integer("max_tokens", 1, INT64_MAX).value_or(1));
  messages.chat.messages = conversation_of_blocks(body, rules.keep_billing_header);
  std::vector<NamedTool> tools;
  messages.chat.tools = read_anthropic_tools(body, tools);
  read_thinking(body, messages.chat);
  read_tool_choice(body, tools, messages.chat);
  read_sampling_fields(body, served, messages);
  messages.stream = body.boolean("stream").value_or(false);
  return messages;
}

}  // namespace sluice::serve
