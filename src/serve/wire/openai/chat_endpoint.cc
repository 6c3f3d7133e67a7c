#include <utility>

#include "serve/http/request_id.h"
#include "serve/wire/answering.h"
#include "serve/wire/endpoints.h"
#include "serve/wire/openai/chat_answer.h"
#include "serve/wire/openai/chat_body.h"
#include "serve/wire/request_model.h"
#include "serve/wire/sampling_fields.h"

namespace sluice::serve {

void answer_chat(const Call& call) {
  const std::shared_ptr<const Served> served = need_served(call.service);
  const BodyValue body = read_body(call);
  const Fields fields(body, {});
  const ChatBody chat = read_chat(fields);
  const std::string model = answered_model(chat.model, call.service);
  TextRequest request;
  request.sampling = read_sampling(fields, *served);
  PreparedPrompt prompt = prepare_prompt(chat.chat, *served, call.service);
  check_length(prompt.ids.size(), chat.max_tokens, *served, "messages");
  bind_answer(chat.chat, request.sampling, *served, call.service.grammars, prompt);
  const http::Headers headers = left_out_header(prompt);
  if (call.service.options.log_text) call.service.options.log_text(call.request().id, "prompt", prompt.text);
  request.prompt = std::move(prompt.ids);
  request.parsing = std::move(prompt.parsing);
  request.grammar = std::move(prompt.grammar);
  request.max_tokens = chat.max_tokens;
  request.stops = chat.stops;
  request.cache_prompt = chat.cache_prompt;
  request.logprobs = chat.logprobs;
  request.progress = chat.return_progress;
  std::vector<TextRequest> sequences(chat.n, request);
  for (std::size_t i = 0; i < chat.n; ++i) sequences[i].sampling.seed += i;
  const ChatAnswerOptions options{chat.n,
                                  chat.stream,
                                  chat.include_usage,
                                  chat.return_progress,
                                  chat.logprobs.has_value(),
                                  chat.timings_per_token,
                                  chat.functions};
  AnswerHead head{http::random_name("chatcmpl-", 16), model, now_seconds()};
  Answering::start(call, std::move(sequences), std::make_unique<ChatAnswer>(std::move(head), options, served),
                   headers);
}

}  // namespace sluice::serve
