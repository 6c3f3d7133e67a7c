#include "serve/wire/openai/chat_body.h"

#include "serve/wire/openai/chat_messages_body.h"
#include "serve/wire/sampling_fields.h"
#include "serve/wire/schema_of_body.h"

namespace sluice::serve {
namespace {

constexpr std::size_t kMostKwargs = 64;
constexpr std::int64_t kMostChoices = 8, kMostTop = 20;

void read_format(const Fields& body, ChatPrompt& chat) {
  const std::optional<Fields> format = body.object("response_format");
  if (!format) return;
  format->need("type");
  const std::string type = *format->word("type", {"text", "json_object", "json_schema"});
  if (type == "text") return;
  if (type == "json_object") {
    engine::SchemaValue object = engine::SchemaValue::object();
    object.set("type", engine::SchemaValue::of_text("object"));
    chat.binding.form = {std::move(object), "response_format", false};
    return;
  }
  format->need("json_schema");
  const Fields named = *format->object("json_schema");
  named.string("name");
  const std::string path = named.path("schema");
  const BodyValue& schema = named.need("schema");
  chat.binding.form = {schema_of_body(schema, path), path, named.boolean("strict").value_or(false)};
}

void refuse_fields(const Fields& body) {
  if (const BodyValue* modalities = body.array("modalities", kMostTop))
    for (const BodyValue& modality : modalities->array())
      if (!modality.is_string() || modality.string() != "text")
        throw unsupported_value("modalities", "must be [\"text\"]");
  for (const char* name : {"audio", "chat_template"})
    if (body.has(name)) throw unsupported_value(name, "is not accepted in a request");
}

void read_limits(const Fields& body, ChatBody& chat) {
  const auto newer = body.integer("max_completion_tokens", 1, INT64_MAX);
  const auto older = body.integer("max_tokens", 1, INT64_MAX);
  if (newer || older) chat.max_tokens = static_cast<std::size_t>(newer ? *newer : *older);
  chat.n = static_cast<std::size_t>(body.integer("n", 1, kMostChoices).value_or(1));
  const bool logprobs = body.boolean("logprobs").value_or(false);
  const auto top = body.integer("top_logprobs", 0, kMostTop);
  if (top && *top > 0 && !logprobs) body.wrong_value("top_logprobs", "absent unless logprobs is true");
  if (logprobs) chat.logprobs = static_cast<std::size_t>(top.value_or(0));
}

void read_template_fields(const Fields& body, ChatPrompt& chat) {
  if (const std::optional<Fields> kwargs = body.object("chat_template_kwargs")) {
    if (kwargs->value().object().size() > kMostKwargs)
      body.wrong_value("chat_template_kwargs",
                       "an object of at most " + std::to_string(kMostKwargs) + " keys");
    chat.kwargs = kwargs->value();
  }
  chat.reasoning_effort = body.string("reasoning_effort");
  chat.add_generation_prompt = body.boolean("add_generation_prompt").value_or(true);
  chat.continue_final_message = body.boolean("continue_final_message").value_or(false);
  chat.parse_reasoning = body.word("reasoning_format", {"auto", "none"}).value_or("auto") == "auto";
  chat.one_call = !body.boolean("parallel_tool_calls").value_or(true);
}

}  // namespace

ChatBody read_chat(const Fields& body) {
  ChatBody chat;
  chat.model = body.string("model").value_or("");
  refuse_fields(body);
  read_format(body, chat.chat);
  read_tools(body, chat.chat);
  chat.chat.messages = read_messages(body);
  read_template_fields(body, chat.chat);
  chat.functions = body.has("functions") && !body.has("tools");
  chat.chat.one_call |= chat.functions;  // an answer has room for one `function_call`
  read_limits(body, chat);
  chat.stops = read_stops(body, "stop");
  chat.stream = body.boolean("stream").value_or(false);
  if (const std::optional<Fields> options = body.object("stream_options"))
    chat.include_usage = options->boolean("include_usage").value_or(false);
  chat.cache_prompt = body.boolean("cache_prompt").value_or(true);
  chat.return_progress = body.boolean("return_progress").value_or(false);
  chat.timings_per_token = body.boolean("timings_per_token").value_or(false);
  return chat;
}

}  // namespace sluice::serve
