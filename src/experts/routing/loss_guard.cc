#include "experts/routing/loss_guard.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "base/setting.h"

namespace sluice::experts {

double low_share(std::span<const Choice> token) {
  double low = 0, sum = 0;
  for (const Choice& choice : token) {
    sum += choice.weight;
    if (choice.precision == Precision::kLow) low += choice.weight;
  }
  return sum > 0 ? low / sum : 0;
}

namespace {

// The joint loss of both kinds of change; either loss may be infinite.
double together(double both, double precision, double routing) {
  return precision > 0 && routing > 0 && both > 0 ? both * precision * routing : 0;
}

}  // namespace

LossGuard::LossGuard(const LossContract& contract) : contract_(contract) {
  if (!(contract.limit >= 0) || !std::isfinite(contract.limit))
    throw Error(ErrorKind::kUsage, "the limit on the loss is out of range")
        .in(Setting::kMaxLoss)
        .expected("a share of at least 0")
        .found(std::to_string(contract.limit));
}

double LossGuard::mass_allowance(std::uint64_t tokens, double mass) const {
  const LossModel& model = contract_.model;
  const double low = std::max(low_share(), contract_.planned_low);
  const double precision = model.precision_upper.at(low);
  const double room = contract_.limit - model.high_upper - precision;
  const double most = model.routing_upper.most(room / (1 + model.both_upper * precision));
  return std::max(0.0, most * static_cast<double>(routed_ + tokens + 1) - mass_ - mass);
}

void LossGuard::add_routing(std::uint64_t tokens, double mass) {
  routed_ += tokens;
  mass_ += mass;
}

void LossGuard::limit_precision(Routing& routing) {
  const LossModel& model = contract_.model;
  const double routed = model.routing_upper.at(mass_lost());
  const double room = contract_.limit - model.high_upper - routed;
  const double most = model.precision_upper.most(room / (1 + model.both_upper * routed));
  double low = low_;
  for (std::size_t t = 0; t + 1 < routing.begin.size(); ++t) {
    const std::span<Choice> token =
        std::span(routing.choices).subspan(routing.begin[t], routing.begin[t + 1] - routing.begin[t]);
    const double share = experts::low_share(token);
    if (share > 0 && low + share > most * static_cast<double>(computed_ + t + 1)) {
      for (Choice& choice : token) choice.precision = Precision::kHigh;
      ++raised_;
    } else {
      low += share;
    }
  }
}

void LossGuard::add_precision(std::uint64_t tokens, double low) {
  computed_ += tokens;
  low_ += low;
}

LossEstimate LossGuard::estimate() const { return estimate_loss(contract_.model, low_share(), mass_lost()); }

LossEstimate estimate_loss(const LossModel& model, double low_share, double mass_lost) {
  const double precision = model.precision.at(low_share), routing = model.routing.at(mass_lost);
  const double precision_upper = model.precision_upper.at(low_share),
               routing_upper = model.routing_upper.at(mass_lost);
  return {.high = model.high,
          .precision = precision,
          .routing = routing,
          .both = together(model.both, precision, routing),
          .upper = model.high_upper + precision_upper + routing_upper +
                   together(model.both_upper, precision_upper, routing_upper)};
}

}  // namespace sluice::experts
