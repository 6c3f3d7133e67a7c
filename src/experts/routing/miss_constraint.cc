#include "experts/routing/miss_constraint.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "experts/routing/loss_guard.h"

namespace sluice::experts {
namespace {

// What a selection adds to the account.
struct Cost {
  std::size_t missing = 0, partial = 0, requests = 0;

  bool nothing() const { return missing == 0 && partial == 0; }
  void add(Standing one) {
    missing += one == Standing::kMissing ? 1 : 0;
    partial += one == Standing::kPartial ? 1 : 0;
    requests += one != Standing::kRequested ? 1 : 0;
  }
  void take(Standing one) {
    missing -= one == Standing::kMissing ? 1 : 0;
    partial -= one == Standing::kPartial ? 1 : 0;
    requests -= one != Standing::kRequested ? 1 : 0;
  }
  double missed(const MissLimit& limit) const {
    return static_cast<double>(missing) * limit.low_bytes + static_cast<double>(partial) * limit.rest_bytes;
  }
  double requested(const MissLimit& limit) const { return static_cast<double>(requests) * limit.high_bytes; }
};

Cost cost_of(std::span<const std::uint32_t> selection, std::span<const Standing> standing) {
  Cost cost;
  for (std::uint32_t id : selection) cost.add(standing[id]);
  return cost;
}

bool over(const MissLimit& limit, const Cost& cost) {
  return limit.missed + cost.missed(limit) > limit.rate * (limit.requested + cost.requested(limit));
}

bool is_read(Standing one) { return one == Standing::kMissing || one == Standing::kPartial; }

}  // namespace

Replacement replace_missing(const MissLimit& limit, std::span<const std::uint32_t> ranking,
                            std::span<const double> score, std::span<const Standing> standing,
                            std::uint32_t top_j, std::vector<std::uint32_t>& selection, MassLimit mass,
                            ReplacementScratch& scratch) {
  Replacement result;
  Cost cost = cost_of(selection, standing);
  if (!over(limit, cost)) return result;
  auto& [stays, leaving] = scratch;
  stays.assign(standing.size(), 0);
  for (std::uint32_t id : ranking.first(std::min<std::size_t>(top_j, ranking.size()))) stays[id] = 1;
  leaving.clear();  // the lowest score first
  for (std::uint32_t& id : selection)
    if (is_read(standing[id]) && stays[id] == 0) leaving.push_back(&id);
  std::ranges::sort(leaving, {}, [&](const std::uint32_t* id) { return std::pair(score[*id], *id); });
  std::ranges::fill(stays, std::uint8_t{0});
  for (std::uint32_t id : selection) stays[id] = 1;

  // The best experts left that cost nothing, and the best that cost less than a missing one.
  auto free = ranking.begin(), partial = ranking.begin();
  const auto advance = [&](auto& at, auto accepts) {
    at = std::find_if(at, ranking.end(),
                      [&](std::uint32_t other) { return stays[other] == 0 && accepts(standing[other]); });
    return at != ranking.end();
  };
  for (std::uint32_t* const id : leaving) {
    if (!over(limit, cost)) break;
    auto* better = advance(free, [](Standing one) { return !is_read(one); }) ? &free : nullptr;
    if (better == nullptr && standing[*id] == Standing::kMissing &&
        advance(partial, [](Standing one) { return one == Standing::kPartial; }))
      better = &partial;
    if (better == nullptr) continue;
    if (!mass.mass.empty()) {
      // The experts behind it have higher scores.
      if (result.mass + mass.mass[*id] > mass.allowed) break;
      result.mass += mass.mass[*id];
    }
    cost.take(standing[*id]);
    *id = *(*better)++;
    cost.add(standing[*id]);
    ++result.replaced;
  }
  result.violation = !cost.nothing() && over(limit, cost);
  return result;
}

Replacement replace_missing(const MissLimit& limit, std::span<const std::uint32_t> ranking,
                            std::span<const double> score, std::span<const Standing> standing,
                            std::uint32_t top_j, std::vector<std::uint32_t>& selection, MassLimit mass) {
  ReplacementScratch scratch;
  return replace_missing(limit, ranking, score, standing, top_j, selection, mass, scratch);
}

MissConstraint::MissConstraint(const ConstraintConfig& config, const ExpertSizes& sizes,
                               const LossGuard* guard)
    : config_(config), sizes_(sizes), guard_(guard), lambda_(config.lambda) {
  config.validate();
}

Standing MissConstraint::standing(Parts parts) const {
  if (!is_computable(parts)) return Standing::kMissing;
  const bool short_of_lsb = config_.low.has(Part::kLsb) && !parts.has(Part::kLsb);
  return short_of_lsb ? Standing::kPartial : Standing::kResident;
}

Bytes MissConstraint::bytes_to_read(Standing standing, const ExpertBytes& bytes) const {
  if (standing == Standing::kPartial) return bytes.of(config_.low - Part::kMsb);
  return standing == Standing::kMissing ? bytes.of(config_.low) : 0;
}

Bytes MissConstraint::lsb_allowance(std::span<const ExpertId> experts, const ResidencyView& residency) const {
  const bool limited = config_.mode == ConstraintMode::kAdaptive || config_.mode == ConstraintMode::kHard;
  if (!limited || !accounts() || config_.low.has(Part::kLsb)) return kAnyBytes;
  double missed = account_.missed, requested = account_.requested;
  for (ExpertId id : experts) {
    const ExpertBytes bytes = sizes_.bytes(id);
    requested += static_cast<double>(bytes.of(config_.high));
    missed += is_computable(residency.parts(id)) ? 0 : static_cast<double>(bytes.of(config_.low));
  }
  return static_cast<Bytes>(std::max(0.0, config_.limit * requested - missed));
}

void MissConstraint::begin_step(std::span<const SequenceSpan> spans) {
  decoding_.clear();
  accounts_ = false;
  for (const SequenceSpan& span : spans) {
    std::uint64_t& steps = steps_[span.sequence];
    if (span.kind == StepKind::kPrompt) {
      steps = 0;
      continue;
    }
    decoding_.push_back(span.sequence);
    accounts_ = accounts_ || steps >= config_.exempt_steps;
  }
  accounts_ = accounts_ && step_kind(spans) == StepKind::kDecode;
}

void MissConstraint::on_event(const EventOutcome& outcome) {
  if (accounts()) account_.add(outcome, sizes_, config_.low, config_.high);
}

void MissConstraint::end_step() {
  if (config_.mode == ConstraintMode::kAdaptive && accounts())
    lambda_ = std::clamp(lambda_ + config_.eta * (account_.rate() - config_.limit), 0.0, 1.0);
  for (const SequenceId sequence : decoding_) ++steps_[sequence];
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
                        .low_bytes = static_cast<double>(bytes_to_read(Standing::kMissing, bytes)),
                        .rest_bytes = static_cast<double>(bytes_to_read(Standing::kPartial, bytes)),
                        .high_bytes = static_cast<double>(bytes.of(config_.high))};
  MassLimit allowed;
  if (guard_ != nullptr) allowed = {mass, guard_->mass_allowance(pending_tokens_, pending_mass_)};
  const Replacement result =
      replace_missing(limit, ranking, score, standing, config_.top_j, selection, allowed, scratch_);
  pending_mass_ += result.mass;
  pending_tokens_ += 1;
  replaced_ += result.replaced;
  violations_ += result.violation ? 1 : 0;
  const Cost cost = cost_of(selection, standing);
  pending_missed_ += cost.missed(limit);
  pending_requested_ += cost.requested(limit);
}

}  // namespace sluice::experts
