#include "engine/draft/sequence_drafts.h"

#include <algorithm>

namespace sluice::engine {
namespace {

// What is thought of a match before anything is known, as if seen so often; later counts fade by the longer
// memory, so that the odds follow a text that changes.
constexpr std::array kFirstChance = {0.25, 0.35, 0.5, 0.7, 0.85};  // the chance of the next token
constexpr double kFirstSeen = 4, kMostSeen = 24;

}  // namespace

DraftOdds::DraftOdds() {
  for (std::size_t c = 0; c < kClasses; ++c) {
    double chance = 1;
    for (double& of_tokens : classes_[c].chance) of_tokens = chance *= kFirstChance[c];
    classes_[c].seen = kFirstSeen;
  }
}

std::size_t DraftOdds::class_of(std::size_t match) {
  return match <= 2 ? 0 : match == 3 ? 1 : match < 8 ? 2 : match < kLongestMatch ? 3 : 4;
}

void DraftOdds::count(std::size_t match, std::size_t count, std::size_t true_tokens) {
  Class& one = classes_[class_of(match)];
  one.seen = std::min(one.seen + 1, kMostSeen);
  for (std::size_t i = 0; i < std::min(count, kMostDrafts); ++i)
    one.chance[i] += ((true_tokens > i ? 1.0 : 0.0) - one.chance[i]) / one.seen;
}

double DraftOdds::chance(std::size_t match, std::size_t tokens) const {
  return classes_[class_of(match)].chance[tokens - 1];
}

void SequenceDrafts::learn(std::span<const tokenizer::TokenId> text) {
  for (Open& made : made_) {
    if (!made.open) continue;
    const std::span<const tokenizer::TokenId> draft = made.draft.tokens();
    const std::span<const tokenizer::TokenId> drawn = text.subspan(std::min(made.position, text.size()));
    const auto parts = std::ranges::mismatch(draft, drawn);
    const auto alike = static_cast<std::size_t>(parts.in1 - draft.begin());
    if (alike == drawn.size() && alike < draft.size()) continue;  // all of what is known so far
    odds_.count(made.draft.match, draft.size(), alike);
    made.open = false;
  }
}

const Draft& SequenceDrafts::propose(std::span<const tokenizer::TokenId> text) {
  learn(text);
  draft_ = ngram_draft(text);
  if (draft_.count == 0) return draft_;
  made_[next_] = {draft_, text.size(), true};
  next_ = (next_ + 1) % made_.size();
  return draft_;
}

}  // namespace sluice::engine
