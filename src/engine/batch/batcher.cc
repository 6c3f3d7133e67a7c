#include "engine/batch/batcher.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/batch/batcher_impl.h"
#include "model/architecture.h"

namespace sluice::engine {

Batcher::Impl::Impl(Engine& engine, const BatchRules& rules)
    : engine_(engine),
      rules_(rules),
      limits_(engine, rules.stretch),
      cache_(engine.prefixes()),
      has_encoder_(engine.model().config.has_encoder()) {
  const EnginePlan& plan = engine.plan();
  SLUICE_CHECK(rules.parallel >= 1 && rules.parallel <= plan.sequences,
               "the plan has room for fewer sequences");
  SLUICE_CHECK(rules.stretch >= 1 && rules.decode_share >= 0 && rules.decode_share <= 1);
  const bool in_turn = rules.parallel == 1 || rules.prompts_first;
  SLUICE_CHECK(in_turn || !has_encoder_, "encoder-decoders answer one request at a time");
  SLUICE_CHECK(in_turn || plan.suspended_passes >= 1, "the plan has no room for a suspended pass");
}

RequestId Batcher::Impl::submit(BatchRequest request, BatchClient& client) {
  check(request);
  const RequestId id = ++submitted_;
  queue_.add({id, std::move(request), &client, now()});
  return id;
}

void Batcher::Impl::cancel(RequestId id) {
  if (queue_.cancel(id)) return;
  for (const auto& one : running_)
    if (one->id() == id) one->cancelled = true;
}

bool Batcher::Impl::advance() {
  end_cancelled();
  collect();
  give_room();
  admit();
  if (prompt_pass_ || !compute_small_pass()) {
    if (decode_is_due())
      decode();
    else if (prompt_pass_)
      advance_prompt_pass();
  }
  collect();
  return !queue_.empty() || !running_.empty();
}

void Batcher::Impl::end_cancelled() {
  queue_.end_cancelled(now());
  for (const auto& one : running_) {
    if (one->state() == RunState::kEnded) continue;
    if (!one->cancelled && !one->client().wants_to_stop()) continue;
    if (one->in_pass) prompt_pass_->leave_out(*one);
    one->end(StopReason::kInterrupted, now());
  }
  const auto has_ended = [](const RunningSequence* one) { return one->state() == RunState::kEnded; };
  if (prompt_pass_ && std::ranges::all_of(prompt_pass_->members(), has_ended)) prompt_pass_.reset();
}

void Batcher::Impl::collect() {
  for (const auto& one : running_)
    if (one->state() == RunState::kEnded && !one->in_pass) share(*one);
  std::erase_if(running_, [](const auto& one) { return one->state() == RunState::kEnded && !one->in_pass; });
}

void Batcher::Impl::share(RunningSequence& sequence) {
  if (sequence.request().cache_prompt && !has_encoder_) cache_.share(sequence.sequence(), sequence.tokens());
}

Batcher::Impl::Sequences Batcher::Impl::in_state(RunState state) const {
  Sequences those;
  for (const auto& one : running_)
    if (one->state() == state) those.push_back(one.get());
  return those;
}

void Batcher::Impl::give_room() {
  do {
    for (const auto& one : running_) {
      if (one->state() != RunState::kDecode && one->state() != RunState::kStalled) continue;
      const bool has_room = make_room(*one);
      if (one->state() == RunState::kStalled && has_room) one->go_on(now());
      if (one->state() == RunState::kDecode && !has_room) one->stall(now());
    }
    collect();
  } while (end_youngest_if_all_stall());
}

bool Batcher::Impl::make_room(RunningSequence& sequence) {
  Sequence& held = sequence.sequence();
  if (held.length() + sequence.lacking().size() <= held.positions()) return true;
  try {
    return grow(held);
  } catch (const Error& error) {
    sequence.fail(error, now());
    return false;
  }
}

// By less where a whole stretch is not free.
bool Batcher::Impl::grow(Sequence& sequence) const {
  for (std::size_t more = limits_.stretch(); more > 0; more /= 2) {
    const std::size_t positions = std::min(limits_.context(), sequence.positions() + more);
    if (cache_.grow(sequence, positions)) return true;
  }
  return false;
}

// The answers that wait for room wait for each other: one ends, so that the others go on.
bool Batcher::Impl::end_youngest_if_all_stall() {
  const auto stalls = [](const auto& one) { return one->state() == RunState::kStalled; };
  if (running_.empty() || !std::ranges::all_of(running_, stalls)) return false;
  running_.back()->end(StopReason::kLength, now());
  collect();
  return true;
}

std::unique_ptr<Sequence> Batcher::Impl::begin_sequence(const BatchRequest& request,
                                                        std::span<const tokenizer::TokenId> first) {
  const bool reuse = request.cache_prompt && !has_encoder_;
  return cache_.begin(findable(request, first), limits_.reserved(request), reuse);
}

void Batcher::Impl::admit() {
  const model::ModelConfig& config = engine_.model().config;
  while (!queue_.empty() && running_.size() < rules_.parallel) {
    const BatchRequest& request = queue_.first();
    std::vector<tokenizer::TokenId> first = has_encoder_ ? std::vector{config.decoder_start} : request.prompt;
    std::unique_ptr<Sequence> sequence;
    try {
      sequence = begin_sequence(request, first);
      if (sequence == nullptr && running_.empty())
        throw Error(ErrorKind::kBudget, "other sequences hold the key/value cache's blocks");
    } catch (const Error& error) {
      queue_.fail_first(error, now());
      continue;
    }
    if (sequence == nullptr) return;
    running_.push_back(std::make_unique<RunningSequence>(queue_.take_first(), std::move(first),
                                                         limits_.context(), config.eos, std::move(sequence)));
    running_.back()->encoded = !has_encoder_;
  }
}

BatchLoad Batcher::Impl::load() const {
  return {.waiting = queue_.size(),
          .prefilling = in_state(RunState::kPrefill).size(),
          .decoding = in_state(RunState::kDecode).size(),
          .stalled = in_state(RunState::kStalled).size()};
}

Batcher::Batcher(Engine& engine, const BatchRules& rules) : impl_(std::make_unique<Impl>(engine, rules)) {}
Batcher::~Batcher() = default;

void Batcher::check(const BatchRequest& request) const { impl_->check(request); }
RequestId Batcher::submit(BatchRequest request, BatchClient& client) {
  return impl_->submit(std::move(request), client);
}
void Batcher::cancel(RequestId id) { impl_->cancel(id); }
bool Batcher::advance() { return impl_->advance(); }
BatchLoad Batcher::load() const { return impl_->load(); }

}  // namespace sluice::engine
