#include "engine/forward/moe_block.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/stopwatch.h"
#include "engine/forward/common/gating.h"
#include "engine/watch/event_account.h"
#include "experts/core/state_order.h"
#include "kernels/ops/host_ops.h"
#include "kernels/products/packed/packed_matmul.h"

namespace sluice::engine {
namespace {

using model::Role;
namespace op = kernels::op;

}  // namespace

MoeBlock::MoeBlock(kernels::Ops& ops, const kernels::Context& host, const model::ModelConfig& config,
                   const DenseWeights& weights, fetch::ExpertStore& store, codec::SliceView low_view,
                   const experts::ResidualVectors* residual, std::optional<LayersAhead> ahead,
                   Statistics& statistics)
    : ops_(ops),
      kernels_(host),
      config_(config),
      weights_(weights),
      store_(store),
      statistics_(statistics),
      input_forms_(kernels::input_forms_of(store.facts().formats)),
      scores_(ops, host, config, weights),
      predictors_({ops, config, weights, scores_, residual, ahead}),
      input_prediction_(config.sparse_layers(), config.hidden),
      host_(host, low_view, gating_of(config.activation)) {}

void MoeBlock::begin_step(const Step& step) {
  if (decider_ == nullptr) return;
  kind_ = step.kind();
  describe_spans(step, spans_);
  decider_->begin_step(spans_);
  worlds_ = step.worlds;
  SLUICE_CHECK(worlds_ == nullptr || device_ == nullptr, "worlds have the host's memory alone");
  if (worlds_ != nullptr) worlds_->begin_step(spans_);
  input_prediction_.forget();
  step_watch_.lap();
  needed_before_ = statistics_.decode.bytes_read + store_.prefetch_counters().used_bytes;
  wasted_before_ = store_.prefetch_counters().wasted_bytes;
}

void MoeBlock::resume_step(const Step& step) {
  if (decider_ == nullptr) return;
  kind_ = step.kind();
  describe_spans(step, spans_);
  decider_->resume_step(spans_);
  worlds_ = step.worlds;
  input_prediction_.forget();
}

void MoeBlock::cancel_step(const Step& step) {
  if (decider_ == nullptr) return;
  describe_spans(step, spans_);
  decider_->cancel_step(spans_);
}

void MoeBlock::end_step() {
  if (decider_ == nullptr) return;
  const fetch::PrefetchCounters& ahead = store_.prefetch_counters();
  decider_->end_step({.seconds = step_watch_.lap(),
                      .needed = statistics_.decode.bytes_read + ahead.used_bytes - needed_before_,
                      .wasted = ahead.wasted_bytes - wasted_before_});
  if (worlds_ != nullptr) worlds_->end_step();
}

void MoeBlock::run(std::size_t layer, Role norm, const Step& step, const Workspace& w) {
  const std::size_t tokens = step.tokens.size();
  layer_ = static_cast<std::int32_t>(layer);
  if (decider_ == nullptr) return shared_experts(layer, tokens, w);
  const experts::LayerDecision& decision = decide(layer, step, w);
  // Ends the event on leaving, even by an error; the store keeps what it can.
  struct Event {
    fetch::ExpertStore* store;
    ComputeUnit* device;
    std::vector<fetch::ExpertStore::Pin>& pins;
    ~Event() {
      if (store == nullptr) return;
      pins.clear();
      if (device != nullptr) device->abandon_event();
      store->abandon_event();
    }
  } event{&store_, device_, pins_};
  begin_fetch(layer, step, decision);
  look_ahead(layer, norm, step, w, Moment::kRouted);
  show_ahead(layer, norm, step, w, Moment::kRouted);
  arrange_for_experts(tokens, w);
  if (!ops_.on_host()) {
    bring_inputs(tokens, w);
    shared_experts(layer, tokens, w);  // while copies of experts are under way
  }
  start_device(layer, norm, step, w);
  if (tokens == 1 && worlds_ == nullptr)
    start_with_what_is_here(layer, w);
  else if (ops_.on_host())
    shared_experts(layer, tokens, w);
  if (ops_.on_host() && waits_for_partial_state()) {
    compute_resident(tokens, w);
    look_ahead_partially(layer, norm, step, w);
  }
  compute_the_rest(tokens, w);
  if (device_ != nullptr) finish_device();
  event.store = nullptr;
  if (!ops_.on_host()) send_rows(w);
  combine(decision.routing, w);
  counts().moe_s += moe_watch_.lap();
  look_ahead(layer, norm, step, w, Moment::kComputed);
  show_ahead(layer, norm, step, w, Moment::kComputed);
}

const experts::LayerDecision& MoeBlock::decide(std::size_t layer, const Step& step, const Workspace& w) {
  if (observer_ != nullptr) show_inputs(layer, step.tokens.size(), w);
  if (ops_.on_host())
    input_prediction_.observe(config_.sparse_index(static_cast<std::uint32_t>(layer)),
                              {kernels::host_floats(w.normed), step.tokens.size() * config_.hidden});
  const experts::ScoresView scores = scores_.of_layer(layer, step, w);
  moe_watch_.lap();
  const experts::Routing* const own = worlds_ != nullptr ? &worlds_->decide(scores) : nullptr;
  const bool is_theirs = own != nullptr && kind_ == StepKind::kDecode;
  const experts::Routing& routing =
      is_theirs ? decider_->follow(scores, own->choices, own->begin) : decider_->route(scores);
  if (observer_ != nullptr) observer_->on_routing(scores, routing);
  Stopwatch deciding;
  const experts::LayerDecision& decision = decider_->decide();
  counts().policy_s += deciding.lap();
  if (!decision.is_low.empty()) statistics_.low_tokens += scores.tokens;
  statistics_.low_share += decision.low_share;
  rows_.group(routing, {decision.experts, decision.tokens}, scores.experts, is_theirs ? own : nullptr);
  decision_ = &decision;
  computed_.assign(decision.experts.size(), 0);
  assignment_ = decision.assignment.unit;
  event_experts_.assign(decision.experts.begin(), decision.experts.end());
  plan_ = decision.device;
  SLUICE_CHECK(device_ == nullptr || plan_ != nullptr, "nobody decides what the device does");
  return decision;
}

void MoeBlock::begin_fetch(std::size_t layer, const Step& step, const experts::LayerDecision& decision) {
  const experts::EventOutcome& outcome = *decision.outcome;
  ExpertStatistics& count = counts();
  count.accesses += decision.experts.size();
  count_found(outcome);
  if (device_ != nullptr) {
    device_->release_host(*decision.fetch, *plan_);
    fetch_lost();
  }
  const fetch::EventReads reads = store_.prepare(*decision.fetch, decision.fetch_demand);
  const std::uint64_t hits = outcome.hits.size() + reads.prefetched;
  const std::uint64_t misses = outcome.misses.size() - reads.prefetched;
  if (step.account != nullptr)
    step.account->on_event(step, {decision.routing, decision.experts.size(), hits, misses, reads.by_expert});
  Stopwatch ordering;
  const experts::ReadOrder& order = decider_->order(reads.missing);
  if (!order.tasks.empty()) {
    const double seconds = ordering.lap();
    statistics_.plan_s += seconds;
    statistics_.plans += 1;
    count.policy_s += seconds;
  }
  store_.begin(order);
  // Called only now that the decisions are being carried out: after an observer's error, engine and store
  // still agree.
  if (observer_ != nullptr)
    observer_->on_decisions(config_.sparse_index(static_cast<std::uint32_t>(layer)), decision);
  count.hits += hits;
  count.misses += misses;
  count.partial += reads.partial;
  count.bytes_read += reads.bytes;
  count.unchosen_bytes += reads.unchosen;
}

void MoeBlock::fetch_lost() {
  lost_.clear();
  for (const experts::DeviceUse& use : plan_->uses)
    if (use.from != experts::DeviceBytes::kLink && !device_->has(use)) lost_.push_back(use.id);
  decider_->fetch_lost(lost_);
}

void MoeBlock::count_found(const experts::EventOutcome& outcome) {
  ExpertStatistics& count = counts();
  const experts::LayerPolicies& policies = decider_->policies();
  if (policies.sliced())
    return count.slices.add(outcome, store_.sizes(), experts::least_parts(policies.precision.mode),
                            experts::Part::kMsb | experts::Part::kLsb);
  for (const auto* used : {&outcome.hits, &outcome.misses})
    for (const experts::Admission& one : *used)
      count.found[experts::place_of(experts::state_of(one.before))] += 1;
}

void MoeBlock::show_inputs(std::size_t layer, std::size_t tokens, const Workspace& w) {
  const std::span<float> inputs(w.host.normed, tokens * config_.hidden);
  ops_.receive(w.normed, inputs);
  observer_->on_inputs(config_.sparse_index(static_cast<std::uint32_t>(layer)), inputs);
}

void MoeBlock::arrange_for_experts(std::size_t tokens, const Workspace& w) {
  const std::size_t d = config_.hidden;
  input_forms_.each([&](codec::InputForm form) {
    if (weights_.input_forms().has(form)) return;  // LayerRun has
    ops_.run(op::Arrange{.form = form,
                         .x = w.normed,
                         .tokens = tokens,
                         .columns = d,
                         .x_stride = d,
                         .arranged = w.arranged[static_cast<std::size_t>(form)]});
  });
}

op::Mlp MoeBlock::shared_mlp(std::size_t layer, std::size_t tokens, const Workspace& w) const {
  const auto at = static_cast<std::int32_t>(layer);
  return {.gate = weights_.matrix(Role::kSharedGate, at),
          .up = weights_.matrix(Role::kSharedUp, at),
          .down = weights_.matrix(Role::kSharedDown, at),
          .gating = gating_of(config_.activation),
          .inputs = w.arranged,
          .tokens = tokens,
          .gate_room = w.gate,
          .up_room = w.up,
          .inner = w.inner,
          .out = w.branch};
}

void MoeBlock::shared_experts(std::size_t layer, std::size_t tokens, const Workspace& w) {
  if (config_.moe.shared_width != 0) {
    ops_.run(shared_mlp(layer, tokens, w));
    gate_shared_experts(layer, tokens, w);
  } else {
    ops_.run(op::Clear{tokens * config_.hidden, w.branch});
  }
}

void MoeBlock::gate_shared_experts(std::size_t layer, std::size_t tokens, const Workspace& w) {
  if (!config_.moe.shared_gate) return;
  const codec::MatrixRef& gate = weights_.matrix(Role::kSharedExpertGate, static_cast<std::int32_t>(layer));
  ops_.run(op::Matmul{.x = w.arranged[static_cast<std::size_t>(*gate.format->input)],
                      .tokens = tokens,
                      .weight = &gate,
                      .y = w.gate,
                      .y_stride = 1});
  ops_.run(op::GateRows{.gate = w.gate, .rows = tokens, .columns = config_.hidden, .x = w.branch});
}

std::chrono::steady_clock::time_point MoeBlock::now() const {
  return timeline_ != nullptr ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
}

void MoeBlock::record(experts::ExpertId id, std::chrono::steady_clock::time_point begin) {
  if (timeline_ == nullptr) return;
  timeline_->add(
      {fetch::TimelineEntry::Kind::kCompute, id, 0, 0, 0, 0, begin, std::chrono::steady_clock::now()});
}

void MoeBlock::finish_device() {
  Stopwatch waiting;
  try {
    device_->finish_event();
  } catch (const Error& error) {
    if (kernels::is_damaged_weight(error)) throw_damage_on_device(error);
    throw;
  }
  counts().device_wait_s += waiting.lap();
}

void MoeBlock::combine(const experts::Routing& routing, const Workspace& w) {
  sums_.clear();
  const std::size_t tokens = routing.begin.size() - 1;
  for (std::uint32_t t = 0; t < tokens; ++t)
    for (std::uint32_t c = routing.begin[t]; c < routing.begin[t + 1]; ++c)
      sums_.push_back({t, static_cast<std::uint32_t>(rows_.of_choice(c)), routing.choices[c].weight});
  ops_.run(op::CombineRows{.rows = w.expert_rows,
                           .row_count = sums_.size(),
                           .columns = config_.hidden,
                           .sums = sums_,
                           .to = w.branch,
                           .tokens = tokens});
}

}  // namespace sluice::engine
