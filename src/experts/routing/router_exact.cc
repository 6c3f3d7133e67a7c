// The model's own routing without changes: top-k of the softmax scores, group-limited as in DeepSeek-V2
// (arXiv 2405.04434 §2.1.2 and its published code), capacity as in Switch Transformers (arXiv 2101.03961
// §2.2). SPEC §0, §9.
#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "experts/routing/router.h"
#include "experts/routing/router_config.h"
#include "experts/routing/selection.h"

namespace sluice::experts {
namespace {

class ExactRouter final : public Router {
 public:
  ExactRouter(const SelectRule& select, const CombineRule& combine) : selection_(select), combine_(combine) {}

  void end_sequence(SequenceId sequence) override { taken_.erase(sequence); }

  void route(const ScoresView& view, const ResidencyView&, Routing& out) override {
    selection_.check(view);
    out.choices.clear();
    out.begin.assign(1, 0);
    out.exact.clear();
    out.exact_begin.clear();
    for (const SequenceSpan& span : view.spans) {
      std::uint32_t* const taken = selection_.rule().capacity != 0 ? taken_of(span, view) : nullptr;
      for (std::uint32_t t = span.first_token; t < span.first_token + span.tokens; ++t) {
        const std::span<const ScoredExpert> best = selection_.select(view, t);
        set_.assign(best.begin(), best.end());
        std::ranges::sort(set_, {}, &ScoredExpert::id);
        if (taken != nullptr)
          std::erase_if(set_,
                        [&](const ScoredExpert& c) { return taken[c.id]++ >= selection_.rule().capacity; });
        append_choices(combine_, set_, out.choices);
        out.begin.push_back(static_cast<std::uint32_t>(out.choices.size()));
      }
    }
  }

  std::string name() const override { return "exact"; }

 private:
  // By expert: how many tokens of the span's forward have chosen it in this layer.
  std::uint32_t* taken_of(const SequenceSpan& span, const ScoresView& view) {
    std::vector<std::uint32_t>& taken = taken_[span.sequence];
    const std::size_t row = std::size_t{view.layer} * view.experts;
    if (row + view.experts > taken.size()) taken.resize(row + view.experts);
    if (span.first_of_forward) std::fill_n(taken.data() + row, view.experts, 0u);
    return taken.data() + row;
  }

  OwnSelection selection_;
  CombineRule combine_;
  // Tokens of a sequence that chose an expert in the sequence's running forward: [layer * N + expert]. Filled
  // only where capacity is limited.
  std::unordered_map<SequenceId, std::vector<std::uint32_t>> taken_;
  std::vector<ScoredExpert> set_;  // scratch of one token
};

}  // namespace

std::span<const Choice> Routing::token(std::uint32_t t) const {
  return std::span(choices).subspan(begin[t], begin[t + 1] - begin[t]);
}

std::unique_ptr<Router> make_exact_router(const SelectRule& select, const CombineRule& combine) {
  return std::make_unique<ExactRouter>(select, combine);
}

std::unique_ptr<Router> make_exact_router(const RouterConfig& config) {
  return make_exact_router(config.select, config.combine);
}

}  // namespace sluice::experts
