#include "engine/batch/batch_pass.h"

#include <algorithm>
#include <utility>

#include "engine/draft/drafting.h"
#include "model/architecture.h"

namespace sluice::engine {

BatchPass::~BatchPass() { release(); }

void BatchPass::add(RunningSequence& sequence, std::size_t tokens, std::size_t drafts) {
  const std::span<const tokenizer::TokenId> lacking = sequence.lacking();
  SLUICE_CHECK(!pass_ && tokens >= 1 && tokens <= lacking.size());
  const bool decodes = sequence.state() == RunState::kDecode;
  SLUICE_CHECK(drafts == 0 || (decodes && tokens == lacking.size()));
  sequence.set_drafts(drafts);
  spans_.push_back(next_span(sequence.sequence(), tokens_.size(), tokens + drafts,
                             decodes ? StepKind::kDecode : StepKind::kPrompt));
  tokens_.insert(tokens_.end(), lacking.begin(), lacking.begin() + static_cast<std::ptrdiff_t>(tokens));
  tokens_.insert(tokens_.end(), sequence.drafts().begin(), sequence.drafts().end());
  members_.push_back(&sequence);
  sequence.in_pass = true;
  holds_members_ = true;
}

void BatchPass::begin(BatchTime now) {
  std::vector<RequestStatistics*> statistics;
  for (RunningSequence* const member : members_) {
    if (member->state() != RunState::kEnded) member->begin(now);
    member->begin_pass();
    statistics.push_back(member->state() != RunState::kEnded ? &member->statistics() : nullptr);
  }
  Drafting& drafting = engine_.drafting();
  account_.begin(std::move(statistics), drafting.on() && decodes() ? &drafting.account() : nullptr);
  pass_.reset();
  pass_.emplace(engine_.begin({tokens_, spans_, std::nullopt, &account_}));
}

bool BatchPass::decodes() const {
  return std::ranges::all_of(spans_, [](const SequenceSpan& span) { return span.kind == StepKind::kDecode; });
}

DraftShape BatchPass::shape() const {
  std::vector<std::size_t> drafts;
  for (const RunningSequence* const member : members_) drafts.push_back(member->drafts().size());
  return shape_of(drafts);
}

bool BatchPass::advance() {
  const model::ModelConfig& config = engine_.model().config;
  std::size_t layer = pass_->layer();
  while (layer < config.layers && !config.sparse[layer]) ++layer;
  if (layer == config.layers) return false;
  pass_->advance(layer + 1);
  return true;
}

void BatchPass::finish() {
  pass_->finish(sink());
  release();
}

void BatchPass::leave_out(const RunningSequence& sequence) {
  const auto at = std::ranges::find(members_, &sequence);
  account_.leave_out(static_cast<std::size_t>(at - members_.begin()));
}

void BatchPass::release() {
  pass_.reset();
  if (!std::exchange(holds_members_, false)) return;
  for (RunningSequence* const member : members_) member->in_pass = false;
}

std::size_t BatchPass::member_of(std::size_t token) const {
  const auto behind = std::ranges::upper_bound(spans_, token, {}, &SequenceSpan::first_token);
  return static_cast<std::size_t>(behind - spans_.begin()) - 1;
}

LogitSink BatchPass::sink() {
  const auto place = [this](std::size_t token) {
    const SequenceSpan& span = spans_[member_of(token)];
    return span.sequence->length() + token - span.first_token;
  };
  return {[this, place](std::size_t token) { return members_[member_of(token)]->wants(place(token)); },
          [this, place](std::size_t token, std::span<const float> logits) {
            members_[member_of(token)]->take(place(token), logits, engine_.candidates());
          }};
}

}  // namespace sluice::engine
