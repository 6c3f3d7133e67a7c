#include "serve/wire/anthropic/messages_answer.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "serve/json/body_value.h"

namespace sluice::serve {
namespace {

constexpr std::string_view kSignature = "c2x1aWNl";  // thoughts are not signed; clients want a text here

void put_typed(std::string_view type, std::string_view json, std::string& out) {
  out += "event: ";
  out += type;
  out += "\ndata: ";
  out += json;
  out += "\n\n";
}

std::string text_block(std::string_view name, std::string_view text) {
  JsonWriter json;
  json.begin_object().member("type", name).member(name, text);
  if (name == "thinking") json.member("signature", text.empty() ? std::string_view() : kSignature);
  return json.end_object().take();
}

std::string delta_json(std::string_view type, std::string_view name, std::string_view text) {
  JsonWriter json;
  return json.begin_object().member("type", type).member(name, text).end_object().take();
}

std::string tool_block(std::string_view id, std::string_view name, std::string_view input) {
  JsonWriter json;
  json.begin_object().member("type", "tool_use").member("id", id).member("name", name);
  return json.raw_member("input", input).end_object().take();
}

// Arguments that are no JSON object, since the answer was cut, stand in one as text.
std::string object_text(const std::string& arguments) {
  try {
    const BodyValue value = parse_body(arguments.empty() ? "{}" : arguments);
    if (value.is_object()) return body_text(value);
  } catch (const BodyFault&) {
  }
  JsonWriter json;
  return json.begin_object().member("unfinished", arguments).end_object().take();
}

void write_stop(JsonWriter& out, const Finish& finish) {
  std::string_view reason = "end_turn";
  if (finish.reason == FinishReason::kLength) reason = "max_tokens";
  if (finish.reason == FinishReason::kStopString) reason = "stop_sequence";
  if (finish.reason == FinishReason::kToolCalls) reason = "tool_use";
  out.member("stop_reason", reason).key("stop_sequence");
  if (finish.reason == FinishReason::kStopString) {
    out.string(finish.stop);
  } else {
    out.null();
  }
}

void write_messages_usage(JsonWriter& out, std::size_t prompt, std::size_t cached, std::size_t generated) {
  out.key("usage").begin_object().member("input_tokens", prompt - std::min(prompt, cached));
  out.member("cache_creation_input_tokens", 0).member("cache_read_input_tokens", cached);
  out.member("output_tokens", generated).end_object();
}

}  // namespace

MessagesAnswer::MessagesAnswer(AnswerHead head, bool stream, std::string request_id, std::size_t prompt)
    : head_(std::move(head)), stream_(stream), request_id_(std::move(request_id)), prompt_(prompt) {}

// The first event tells what was found of the prompt, so it waits for that; until then a ping says that the
// request is taken.
void MessagesAnswer::begin(const Waiting& waiting, std::string& out) {
  if (waiting.place) ping(waiting, out);
}

void MessagesAnswer::start_message(std::size_t cached, std::string& out) {
  if (std::exchange(started_, true)) return;
  JsonWriter json;
  json.begin_object().member("type", "message_start").key("message").begin_object().member("id", head_.id);
  json.member("type", "message").member("role", "assistant").member("model", head_.model);
  json.key("content").begin_array().end_array().null_member("stop_reason").null_member("stop_sequence");
  write_messages_usage(json, prompt_, cached, 0);
  put_typed("message_start", json.end_object().end_object().take(), out);
  put_typed("ping", R"({"type":"ping"})", out);
}

void MessagesAnswer::open(Block block, std::string_view content_block, std::string& out) {
  if (block_ == block && block != Block::kTool) return;
  close(out);
  block_ = block;
  JsonWriter json;
  json.begin_object().member("type", "content_block_start").member("index", index_);
  put_typed("content_block_start", json.raw_member("content_block", content_block).end_object().take(), out);
}

void MessagesAnswer::delta(std::string_view text, std::string& out) {
  JsonWriter json;
  json.begin_object().member("type", "content_block_delta").member("index", index_);
  put_typed("content_block_delta", json.raw_member("delta", text).end_object().take(), out);
}

void MessagesAnswer::close(std::string& out) {
  if (block_ == Block::kNone) return;
  if (block_ == Block::kThinking) delta(delta_json("signature_delta", "signature", kSignature), out);
  JsonWriter json;
  json.begin_object().member("type", "content_block_stop").member("index", index_).end_object();
  put_typed("content_block_stop", json.take(), out);
  block_ = Block::kNone;
  ++index_;
}

void MessagesAnswer::give(const AnswerEvent& event, std::string& out) {
  if (stream_) {
    stream(event, out);
    if (const auto* finish = std::get_if<Finish>(&event.body)) answer_.finish = *finish;
  } else {
    answer_.take(event);
  }
}

void MessagesAnswer::stream(const AnswerEvent& event, std::string& out) {
  if (const auto* admitted = std::get_if<Admitted>(&event.body)) return start_message(admitted->cached, out);
  if (const auto* reasoning = std::get_if<ReasoningDelta>(&event.body)) {
    start_message(0, out);
    open(Block::kThinking, text_block("thinking", ""), out);
    delta(delta_json("thinking_delta", "thinking", reasoning->text), out);
  } else if (const auto* text = std::get_if<TextDelta>(&event.body)) {
    if (text->text.empty()) return;
    start_message(0, out);
    open(Block::kText, text_block("text", ""), out);
    delta(delta_json("text_delta", "text", text->text), out);
  } else if (const auto* call = std::get_if<ToolBegin>(&event.body)) {
    start_message(0, out);
    open(Block::kTool, tool_block(call->id, call->name, "{}"), out);
  } else if (const auto* arguments = std::get_if<ToolArguments>(&event.body)) {
    delta(delta_json("input_json_delta", "partial_json", arguments->fragment), out);
  } else if (std::get_if<Finish>(&event.body) != nullptr) {
    start_message(0, out);
    close(out);
  }
}

void MessagesAnswer::ping(const Waiting&, std::string& out) { put_typed("ping", R"({"type":"ping"})", out); }

void MessagesAnswer::fail(const ApiError& error, std::string& out) {
  put_typed("error", error_json(error, ErrorStyle::kAnthropic, request_id_), out);
}

void MessagesAnswer::end(std::string& out) {
  JsonWriter json;
  json.begin_object().member("type", "message_delta").key("delta").begin_object();
  write_stop(json, *answer_.finish);
  json.end_object().key("usage").begin_object().member("output_tokens", answer_.finish->usage.generated);
  put_typed("message_delta", json.end_object().end_object().take(), out);
  put_typed("message_stop", R"({"type":"message_stop"})", out);
}

std::string MessagesAnswer::whole() {
  JsonWriter out;
  out.begin_object().member("id", head_.id).member("type", "message").member("role", "assistant");
  out.member("model", head_.model).key("content").begin_array();
  if (!answer_.reasoning.empty()) out.raw(text_block("thinking", answer_.reasoning));
  if (!answer_.text.empty()) out.raw(text_block("text", answer_.text));
  for (const WholeAnswer::Call& call : answer_.calls)
    out.raw(tool_block(call.id, call.name, object_text(call.arguments)));
  out.end_array();
  const Finish& finish = *answer_.finish;
  write_stop(out, finish);
  write_messages_usage(out, prompt_, finish.usage.cached, finish.usage.generated);
  return out.end_object().take();
}

}  // namespace sluice::serve
