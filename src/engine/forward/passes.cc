#include "engine/forward/passes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/setting.h"
#include "engine/session/sequence.h"
#include "tokenizer/text/text_check.h"

namespace sluice::engine {

Passes::Passes(const ForwardParts& parts, const models::LayerForward& forward)
    : parts_(parts), forward_(forward), rows_taken_(parts.workspace.shape().passes) {}

void Passes::check(const Step& step) const {
  SLUICE_CHECK(!step.tokens.empty() && step.tokens.size() <= parts_.chunk,
               fmt::format("{} tokens in a step of {}", step.tokens.size(), parts_.chunk));
  tokenizer::check_ids(step.tokens, parts_.config.vocab, "tokens");
  for (const SequenceSpan& span : step.spans) {
    const Sequence& sequence = *span.sequence;
    if (sequence.length() + span.tokens > sequence.positions())
      throw Error(ErrorKind::kInvalid, "the sequence is longer than the context that was reserved")
          .in(Setting::kContext)
          .expected(fmt::format("at most {} tokens", sequence.positions()))
          .found(std::to_string(sequence.length() + span.tokens))
          .fix("raise " + Setting::kContext + ", or generate less");
    SLUICE_CHECK(!parts_.config.has_encoder() || sequence.encoder_length() != 0, "nothing has been encoded");
  }
}

std::size_t Passes::claim_rows() {
  const auto free = std::ranges::find(rows_taken_, false);
  SLUICE_CHECK(free != rows_taken_.end(),
               fmt::format("{} passes are open, and the plan has room for no more", open_));
  *free = true;
  return static_cast<std::size_t>(free - rows_taken_.begin());
}

Pass Passes::begin(const Step& step) {
  check(step);
  Pass pass(*this, step, claim_rows(), ++begun_, parts_.config.encoder_layers);
  ++open_;
  for (const SequenceSpan& span : step.spans) span.sequence->join_pass();
  take_turn(pass);
  pass.counts_.start(parts_.experts);
  parts_.moe.begin_step(step);
  if (observer_ != nullptr) observer_->on_step(step);
  try {
    parts_.run(step, pass.rows_).embed(parts_.embedding);
    parts_.ops.settle();
  } catch (const Error& error) {
    parts_.on_error(error);
    throw;
  }
  leave(pass);
  return pass;
}

void Passes::take_turn(const Pass& pass) {
  if (open_ > 1) parts_.experts.prefetch({});
  last_ = pass.number_;
}

void Passes::enter(Pass& pass) {
  pass.counts_.start(parts_.experts);
  if (last_ == pass.number_) return;
  take_turn(pass);
  parts_.moe.resume_step(pass.step_);
  if (observer_ != nullptr) observer_->on_resume(pass.step_);
}

void Passes::advance(Pass& pass, std::size_t to_layer) {
  SLUICE_CHECK(to_layer <= parts_.config.layers);
  if (pass.layer_ >= to_layer) return;
  LayerRun run = parts_.run(pass.step_, pass.rows_);
  run.turn_to_positions(parts_.rope);
  for (; pass.layer_ < to_layer; ++pass.layer_) {
    run.begin_layer(pass.layer_);
    forward_.attention(run);
    forward_.feed_forward(run);
  }
  parts_.ops.settle();  // another pass may use what this one used
}

void Passes::finish(Pass& pass, const LogitSink& sink) {
  advance(pass, parts_.config.layers);
  parts_.run(pass.step_, pass.rows_).output(sink);
  parts_.ops.settle();
  for (const SequenceSpan& span : pass.step_.spans) span.sequence->computed(span.tokens, span.kind);
  parts_.moe.end_step();
  leave(pass);
  ExpertStatistics& count = parts_.statistics.of(pass.step_.kind());
  count.steps += 1;
  count.tokens += pass.step_.tokens.size();
  pass.counts_.add_to(count);
}

void Passes::release(Pass& pass) {
  for (const SequenceSpan& span : pass.step_.spans) span.sequence->leave_pass();
  rows_taken_[pass.rows_] = false;
  --open_;
}

}  // namespace sluice::engine
