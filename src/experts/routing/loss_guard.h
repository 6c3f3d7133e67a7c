// Keeps the estimated loss of a run within the user's limit: counts the changes so far and says how many more
// are allowed. Pure: counts in, verdicts out. Ours; docs/quality-contract.md.
#pragma once

#include <cstdint>

#include "experts/routing/loss_curve.h"
#include "experts/routing/router.h"

namespace sluice::experts {

// The losses of a store, in nats a token. Two kinds of change are counted in decode steps, each as a mean
// over tokens of layers: the share of a token's weight that is computed at low precision, and the score
// mass of unused experts of the model's own choice. Losses add; both together lose another `both` times their
// product.
struct LossModel {
  double high = 0;               // loss of high precision itself
  LossCurve precision, routing;  // as measured
  double both = 0;               // token/nat, at least 0
  // The same losses, each one standard error above the measured value: promises use these. None is below its
  // measured value.
  double high_upper = 0;
  LossCurve precision_upper, routing_upper;
  double both_upper = 0;
};

struct LossContract {
  LossModel model;
  double limit = 0;  // nats a token
  // Low share that precision is expected to reach: so much of the limit is reserved for it.
  double planned_low = 0;
};

struct LossEstimate {
  double high = 0, precision = 0, routing = 0, both = 0;  // nats a token, as measured
  double upper = 0;  // bound of their sum, errors included: compared with the limit
  double total() const { return high + precision + routing + both; }
};
// What the mean changes cost; infinite beyond what was measured.
LossEstimate estimate_loss(const LossModel& model, double low_share, double mass_lost);

// One per run. For each event of a decode step, in order: the router asks mass_allowance, and add_routing
// follows; then limit_precision, and add_precision once the precisions are decided. If every routing keeps to
// its allowance and no expert that was wanted high is computed low, estimate().upper never passes the limit,
// as long as the loss of high precision does not. Thread-compatible.
class LossGuard {
 public:
  explicit LossGuard(const LossContract& contract);  // Error(kUsage) for a limit below 0 or not finite

  // Score mass that the next token of a layer may lose, when `tokens` before it, which are not added yet,
  // lose `mass`. At least 0.
  double mass_allowance(std::uint64_t tokens = 0, double mass = 0) const;
  void add_routing(std::uint64_t tokens, double mass);

  // Makes all experts of a token kHigh if its kLow experts would pass the limit.
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

// Share of a token's weight that belongs to experts wanted at low precision; 0 where the weights sum to 0.
double low_share(std::span<const Choice> token);

}  // namespace sluice::experts
