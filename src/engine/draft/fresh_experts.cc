#include "engine/draft/fresh_experts.h"

#include <algorithm>

#include "engine/session/sequence.h"
#include "engine/session/step.h"

namespace sluice::engine {
namespace {

constexpr double kLookBack = 32;  // steps
constexpr std::uint16_t kNoExpert = UINT16_MAX;

}  // namespace

FreshExperts::FreshExperts(std::uint32_t sparse_layers, std::uint32_t top_k)
    : layers_(sparse_layers), top_k_(top_k), held_(kRing * layers_ * top_k_, kNoExpert) {}

std::span<FreshExperts::Expert> FreshExperts::held(std::size_t layer, std::size_t back) {
  const std::size_t token = (newest_ + 1 + kRing - back) % kRing;
  return std::span(held_).subspan((token * layers_ + layer) * top_k_, top_k_);
}

void FreshExperts::begin_step() {
  layer_ = 0;
  sums_.fill(0);
  counts_.fill(0);
}

// The step's first event.
void FreshExperts::follow(const SequenceSpan& span) {
  if (span.sequence->id() != sequence_) tokens_ = 0;
  sequence_ = span.sequence->id();
  alone_ = span.tokens == 1;
  for (std::size_t t = 0; t < span.tokens; ++t)
    for (std::size_t b = 0; b <= std::min(alone_ ? tokens_ : t, kMostDrafts); ++b) counts_[b] += 1;
}

void FreshExperts::on_event(const Step& step, const EventCosts& costs) {
  const std::size_t layer = layer_++;
  const auto decoded = std::ranges::find(step.spans, StepKind::kDecode, &SequenceSpan::kind);
  if (layer >= layers_ || decoded == step.spans.end()) return;
  if (layer == 0) follow(*decoded);
  const auto token = [&](std::size_t t) {
    return costs.routing.token(static_cast<std::uint32_t>(decoded->first_token + t));
  };
  for (std::size_t t = 0; t < decoded->tokens; ++t) {
    // The tokens before it are those of the same step, or those that are held.
    const std::size_t before = std::min(alone_ ? tokens_ : t, kMostDrafts);
    const auto uses = [&](std::size_t back, Expert expert) {
      if (alone_) return std::ranges::count(held(layer, back), expert) != 0;
      return std::ranges::count(token(t - back), expert, &experts::Choice::expert) != 0;
    };
    for (const experts::Choice& choice : token(t)) {
      std::size_t used = 1;  // the nearest token before it that uses the expert
      while (used <= before && !uses(used, choice.expert)) ++used;
      for (std::size_t b = 0; b < used; ++b) sums_[b] += 1;
    }
  }
  const std::span<Expert> running = held(layer, 0);
  std::ranges::fill(running, kNoExpert);
  for (std::size_t i = 0; i < std::min(running.size(), token(0).size()); ++i)
    running[i] = static_cast<Expert>(token(0)[i].expert);
}

void FreshExperts::end_step() {
  if (counts_[0] == 0) return;
  for (std::size_t b = 0; b < means_.size(); ++b) {
    if (counts_[b] == 0) continue;
    seen_[b] = std::min(seen_[b] + 1, kLookBack);
    means_[b] += (sums_[b] / static_cast<double>(counts_[b]) - means_[b]) / seen_[b];
  }
  // Which drafts came true is not known here.
  tokens_ = alone_ ? std::min(tokens_ + 1, kMostDrafts) : 0;
  newest_ = (newest_ + 1) % kRing;
}

}  // namespace sluice::engine
