#include <utility>

#include "serve/http/request_id.h"
#include "serve/json/json_writer.h"
#include "serve/wire/answering.h"
#include "serve/wire/anthropic/messages_answer.h"
#include "serve/wire/anthropic/messages_body.h"
#include "serve/wire/endpoints.h"
#include "serve/wire/request_model.h"

namespace sluice::serve {

void answer_messages(const Call& call) {
  const std::shared_ptr<const Served> served = need_served(call.service);
  const BodyValue body = read_body(call);
  MessagesBody messages =
      read_anthropic(Fields(body, {}), *served, {true, call.service.options.keep_billing_header});
  const std::string model = answered_model(messages.model, call.service);
  PreparedPrompt prompt = prepare_prompt(messages.chat, *served, call.service);
  check_length(prompt.ids.size(), messages.max_tokens, *served, "messages");
  bind_answer(messages.chat, messages.sampling, *served, call.service.grammars, prompt);
  const http::Headers headers = left_out_header(prompt);
  if (call.service.options.log_text) call.service.options.log_text(call.request().id, "prompt", prompt.text);
  TextRequest request;
  request.prompt = std::move(prompt.ids);
  request.parsing = std::move(prompt.parsing);
  request.grammar = std::move(prompt.grammar);
  request.max_tokens = messages.max_tokens;
  request.sampling = std::move(messages.sampling);
  request.stops = std::move(messages.stops);
  const std::size_t size = request.prompt.size();
  AnswerHead head{http::random_name("msg_", 24), model, now_seconds()};
  std::vector<TextRequest> sequences;
  sequences.push_back(std::move(request));
  Answering::start(
      call, std::move(sequences),
      std::make_unique<MessagesAnswer>(std::move(head), messages.stream, call.request().id, size), headers);
}

void answer_count_tokens(const Call& call) {
  const std::shared_ptr<const Served> served = need_loaded(call.service);
  const BodyValue body = read_body(call);
  const MessagesBody messages =
      read_anthropic(Fields(body, {}), *served, {false, call.service.options.keep_billing_header});
  JsonWriter out;
  out.begin_object().member("input_tokens", prepare_prompt(messages.chat, *served, call.service).ids.size());
  call.send_json(out.end_object().take());
}

}  // namespace sluice::serve
