// Which tokens a turn of a Batcher computes, and what follows an error.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/batch/batcher_impl.h"
#include "engine/batch/prompt_shares.h"
#include "engine/draft/drafting.h"
#include "engine/watch/statistics.h"
#include "model/architecture.h"

namespace sluice::engine {
namespace {

// So few tokens of prompts read little that running answers would not: these go along.
constexpr std::size_t kSmallPass = 32;

bool may_pass_again(const Error& error) {
  return error.kind() == ErrorKind::kIo || error.kind() == ErrorKind::kCorrupt;
}

}  // namespace

// Prompts that a pass may have tokens of now, the oldest first.
Batcher::Impl::Sequences Batcher::Impl::prompts_to_compute() {
  Sequences prompts;
  for (RunningSequence* const one : in_state(RunState::kPrefill)) {
    if (one->in_pass) continue;
    if (one->alone) return {one};
    find_again(*one);
    if (one->state() != RunState::kEnded && !waits_for_twin(*one, prompts)) prompts.push_back(one);
  }
  return prompts;
}

// Others have computed tokens of it since it was admitted.
void Batcher::Impl::find_again(RunningSequence& prompt) {
  const BatchRequest& request = prompt.request();
  if (prompt.has_begun() || !request.cache_prompt || has_encoder_) return;
  if (cache_.find(findable(request, prompt.first_tokens())) <= prompt.sequence().length()) return;
  prompt.release();  // makes room for it again
  try {
    std::unique_ptr<Sequence> sequence = begin_sequence(request, prompt.first_tokens());
    if (sequence == nullptr) sequence = cache_.begin(prompt.first_tokens(), limits_.reserved(request), false);
    SLUICE_CHECK(sequence != nullptr, "a sequence has lost its room");
    prompt.replace(std::move(sequence));
  } catch (const Error& error) {
    prompt.fail(error, now());
  }
}

// Behind an older prompt that begins as this one does, little of this one is left to compute.
bool Batcher::Impl::waits_for_twin(const RunningSequence& prompt, const Sequences& older) const {
  const std::span<const tokenizer::TokenId> tokens = prompt.first_tokens();
  const BatchRequest& request = prompt.request();
  if (prompt.has_begun() || !request.cache_prompt || has_encoder_) return false;
  if (prompt.lacking().size() <= kSmallPass) return false;
  return std::ranges::any_of(older, [&](const RunningSequence* one) {
    const auto [parts, _] = std::ranges::mismatch(tokens, one->first_tokens());
    const auto alike = static_cast<std::size_t>(parts - tokens.begin());
    const std::size_t found = std::min(alike, findable(request, tokens).size() - 1);
    return one->request().cache_prompt && tokens.size() - found <= kSmallPass;
  });
}

bool Batcher::Impl::compute_small_pass() {
  const Sequences prompts = prompts_to_compute();
  const auto is_encoded = [this](RunningSequence* prompt) { return !has_encoder_ || encode(*prompt); };
  if (prompts.empty() || !std::ranges::all_of(prompts, is_encoded)) return false;
  std::vector<std::size_t> needs;
  for (const RunningSequence* const one : prompts) needs.push_back(one->lacking().size());
  const std::vector<std::size_t> shares = prompt_shares(needs, engine_.chunk());
  auto pass = std::make_unique<BatchPass>(engine_);
  for (std::size_t i = 0; i < prompts.size(); ++i)
    if (shares[i] != 0) pass->add(*prompts[i], shares[i]);
  if (!prompts.front()->alone && take_along_answers(*pass)) {
    compute_now(*pass);
    return true;
  }
  pass->failures = prompts.front()->alone ? 1 : 0;
  prompt_pass_ = std::move(pass);
  opened_at_ = now();
  decoded_for_ = {};
  begin_prompt_pass();
  return false;
}

bool Batcher::Impl::take_along_answers(BatchPass& pass) {
  if (pass.tokens() > kSmallPass || rules_.prompts_first) return false;
  const Sequences answers = in_state(RunState::kDecode);
  if (answers.empty() || pass.tokens() + answers.size() > engine_.chunk()) return false;
  for (RunningSequence* const one : answers) pass.add(*one, 1);
  return true;
}

bool Batcher::Impl::encode(RunningSequence& sequence) {
  if (std::exchange(sequence.encoded, true)) return true;
  sequence.begin(now());
  const ExpertStatistics before = engine_.statistics().total();
  std::optional<Error> failed;
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      failed.reset();
      if (!engine_.encode(sequence.sequence(), sequence.request().prompt,
                          [&] { return !sequence.client().wants_to_stop(); }))
        sequence.cancelled = true;
      break;
    } catch (const Error& error) {
      failed = error;
      if (!may_pass_again(error)) break;
    }
  }
  const ExpertStatistics after = engine_.statistics().total();
  RequestStatistics& count = sequence.statistics();
  count.accesses += after.accesses - before.accesses;
  count.hits += after.hits - before.hits;
  count.misses += after.misses - before.misses;
  count.demand += after.accesses - before.accesses;
  count.bytes_read +=
      static_cast<double>(after.bytes_read + after.prefetch_used - before.bytes_read - before.prefetch_used);
  if (failed) sequence.fail(*failed, now());
  return !failed && !sequence.cancelled;
}

void Batcher::Impl::begin_prompt_pass() {
  try {
    prompt_pass_->begin(now());
  } catch (const Error& error) {
    prompt_pass_failed(error);
  }
}

void Batcher::Impl::advance_prompt_pass() {
  try {
    if (prompt_pass_->advance()) return;
    prompt_pass_->finish();
  } catch (const Error& error) {
    return prompt_pass_failed(error);
  }
  conclude(*std::exchange(prompt_pass_, nullptr));
}

void Batcher::Impl::prompt_pass_failed(const Error& error) {
  prompt_pass_->failures += 1;
  if (may_pass_again(error) && prompt_pass_->failures < 2) return begin_prompt_pass();
  const std::unique_ptr<BatchPass> pass = std::exchange(prompt_pass_, nullptr);
  if (!may_pass_again(error) || pass->members().size() == 1) return fail(*pass, error);
  for (RunningSequence* const member : pass->members()) member->alone = true;
}

bool Batcher::Impl::decode_is_due() const {
  if (in_state(RunState::kDecode).empty()) return false;
  if (rules_.prompts_first) return in_state(RunState::kPrefill).empty();
  if (!prompt_pass_) return true;
  const std::chrono::duration<double> decoded = decoded_for_, open = now() - opened_at_;
  return decoded < rules_.decode_share * open;
}

// How many tokens of each answer are drafted; empty where drafts are off, or there are several passes.
std::vector<std::size_t> Batcher::Impl::choose_drafts(const Sequences& answers) {
  Drafting& drafting = engine_.drafting();
  if (!drafting.on() || answers.size() > engine_.chunk()) return {};
  std::vector<DraftOffer> offers;
  for (RunningSequence* const one : answers) offers.push_back(one->offer());
  std::vector<std::size_t> counts(answers.size());
  drafting.guard().choose(offers, engine_.chunk() - answers.size(), counts);
  return counts;
}

void Batcher::Impl::decode() {
  const BatchTime before = now();
  const Sequences answers = in_state(RunState::kDecode);
  const std::vector<std::size_t> drafts = choose_drafts(answers);
  for (std::size_t i = 0; i < answers.size();) {
    BatchPass pass(engine_);
    for (; i < answers.size() && pass.tokens() < engine_.chunk(); ++i)
      pass.add(*answers[i], 1, drafts.empty() ? 0 : drafts[i]);
    compute_now(pass);
  }
  decoded_for_ += now() - before;
}

void Batcher::Impl::compute_now(BatchPass& pass) {
  std::optional<Error> error = run(pass);
  if (error && may_pass_again(*error)) error = run(pass);
  if (!error) return;
  if (!may_pass_again(*error) || pass.members().size() == 1) return fail(pass, *error);
  for (std::size_t i = 0; i < pass.members().size(); ++i) {
    BatchPass one(engine_);
    one.add(*pass.members()[i], pass.tokens_of(i), pass.members()[i]->drafts().size());
    if (const std::optional<Error> again = run(one)) fail(one, *again);
  }
}

std::optional<Error> Batcher::Impl::run(BatchPass& pass) {
  Drafting& drafting = engine_.drafting();
  try {
    drafting.begin_step();
    pass.begin(now());
    pass.finish();
    if (drafting.on() && pass.decodes()) drafting.end_step(pass.shape());
  } catch (const Error& error) {
    return error;
  }
  conclude(pass);
  return std::nullopt;
}

void Batcher::Impl::conclude(const BatchPass& pass) {
  for (RunningSequence* const member : pass.members()) {
    member->alone = false;
    if (member->state() == RunState::kPrefill) share(*member);
    member->end_pass(pass.members().size(), now());
    const std::size_t drafted = member->drafts().size();
    if (drafted != 0) engine_.drafting().settle(member->sequence(), drafted, member->accepted());
  }
}

void Batcher::Impl::fail(const BatchPass& pass, const Error& error) {
  for (RunningSequence* const member : pass.members())
    if (member->state() != RunState::kEnded) member->fail(error, now());
}

}  // namespace sluice::engine
