#include "serve/wire/chat_prompt.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/error.h"
#include "serve/wire/refusal_error.h"
#include "serve/wire/template_value.h"
#include "tokenizer/template/fault.h"

namespace sluice::serve {
namespace {

constexpr std::size_t kMostBytesOfToken = 32;  // longer prompts are refused before they are tokenized
constexpr std::size_t kTailBytes = 4096;

void check_bytes(std::size_t bytes, const Served& served, const std::string& field) {
  if (bytes > kMostBytesOfToken * served.context)
    throw too_long_error(bytes / kMostBytesOfToken + 1, 0, served.context, field, true);
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

tokenizer::MarkedText render(const ChatPrompt& chat, const Served& served, Service& service) {
  if (served.chat == nullptr)
    throw ApiError(400, "chat_template_missing",
                   served.chat_failure.empty()
                       ? "this model has no chat template; /v1/completions works without one"
                       : "the model's chat template cannot be used: " + without_paths(served.chat_failure));
  const auto begin = std::chrono::steady_clock::now();
  try {
    tokenizer::ChatRequest request;
    request.messages = template_value(chat.messages);
    if (!chat.tools.is_null()) request.tools = template_value(chat.tools);
    if (!chat.kwargs.is_null()) request.kwargs = template_value(chat.kwargs);
    request.reasoning_effort = chat.reasoning_effort;
    request.add_generation_prompt = chat.add_generation_prompt;
    request.continue_final_message = chat.continue_final_message;
    tokenizer::MarkedText text = served.chat->render(request);
    service.metrics.templates.add(seconds_since(begin));
    return text;
  } catch (const Error& error) {
    throw ApiError(400, "chat_template_error", without_paths(error.what())).about("messages");
  } catch (const tokenizer::jinja::Fault& fault) {
    throw ApiError(400, "chat_template_error", fault.message).about("messages");
  }
}

std::size_t calls_in(const BodyValue& messages) {
  std::size_t calls = 0;
  for (const BodyValue& message : messages.array())
    if (const BodyValue* list = message.find("tool_calls"); list != nullptr && list->is_array())
      calls += list->array().size();
  return calls;
}

std::vector<ToolSpec> specs_of(const BodyValue& tools) {
  std::vector<ToolSpec> specs;
  if (!tools.is_array()) return specs;
  for (const BodyValue& tool : tools.array()) {
    const BodyValue* function = tool.find("function");
    const BodyValue* name = function == nullptr ? nullptr : function->find("name");
    if (name == nullptr || !name->is_string()) continue;
    const BodyValue* parameters = function->find("parameters");
    specs.push_back({name->string(), parameters == nullptr ? std::string() : body_text(*parameters)});
  }
  return specs;
}

}  // namespace

const tokenizer::Tokenizer& need_tokenizer(const Served& served) {
  if (served.tokenizer == nullptr)
    throw ApiError(400, "unsupported_value",
                   "this model has no tokenizer: prompts must be arrays of token ids");
  return *served.tokenizer;
}

PreparedPrompt prepare_prompt(const ChatPrompt& chat, const Served& served, Service& service) {
  const tokenizer::Tokenizer& tokenizer = need_tokenizer(served);
  const tokenizer::MarkedText text = render(chat, served, service);
  check_bytes(text.size(), served, "messages");
  const auto begin = std::chrono::steady_clock::now();
  PreparedPrompt prompt;
  prompt.ids = served.trust_special ? tokenizer.encode(text.bytes(), tokenizer::AddSpecial::kNo)
                                    : tokenizer.encode(text);
  service.metrics.tokenize.add(seconds_since(begin));
  if (prompt.ids.empty())
    throw ApiError(400, "chat_template_error", "the chat template makes an empty prompt of the messages")
        .about("messages");
  prompt.text = text.bytes();
  AnswerParsing& parsing = prompt.parsing;
  parsing.reasoning = chat.parse_reasoning;
  parsing.tools = specs_of(chat.tools);
  parsing.calls = !parsing.tools.empty();
  parsing.one_call = chat.one_call;
  parsing.past_calls = calls_in(chat.messages);
  parsing.prompt_tail = prompt.text.substr(prompt.text.size() - std::min(prompt.text.size(), kTailBytes));
  return prompt;
}

std::vector<tokenizer::TokenId> encode_raw(const std::string& text, tokenizer::AddSpecial add,
                                           const Served& served, Service& service, const std::string& field) {
  check_bytes(text.size(), served, field);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<tokenizer::TokenId> ids = need_tokenizer(served).encode(text, add);
  service.metrics.tokenize.add(seconds_since(begin));
  return ids;
}

void check_length(std::size_t prompt, std::optional<std::size_t> asked, const Served& served,
                  const std::string& field) {
  const std::size_t least = asked.value_or(1);
  if (prompt > served.context || least > served.context - prompt)
    throw too_long_error(prompt, least, served.context, field);
}

}  // namespace sluice::serve
