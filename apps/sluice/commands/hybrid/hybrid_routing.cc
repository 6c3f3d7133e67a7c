#include "commands/hybrid/hybrid_routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "experts/registry.h"
#include "lab/replay/batches.h"
#include "streams/interrupt.h"
#include "streams/played_routing.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"

namespace sluice::app {
namespace {

// Whether batches of up to `batch` sequences can be made of `steps`, which `path` has.
void check_can_be_batched(const lab::RoutedSteps& steps, std::uint32_t batch, const std::string& path) {
  for (const lab::RoutedStep& step : steps.steps)
    if (step.sequences.size() > 1)
      throw Error(ErrorKind::kUsage, "the trace was recorded in batches, which are replayed as they are")
          .in(Setting::kBatch)
          .expected("a trace with one sequence in each step")
          .found(fmt::format("{}, and a step of {} sequences", batch, step.sequences.size()))
          .fix("leave " + Setting::kBatch + " out");
  const std::uint32_t most = lab::largest_batch(steps);
  if (batch > std::max(most, 1U))
    throw Error(ErrorKind::kUsage, "there are not so many sequences to decode together")
        .in(Setting::kBatch)
        .expected(fmt::format("at most {}, the sequences of {} that decode something", most, path))
        .found(std::to_string(batch))
        .fix("give " + Setting::kBatch +
             fmt::format(" {}, or a trace of more sequences", std::max(most, 1U)));
}

}  // namespace

RoutingOfRows::RoutingOfRows(const HybridRequest& request, const trace::TraceHeader& header,
                             const std::vector<HybridRow>& rows)
    : request_(request), batch_(std::ranges::max(rows, {}, &HybridRow::batch).batch) {
  for (const HybridRow& row : rows) {
    const experts::PrefetchPolicy& policy = *row.settings.prefetch;
    if (policy.needs != experts::PrefetchNeeds::kTransitions || transitions_ || request.ranks_of.empty())
      continue;
    const lab::RoutedSteps text =
        lab::read_routed_steps(*trace::open_trace(request.ranks_of), {}, interrupted_or_unread);
    tell_played(request.ranks_of, text.played);
    if (text.layers != header.layers || text.experts != header.experts)
      throw Error(ErrorKind::kInvalid, "the routing that says which experts follow which is of another model")
          .in(request.ranks_of)
          .expected(fmt::format("{} layers of {} experts", header.layers, header.experts))
          .found(fmt::format("{} of {}", text.layers, text.experts))
          .fix("record it from this model: sluice trace");
    transitions_ = lab::count_transitions(text);
  }
}

const lab::RoutedSteps& RoutingOfRows::of(const HybridRow& row) {
  const experts::PredictorKind kind =
      row.settings.prefetch->make({.transitions = transitions()})->predictor();
  auto [at, is_new] = steps_.try_emplace(kind);
  if (is_new) {
    at->second = lab::read_predicted_steps(
        request_.trace, kind, {.prefill = static_cast<std::uint32_t>(request_.prefill.value_or(0))},
        request_.ranks_of, interrupted_or_unread);
    if (steps_.size() == 1) check(at->second);
  }
  if (!row.batch) return at->second;
  if (batched_of_ != std::pair(kind, *row.batch)) batched_ = lab::batched(at->second, *row.batch);
  batched_of_ = {kind, *row.batch};
  return batched_;
}

void RoutingOfRows::check(const lab::RoutedSteps& steps) const {
  if (batch_) check_can_be_batched(steps, *batch_, request_.trace);
  if (request_.quiet) return;
  if (steps.cut_off) print_warning("{} was cut off; its last step is left out", request_.trace);
  if (steps.decode_tokens == 0)
    print_warning("all tokens are of prompts, and no decode step was replayed{}",
                  request_.prefill
                      ? fmt::format(": {} {} takes them all", flag(Setting::kPrefill), *request_.prefill)
                      : "");
}

}  // namespace sluice::app
