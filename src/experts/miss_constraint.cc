#include "experts/miss_constraint.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "experts/unit_interval.h"

namespace sluice::experts {
namespace {

// What a selection adds to the account.
struct Cost {
  std::size_t missing = 0, requests = 0;
};

Cost cost_of(std::span<const std::uint32_t> selection, std::span<const Standing> standing) {
  Cost cost;
  for (std::uint32_t id : selection) {
    cost.missing += standing[id] == Standing::kMissing ? 1 : 0;
    cost.requests += standing[id] != Standing::kRequested ? 1 : 0;
  }
  return cost;
}

bool over(const MissLimit& limit, const Cost& cost) {
  return limit.missed + static_cast<double>(cost.missing) * limit.low_bytes >
         limit.rate * (limit.requested + static_cast<double>(cost.requests) * limit.high_bytes);
}

constexpr std::string_view kModes[] = {"none", "boost", "adaptive", "hard"};  // by value

}  // namespace

ConstraintMode constraint_mode(std::string_view name) {
  const auto found = std::ranges::find(kModes, name);
  if (found == std::end(kModes))
    throw Error(ErrorKind::kUsage, "unknown name")
        .in("--constraint")
        .expected("one of none, boost, adaptive, hard")
        .found("\"" + std::string(name) + "\"");
  return static_cast<ConstraintMode>(found - std::begin(kModes));
}

std::string_view constraint_name(ConstraintMode mode) { return kModes[static_cast<std::size_t>(mode)]; }

Replacement replace_missing(const MissLimit& limit, std::span<const std::uint32_t> ranking,
                            std::span<const double> score, std::span<const Standing> standing,
                            std::uint32_t top_j, std::vector<std::uint32_t>& selection, MassLimit mass) {
  Replacement result;
  Cost cost = cost_of(selection, standing);
  if (!over(limit, cost)) return result;
  thread_local std::vector<std::uint8_t> stays;  // by id: selected, or not to be touched
  stays.assign(standing.size(), 0);
  for (std::uint32_t id : ranking.first(std::min<std::size_t>(top_j, ranking.size()))) stays[id] = 1;
  thread_local std::vector<std::uint32_t*> leaving;  // the lowest score first; both keep their room
  leaving.clear();
  for (std::uint32_t& id : selection)
    if (standing[id] == Standing::kMissing && stays[id] == 0) leaving.push_back(&id);
  std::ranges::sort(leaving, {}, [&](const std::uint32_t* id) { return std::pair(score[*id], *id); });
  std::ranges::fill(stays, std::uint8_t{0});
  for (std::uint32_t id : selection) stays[id] = 1;

  auto better = ranking.begin();
  for (std::uint32_t* const id : leaving) {
    if (!over(limit, cost)) break;
    better = std::find_if(better, ranking.end(), [&](std::uint32_t other) {
      return standing[other] != Standing::kMissing && stays[other] == 0;
    });
    if (better == ranking.end()) break;
    if (!mass.mass.empty()) {
      // Those behind it have higher scores.
      if (result.mass + mass.mass[*id] > mass.allowed) break;
      result.mass += mass.mass[*id];
    }
    cost.missing -= 1;
    cost.requests -= standing[*better] == Standing::kRequested ? 1 : 0;
    *id = *better++;
    ++result.replaced;
  }
  result.violation = cost.missing > 0 && over(limit, cost);
  return result;
}

void ConstraintConfig::validate() const {
  require_in_unit("the limit of the miss rate", limit);
  require_in_unit("lambda", lambda);
  require_in_unit("eta", eta);
  if (low.empty() || !high.has_all(low))
    throw Error(ErrorKind::kUsage, "an expert's low view is no part of its high one");
}

MissConstraint::MissConstraint(const ConstraintConfig& config, const ExpertSizes& sizes,
                               const LossGuard* guard)
    : config_(config), sizes_(sizes), guard_(guard), lambda_(config.lambda) {
  config.validate();
}

Bytes MissConstraint::lsb_allowance(std::span<const ExpertId> experts, const ResidencyView& residency) const {
  const bool limited = config_.mode == ConstraintMode::kAdaptive || config_.mode == ConstraintMode::kHard;
  if (!limited || !accounts()) return kAnyBytes;
  double missed = account_.missed, requested = account_.requested;
  for (ExpertId id : experts) {
    const ExpertBytes bytes = sizes_.bytes(id);
    requested += static_cast<double>(bytes.of(config_.high));
    missed += is_computable(residency.parts(id)) ? 0 : static_cast<double>(bytes.of(config_.low));
  }
  return static_cast<Bytes>(std::max(0.0, config_.limit * requested - missed));
}

void MissConstraint::on_event(const EventOutcome& outcome) {
  if (accounts()) account_.add(outcome, sizes_, config_.low, config_.high);
}

void MissConstraint::end_step() {
  if (config_.mode == ConstraintMode::kAdaptive && accounts())
    lambda_ = std::clamp(lambda_ + config_.eta * (account_.rate() - config_.limit), 0.0, 1.0);
  ++step_;
}

std::optional<double> MissConstraint::lambda() const {
  if (config_.mode == ConstraintMode::kNone) return std::nullopt;
  return lambda_;
}

void MissConstraint::replace(std::uint32_t layer, std::span<const std::uint32_t> ranking,
                             std::span<const double> score, std::span<const Standing> standing,
                             std::span<const float> mass, std::vector<std::uint32_t>& selection) {
  if (!replaces() || selection.empty()) return;
  const auto at = [&](std::size_t id) {
    return ExpertId{static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(id)};
  };
  const ExpertBytes bytes = sizes_.bytes(at(selection[0]));
  const MissLimit limit{.rate = config_.limit,
                        .missed = account_.missed + pending_missed_,
                        .requested = account_.requested + pending_requested_,
                        .low_bytes = static_cast<double>(bytes.of(config_.low)),
                        .high_bytes = static_cast<double>(bytes.of(config_.high))};
  MassLimit allowed;
  if (guard_ != nullptr) allowed = {mass, guard_->mass_allowance(pending_tokens_, pending_mass_)};
  const Replacement result =
      replace_missing(limit, ranking, score, standing, config_.top_j, selection, allowed);
  pending_mass_ += result.mass;
  pending_tokens_ += 1;
  replaced_ += result.replaced;
  violations_ += result.violation ? 1 : 0;
  const Cost cost = cost_of(selection, standing);
  pending_missed_ += static_cast<double>(cost.missing) * limit.low_bytes;
  pending_requested_ += static_cast<double>(cost.requests) * limit.high_bytes;
}

}  // namespace sluice::experts
