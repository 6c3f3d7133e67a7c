#include "serve/wire/openai/chat_answer.h"

#include <utility>
#include <variant>

namespace sluice::serve {
namespace {

void put_event(std::string_view json, std::string& out) {
  out += "data: ";
  out += json;
  out += "\n\n";
}

std::string text_delta(std::string_view name, std::string_view text) {
  JsonWriter delta;
  delta.begin_object().member(name, text);
  if (name == "reasoning_content") delta.member("reasoning", text);
  return delta.end_object().take();
}

std::string begin_delta(const ToolBegin& call, bool functions) {
  JsonWriter delta;
  if (functions) {
    delta.begin_object().key("function_call").begin_object().member("name", call.name);
    return delta.member("arguments", "").end_object().end_object().take();
  }
  delta.begin_object().key("tool_calls").begin_array().begin_object();
  delta.member("index", call.index).member("id", call.id).member("type", "function");
  delta.key("function").begin_object().member("name", call.name).member("arguments", "").end_object();
  return delta.end_object().end_array().end_object().take();
}

std::string arguments_delta(const ToolArguments& arguments, bool functions) {
  JsonWriter delta;
  if (functions) {
    delta.begin_object().key("function_call").begin_object().member("arguments", arguments.fragment);
    return delta.end_object().end_object().take();
  }
  delta.begin_object().key("tool_calls").begin_array().begin_object().member("index", arguments.index);
  delta.key("function").begin_object().member("arguments", arguments.fragment).end_object();
  return delta.end_object().end_array().end_object().take();
}

}  // namespace

ChatAnswer::ChatAnswer(AnswerHead head, const ChatAnswerOptions& options,
                       std::shared_ptr<const Served> served)
    : head_(std::move(head)), options_(options), served_(std::move(served)), choices_(options.n) {}

JsonWriter ChatAnswer::head_json(std::string_view object) const {
  JsonWriter out;
  out.begin_object().member("id", head_.id).member("object", object).member("created", head_.created);
  out.member("model", head_.model).member("system_fingerprint", served_->fingerprint);
  return out;
}

std::string ChatAnswer::logprobs_json(const std::vector<ScoredToken>& tokens) const {
  if (!options_.logprobs) return "null";
  return "{\"content\":" + token_logprobs(tokens, *served_) + ",\"refusal\":null}";
}

void ChatAnswer::chunk(std::size_t index, std::string_view delta, std::string_view logprobs,
                       const Finish* finish, std::string& out) const {
  JsonWriter json = head_json("chat.completion.chunk");
  json.key("choices").begin_array().begin_object().member("index", index).raw_member("delta", delta);
  json.raw_member("logprobs", logprobs).key("finish_reason");
  if (finish == nullptr) {
    json.null();
  } else {
    json.string(ending(finish->reason));
  }
  json.end_object().end_array();
  if (options_.include_usage) json.null_member("usage");
  if (finish != nullptr)
    write_extras(json, finish->usage, finish->timings, *served_);
  else if (options_.timings && role_given_)
    choices_.at(index).timings.write(json);
  put_event(json.end_object().take(), out);
}

void ChatAnswer::begin(const Waiting&, std::string& out) {
  for (std::size_t i = 0; i < options_.n; ++i)
    chunk(i, R"({"role":"assistant","content":""})", "null", nullptr, out);
  role_given_ = true;
}

std::string_view ChatAnswer::ending(FinishReason reason) const {
  const bool call = options_.functions && reason == FinishReason::kToolCalls;
  return call ? "function_call" : finish_name(reason);
}

void ChatAnswer::give(const AnswerEvent& event, std::string& out) {
  if (const auto* finish = std::get_if<Finish>(&event.body)) totals_.add(*finish, event.sequence == 0);
  if (options_.stream) {
    choices_.at(event.sequence).timings.take(event);
    stream(event, out);
  } else {
    choices_.at(event.sequence).answer.take(event);
  }
}

void ChatAnswer::stream(const AnswerEvent& event, std::string& out) {
  const std::size_t index = event.sequence;
  if (const auto* text = std::get_if<TextDelta>(&event.body)) {
    give_text(index, *text, out);
  } else if (const auto* reasoning = std::get_if<ReasoningDelta>(&event.body)) {
    if (!reasoning->text.empty())
      chunk(index, text_delta("reasoning_content", reasoning->text), "null", nullptr, out);
  } else if (const auto* call = std::get_if<ToolBegin>(&event.body)) {
    chunk(index, begin_delta(*call, options_.functions), "null", nullptr, out);
  } else if (const auto* arguments = std::get_if<ToolArguments>(&event.body)) {
    if (!arguments->fragment.empty())
      chunk(index, arguments_delta(*arguments, options_.functions), "null", nullptr, out);
  } else if (const auto* finish = std::get_if<Finish>(&event.body)) {
    if (!choices_.at(index).waiting.empty())
      chunk(index, text_delta("content", ""), logprobs_json(choices_.at(index).waiting), nullptr, out);
    chunk(index, "{}", "null", finish, out);
  } else if (const auto* progress = std::get_if<PrefillProgress>(&event.body);
             progress && options_.progress) {
    JsonWriter json = head_json("chat.completion.chunk");
    json.key("choices").begin_array().end_array().key("prompt_progress").begin_object();
    json.member("total", progress->total)
        .member("cache", progress->cached)
        .member("processed", progress->done);
    json.member("time_ms", static_cast<std::int64_t>(progress->time_ms)).end_object();
    put_event(json.end_object().take(), out);
  }
}

// Log-probabilities of tokens whose text is held back go with the text.
void ChatAnswer::give_text(std::size_t index, const TextDelta& delta, std::string& out) {
  std::vector<ScoredToken>& waiting = choices_.at(index).waiting;
  waiting.insert(waiting.end(), delta.tokens.begin(), delta.tokens.end());
  if (delta.text.empty()) return;
  chunk(index, text_delta("content", delta.text), logprobs_json(waiting), nullptr, out);
  waiting.clear();
}

void ChatAnswer::fail(const ApiError& error, std::string& out) {
  put_event(error_json(error, ErrorStyle::kOpenAi, {}), out);
}

void ChatAnswer::end(std::string& out) {
  if (options_.include_usage) {
    JsonWriter json = head_json("chat.completion.chunk");
    json.key("choices").begin_array().end_array().key("usage");
    write_usage(json, totals_.usage());
    put_event(json.end_object().take(), out);
  }
  put_event("[DONE]", out);
}

void ChatAnswer::write_calls(JsonWriter& out, const WholeAnswer& answer) const {
  const auto write_function = [&](std::string_view key, const WholeAnswer::Call& call) {
    out.key(key).begin_object().member("name", call.name).member("arguments", call.arguments).end_object();
  };
  if (options_.functions) return write_function("function_call", answer.calls.front());
  out.key("tool_calls").begin_array();
  for (const WholeAnswer::Call& call : answer.calls) {
    out.begin_object().member("id", call.id).member("type", "function");
    write_function("function", call);
    out.end_object();
  }
  out.end_array();
}

void ChatAnswer::write_choice(JsonWriter& out, std::size_t index) const {
  const WholeAnswer& answer = choices_[index].answer;
  out.begin_object().member("index", index).key("message").begin_object().member("role", "assistant");
  out.key("content");
  if (answer.text.empty() && !answer.calls.empty()) {
    out.null();
  } else {
    out.string(answer.text);
  }
  out.null_member("refusal");
  if (!answer.reasoning.empty())
    out.member("reasoning_content", answer.reasoning).member("reasoning", answer.reasoning);
  if (!answer.calls.empty()) write_calls(out, answer);
  out.end_object().raw_member("logprobs", logprobs_json(answer.tokens));
  out.member("finish_reason", ending(answer.finish->reason)).end_object();
}

std::string ChatAnswer::whole() {
  JsonWriter out = head_json("chat.completion");
  out.key("choices").begin_array();
  for (std::size_t i = 0; i < choices_.size(); ++i) write_choice(out, i);
  out.end_array().key("usage");
  write_usage(out, totals_.usage());
  write_extras(out, totals_.usage(), totals_.timings(), *served_);
  return out.end_object().take();
}

}  // namespace sluice::serve
