#include "experts/routing/precision.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "base/error.h"
#include "base/setting.h"
#include "experts/core/unit_interval.h"
#include "experts/core/value_names.h"

namespace sluice::experts {
namespace {

// By value.
constexpr std::string_view kPrecisions[] = {"full", "dbsc", "high", "low"};
constexpr std::string_view kCriticalRules[] = {"single-head", "rel_top1", "fixed_top_c"};

void set_critical(const CriticalRule& rule, std::span<Choice> token) {
  double sum = 0, most = 0;
  for (const Choice& choice : token) {
    sum += choice.weight;
    most = std::max(most, double{choice.weight});
  }
  for (Choice& choice : token) {
    const double g = choice.weight;
    bool critical = false;
    switch (rule.kind) {
      case CriticalRule::Kind::kSingleHead:
        critical = sum > 0 && g / sum >= rule.theta;
        break;
      case CriticalRule::Kind::kRelTop1:
        critical = g >= rule.theta * most;
        break;
      case CriticalRule::Kind::kFixedTopC:
        critical =
            std::ranges::count_if(token, [&](const Choice& other) {
              return std::tuple(-other.weight, other.expert) < std::tuple(-choice.weight, choice.expert);
            }) < std::int64_t{rule.count};
        break;
    }
    choice.precision = critical ? Precision::kHigh : Precision::kLow;
  }
}

}  // namespace

void CriticalRule::validate(std::uint32_t top_k) const {
  require_in_unit("theta", theta);
  if (kind == Kind::kFixedTopC && count > top_k)
    throw Error(ErrorKind::kUsage, "more critical experts are asked for than a token has experts")
        .in(Setting::kCriticalCount)
        .expected("0 to " + std::to_string(top_k) + ", the experts of a token")
        .found(std::to_string(count))
        .fix("give fewer, or compute all of them high: " + Setting::kPrecision + " high");
}

CriticalRule::Kind critical_kind(std::string_view name) {
  return value_named<CriticalRule::Kind>(Setting::kCritical, kCriticalRules, name);
}

PrecisionMode precision_mode(std::string_view name) {
  if (name == kPrecisions[0]) return PrecisionMode::kFull;  // users cannot ask for it
  constexpr std::string_view kAsked[] = {kPrecisions[1], kPrecisions[2], kPrecisions[3]};
  return static_cast<PrecisionMode>(1 + value_named<int>(Setting::kPrecision, kAsked, name));
}

std::string_view precision_name(PrecisionMode mode) { return kPrecisions[static_cast<std::size_t>(mode)]; }

Parts least_parts(PrecisionMode mode) {
  return mode == PrecisionMode::kHigh ? Part::kMsb | Part::kLsb : Parts(Part::kMsb);
}

Parts kept_slices(PrecisionMode mode, bool holds_slices) {
  return mode == PrecisionMode::kLow && !holds_slices ? Parts(Part::kMsb) : Part::kMsb | Part::kLsb;
}

void set_precision(const PrecisionRule& rule, Routing& routing) {
  switch (rule.mode) {
    case PrecisionMode::kFull:
      return;
    case PrecisionMode::kHigh:
    case PrecisionMode::kLow:
      for (Choice& choice : routing.choices)
        choice.precision = rule.mode == PrecisionMode::kHigh ? Precision::kHigh : Precision::kLow;
      return;
    case PrecisionMode::kDbsc:
      for (std::size_t t = 0; t + 1 < routing.begin.size(); ++t)
        set_critical(
            rule.critical,
            std::span(routing.choices).subspan(routing.begin[t], routing.begin[t + 1] - routing.begin[t]));
  }
}

void SliceDemands::gather(const ScoresView& scores, const Routing& routing) {
  wanted_.assign(scores.experts, {});
  for (std::size_t t = 0; t + 1 < routing.begin.size(); ++t) {
    for (std::uint32_t c = routing.begin[t]; c < routing.begin[t + 1]; ++c) {
      const Choice& choice = routing.choices[c];
      Wanted& wanted = wanted_[choice.expert];
      const float score = scores.scores[t * scores.experts + choice.expert];
      wanted.score = wanted.tokens == 0 ? score : std::max(wanted.score, score);
      wanted.tokens += 1;
      wanted.critical += choice.precision == Precision::kHigh ? 1 : 0;
    }
  }
  ranked_.clear();
  critical_.clear();
  critical_tokens_.clear();
  spans_ = scores.spans;
  prompt_ = scores.kind() == StepKind::kPrompt;
  for (std::size_t e = 0; e < wanted_.size(); ++e) {
    if (wanted_[e].tokens == 0) continue;
    const ExpertId id{static_cast<std::uint16_t>(scores.layer), static_cast<std::uint16_t>(e)};
    ranked_.push_back(id);
    if (wanted_[e].critical > 0) critical_.push_back(id);
    if (prompt_) critical_tokens_.push_back(wanted_[e].critical);
  }
  std::ranges::sort(ranked_, {}, [&](ExpertId id) { return std::tuple(-wanted_[id.index].score, id); });
}

Parts SliceDemands::asked(ExpertId id) const {
  return prompt_ || wanted_[id.index].critical > 0 ? Part::kMsb | Part::kLsb : Parts(Part::kMsb);
}

void SliceDemands::narrow_to(std::span<const ExpertId> experts) {
  const auto is_left_out = [&](ExpertId id) { return !std::ranges::binary_search(experts, id); };
  std::erase_if(ranked_, is_left_out);
  std::erase_if(critical_, is_left_out);
  if (!prompt_) return;
  critical_tokens_.clear();
  for (const ExpertId id : experts) critical_tokens_.push_back(wanted_[id.index].critical);
}

SliceDemand SliceDemands::demand(Bytes lsb_allowance) const {
  return {.ranked = ranked_,
          .critical = critical_,
          .prompt = prompt_,
          .critical_tokens = critical_tokens_,
          .lsb_allowance = lsb_allowance,
          .spans = spans_};
}

}  // namespace sluice::experts
