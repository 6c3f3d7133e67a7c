#include <utility>

#include "serve/http/request_id.h"
#include "serve/wire/answering.h"
#include "serve/wire/endpoints.h"
#include "serve/wire/openai/completion_answer.h"
#include "serve/wire/openai/completion_body.h"
#include "serve/wire/request_model.h"
#include "serve/wire/sampling_fields.h"

namespace sluice::serve {

void answer_completions(const Call& call) {
  const std::shared_ptr<const Served> served = need_served(call.service);
  const BodyValue body = read_body(call);
  const Fields fields(body, {});
  CompletionBody completion = read_completion(fields, *served, call.service);
  const std::string model = answered_model(completion.model, call.service);
  TextRequest request;
  request.sampling = read_sampling(fields, *served);
  request.max_tokens = completion.max_tokens;
  request.stops = completion.stops;
  request.cache_prompt = completion.cache_prompt;
  request.logprobs = completion.logprobs;
  request.prompt_logprobs = completion.echo && completion.logprobs.has_value();
  request.progress = completion.return_progress;
  std::vector<TextRequest> sequences;
  for (const CompletionPrompt& prompt : completion.prompts) {
    check_length(prompt.ids.size(), completion.max_tokens, *served, "prompt");
    if (call.service.options.log_text)
      call.service.options.log_text(call.request().id, "prompt", prompt.text);
    for (std::size_t i = 0; i < completion.n; ++i) {
      sequences.push_back(request);
      sequences.back().prompt = prompt.ids;
      sequences.back().sampling.seed += i;
    }
  }
  AnswerHead head{http::random_name("cmpl-", 16), model, now_seconds()};
  Answering::start(call, std::move(sequences),
                   std::make_unique<CompletionAnswer>(std::move(head), std::move(completion), served));
}

}  // namespace sluice::serve
