#include "engine/batch/running_sequence.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {
namespace {

double milliseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

}  // namespace

RunningSequence::RunningSequence(QueuedRequest queued, std::vector<tokenizer::TokenId> first,
                                 std::size_t context, const std::vector<tokenizer::TokenId>& ends,
                                 std::unique_ptr<Sequence> sequence)
    : queued_(std::move(queued)),
      tokens_(std::move(first)),
      begins_(tokens_.size()),
      context_(context),
      ends_(ends),
      sequence_(std::move(sequence)),
      sampler_(queued_.request.sampler),
      prompt_told_(queued_.request.prompt_logprobs.value_or(1)) {
  statistics_.prompt = queued_.request.prompt.size();
  if (guide() == nullptr) return;
  std::vector<tokenizer::TokenId> all_ends = ends;
  all_ends.insert(all_ends.end(), request().ends.begin(), request().ends.end());
  guide()->set_ends(std::move(all_ends));
}

std::span<const tokenizer::TokenId> RunningSequence::lacking() const {
  return std::span(tokens_).subspan(sequence_->length());
}

void RunningSequence::replace(std::unique_ptr<Sequence> sequence) {
  SLUICE_CHECK(!begun_);
  sequence_ = std::move(sequence);
}

void RunningSequence::begin(BatchTime now) {
  if (std::exchange(begun_, true)) return;
  begun_at_ = now;
  statistics_.queue_ms = milliseconds(now - queued_.submitted);
  statistics_.cached = sequence_->length();
  client().on_admitted(statistics_.cached);
}

void RunningSequence::stall(BatchTime now) {
  state_ = RunState::kStalled;
  stalled_at_ = now;
}

void RunningSequence::go_on(BatchTime now) {
  state_ = RunState::kDecode;
  statistics_.stalled_ms += milliseconds(now - stalled_at_);
}

DraftOffer RunningSequence::offer() {
  DraftOffer offer;
  proposal_ = proposals_.propose(tokens_);
  // The pass has the last token, too; and what it draws last needs no position.
  const std::size_t positions = sequence_->positions() - sequence_->length(),
                    context = context_ - sequence_->length(),
                    tokens = queued_.request.max_tokens.value_or(SIZE_MAX) - statistics_.generated;
  offer.count = std::min({proposal_.count, positions - 1, context - 1, tokens - 1});
  for (std::size_t i = 0; i < offer.count; ++i) offer.chance[i] = proposals_.chance(i + 1);
  return offer;
}

void RunningSequence::begin_pass() {
  accepted_ = 0;
  wanted_from_ = parted_ ? SIZE_MAX : drawn_count_;
}

bool RunningSequence::wants(std::size_t place) const {
  if (state_ == RunState::kEnded) return false;
  if (place + 1 < begins_) return queued_.request.prompt_logprobs && place >= prompt_told_ - 1;
  if (place + 1 < tokens_.size() || queued_.request.max_tokens == 0) return false;
  return place + 1 - tokens_.size() >= wanted_from_;
}

void RunningSequence::take(std::size_t place, std::span<const float> logits,
                           std::span<Candidate> candidates) {
  try {
    if (place + 1 < begins_)
      take_prompt_token(place, logits);
    else if (!parted_)
      draw(logits, candidates);
  } catch (const Error& error) {  // an error of its logits: others go on
    error_ = error;
    parted_ = true;
  }
}

void RunningSequence::take_prompt_token(std::size_t place, std::span<const float> logits) {
  const tokenizer::TokenId token = tokens_[place + 1];
  const double logprob = token_logprob(logits, token, *queued_.request.logprobs, prompt_best_);
  prompt_told_ = place + 2;
  client().on_prompt_token({.id = token, .logprob = logprob, .top = prompt_best_});
}

// Drawn from what the tokens and those that this pass has drawn make of the logits.
tokenizer::TokenId RunningSequence::next_token(std::span<const float> logits,
                                               std::span<Candidate> candidates) {
  struct Longer {
    std::vector<tokenizer::TokenId>& tokens;
    const std::size_t size = tokens.size();
    ~Longer() { tokens.resize(size); }
  } longer{tokens_};
  for (const Drawn& one : drawn()) tokens_.push_back(one.id);
  std::span<const std::uint64_t> allowed;
  if (guide() != nullptr) allowed = guide()->allowed();
  return sampler_.next(logits, tokens_, begins_, candidates, allowed);
}

void RunningSequence::draw(std::span<const float> logits, std::span<Candidate> candidates) {
  client().on_logits(logits);
  Drawn& drawn = drawn_[drawn_count_];
  drawn.id = next_token(logits, candidates);
  const std::optional<std::size_t> logprobs = queued_.request.logprobs;
  drawn.logprob = logprobs ? token_logprob(logits, drawn.id, *logprobs, drawn.best) : 0;
  if (guide() != nullptr) guide()->accept(drawn.id);
  drawn.completes = guide() != nullptr && guide()->complete();
  parted_ = drawn_count_ == drafts_.size() || drafts_[drawn_count_] != drawn.id || drawn.completes ||
            ends_answer(drawn.id);
  ++drawn_count_;
}

void RunningSequence::end_pass(std::size_t companions, BatchTime now) {
  statistics_.passes += 1;
  statistics_.companions += companions;
  if (state_ == RunState::kEnded) return;
  if (error_ && drawn_count_ == 0) return fail(*error_, now);
  if (state_ == RunState::kPrefill) {
    client().on_prefill(statistics_.prompt - (begins_ - sequence_->length()), statistics_.prompt);
    if (sequence_->length() < begins_) return;
    state_ = RunState::kDecode;
  }
  if (drawn_count_ == 0) return end(StopReason::kLength, now);  // nothing was to be drawn
  accept_drawn(now);
  if (error_ && state_ != RunState::kEnded) fail(*error_, now);
}

bool RunningSequence::ends_answer(tokenizer::TokenId token) const {
  const auto has = [&](const std::vector<tokenizer::TokenId>& all) {
    return std::ranges::find(all, token) != all.end();
  };
  return !queued_.request.ignore_eos && (has(ends_) || has(queued_.request.ends));
}

void RunningSequence::accept_drawn(BatchTime now) {
  if (!drafts_.empty()) statistics_.drafts += {drafts_.size(), 0, 1};
  for (std::size_t i = 0; i < drawn_count_ && state_ != RunState::kEnded; ++i) {
    accepted_ = i;
    if (i != 0) statistics_.drafts.accepted += 1;
    accept(drawn_[i], now);
  }
  drawn_count_ = 0;
  parted_ = false;
}

void RunningSequence::accept(const Drawn& drawn, BatchTime now) {
  tokens_.push_back(drawn.id);
  if (statistics_.generated++ == 0) first_at_ = now;
  last_at_ = now;
  const bool ends = ends_answer(drawn.id);
  const bool more =
      client().on_token({.id = drawn.id, .ends = ends, .logprob = drawn.logprob, .top = drawn.best});
  if (ends || drawn.completes) return end(StopReason::kEos, now);
  if (!more) return end(StopReason::kStopString, now);
  if (statistics_.generated == queued_.request.max_tokens) return end(StopReason::kLength, now);
  // The last token, which fills the context, needs no pass of its own.
  if (tokens_.size() - 1 == context_) end(StopReason::kContext, now);
}

void RunningSequence::end(StopReason reason, BatchTime now) { close({.reason = reason}, now); }

void RunningSequence::fail(const Error& error, BatchTime now) { close({.error = error}, now); }

void RunningSequence::close(const BatchEnd& end, BatchTime now) {
  SLUICE_CHECK(state_ != RunState::kEnded, "a request ends twice");
  if (state_ == RunState::kStalled) go_on(now);
  state_ = RunState::kEnded;
  if (statistics_.generated != 0) {
    statistics_.prompt_ms = milliseconds(first_at_ - begun_at_);
    statistics_.generated_ms = milliseconds(last_at_ - first_at_);
  } else if (begun_) {
    statistics_.prompt_ms = milliseconds(now - begun_at_);
  } else {
    statistics_.queue_ms = milliseconds(now - queued_.submitted);
  }
  BatchEnd told = end;
  told.statistics = statistics_;
  client().on_end(told);
}

}  // namespace sluice::engine
