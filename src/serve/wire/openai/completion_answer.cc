#include "serve/wire/openai/completion_answer.h"

#include <utility>
#include <variant>

namespace sluice::serve {

CompletionAnswer::CompletionAnswer(AnswerHead head, CompletionBody body, std::shared_ptr<const Served> served)
    : head_(std::move(head)), body_(std::move(body)), served_(std::move(served)) {
  for (std::size_t i = 0; i < body_.prompts.size() * body_.n; ++i)
    choices_.push_back({{}, CompletionLogprobs(*served_), {}, !body_.echo, {}, {}, {}});
}

JsonWriter CompletionAnswer::head_json() const {
  JsonWriter out;
  out.begin_object()
      .member("id", head_.id)
      .member("object", "text_completion")
      .member("created", head_.created);
  out.member("model", head_.model).member("system_fingerprint", served_->fingerprint);
  return out;
}

// The prompt goes in front of the answer, once its scores are there.
void CompletionAnswer::echo(std::size_t index) {
  Choice& choice = choices_.at(index);
  if (std::exchange(choice.echoed, true)) return;
  const CompletionPrompt& prompt = prompt_of(index);
  choice.text = prompt.text + choice.text;
  if (!body_.logprobs) return;
  for (std::size_t i = 0; i < prompt.ids.size(); ++i) {
    const bool shown = i >= prompt.unshown;
    if (i == 0 || i > choice.prompt_tokens.size()) {
      choice.logprobs.add_first(prompt.ids[i], shown);
    } else {
      choice.logprobs.add(choice.prompt_tokens[i - 1], shown);
    }
  }
  choice.prompt_tokens.clear();
}

void CompletionAnswer::write_choice(JsonWriter& out, std::size_t index, bool last) {
  Choice& choice = choices_[index];
  out.begin_object().member("index", index).member("text", std::exchange(choice.text, {})).key("logprobs");
  if (!body_.logprobs || (choice.logprobs.empty() && body_.stream)) {
    out.null();
  } else {
    out.raw(choice.logprobs.take());
  }
  out.key("finish_reason");
  if (last) {
    out.string(finish_name(choice.finish->reason));
  } else {
    out.null();
  }
  if (served_->tokenizer == nullptr) {
    out.key("token_ids").begin_array();
    for (const tokenizer::TokenId id : std::exchange(choice.ids, {})) out.integer(id);
    out.end_array();
  }
  out.end_object();
}

void CompletionAnswer::chunk(std::size_t index, const Finish* finish, std::string& out) {
  JsonWriter json = head_json();
  json.key("choices").begin_array();
  write_choice(json, index, finish != nullptr);
  json.end_array();
  if (body_.include_usage) json.null_member("usage");
  if (finish != nullptr)
    write_extras(json, finish->usage, finish->timings, *served_);
  else if (body_.timings_per_token)
    choices_[index].timings.write(json);
  out += "data: " + json.end_object().take() + "\n\n";
}

void CompletionAnswer::begin(const Waiting& waiting, std::string& out) { out += waiting_comment(waiting); }

void CompletionAnswer::give(const AnswerEvent& event, std::string& out) {
  Choice& choice = choices_.at(event.sequence);
  choice.timings.take(event);
  if (const auto* text = std::get_if<TextDelta>(&event.body)) {
    echo(event.sequence);
    choice.text += text->text;
    if (body_.logprobs)
      for (const ScoredToken& token : text->tokens) choice.logprobs.add(token);
    if (served_->tokenizer == nullptr)
      for (const ScoredToken& token : text->tokens) choice.ids.push_back(token.id);
    if (body_.stream && (!choice.text.empty() || !choice.ids.empty())) chunk(event.sequence, nullptr, out);
  } else if (const auto* scores = std::get_if<PromptScores>(&event.body)) {
    choice.prompt_tokens.insert(choice.prompt_tokens.end(), scores->tokens.begin(), scores->tokens.end());
  } else if (const auto* finish = std::get_if<Finish>(&event.body)) {
    echo(event.sequence);
    totals_.add(*finish, event.sequence % body_.n == 0);
    choice.finish = *finish;
    if (!body_.stream) return;
    if (!choice.text.empty() || !choice.logprobs.empty()) chunk(event.sequence, nullptr, out);
    chunk(event.sequence, finish, out);
  } else if (const auto* progress = std::get_if<PrefillProgress>(&event.body);
             progress && body_.stream && body_.return_progress) {
    JsonWriter json = head_json();
    json.key("choices").begin_array().end_array().key("prompt_progress").begin_object();
    json.member("total", progress->total)
        .member("cache", progress->cached)
        .member("processed", progress->done);
    json.member("time_ms", static_cast<std::int64_t>(progress->time_ms)).end_object();
    out += "data: " + json.end_object().take() + "\n\n";
  }
}

void CompletionAnswer::fail(const ApiError& error, std::string& out) {
  out += "data: " + error_json(error, ErrorStyle::kOpenAi, {}) + "\n\n";
}

void CompletionAnswer::end(std::string& out) {
  if (body_.include_usage) {
    JsonWriter json = head_json();
    json.key("choices").begin_array().end_array().key("usage");
    write_usage(json, totals_.usage());
    out += "data: " + json.end_object().take() + "\n\n";
  }
  out += "data: [DONE]\n\n";
}

std::string CompletionAnswer::whole() {
  JsonWriter out = head_json();
  out.key("choices").begin_array();
  for (std::size_t i = 0; i < choices_.size(); ++i) write_choice(out, i, true);
  out.end_array().key("usage");
  write_usage(out, totals_.usage());
  write_extras(out, totals_.usage(), totals_.timings(), *served_);
  return out.end_object().take();
}

}  // namespace sluice::serve
