#include "report/loss_rows.h"
#include "report/ratios.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "engine/engine.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "experts/layer_decider.h"
#include "experts/registry.h"
#include "experts/routing/miss_account.h"
#include "experts/routing/miss_constraint.h"
#include "flags/slice_effects.h"
#include "store/checkpoint.h"

namespace sluice::app {
namespace {

// For runs without a contract; under a contract misses are only as few as the accepted loss allows.
std::string limit_text(const experts::MissConstraint& constraint) {
  std::string text = fmt::format("{:.2f} % of bytes missed", 100 * constraint.account().rate());
  if (!keeps_limit(constraint.config().mode)) return text;
  const bool exceeded = constraint.account().rate() > constraint.config().limit;
  return text + fmt::format(" (limit {:.3g} %{}, {} replaced, {} times read all the same)",
                            100 * constraint.config().limit, exceeded ? ", exceeded" : "",
                            constraint.replaced(), constraint.violations());
}

std::string slices_line(const engine::RunReport& run) {
  const experts::MissAccount& all = run.statistics.decode.slices;
  const experts::MissConstraint& constraint = *run.constraint();
  const auto share = [](std::uint64_t part, std::uint64_t whole) {
    return 100 * ratio(static_cast<double>(part), static_cast<double>(whole));
  };
  std::string line =
      fmt::format("{} precision{}, {} activations", experts::precision_name(run.policies.precision.mode),
                  run.loss_guard() != nullptr && run.policies.precision.mode == experts::PrecisionMode::kDbsc
                      ? fmt::format(" (theta {:.3g})", run.policies.precision.critical.theta)
                      : "",
                  engine::activations_name(*run.plan.activations));
  if (all.msb_requests > 0)
    line += fmt::format(", {:.1f} % MSB misses", share(all.msb_misses, all.msb_requests));
  if (all.lsb_requests > 0)
    line += fmt::format(", {:.1f} % LSB misses, {} downgrades", share(all.lsb_misses, all.lsb_requests),
                        all.downgrades);
  if (constraint.account().requested == 0) return line;
  if (run.loss_guard() != nullptr) {
    line += fmt::format("; {:.2f} % of bytes missed", 100 * constraint.account().rate());
    const bool replaces = constraint.config().mode != experts::ConstraintMode::kNone;
    return replaces ? line + fmt::format(", {} replaced", constraint.replaced()) : line;
  }
  return line + "; " + limit_text(constraint);
}

double percent(double nats) { return 100 * as_share(nats); }

// A model in slices loses by precision, by routing and by both together; one of exact weights by routing
// alone.
std::string contract_line(const engine::RunReport& run) {
  const experts::LossGuard& guard = *run.loss_guard();
  const experts::LossEstimate estimate = guard.estimate();
  if (!run.checkpoint.slices())
    return fmt::format(
        "estimated {:.2f} % of perplexity, at most {:.2f} % with errors of calibration (accepted {:.4g} %)",
        percent(estimate.total()), percent(estimate.upper), percent(guard.contract().limit));
  return fmt::format(
      "estimated {:.2f} % of perplexity, at most {:.2f} % with errors of calibration (accepted {:.4g} %): "
      "rounding {:.2f}, low precision {:.2f}, routing {:.2f}, these two together {:.2f}",
      percent(estimate.total()), percent(estimate.upper), percent(guard.contract().limit),
      percent(estimate.high), percent(estimate.precision), percent(estimate.routing), percent(estimate.both));
}

// What a router without a limit costs, where that was measured.
std::string measured_line(const experts::LossModel& losses, const experts::RoutingChanges& routing) {
  const double mass = routing.mass_lost / static_cast<double>(routing.tokens);
  const experts::LossEstimate estimate = experts::estimate_loss(losses, 0, mass);
  if (!std::isfinite(estimate.upper))
    return fmt::format("not known: calibrated up to {:.2f} % of all scores",
                       100 * losses.routing.knots().back().amount);
  return fmt::format("estimated {:.2f} % of perplexity, at most {:.2f} % with errors of calibration",
                     percent(estimate.total()), percent(estimate.upper));
}

// The router, and the number that decides how much it changes.
std::string router_text(const engine::PolicyPlan& policies) {
  if (policies.router->rules != experts::RouterRules::kSmoe) return std::string(policies.router->name);
  return fmt::format("smoe, alpha {:.4g} ({})", policies.smoe.alpha,
                     policies.routing_losses ? "calibrated"
                     : policies.contract     ? "within the accepted loss"
                                             : "uncalibrated");
}

}  // namespace

std::vector<ReportRow> loss_rows(const engine::RunReport& run) {
  std::vector<ReportRow> rows;
  const engine::Statistics& statistics = run.statistics;
  const experts::RoutingChanges& routing = run.decider.decode_changes();  // prompts are routed exactly
  if (const std::string played = run.policies.played(); !played.empty()) {
    const experts::RoutingChanges& all = run.decider.changes();
    rows.push_back({"routing", fmt::format("{}; the model itself would have chosen otherwise for {:.1f} % of "
                                           "tokens, so the text is not its own",
                                           played,
                                           100 * ratio(static_cast<double>(all.changed_tokens),
                                                       static_cast<double>(all.tokens)))});
  } else if (run.policies.router->lossy && routing.tokens > 0) {
    const auto tokens = static_cast<double>(routing.tokens);
    rows.push_back({"routing", fmt::format("{}: while decoding, {:.1f} % of tokens' sets changed, {} experts "
                                           "substituted, {:.2f} % of all scores lost",
                                           router_text(run.policies),
                                           100 * ratio(static_cast<double>(routing.changed_tokens), tokens),
                                           routing.substituted, 100 * ratio(routing.mass_lost, tokens))});
  }
  const bool decoding = statistics.decode.tokens > 0;
  if (!run.checkpoint.slices() && run.plan.activations == kernels::ActivationForm::kInt8)
    rows.push_back({"activations", "int8, where weights are blocks of codes"});
  if (run.checkpoint.slices())
    rows.push_back({"slices", slices_line(run)});
  else if (decoding && run.constraint() != nullptr)
    rows.push_back({"misses", limit_text(*run.constraint())});
  if (run.loss_guard() != nullptr && decoding)
    rows.push_back({"loss", contract_line(run)});
  else if (run.policies.routing_losses && run.policies.router->lossy && routing.tokens > 0)
    rows.push_back({"loss", measured_line(*run.policies.routing_losses, routing)});
  return rows;
}

}  // namespace sluice::app
