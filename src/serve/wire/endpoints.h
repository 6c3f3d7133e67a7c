// What the server answers, an endpoint each. They throw ApiError before an answer has begun.
#pragma once

#include "serve/wire/service.h"

namespace sluice::serve {

void answer_health(const Call& call);
void answer_models(const Call& call);
void answer_model(const Call& call);  // one, by the end of the path
void answer_chat(const Call& call);
void answer_completions(const Call& call);
void answer_metrics(const Call& call);
void answer_experts(const Call& call);
void answer_plan(const Call& call);
void answer_events(const Call& call);
void answer_messages(const Call& call);
void answer_count_tokens(const Call& call);
void answer_tokenize(const Call& call);
void answer_detokenize(const Call& call);
void answer_apply_template(const Call& call);
void answer_input_tokens(const Call& call);
void answer_tokenizer_info(const Call& call);
void answer_props(const Call& call);
void answer_slots(const Call& call);
void answer_not_supported(const Call& call);
void answer_nothing_stored(const Call& call);  // responses by their id: 404

}  // namespace sluice::serve
