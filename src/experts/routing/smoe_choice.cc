#include "experts/routing/smoe_choice.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::experts {

std::span<const std::uint32_t> SmoeChoice::set(std::uint32_t token) const {
  return std::span(sets_).subspan(begin_[token], begin_[token + 1] - begin_[token]);
}

std::span<const std::uint32_t> SmoeChoice::own(std::uint32_t token) const {
  return std::span(own_).subspan(std::size_t{token} * top_k_, top_k_);
}

std::span<const double> SmoeChoice::row(const SmoeInput& input, std::uint32_t token) const {
  return input.scores.subspan(std::size_t{token} * input.experts, input.experts);
}

std::span<const std::uint8_t> SmoeChoice::selectable_row(const SmoeInput& input, std::uint32_t token) const {
  if (input.selectable.empty()) return {};
  return input.selectable.subspan(std::size_t{token} * input.experts, input.experts);
}

void SmoeChoice::choose(const SmoeInput& input, const SmoeRules& rules) {
  const std::size_t all = std::size_t{input.tokens} * input.experts;
  SLUICE_CHECK(input.scores.size() == all && input.reach.size() == input.experts);
  SLUICE_CHECK(input.selectable.empty() || input.selectable.size() == all);
  top_k_ = input.top_k;
  rank(input, rules.alpha);
  users_.assign(input.experts, 0);
  // As much as any scores and residents of such a step may need.
  const std::size_t most = std::size_t{input.tokens} * top_k_;
  retained_.clear();
  retained_.reserve(most);
  sets_.reserve(most);
  misses_.reserve(input.experts);
  misfits_.reserve(input.experts);
  alternatives_.reserve(input.experts);
  for (std::uint32_t t = 0; t < input.tokens; ++t)
    rules.printed ? choose_printed(input, rules.alpha, t) : choose_token(input, rules.alpha, t);
  if (rules.merge && !rules.printed) merge(input, rules.alpha);
  collect(input);
}

void SmoeChoice::rank(const SmoeInput& input, double alpha) {
  ranked_.clear();
  tops_.clear();
  beta_.clear();
  near_.clear();
  for (const Reach reach : input.reach) near_.push_back(reach >= input.resident ? 1 : 0);
  marks_.assign(std::size_t{input.tokens} * input.experts, 0);
  for (std::uint32_t t = 0; t < input.tokens; ++t) {
    classes_.classify(row(input, t), selectable_row(input, t), top_k_, alpha);
    for (const std::uint32_t e : classes_.chosen()) {
      ranked_.push_back(e);
      marks_[std::size_t{t} * input.experts + e] |= kOwn;
    }
    for (const std::uint32_t e : classes_.top()) near_[e] = 1;
    tops_.push_back(static_cast<std::uint32_t>(classes_.top().size()));
    beta_.push_back(classes_.beta());
  }
}

// The token keeps its top-score experts, and the low-score ones that are near. Each other low-score expert
// gives way to a near expert of its own score class, best score first; those for which none is left are
// retained, the best ones; and what must be read from disk gives way even then, to what need not.
void SmoeChoice::choose_token(const SmoeInput& input, double alpha, std::uint32_t token) {
  const std::span<const double> scores = row(input, token);
  const std::span<const std::uint8_t> selectable = selectable_row(input, token);
  std::uint8_t* const marks = marks_.data() + std::size_t{token} * input.experts;
  const std::span<const std::uint32_t> own = std::span(ranked_).subspan(std::size_t{token} * top_k_, top_k_);
  const auto take = [&](std::uint32_t e) {
    marks[e] |= kIn;
    ++users_[e];
  };
  const auto better = [&](std::uint32_t a, std::uint32_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };

  misfits_.clear();
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (i < tops_[token] || near_[own[i]] != 0) {
      take(own[i]);
    } else {
      misfits_.push_back(own[i]);
    }
  }
  const auto is_missing = [&](std::uint32_t e) { return input.reach[e] == Reach::kMissing; };
  std::ranges::sort(misfits_, [&](std::uint32_t a, std::uint32_t b) {
    return is_missing(a) != is_missing(b) ? is_missing(b) : better(a, b);
  });

  const double least = (1 - alpha) * beta_[token];
  // The last of misfits_ give way, `most` of them at most.
  const auto replace = [&](std::size_t most, const auto& serves) {
    alternatives_.clear();
    for (std::uint32_t e = 0; e < input.experts && most > 0; ++e) {
      if (marks[e] == 0 && serves(e) && scores[e] >= least && (selectable.empty() || selectable[e] != 0))
        alternatives_.push_back(e);
    }
    const std::size_t replaced = std::min(most, alternatives_.size());
    std::ranges::partial_sort(alternatives_, alternatives_.begin() + static_cast<std::ptrdiff_t>(replaced),
                              [&](std::uint32_t a, std::uint32_t b) {
                                const bool a_first = input.reach[a] > input.resident,
                                           b_first = input.reach[b] > input.resident;
                                return a_first != b_first ? a_first : better(a, b);
                              });
    for (std::size_t i = 0; i < replaced; ++i) take(alternatives_[i]);
    misfits_.resize(misfits_.size() - replaced);
  };
  replace(misfits_.size(), [&](std::uint32_t e) { return near_[e] != 0; });
  replace(static_cast<std::size_t>(std::ranges::count_if(misfits_, is_missing)),
          [&](std::uint32_t e) { return !is_missing(e); });
  for (const std::uint32_t e : misfits_) {
    take(e);
    retained_.push_back({.score = scores[e], .token = token, .expert = e});
  }
}

// T, B and A as the paper prints them: B covers all experts, and A only those below the border.
void SmoeChoice::choose_printed(const SmoeInput& input, double alpha, std::uint32_t token) {
  const std::span<const double> scores = row(input, token);
  const std::span<const std::uint8_t> selectable = selectable_row(input, token);
  std::uint8_t* const marks = marks_.data() + std::size_t{token} * input.experts;
  const double beta = beta_[token];
  for (std::size_t i = 0; i < tops_[token]; ++i) marks[ranked_[std::size_t{token} * top_k_ + i]] |= kIn;
  misfits_.clear();
  alternatives_.clear();
  for (std::uint32_t e = 0; e < input.experts; ++e) {
    if (!selectable.empty() && selectable[e] == 0) continue;
    if (scores[e] >= beta && scores[e] < (1 + alpha) * beta) misfits_.push_back(e);
    if (scores[e] >= (1 - alpha) * beta && scores[e] < beta && near_[e] != 0) alternatives_.push_back(e);
  }
  const auto better = [&](std::uint32_t a, std::uint32_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  std::ranges::sort(misfits_, better);
  std::ranges::sort(alternatives_, better);
  const std::size_t replaced = std::min(misfits_.size(), alternatives_.size());
  for (std::size_t i = 0; i < replaced; ++i) marks[alternatives_[i]] |= kIn;
  for (std::size_t i = 0; i + replaced < misfits_.size(); ++i) marks[misfits_[i]] |= kIn;
}

// Loads that few tokens need give way to loads that more tokens need. The order of the list is fixed before
// the first replacement; how many tokens need an expert is not.
void SmoeChoice::merge(const SmoeInput& input, double alpha) {
  for (Retained& one : retained_) one.users = users_[one.expert];
  std::ranges::sort(retained_, [](const Retained& a, const Retained& b) {
    if (a.users != b.users) return a.users < b.users;
    if (a.score != b.score) return a.score < b.score;
    return a.token != b.token ? a.token < b.token : a.expert < b.expert;
  });
  for (const Retained& one : retained_) {
    const std::span<const double> scores = row(input, one.token);
    const std::span<const std::uint8_t> selectable = selectable_row(input, one.token);
    std::uint8_t* const marks = marks_.data() + std::size_t{one.token} * input.experts;
    const double least = (1 - alpha) * beta_[one.token];
    std::uint32_t best = one.expert;
    for (std::uint32_t e = 0; e < input.experts; ++e) {
      if (marks[e] != 0 || near_[e] != 0 || scores[e] < least) continue;
      if (input.reach[e] < input.reach[one.expert]) continue;
      if (!selectable.empty() && selectable[e] == 0) continue;
      // The expert itself, which `best` is at first, has to be beaten by users alone.
      if (users_[e] > users_[best] ||
          (best != one.expert && users_[e] == users_[best] && scores[e] > scores[best]))
        best = e;
    }
    if (best == one.expert) continue;
    marks[one.expert] &= static_cast<std::uint8_t>(~kIn);
    --users_[one.expert];
    marks[best] |= kIn;
    ++users_[best];
  }
}

void SmoeChoice::collect(const SmoeInput& input) {
  begin_.assign(1, 0);
  sets_.clear();
  own_.clear();
  misses_.clear();
  substitutions_ = 0;
  lost_mass_ = 0;
  std::ranges::fill(users_, 0u);
  for (std::uint32_t t = 0; t < input.tokens; ++t) {
    const std::span<const double> scores = row(input, t);
    for (std::uint32_t e = 0; e < input.experts; ++e) {
      const std::uint8_t mark = marks_[std::size_t{t} * input.experts + e];
      if ((mark & kOwn) != 0) own_.push_back(e);
      if ((mark & kIn) != 0) {
        sets_.push_back(e);
        ++users_[e];
      } else if ((mark & kOwn) != 0) {
        ++substitutions_;
        lost_mass_ += scores[e];
      }
    }
    begin_.push_back(static_cast<std::uint32_t>(sets_.size()));
  }
  for (std::uint32_t e = 0; e < input.experts; ++e)
    if (users_[e] > 0 && input.reach[e] < input.resident) misses_.push_back(e);
}

CombineRule smoe_combine_rule(SmoeRenorm renorm, const CombineRule& model, double own_mass, double set_mass) {
  // Where the model renormalises, the weights of every set sum up to the same.
  if (renorm == SmoeRenorm::kModel || (renorm == SmoeRenorm::kMass && model.renormalise)) return model;
  const double share = renorm == SmoeRenorm::kNone ? 1 : set_mass == 0 ? 0 : own_mass / set_mass;
  return {.renormalise = false, .epsilon = 0, .scale = static_cast<float>(share * model.scale)};
}

}  // namespace sluice::experts
