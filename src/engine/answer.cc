#include "engine/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "engine/draft/drafting.h"
#include "engine/engine.h"
#include "engine/session/sequence.h"
#include "engine/session/step.h"
#include "model/architecture.h"

namespace sluice::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// One token of every open answer, and drafts of those that follow, as many as pay.
class DecodeStep {
 public:
  explicit DecodeStep(Engine& engine) : engine_(engine), drafting_(engine.drafting()) {}

  // False: no answer is open.
  bool begin(std::span<Answer* const> answers) {
    open_.clear();
    offers_.clear();
    for (Answer* const answer : answers) {
      if (answer->stop_if_asked() || !answer->open()) continue;
      open_.push_back(answer);
      offers_.push_back(answer->offer());
    }
    counts_.assign(open_.size(), 0);
    if (drafting_.on() && !open_.empty())
      drafting_.guard().choose(offers_, engine_.chunk() - open_.size(), counts_);
    return !open_.empty();
  }

  void compute() {
    tokens_.clear();
    spans_.clear();
    takers_.clear();
    for (std::size_t i = 0; i < open_.size(); ++i) {
      Answer& answer = *open_[i];
      answer.begin_step(counts_[i]);
      spans_.push_back({&answer.sequence(), tokens_.size(), 1 + counts_[i], StepKind::kDecode});
      tokens_.push_back(answer.last_token());
      tokens_.insert(tokens_.end(), answer.drafts().begin(), answer.drafts().end());
      takers_.resize(tokens_.size(), &answer);
    }
    const Step step{
        .tokens = tokens_, .spans = spans_, .account = drafting_.on() ? &drafting_.account() : nullptr};
    drafting_.begin_step();
    engine_.step(step, {[](std::size_t) { return true; },
                        [&](std::size_t t, std::span<const float> logits) { takers_[t]->take(logits); }});
    drafting_.end_step(shape_of(counts_));
    for (Answer* const answer : open_) answer->end_step();
  }

 private:
  Engine& engine_;
  Drafting& drafting_;
  std::vector<Answer*> open_;
  std::vector<DraftOffer> offers_;   // of those
  std::vector<std::size_t> counts_;  // how many of them are taken
  std::vector<tokenizer::TokenId> tokens_;
  std::vector<SequenceSpan> spans_;
  std::vector<Answer*> takers_;  // by token
};

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

DraftOffer Answer::offer() {
  DraftOffer offer;
  if (!engine_.drafting().on()) return offer;
  proposal_ = proposals_.propose(tokens_);
  // The step has the last token, too; and what it draws last needs no position.
  const std::size_t positions = sequence_.positions() - sequence_.length(),
                    tokens = request_.max_tokens - result_.tokens.size();
  offer.count = std::min({proposal_.count, positions - 1, tokens - 1});
  for (std::size_t i = 0; i < offer.count; ++i) offer.chance[i] = proposals_.chance(i + 1);
  return offer;
}

void Answer::begin_step(std::size_t drafts) {
  drafts_ = proposal_.tokens().first(drafts);
  drawn_ = 0;
  parted_ = false;
}

void Answer::take(std::span<const float> logits) {
  if (parted_) return;
  const tokenizer::TokenId token = sampler_.next(logits, tokens_, begins_, candidates_);
  parted_ = drawn_ == drafts_.size() || drafts_[drawn_] != token;
  ++drawn_;
  accept(token);
  if (!open_) parted_ = true;
}

void Answer::end_step() {
  if (drafts_.empty()) return;
  const std::size_t accepted = drawn_ - 1;
  engine_.drafting().settle(sequence_, drafts_.size(), accepted);
  result_.drafts += {drafts_.size(), accepted, 1};
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

  for (DecodeStep step(engine); step.begin(answers);) step.compute();
}

}  // namespace sluice::engine
