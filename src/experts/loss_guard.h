// Keeps the estimated loss of a run within what its user accepts: counts what is changed, and says how much
// more may be. Pure: counts in, verdicts out. Ours; docs/quality-contract.md.
#pragma once

#include <cstdint>

#include "experts/loss_curve.h"
#include "experts/router.h"

namespace sluice::experts {

// What a store loses, in nats a token. Two kinds of change are counted in decode steps, each as a mean over
// tokens of layers: the share of a token's weight that is computed at low precision, and the score mass of
// experts of the model's own choice that are not used. Losses add, and what both lose together beyond that
// is `both` times their product.
struct LossModel {
  double high = 0;               // of high precision itself
  LossCurve precision, routing;  // as measured
  double both = 0;               // a token/nat, at least 0
  // The same, each one standard error above what was measured: what is promised by. None is below it.
  double high_upper = 0;
  LossCurve precision_upper, routing_upper;
  double both_upper = 0;
};

struct LossContract {
  LossModel model;
  double limit = 0;        // nats a token
  double planned_low = 0;  // low share that precision is expected to come to: this much is kept for it
};

struct LossEstimate {
  double high = 0, precision = 0, routing = 0, both = 0;  // nats a token, as measured
  double upper = 0;  // of their sum, errors included: what is held against the limit
  double total() const { return high + precision + routing + both; }
};

// One a run. Of each event of a decode step, in order: the router asks mass_allowance and add_routing
// follows; then limit_precision, and add_precision when it is decided what is computed how. If every routing
// keeps to its allowance, and nothing is computed low that was wanted high, estimate().upper never passes the
// limit, as long as the loss of high precision does not. Thread-compatible.
class LossGuard {
 public:
  explicit LossGuard(const LossContract& contract);  // Error(kUsage) for a limit below 0 or not finite

  // Score mass that the next token of a layer may lose, where `tokens` before it, that are not added yet,
  // lose `mass`. At least 0.
  double mass_allowance(std::uint64_t tokens = 0, double mass = 0) const;
  void add_routing(std::uint64_t tokens, double mass);

  // Makes all experts of a token kHigh where its kLow ones would pass the limit.
  void limit_precision(Routing& routing);
  // `low`: sum over the tokens of the share of their weight that is computed low.
  void add_precision(std::uint64_t tokens, double low);

  LossEstimate estimate() const;
  const LossContract& contract() const { return contract_; }
  double mass_lost() const { return mean(mass_, routed_); }  // per token of a layer
  double low_share() const { return mean(low_, computed_); }
  std::uint64_t raised() const { return raised_; }  // tokens of layers that limit_precision has changed

 private:
  static double mean(double sum, std::uint64_t count) {
    return count == 0 ? 0 : sum / static_cast<double>(count);
  }

  LossContract contract_;
  double mass_ = 0, low_ = 0;
  std::uint64_t routed_ = 0, computed_ = 0;  // tokens of layers
  std::uint64_t raised_ = 0;
};

// Share of a token's weight that is of experts wanted at low precision; 0 where the weights sum to 0.
double low_share(std::span<const Choice> token);

}  // namespace sluice::experts
