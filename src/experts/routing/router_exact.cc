// The model's own routing without changes: top-k of the softmax scores, group-limited as in DeepSeek-V2
// (arXiv 2405.04434 §2.1.2 and its published code), capacity as in Switch Transformers (arXiv 2101.03961
// §2.2). SPEC §0, §9.
#include <algorithm>

#include "base/error.h"
#include "experts/routing/router.h"
#include "experts/routing/router_config.h"
#include "experts/routing/selection.h"

namespace sluice::experts {
namespace {

class ExactRouter final : public Router {
 public:
  ExactRouter(const SelectRule& select, const CombineRule& combine) : selection_(select), combine_(combine) {}

  void begin_forward() override {
    for (std::vector<std::uint32_t>& layer : taken_) std::fill(layer.begin(), layer.end(), 0);
  }

  void route(const ScoresView& view, const ResidencyView&, Routing& out) override {
    selection_.check(view);
    out.choices.clear();
    out.begin.assign(1, 0);
    out.exact.clear();
    out.exact_begin.clear();
    for (std::uint32_t t = 0; t < view.tokens; ++t) {
      const std::span<const ScoredExpert> best = selection_.select(view, t);
      set_.assign(best.begin(), best.end());
      std::ranges::sort(set_, {}, &ScoredExpert::id);
      if (selection_.rule().capacity != 0) drop_over_capacity(view, t);
      append_choices(combine_, set_, out.choices);
      out.begin.push_back(static_cast<std::uint32_t>(out.choices.size()));
    }
  }

  std::string name() const override { return "exact"; }

 private:
  void drop_over_capacity(const ScoresView& view, std::uint32_t token) {
    if (view.layer >= taken_.size()) taken_.resize(view.layer + std::size_t{1});
    std::vector<std::uint32_t>& taken = taken_[view.layer];
    const std::size_t row = std::size_t{view.sequence[token]} * view.experts;
    if (row + view.experts > taken.size()) taken.resize(row + view.experts);
    std::erase_if(set_,
                  [&](const ScoredExpert& c) { return taken[row + c.id]++ >= selection_.rule().capacity; });
  }

  OwnSelection selection_;
  CombineRule combine_;
  // Tokens that chose an expert in this forward: [layer][sequence * N + expert]. Filled only where capacity
  // is limited.
  std::vector<std::vector<std::uint32_t>> taken_;
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
