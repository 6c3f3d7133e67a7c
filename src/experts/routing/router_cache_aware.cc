// Routers that prefer resident experts: cache-prior adds to their logits, cumsum takes them first among the
// likely experts; both may be limited in misses (miss_constraint.h). They select other experts than the model
// would; the weights are the model's, from the original scores. SliceMoE; SPEC §4.4, §4.5.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "base/setting.h"
#include "experts/core/unit_interval.h"
#include "experts/routing/cached_choice.h"
#include "experts/routing/miss_constraint.h"
#include "experts/routing/router_config.h"
#include "experts/routing/selection.h"

namespace sluice::experts {
namespace {

class CacheAwareRouter final : public Router {
 public:
  enum class Rule { kCachePrior, kCumsum };

  CacheAwareRouter(Rule rule, const RouterConfig& config)
      : rule_(rule), config_(config), own_(config.select) {
    config.cache_aware.validate();
    if (config.select.capacity != 0) {
      throw Error(ErrorKind::kUnsupported, "experts of limited capacity are routed by their model alone")
          .in(Setting::kRouter)
          .found(name())
          .fix("use the router exact");
    }
    const bool needs_lambda =
        config.constraint != nullptr && (config.constraint->config().mode == ConstraintMode::kBoost ||
                                         config.constraint->config().mode == ConstraintMode::kAdaptive);
    if (rule == Rule::kCumsum && needs_lambda) {
      throw Error(ErrorKind::kUsage, "this constraint works by lambda, which cumsum does not have")
          .in(Setting::kRouter)
          .expected("cache-prior, or " + Setting::kConstraint + " hard or none")
          .found("cumsum and " + Setting::kConstraint + " " +
                 std::string(constraint_name(config.constraint->config().mode)))
          .fix("use the router cache-prior, or the constraint hard");
    }
  }

  void route(const ScoresView& view, const ResidencyView& residency, Routing& out) override {
    own_.check(view);
    SLUICE_CHECK(view.logits.size() == view.scores.size());
    out.choices.clear();
    out.begin.assign(1, 0);
    out.exact.clear();
    out.exact_begin.assign(1, 0);
    standing_.clear();
    cached_.clear();
    for (std::uint32_t e = 0; e < view.experts; ++e) {
      const ExpertId id{static_cast<std::uint16_t>(view.layer), static_cast<std::uint16_t>(e)};
      const Parts parts = residency.parts(id);
      cached_.push_back(is_computable(parts) ? 1 : 0);
      if (config_.constraint != nullptr) standing_.push_back(config_.constraint->standing(parts));
    }
    if (config_.constraint != nullptr) config_.constraint->begin_event();
    for (const SequenceSpan& span : view.spans)
      for (std::uint32_t t = span.first_token; t < span.first_token + span.tokens; ++t) {
        route_token(view, span, t);
        append_token(view, t, out);
      }
  }

  void end_sequence(SequenceId sequence) override { ranges_.erase(sequence); }

  std::string name() const override { return rule_ == Rule::kCachePrior ? "cache-prior" : "cumsum"; }

 private:
  void append_token(const ScoresView& view, std::uint32_t token, Routing& out) {
    set_.clear();
    for (std::uint32_t id : selection_)
      set_.push_back({view.scores[std::size_t{token} * view.experts + id], id});
    std::ranges::sort(set_, {}, &ScoredExpert::id);
    append_choices(config_.combine, set_, out.choices);
    out.begin.push_back(static_cast<std::uint32_t>(out.choices.size()));
    std::ranges::sort(exact_);
    for (std::uint32_t id : exact_) out.exact.push_back(static_cast<std::uint16_t>(id));
    out.exact_begin.push_back(static_cast<std::uint32_t>(out.exact.size()));
  }

  // Fills exact_ and selection_.
  void route_token(const ScoresView& view, const SequenceSpan& span, std::uint32_t token) {
    exact_.clear();
    for (const ScoredExpert& one : own_.select(view, token)) exact_.push_back(one.id);
    selection_ = exact_;
    const std::span<const float> logits =
        view.logits.subspan(std::size_t{token} * view.experts, view.experts);
    z_.assign(logits.begin(), logits.end());
    const double range = mean_range(span.sequence, view.layer);
    if (span.kind == StepKind::kPrompt) return;

    ranking_.clear();
    own_.append_selectable(ranking_);
    std::ranges::sort(ranking_, [&](std::uint32_t a, std::uint32_t b) {  // stable_sort would allocate
      return z_[a] != z_[b] ? z_[a] > z_[b] : a < b;
    });
    const CacheAwareRules& rules = config_.cache_aware;
    const std::uint32_t k = config_.select.top_k;
    if (rule_ == Rule::kCumsum) {
      const std::span<const float> scores =
          view.scores.subspan(std::size_t{token} * view.experts, view.experts);
      probability_.assign(scores.begin(), scores.end());
      select_cumsum(ranking_, probability_, cached_, rules.p, rules.top_j, k, selection_);
    } else if (const double boost = lambda() * range; boost > 0) {  // else the model's own
      select_cache_prior(ranking_, z_, cached_, boost, rules.top_j, k, selection_);
    }
    if (config_.constraint == nullptr || !config_.constraint->replaces()) return;
    config_.constraint->replace(view.layer, ranking_, z_, standing_,
                                view.scores.subspan(std::size_t{token} * view.experts, view.experts),
                                selection_);
    for (std::uint32_t id : selection_) standing_[id] = Standing::kRequested;
  }

  double lambda() const {
    const std::optional<double> given =
        config_.constraint == nullptr ? std::nullopt : config_.constraint->lambda();
    return given.value_or(config_.cache_aware.lambda);
  }

  // The mean of max z - min z over the sequence's tokens in this layer so far, this one included.
  double mean_range(SequenceId sequence, std::uint32_t layer) {
    std::vector<Range>& ranges = ranges_[sequence];
    if (layer >= ranges.size()) ranges.resize(layer + std::size_t{1});
    Range& range = ranges[layer];
    const auto [least, most] = std::ranges::minmax(z_);
    if (!std::isfinite(most - least)) {
      throw Error(ErrorKind::kInvalid, "router logit is not finite")
          .in("sparse layer " + std::to_string(layer))
          .fix("the weights are damaged or do not fit config.json: get the model again");
    }
    range.sum += most - least;
    range.tokens += 1;
    return range.sum / range.tokens;
  }

  struct Range {
    double sum = 0, tokens = 0;
  };

  Rule rule_;
  RouterConfig config_;
  OwnSelection own_;
  std::unordered_map<SequenceId, std::vector<Range>> ranges_;  // by layer
  // For one event, by expert: its standing where there is a constraint, and whether it is resident.
  std::vector<Standing> standing_;
  std::vector<std::uint8_t> cached_;
  // For one token.
  std::vector<double> z_, probability_;  // by expert
  std::vector<std::uint32_t> ranking_, exact_, selection_;
  std::vector<ScoredExpert> set_;
};

}  // namespace

void CacheAwareRules::validate() const {
  require_in_unit("lambda", lambda);
  require_in_unit("p", p);
}

void CacheAwareRules::validate_for(std::uint32_t experts) const {
  validate();
  if (top_j <= experts) return;
  throw Error(ErrorKind::kUsage, "more experts are exempt from replacement than a layer has")
      .in(Setting::kTopJ)
      .expected("0 to " + std::to_string(experts) + ", the experts of a layer")
      .found(std::to_string(top_j))
      .fix("give fewer: the number of a token's experts exempts them all");
}

std::unique_ptr<Router> make_cache_prior_router(const RouterConfig& config) {
  return std::make_unique<CacheAwareRouter>(CacheAwareRouter::Rule::kCachePrior, config);
}

std::unique_ptr<Router> make_cumsum_router(const RouterConfig& config) {
  return std::make_unique<CacheAwareRouter>(CacheAwareRouter::Rule::kCumsum, config);
}

}  // namespace sluice::experts
