#include "engine/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "engine/engine.h"
#include "engine/session/sequence.h"
#include "engine/session/step.h"
#include "model/architecture.h"

namespace sluice::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

Answer::Answer(Engine& engine, Sequence& sequence, const tokenizer::Tokenizer* tokenizer,
               const GenerateRequest& request)
    : engine_(engine),
      sequence_(sequence),
      request_(request),
      sampler_(request.sampler),
      candidates_(engine.candidates()),
      encoded_(!engine.model().config.has_encoder()),
      tokens_(encoded_ ? request.prompt : std::vector{engine.model().config.decoder_start}),
      begins_(tokens_.size()),
      stops_(request.stop) {
  SLUICE_CHECK(sequence.length() < begins_, "the last token is computed, for its logits");
  if (tokenizer != nullptr) decoder_.emplace(*tokenizer, request.special);
  open_ = request.max_tokens > 0;
  result_.kept = sequence.length();
}

void Answer::prefill(Clock::time_point start) {
  if (!encoded_ && open_)
    encoded_ = engine_.encode(sequence_, request_.prompt, [&] { return !stop_if_asked(); });
  const std::span lacking = std::span(tokens_).subspan(sequence_.length());
  if (open_)
    engine_.prefill(sequence_, lacking,
                    {[&](std::size_t t) { return t + 1 == lacking.size(); },
                     [&](std::size_t, std::span<const float> logits) {
                       first_token_ = sampler_.next(logits, tokens_, begins_, candidates_);
                     }},
                    [&] { return !stop_if_asked(); });
  result_.prefill_s = seconds(Clock::now() - start);
}

bool Answer::stop_if_asked() {
  if (!open_ || !request_.should_stop || !request_.should_stop()) return false;
  close(StopReason::kInterrupted);
  return true;
}

void Answer::take_first() {
  decode_start_ = Clock::now();
  if (open_) accept(first_token_);
}

void Answer::take(std::span<const float> logits) {
  accept(sampler_.next(logits, tokens_, begins_, candidates_));
}

void Answer::accept(tokenizer::TokenId token) {
  const auto ends = [&](const std::vector<tokenizer::TokenId>& tokens) {
    return std::ranges::find(tokens, token) != tokens.end();
  };
  tokens_.push_back(token);
  result_.tokens.push_back(token);
  if (!request_.ignore_eos && (ends(engine_.model().config.eos) || ends(request_.ends)))
    return close(StopReason::kEos);
  give_out(decoder_ ? stops_.append(decoder_->append(token)) : std::string());
  if (stops_.found()) return close(StopReason::kStopString);
  // The last token, which ends the request or fills the context, needs no step of its own.
  const std::size_t used = tokens_.size() - 1;
  if (result_.tokens.size() == request_.max_tokens)
    close(StopReason::kLength);
  else if (used == sequence_.positions())
    close(StopReason::kContext);
}

GenerateResult Answer::finish() {
  if (decoder_) {
    if (!stops_.found()) {
      std::string rest = stops_.append(decoder_->finish());
      if (!stops_.found()) rest += stops_.finish();
      if (!rest.empty()) give_out(rest);
    }
    result_.text = text_;
  }
  return std::move(result_);
}

void Answer::give_out(const std::string& piece) {
  text_ += piece;
  if (request_.on_text) request_.on_text(piece, result_.tokens.size());
}

void Answer::close(StopReason reason) {
  result_.reason = reason;
  if (!result_.tokens.empty()) result_.decode_s = seconds(Clock::now() - decode_start_);
  open_ = false;
}

void complete(Engine& engine, std::span<Answer* const> answers) {
  const auto start = Clock::now();
  for (Answer* const answer : answers) answer->prefill(start);
  for (Answer* const answer : answers) answer->take_first();

  std::vector<tokenizer::TokenId> tokens;
  std::vector<SequenceSpan> spans;
  std::vector<Answer*> open;
  for (;;) {
    tokens.clear();
    spans.clear();
    open.clear();
    for (Answer* const answer : answers) {
      if (answer->stop_if_asked() || !answer->open()) continue;
      spans.push_back({&answer->sequence(), tokens.size(), 1, StepKind::kDecode});
      tokens.push_back(answer->last_token());
      open.push_back(answer);
    }
    if (open.empty()) return;
    engine.step({tokens, spans},
                {[](std::size_t) { return true; },
                 [&](std::size_t t, std::span<const float> logits) { open[t]->take(logits); }});
  }
}

}  // namespace sluice::engine
