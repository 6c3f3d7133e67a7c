#include "experts/routing/selection.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>

#include "base/error.h"

namespace sluice::experts {
namespace {

// Inserts (score, id) among the best `limit` so far, score descending; ids come in ascending order, so an
// equal score goes behind. O(limit).
void keep_best(std::vector<ScoredExpert>& best, std::size_t limit, ScoredExpert candidate) {
  if (best.size() == limit) {
    if (!(candidate.score > best.back().score)) return;
    best.pop_back();
  }
  auto place = best.end();
  while (place != best.begin() && candidate.score > std::prev(place)->score) --place;
  best.insert(place, candidate);
}

void check_finite(std::uint32_t layer, std::uint32_t token, std::span<const float> scores) {
  for (std::size_t e = 0; e < scores.size(); ++e) {
    if (std::isfinite(scores[e])) [[likely]]
      continue;
    throw Error(ErrorKind::kInvalid, "router score is not finite")
        .in("sparse layer " + std::to_string(layer) + ", token " + std::to_string(token) + ", expert " +
            std::to_string(e))
        .expected("a finite number")
        .found(std::to_string(scores[e]))
        .fix(
            "the weights are damaged or do not fit config.json: get the model again (`sluice verify` tells "
            "whether a packed store is sound)");
  }
}

}  // namespace

OwnSelection::OwnSelection(const SelectRule& rule) : rule_(rule) {
  if (rule.top_k == 0)
    throw Error(ErrorKind::kInvalid, "a token must select an expert").in("top_k").found("0");
  if (rule.groups == 0 || rule.top_groups == 0 || rule.top_groups > rule.groups) {
    throw Error(ErrorKind::kInvalid, "expert groups contradict each other")
        .expected("1 <= top_groups <= groups")
        .found("top_groups " + std::to_string(rule.top_groups) + ", groups " + std::to_string(rule.groups));
  }
}

void OwnSelection::check(const ScoresView& view) const {
  SLUICE_CHECK(view.scores.size() == std::size_t{view.tokens} * view.experts);
  SLUICE_CHECK(cover(view.spans, view.tokens), "tokens of no sequence");
  if (view.tokens == 0) return;
  const std::uint32_t n = view.experts;
  const bool possible = n <= std::numeric_limits<std::uint16_t>::max() + 1u && n % rule_.groups == 0 &&
                        rule_.top_k <= std::uint64_t{n / rule_.groups} * rule_.top_groups;
  if (possible) return;
  throw Error(ErrorKind::kInvalid, "experts cannot be selected as configured")
      .in("sparse layer " + std::to_string(view.layer))
      .expected("at most 65536 experts, a multiple of " + std::to_string(rule_.groups) +
                " groups, and at least top_k " + std::to_string(rule_.top_k) + " of them in the best " +
                std::to_string(rule_.top_groups))
      .found(std::to_string(n) + " experts");
}

std::span<const ScoredExpert> OwnSelection::select(const ScoresView& view, std::uint32_t token) {
  const std::span<const float> scores = view.scores.subspan(std::size_t{token} * view.experts, view.experts);
  check_finite(view.layer, token, scores);
  group_size_ = scores.size() / rule_.groups;
  best_groups_.clear();
  if (rule_.top_groups < rule_.groups) {
    for (std::uint32_t g = 0; g < rule_.groups; ++g) {
      keep_best(best_groups_, rule_.top_groups,
                {*std::ranges::max_element(scores.subspan(g * group_size_, group_size_)), g});
    }
    std::ranges::sort(best_groups_, {}, &ScoredExpert::id);
  } else {
    for (std::uint32_t g = 0; g < rule_.groups; ++g) best_groups_.push_back({0, g});
  }
  best_.clear();
  for (const ScoredExpert& group : best_groups_) {
    const std::size_t begin = group.id * group_size_;
    for (std::size_t e = begin; e < begin + group_size_; ++e) {
      keep_best(best_, rule_.top_k, {scores[e], static_cast<std::uint32_t>(e)});
    }
  }
  return best_;
}

void OwnSelection::append_selectable(std::vector<std::uint32_t>& out) const {
  for (const ScoredExpert& group : best_groups_)
    for (std::size_t e = group.id * group_size_; e < (group.id + std::size_t{1}) * group_size_; ++e)
      out.push_back(static_cast<std::uint32_t>(e));
}

void append_choices(const CombineRule& rule, std::span<const ScoredExpert> set, std::vector<Choice>& out) {
  float divisor = 1.0f;
  if (rule.renormalise) {
    float sum = 0.0f;
    for (const ScoredExpert& one : set) sum += one.score;
    divisor = sum + rule.epsilon;
  }
  for (const ScoredExpert& one : set) {
    const float g = divisor == 0.0f ? 0.0f : one.score / divisor;
    out.push_back({.expert = static_cast<std::uint16_t>(one.id),
                   .precision = Precision::kFull,
                   .weight = g * rule.scale});
  }
}

}  // namespace sluice::experts
