// The model's own routing without changes: top-k of the softmax scores, group-limited as in DeepSeek-V2
// (arXiv 2405.04434 §2.1.2 and its published code), capacity as in Switch Transformers (arXiv 2101.03961
// §2.2). SPEC §0, §9.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "experts/routing/router.h"
#include "experts/routing/router_config.h"
#include "experts/routing/selection.h"

namespace sluice::experts {
namespace {

class ExactRouter final : public Router {
 public:
  ExactRouter(const SelectRule& select, const CombineRule& combine) : selection_(select), combine_(combine) {}

  void end_step(std::span<const SequenceSpan> spans) override {
    if (taken_.empty()) return;
    for (const SequenceSpan& span : spans) taken_[span.sequence].keep();
  }
  void cancel_step(std::span<const SequenceSpan> spans) override {
    if (taken_.empty()) return;
    for (const SequenceSpan& span : spans) taken_[span.sequence].take_back();
  }
  void end_sequence(SequenceId sequence) override { taken_.erase(sequence); }

  void route(const ScoresView& view, const ResidencyView&, Routing& out) override {
    selection_.check(view);
    out.choices.clear();
    out.begin.assign(1, 0);
    out.exact.clear();
    out.exact_begin.clear();
    for (const SequenceSpan& span : view.spans) {
      std::uint32_t* const taken =
          selection_.rule().capacity != 0
              ? taken_[span.sequence].layer(view.layer, view.experts, span.first_of_forward)
              : nullptr;
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
  // Tokens of one sequence that chose an expert in the sequence's running forward.
  class Taken {
   public:
    // By expert of the layer, for the running step to count on.
    std::uint32_t* layer(std::uint32_t layer, std::uint32_t experts, bool first_of_forward) {
      if (layer >= layers_.size()) layers_.resize(layer + std::size_t{1});
      Layer& one = layers_[layer];
      if (!one.changed) one.before = one.now;
      one.changed = true;
      if (first_of_forward) one.now.clear();
      one.now.resize(experts);
      return one.now.data();
    }
    void keep() {
      for (Layer& one : layers_) one.changed = false;
    }
    void take_back() {
      for (Layer& one : layers_)
        if (std::exchange(one.changed, false)) one.now.swap(one.before);
    }

   private:
    struct Layer {
      std::vector<std::uint32_t> now, before;  // by expert; before: as the running step found it
      bool changed = false;                    // by the running step
    };
    std::vector<Layer> layers_;
  };

  OwnSelection selection_;
  CombineRule combine_;
  std::unordered_map<SequenceId, Taken> taken_;  // empty unless capacity is limited
  std::vector<ScoredExpert> set_;                // scratch of one token
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
