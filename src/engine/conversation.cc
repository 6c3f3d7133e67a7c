#include "engine/conversation.h"

#include <algorithm>

#include "base/error.h"
#include "engine/answer.h"
#include "engine/engine.h"
#include "engine/session/sequence.h"
#include "model/architecture.h"

namespace sluice::engine {
namespace {

const model::Model& without_encoder(const model::Model& model) {
  if (model.config.has_encoder())
    throw Error(ErrorKind::kUnsupported, "a conversation needs a model that goes on from its prompt")
        .in(model.config.model_type)
        .expected("a decoder alone")
        .found("an encoder-decoder")
        .fix("use another model, or sluice run");
  return model;
}

}  // namespace

Conversation::Conversation(Engine& engine)
    : engine_(engine), sequence_((without_encoder(engine.model()), engine.new_sequence())) {}

Conversation::~Conversation() = default;

std::size_t Conversation::alike(const std::vector<tokenizer::TokenId>& prompt) const {
  const auto [parts, _] = std::ranges::mismatch(tokens_, prompt);
  const auto alike = static_cast<std::size_t>(parts - tokens_.begin());
  return std::min(alike,
                  std::max<std::size_t>(prompt.size(), 1) - 1);  // the last is computed, for its logits
}

GenerateResult Conversation::generate(const tokenizer::Tokenizer* tokenizer, const GenerateRequest& request) {
  check_request(engine_, tokenizer, request);
  sequence_->cut(alike(request.prompt));

  Answer answer(engine_, *sequence_, tokenizer, request);
  struct Keep {
    Conversation& conversation;
    const Answer& answer;
    ~Keep() {
      const auto begin = answer.tokens().begin();
      Sequence& sequence = *conversation.sequence_;
      if (sequence.length() > answer.tokens().size()) sequence.cut(answer.tokens().size());  // drafts
      const auto held = static_cast<std::ptrdiff_t>(sequence.length());
      conversation.tokens_.assign(begin, begin + held);
    }
  } keep{*this, answer};
  Answer* const one = &answer;
  complete(engine_, {&one, 1});
  return answer.finish();
}

}  // namespace sluice::engine
