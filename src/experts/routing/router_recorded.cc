// Plays recorded routing: a token computes with the experts that a token of a recorded run chose, whatever
// the model's router says. For benchmarks alone, so that weights without a training meet real locality. The
// weights of the experts are the model's, from its own scores over the set that is played; so a run of the
// model on which the routing was recorded, over the same tokens, computes the same bits. docs/replay.md.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/setting.h"
#include "experts/routing/router_config.h"
#include "experts/routing/routing_script.h"
#include "experts/routing/selection.h"

namespace sluice::experts {
namespace {

class RecordedRouter final : public Router {
 public:
  explicit RecordedRouter(const RouterConfig& config)
      : script_(config.script), combine_(config.combine), own_(config.select) {
    if (script_ == nullptr)
      throw Error(ErrorKind::kUsage, "the router recorded has no routing to play here")
          .in(Setting::kRouter)
          .expected("a routing trace beside it (" + Setting::kRouting +
                    " FILE), which run, trace and compare take")
          .found("none")
          .fix("use another router");
    SLUICE_CHECK(script_->top_k() == config.select.top_k, "the script is fitted to another model");
    if (config.select.capacity != 0)
      throw Error(ErrorKind::kUnsupported, "experts of limited capacity are routed by their model alone")
          .in(Setting::kRouter)
          .found(name())
          .fix("use the router exact");
  }

  void end_sequence(SequenceId sequence) override { parts_.erase(sequence); }

  void route(const ScoresView& view, const ResidencyView&, Routing& out) override {
    own_.check(view);
    out.choices.clear();
    out.begin.assign(1, 0);
    out.exact.clear();
    out.exact_begin.assign(1, 0);
    for (const SequenceSpan& span : view.spans)
      for (std::uint32_t i = 0; i < span.tokens; ++i) {
        const std::uint32_t token = span.first_token + i;
        set_.clear();
        for (const std::uint16_t id : played(span.sequence, span.position + i, view.layer))
          set_.push_back({view.scores[std::size_t{token} * view.experts + id], id});
        append_choices(combine_, set_, out.choices);
        out.begin.push_back(static_cast<std::uint32_t>(out.choices.size()));
        append_own(view, token, out);
      }
  }

  std::string name() const override { return "recorded"; }

 private:
  // From this position of a sequence on, the tokens of a recorded sequence are played.
  struct Part {
    std::uint64_t position = 0;
    std::size_t recorded = 0;
    std::uint64_t end(const RoutingScript& script) const { return position + script.tokens(recorded); }
  };

  // Positions before the current ones may come again, after a failed step or where a sequence was cut.
  std::span<const std::uint16_t> played(SequenceId sequence, std::uint64_t position, std::uint32_t layer) {
    std::vector<Part>& parts = parts_[sequence];
    while (parts.empty() || position >= parts.back().end(*script_))
      parts.push_back({parts.empty() ? 0 : parts.back().end(*script_), next_recorded()});
    auto part = parts.end() - 1;
    while (position < part->position) --part;
    return script_->experts(part->recorded, position - part->position, layer);
  }

  // The recorded sequences in their order, again and again; some sequence has tokens.
  std::size_t next_recorded() {
    do last_ = (last_ + 1) % script_->sequences();
    while (script_->tokens(last_) == 0);
    return last_;
  }

  // The model's own choice, against which changes are counted.
  void append_own(const ScoresView& view, std::uint32_t token, Routing& out) {
    const std::size_t first = out.exact.size();
    for (const ScoredExpert& one : own_.select(view, token))
      out.exact.push_back(static_cast<std::uint16_t>(one.id));
    std::sort(out.exact.begin() + static_cast<std::ptrdiff_t>(first), out.exact.end());
    out.exact_begin.push_back(static_cast<std::uint32_t>(out.exact.size()));
  }

  const RoutingScript* script_;
  CombineRule combine_;
  OwnSelection own_;
  std::unordered_map<SequenceId, std::vector<Part>> parts_;
  std::size_t last_ = static_cast<std::size_t>(-1);  // recorded sequence that was begun last
  std::vector<ScoredExpert> set_;                    // scratch of one token
};

}  // namespace

std::unique_ptr<Router> make_recorded_router(const RouterConfig& config) {
  return std::make_unique<RecordedRouter>(config);
}

}  // namespace sluice::experts
