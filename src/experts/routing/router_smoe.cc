// The router smoe: SMoE's choice (smoe_choice.h) for the tokens that a step decodes; tokens of prompts keep
// the model's own experts. SMoE (arXiv 2508.18983) §5.1, §5.4; SPEC §2.2.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/setting.h"
#include "experts/routing/loss_guard.h"
#include "experts/routing/router_config.h"
#include "experts/routing/selection.h"
#include "experts/routing/smoe_choice.h"

namespace sluice::experts {
namespace {

class SmoeRouter final : public Router {
 public:
  explicit SmoeRouter(const RouterConfig& config)
      : rules_(config.smoe), combine_(config.combine), guard_(config.guard), own_(config.select) {
    rules_.validate();
    if (config.select.capacity != 0)
      throw Error(ErrorKind::kUnsupported, "experts of limited capacity are routed by their model alone")
          .in(Setting::kRouter)
          .found(name())
          .fix("use the router exact");
  }

  void route(const ScoresView& view, const ResidencyView& residency, Routing& out) override {
    own_.check(view);
    collect(view);
    if (!decoded_.empty() && rules_.alpha > 0) {
      find_reach(view, residency);
      choice_.choose({.tokens = static_cast<std::uint32_t>(decoded_.size()),
                      .experts = view.experts,
                      .top_k = own_.rule().top_k,
                      .scores = scores_,
                      .reach = reach_,
                      .resident = resident_,
                      .selectable = selectable_},
                     rules_);
    }
    write(view, out);
  }

  std::string name() const override { return "smoe"; }

 private:
  // Writes the model's own choice of every token to own_sets_, and to the other lists the tokens that are
  // decoded, their scores, and which experts they may select.
  void collect(const ScoresView& view) {
    decoded_.clear();
    scores_.clear();
    selectable_.clear();
    own_sets_.clear();
    const bool grouped = own_.rule().groups > 1;
    for (const SequenceSpan& span : view.spans)
      for (std::uint32_t t = span.first_token; t < span.first_token + span.tokens; ++t) {
        const std::span<const ScoredExpert> best = own_.select(view, t);
        own_sets_.insert(own_sets_.end(), best.begin(), best.end());
        std::ranges::sort(own_sets_.end() - static_cast<std::ptrdiff_t>(best.size()), own_sets_.end(), {},
                          &ScoredExpert::id);
        if (span.kind == StepKind::kPrompt) continue;
        decoded_.push_back(t);
        const std::span<const float> row = view.scores.subspan(std::size_t{t} * view.experts, view.experts);
        scores_.insert(scores_.end(), row.begin(), row.end());  // as doubles, in which the choice is made
        if (!grouped) continue;
        allowed_.clear();
        own_.append_selectable(allowed_);
        selectable_.resize(scores_.size());
        for (const std::uint32_t e : allowed_) selectable_[scores_.size() - view.experts + e] = 1;
      }
  }

  // Where the device has no expert of the layer, the host's memory is what there is.
  void find_reach(const ScoresView& view, const ResidencyView& residency) {
    reach_.clear();
    resident_ = Reach::kHost;
    for (std::uint32_t e = 0; e < view.experts; ++e) {
      const ExpertId id{static_cast<std::uint16_t>(view.layer), static_cast<std::uint16_t>(e)};
      const bool on_device = residency.is_nearer(id);
      reach_.push_back(on_device                            ? Reach::kDevice
                       : is_computable(residency.parts(id)) ? Reach::kHost
                                                            : Reach::kMissing);
      if (on_device && rules_.resident == SmoeResident::kDevice) resident_ = Reach::kDevice;
    }
  }

  void write(const ScoresView& view, Routing& out) {
    out.choices.clear();
    out.begin.assign(1, 0);
    out.exact.clear();
    out.exact_begin.assign(1, 0);
    const std::uint32_t k = own_.rule().top_k;
    std::uint32_t decoded = 0;  // tokens of decoded_ that are written
    lost_ = 0;
    for (std::uint32_t t = 0; t < view.tokens; ++t) {
      const std::span<const ScoredExpert> own = std::span(own_sets_).subspan(std::size_t{t} * k, k);
      for (const ScoredExpert& one : own) out.exact.push_back(static_cast<std::uint16_t>(one.id));
      out.exact_begin.push_back(static_cast<std::uint32_t>(out.exact.size()));
      const bool routed = decoded < decoded_.size() && decoded_[decoded] == t;
      if (routed && rules_.alpha > 0)
        append_chosen(view, t, decoded, own, out.choices);
      else
        append_choices(combine_, own, out.choices);
      out.begin.push_back(static_cast<std::uint32_t>(out.choices.size()));
      if (routed) ++decoded;
    }
  }

  void append_chosen(const ScoresView& view, std::uint32_t token, std::uint32_t decoded,
                     std::span<const ScoredExpert> own, std::vector<Choice>& choices) {
    if (!may_lose(own, decoded)) return append_choices(combine_, own, choices);
    double own_mass = 0, set_mass = 0;
    for (const ScoredExpert& one : own) own_mass += one.score;
    set_.clear();
    for (const std::uint32_t e : choice_.set(decoded)) {
      set_.push_back({view.scores[std::size_t{token} * view.experts + e], e});
      set_mass += set_.back().score;
    }
    const bool same = std::ranges::equal(set_, own, {}, &ScoredExpert::id, &ScoredExpert::id);
    append_choices(same ? combine_ : smoe_combine_rule(rules_.renorm, combine_, own_mass, set_mass), set_,
                   choices);
  }

  // A token whose replaced experts would pass the limit on the loss keeps them all.
  bool may_lose(std::span<const ScoredExpert> own, std::uint32_t decoded) {
    if (guard_ == nullptr) return true;
    double mass = 0;
    for (const ScoredExpert& one : own)
      if (!std::ranges::binary_search(choice_.set(decoded), one.id)) mass += one.score;
    if (mass > guard_->mass_allowance(decoded, lost_)) return false;
    lost_ += mass;
    return true;
  }

  SmoeRules rules_;
  CombineRule combine_;
  const LossGuard* guard_;
  OwnSelection own_;
  SmoeChoice choice_;
  // For one step.
  std::vector<std::uint32_t> decoded_;    // tokens that are routed by the choice, ascending: D of them
  std::vector<double> scores_;            // (D, N)
  std::vector<Reach> reach_;              // (N)
  Reach resident_ = Reach::kHost;         // SmoeInput::resident
  std::vector<std::uint8_t> selectable_;  // (D, N); empty: all
  std::vector<ScoredExpert> own_sets_;    // (T, k): the model's own, ascending in id
  std::vector<std::uint32_t> allowed_;    // for one token
  std::vector<ScoredExpert> set_;         // for one token
  double lost_ = 0;                       // score mass of the tokens that are written
};

}  // namespace

std::unique_ptr<Router> make_smoe_router(const RouterConfig& config) {
  return std::make_unique<SmoeRouter>(config);
}

}  // namespace sluice::experts
