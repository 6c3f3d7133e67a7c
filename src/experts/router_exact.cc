// The model's own routing, changed in nothing: top-k of the softmax scores, group-limited as in DeepSeek-V2
// (arXiv 2405.04434 §2.1.2 and its published code), capacity as in Switch Transformers (arXiv 2101.03961
// §2.2). SPEC §0, §9.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "experts/router.h"

namespace sluice::experts {
namespace {

struct Candidate {
  float score;
  std::uint32_t id;
};

// Puts (score, id) in its place among the best `limit` so far, score descending; ids come in ascending order,
// so an equal score goes behind. O(limit).
void keep_best(std::vector<Candidate>& best, std::size_t limit, Candidate candidate) {
  if (best.size() == limit) {
    if (!(candidate.score > best.back().score)) return;
    best.pop_back();
  }
  auto place = best.end();
  while (place != best.begin() && candidate.score > std::prev(place)->score) --place;
  best.insert(place, candidate);
}

class ExactRouter final : public Router {
 public:
  ExactRouter(const SelectRule& select, const CombineRule& combine) : select_(select), combine_(combine) {
    if (select.top_k == 0)
      throw Error(ErrorKind::kInvalid, "a token must select an expert").in("top_k").found("0");
    if (select.groups == 0 || select.top_groups == 0 || select.top_groups > select.groups) {
      throw Error(ErrorKind::kInvalid, "expert groups contradict each other")
          .expected("1 <= top_groups <= groups")
          .found("top_groups " + std::to_string(select.top_groups) + ", groups " +
                 std::to_string(select.groups));
    }
  }

  void begin_forward() override {
    for (std::vector<std::uint32_t>& layer : taken_) std::fill(layer.begin(), layer.end(), 0);
  }

  void route(const ScoresView& view, const ResidencyView&, Routing& out) override {
    check(view);
    out.choices.clear();
    out.begin.assign(1, 0);
    out.exact.clear();
    out.exact_begin.clear();
    for (std::uint32_t t = 0; t < view.tokens; ++t) {
      const std::span<const float> scores = view.scores.subspan(std::size_t{t} * view.experts, view.experts);
      check_finite(view.layer, t, scores);
      select(scores);
      std::ranges::sort(best_, {}, &Candidate::id);
      if (select_.capacity != 0) drop_over_capacity(view, t);
      combine(out.choices);
      out.begin.push_back(static_cast<std::uint32_t>(out.choices.size()));
    }
  }

  std::string name() const override { return "exact"; }

 private:
  void check(const ScoresView& view) const {
    SLUICE_CHECK(view.scores.size() == std::size_t{view.tokens} * view.experts);
    SLUICE_CHECK(view.sequence.size() == view.tokens || (view.sequence.empty() && select_.capacity == 0));
    if (view.tokens == 0) return;
    const std::uint32_t n = view.experts;
    const bool possible = n <= std::numeric_limits<std::uint16_t>::max() + 1u && n % select_.groups == 0 &&
                          select_.top_k <= std::uint64_t{n / select_.groups} * select_.top_groups;
    if (possible) return;
    throw Error(ErrorKind::kInvalid, "experts cannot be selected as configured")
        .in("sparse layer " + std::to_string(view.layer))
        .expected("at most 65536 experts, a multiple of " + std::to_string(select_.groups) +
                  " groups, and at least top_k " + std::to_string(select_.top_k) + " of them in the best " +
                  std::to_string(select_.top_groups))
        .found(std::to_string(n) + " experts");
  }

  static void check_finite(std::uint32_t layer, std::uint32_t token, std::span<const float> scores) {
    for (std::size_t e = 0; e < scores.size(); ++e) {
      if (std::isfinite(scores[e])) [[likely]]
        continue;
      throw Error(ErrorKind::kInvalid, "router score is not finite")
          .in("sparse layer " + std::to_string(layer) + ", token " + std::to_string(token) + ", expert " +
              std::to_string(e))
          .found(std::to_string(scores[e]))
          .fix(
              "the weights are damaged or do not fit config.json: get the model again (`sluice verify` tells "
              "whether a packed store is sound)");
    }
  }

  // best_ := the selected experts, score descending, id ascending.
  void select(std::span<const float> scores) {
    const std::size_t group_size = scores.size() / select_.groups;
    best_groups_.clear();
    if (select_.top_groups < select_.groups) {
      for (std::uint32_t g = 0; g < select_.groups; ++g) {
        keep_best(best_groups_, select_.top_groups,
                  {*std::ranges::max_element(scores.subspan(g * group_size, group_size)), g});
      }
      std::ranges::sort(best_groups_, {}, &Candidate::id);
    } else {
      for (std::uint32_t g = 0; g < select_.groups; ++g) best_groups_.push_back({0, g});
    }
    best_.clear();
    for (const Candidate& group : best_groups_) {
      const std::size_t begin = group.id * group_size;
      for (std::size_t e = begin; e < begin + group_size; ++e) {
        keep_best(best_, select_.top_k, {scores[e], static_cast<std::uint32_t>(e)});
      }
    }
  }

  void drop_over_capacity(const ScoresView& view, std::uint32_t token) {
    if (view.layer >= taken_.size()) taken_.resize(view.layer + std::size_t{1});
    std::vector<std::uint32_t>& taken = taken_[view.layer];
    const std::size_t row = std::size_t{view.sequence[token]} * view.experts;
    if (row + view.experts > taken.size()) taken.resize(row + view.experts);
    std::erase_if(best_, [&](const Candidate& c) { return taken[row + c.id]++ >= select_.capacity; });
  }

  void combine(std::vector<Choice>& out) const {
    float divisor = 1.0f;
    if (combine_.renormalise) {
      float sum = 0.0f;
      for (const Candidate& c : best_) sum += c.score;
      divisor = sum + combine_.epsilon;
    }
    for (const Candidate& c : best_) {
      const float g = divisor == 0.0f ? 0.0f : c.score / divisor;
      out.push_back({.expert = static_cast<std::uint16_t>(c.id),
                     .precision = Precision::kFull,
                     .weight = g * combine_.scale});
    }
  }

  SelectRule select_;
  CombineRule combine_;
  // Tokens that chose an expert in this forward: [layer][sequence * N + expert]. Filled only where capacity
  // counts.
  std::vector<std::vector<std::uint32_t>> taken_;
  std::vector<Candidate> best_, best_groups_;  // scratch of one token
};

}  // namespace

std::span<const Choice> Routing::token(std::uint32_t t) const {
  return std::span(choices).subspan(begin[t], begin[t + 1] - begin[t]);
}

std::unique_ptr<Router> make_exact_router(const SelectRule& select, const CombineRule& combine) {
  return std::make_unique<ExactRouter>(select, combine);
}

}  // namespace sluice::experts
