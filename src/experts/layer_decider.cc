#include "experts/layer_decider.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "experts/device_presets.h"
#include "experts/prefetch/workload_forecast.h"

namespace sluice::experts {
namespace {

constexpr Parts kWholeSlices = Part::kMsb | Part::kLsb;

ExpertId id_of(std::uint32_t layer, std::size_t expert) {
  return {static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(expert)};
}

// A residency in which experts that need not or cannot be brought there count as resident.
template <class Skip>
class WithoutSkipped final : public ResidencyView {
 public:
  WithoutSkipped(const Residency& tier, Skip skip) : tier_(tier), skip_(std::move(skip)) {}
  Parts parts(ExpertId id) const override { return skip_(id) ? Parts(Part::kFull) : tier_.parts(id); }
  Tier tier() const override { return tier_.tier(); }

 private:
  const Residency& tier_;
  const Skip skip_;
};

// The host's memory, beside which a device has some experts.
class BesideDevice final : public ResidencyView {
 public:
  BesideDevice(const Residency& host, const Residency& device) : host_(host), device_(device) {}
  Parts parts(ExpertId id) const override { return host_.parts(id); }
  bool is_nearer(ExpertId id) const override { return device_.computable(id); }

 private:
  const Residency& host_;
  const Residency& device_;
};

}  // namespace

LayerDecider::LayerDecider(LayerPolicies policies, const SparseShape& shape)
    : policies_(std::move(policies)),
      shape_(shape),
      switch_(policies_.prefetch && policies_.prefetch->prefetches()) {
  const std::size_t host = policies_.residencies.size();
  SLUICE_CHECK(host == 1 || host == shape.layers);
  if (!policies_.device) return;
  const std::size_t device = policies_.device->residencies.size();
  SLUICE_CHECK(device == 1 || device == shape.layers);
  SLUICE_CHECK(policies_.placement && !policies_.whole_layers);
  SLUICE_CHECK(policies_.sliced() == policies_.device->slices.has_value(), "a device knows no slices");
  device_ = std::make_unique<DeviceDecider>(*policies_.device, *policies_.placement, policies_.costs);
}

void LayerDecider::begin_step(std::span<const SequenceSpan> spans) {
  take_up(spans);
  // A step with drafts takes the time of more tokens, which tells nothing about read-ahead either.
  const bool drafts = std::ranges::any_of(
      spans, [](const SequenceSpan& span) { return span.kind == StepKind::kDecode && span.tokens > 1; });
  if (drafts)
    switch_.resume_step(step_);
  else
    switch_.begin_step(step_);
}

void LayerDecider::resume_step(std::span<const SequenceSpan> spans) {
  take_up(spans);
  switch_.resume_step(step_);
}

void LayerDecider::take_up(std::span<const SequenceSpan> spans) {
  prediction_.forget();
  step_spans_.assign(spans.begin(), spans.end());
  step_ = step_kind(spans);
  if (policies_.constraint) policies_.constraint->begin_step(spans);
}

void LayerDecider::end_step(const StepCost& cost) {
  if (policies_.router) policies_.router->end_step(step_spans_);
  if (policies_.constraint) policies_.constraint->end_step();
  switch_.end_step(cost);
  if (device_) device_->end_layer();
}

void LayerDecider::cancel_step(std::span<const SequenceSpan> spans) {
  if (policies_.router) policies_.router->cancel_step(spans);
}

void LayerDecider::end_sequence(SequenceId sequence) {
  if (policies_.router) policies_.router->end_sequence(sequence);
  if (policies_.constraint) policies_.constraint->end_sequence(sequence);
  for (const std::unique_ptr<Residency>& residency : policies_.residencies) residency->end_sequence(sequence);
  if (!policies_.device) return;
  for (const std::unique_ptr<Residency>& residency : policies_.device->residencies)
    residency->end_sequence(sequence);
}

const Routing& LayerDecider::route(const ScoresView& scores) {
  is_routed_ = false;
  scores_ = scores;
  const Residency& host = policies_.residency(scores.layer);
  if (policies_.device)
    policies_.router->route(scores, BesideDevice(host, policies_.device->residency(scores.layer)),
                            decision_.routing);
  else
    policies_.router->route(scores, host, decision_.routing);
  return routed();
}

const Routing& LayerDecider::follow(const ScoresView& scores, std::span<const Choice> choices,
                                    std::span<const std::uint32_t> begin) {
  scores_ = scores;
  decision_.routing.choices.assign(choices.begin(), choices.end());
  decision_.routing.begin.assign(begin.begin(), begin.end());
  decision_.routing.exact.clear();
  decision_.routing.exact_begin.clear();
  return routed();
}

void LayerDecider::follow(std::uint32_t layer, const Demand& event, const EventSize& size) {
  SLUICE_CHECK(!policies_.sliced() && !policies_.constraint && !policies_.guard,
               "an event without a routing cannot be limited");
  SLUICE_CHECK(!policies_.whole_layers || size.experts > 0,
               "whole layers must know how many experts they have");
  scores_ = {.layer = layer, .tokens = size.tokens};
  decision_.routing.choices.clear();
  decision_.routing.begin.assign(1, 0);
  decision_.experts.assign(event.experts.begin(), event.experts.end());
  decision_.tokens.assign(event.tokens.begin(), event.tokens.end());
  tokens_of_.assign(size.experts, 0);  // empty where the layer's number of experts is not known
  if (size.experts > 0)
    for (std::size_t i = 0; i < event.experts.size(); ++i)
      tokens_of_[event.experts[i].index] = event.tokens[i];
  mean_scores_.clear();
  is_routed_ = true;
}

const ReadOrder& LayerDecider::order(std::span<const MissingExpert> missing) {
  order_reads(missing, policies_.costs, *policies_.scheduler, order_);
  return order_;
}

const Routing& LayerDecider::routed() {
  SLUICE_CHECK(cover(scores_.spans, scores_.tokens), "an event of tokens of no sequence");
  SLUICE_CHECK(scores_.kind() == step_, "an event of another kind than its step");
  set_precision(policies_.precision, decision_.routing);
  count_changes();
  group_by_expert();
  average_scores();
  check_prediction();
  is_routed_ = true;
  return decision_.routing;
}

void LayerDecider::count_changes() {
  Routing& routing = decision_.routing;
  const double before = decode_changes_.mass_lost;
  const std::uint64_t tokens_before = decode_changes_.tokens;
  for (const SequenceSpan& span : scores_.spans) {
    changes_.add(scores_, routing, span);
    if (span.kind == StepKind::kDecode) decode_changes_.add(scores_, routing, span);
  }
  const std::uint64_t decoded = decode_changes_.tokens - tokens_before;
  if (!policies_.guard || decoded == 0) return;
  policies_.guard->add_routing(decoded, decode_changes_.mass_lost - before);
  if (policies_.precision.mode == PrecisionMode::kDbsc && step_ == StepKind::kDecode)
    policies_.guard->limit_precision(routing);
}

void LayerDecider::group_by_expert() {
  tokens_of_.assign(scores_.experts, 0);
  for (const Choice& choice : decision_.routing.choices) tokens_of_[choice.expert] += 1;
  decision_.experts.clear();
  decision_.tokens.clear();
  for (std::size_t e = 0; e < tokens_of_.size(); ++e) {
    if (tokens_of_[e] == 0) continue;
    decision_.experts.push_back(id_of(scores_.layer, e));
    decision_.tokens.push_back(tokens_of_[e]);
  }
}

void LayerDecider::average_scores() {
  mean_scores_.resize(scores_.experts);
  for (std::size_t e = 0; e < mean_scores_.size(); ++e) {
    double sum = 0;
    for (std::size_t t = 0; t < scores_.tokens; ++t) sum += scores_.scores[t * scores_.experts + e];
    mean_scores_[e] = static_cast<float>(sum / scores_.tokens);
  }
}

const LayerDecision& LayerDecider::decide() {
  SLUICE_CHECK(is_routed_, "a layer is decided that has not been routed");
  is_routed_ = false;
  asked_.clear();
  if (policies_.sliced()) {
    demands_.gather(scores_, decision_.routing);
    for (const ExpertId id : decision_.experts) asked_.push_back(demands_.asked(id));
  }
  if (device_)
    decide_device();
  else
    assign();
  Residency& residency = policies_.residency(scores_.layer);
  MissConstraint* const constraint = step_ == StepKind::kPrompt ? nullptr : policies_.constraint.get();
  decision_.slices = {};
  if (policies_.sliced()) {
    if (device_) demands_.narrow_to(host_experts_);
    decision_.slices = demands_.demand(
        constraint != nullptr ? constraint->lsb_allowance(decision_.experts, residency) : kAnyBytes);
  }
  const Demand& demand = decision_.fetch_demand;
  decision_.outcome = decision_.fetch =
      &residency.on_event(demand.experts, mean_scores_, demand.tokens, decision_.slices, place(), exchange_);
  if (excludes()) device_->exchange(*decision_.outcome);
  if (constraint != nullptr) constraint->on_event(*decision_.outcome);
  find_low();
  if (policies_.whole_layers) widen_to_layer();
  return decision_;
}

EventPlace LayerDecider::place() const {
  const auto begins = [](const SequenceSpan& span) {
    return span.kind == StepKind::kPrompt && span.first_of_forward;
  };
  return {.layer = scores_.layer,
          .step = step_,
          .begins_prompt = std::ranges::any_of(scores_.spans, begins),
          .layer_tokens = tokens_of_,
          .tokens = scores_.tokens};
}

void LayerDecider::assign() {
  decision_.device = nullptr;
  decision_.fetch_demand = {decision_.experts, decision_.tokens};
  decision_.assignment.unit.clear();
  if (!policies_.placement) return;
  t_host_.clear();
  for (const std::uint32_t tokens : decision_.tokens) t_host_.push_back(policies_.costs.run.of(tokens));
  policies_.placement->assign(decision_.fetch_demand, {.phase = step_, .t_host = t_host_},
                              decision_.assignment);
  SLUICE_CHECK(decision_.assignment.unit.size() == decision_.experts.size(),
               policies_.placement->name() + " leaves experts without a place");
}

void LayerDecider::decide_device() {
  std::uint32_t prompt_tokens = 0;
  for (const SequenceSpan& span : scores_.spans)
    prompt_tokens += span.kind == StepKind::kPrompt ? span.tokens : 0;
  decision_.device = &device_->decide({.demand = {decision_.experts, decision_.tokens},
                                       .place = place(),
                                       .step_tokens = scores_.tokens,
                                       .prompt_tokens = prompt_tokens,
                                       .precedes = looks_ahead(),
                                       .predicted_by = predictor_of(policies_.device->prefetch.get()),
                                       .mean_scores = mean_scores_,
                                       .host = excludes() ? &policies_.residency(scores_.layer) : nullptr,
                                       .asked = asked_},
                                      decision_.assignment);
  find_host_event();
  if (excludes())
    exchange_ = exchanger_.exchange(scores_.layer, policies_.residencies.size() > 1, *decision_.device,
                                    policies_.device->residency(scores_.layer),
                                    policies_.residency(scores_.layer), device_->clock());
}

bool LayerDecider::excludes() const {
  return policies_.device && policies_.device->tiers == Tiers::kExclusive;
}

// What the device has or is getting needs nothing of the host.
void LayerDecider::find_host_event() {
  needed_.assign(decision_.experts.size(), 1);
  for (const DeviceUse& use : decision_.device->uses)
    needed_[place_of(use.id)] = use.from == DeviceBytes::kLink;
  list_host_event();
}

std::size_t LayerDecider::place_of(ExpertId used) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(decision_.experts, used) -
                                  decision_.experts.begin());
}

void LayerDecider::list_host_event() {
  host_experts_.clear();
  host_tokens_.clear();
  for (std::size_t i = 0; i < decision_.experts.size(); ++i) {
    if (needed_[i] == 0) continue;
    host_experts_.push_back(decision_.experts[i]);
    host_tokens_.push_back(decision_.tokens[i]);
  }
  decision_.fetch_demand = {host_experts_, host_tokens_};
}

void LayerDecider::fetch_lost(std::span<const ExpertId> lost) {
  if (lost.empty()) return;
  SLUICE_CHECK(device_ && decision_.fetch == decision_.outcome,
               "experts are lost that no device was to have");
  fetch_outcome_ = *decision_.outcome;
  for (const ExpertId id : lost) {
    std::uint8_t& needed = needed_[place_of(id)];
    SLUICE_CHECK(needed == 0, "an expert is lost that the host fetches");
    needed = 1;
    const Parts view = std::ranges::find(decision_.device->uses, id, &DeviceUse::id)->view;
    fetch_outcome_.misses.push_back(
        {.id = id, .parts = policies_.residency(scores_.layer).parts(id), .asked = view, .view = view});
  }
  std::ranges::sort(fetch_outcome_.misses, {}, &Admission::id);
  decision_.fetch = &fetch_outcome_;
  list_host_event();
}

void LayerDecider::find_low() {
  decision_.is_low.clear();
  decision_.low_share = 0;
  if (!policies_.sliced() || step_ == StepKind::kPrompt) return;
  decision_.is_low.assign(scores_.experts, 0);
  for (const auto* used : {&decision_.outcome->hits, &decision_.outcome->misses})
    for (const Admission& one : *used)
      decision_.is_low[one.id.index] = !one.view.empty() && !one.view.has(Part::kLsb) ? 1 : 0;
  // The host may have more than the device computes with.
  if (decision_.device != nullptr)
    for (const DeviceUse& use : decision_.device->uses)
      decision_.is_low[use.id.index] = use.view.has(Part::kLsb) ? 0 : 1;
  for (std::uint32_t t = 0; t < scores_.tokens; ++t) {
    double low = 0, sum = 0;
    for (const Choice& choice : decision_.routing.token(t)) {
      sum += choice.weight;
      low += decision_.is_low[choice.expert] != 0 ? choice.weight : 0;
    }
    decision_.low_share += sum > 0 ? low / sum : 0;
  }
  if (policies_.guard) policies_.guard->add_precision(scores_.tokens, decision_.low_share);
}

void LayerDecider::widen_to_layer() {
  fetch_outcome_ = *decision_.outcome;
  layer_experts_.clear();
  // Not counted in 16 bits: there may be 65,536 experts.
  for (std::size_t e = 0; e < tokens_of_.size(); ++e) {
    const ExpertId id = id_of(scores_.layer, e);
    layer_experts_.push_back(id);
    if (tokens_of_[e] == 0)
      fetch_outcome_.misses.push_back({id, policies_.residency(scores_.layer).parts(id)});
  }
  std::ranges::sort(fetch_outcome_.misses, {}, &Admission::id);
  decision_.fetch = &fetch_outcome_;
  decision_.fetch_demand = {layer_experts_, tokens_of_};
}

PredictorKind LayerDecider::predictor() const { return predictor_of(policies_.prefetch.get()); }

PredictorKind LayerDecider::device_predictor() const {
  const bool asks = policies_.device && device_->may_prefetch();
  return predictor_of(asks ? policies_.device->prefetch.get() : nullptr);
}

PredictorKind LayerDecider::predictor_of(const Prefetch* prefetch) const {
  if (prefetch == nullptr || !looks_ahead()) return PredictorKind::kNone;
  const PredictorKind kind = prefetch->predictor();
  return step_ == StepKind::kDecode || predicts_prompts(kind) ? kind : PredictorKind::kNone;
}

bool LayerDecider::looks_ahead() const { return !in_encoder() && scores_.layer + 1 < shape_.layers; }

Parts LayerDecider::certain_parts() const {
  if (!policies_.sliced()) return Part::kFull;
  return step_ == StepKind::kPrompt ? kWholeSlices : least_parts(policies_.precision.mode);
}

std::span<const PartRequest> LayerDecider::look_ahead(const ScoresView* next) {
  proposals_.clear();
  if (!policies_.prefetch) return proposals_;
  const Residency& host = policies_.residency(next_layer());
  const auto there = [&](ExpertId id) {
    return policies_.device && policies_.device->residency(next_layer()).computable(id);
  };
  const WithoutSkipped lacked(host, there);
  policies_.prefetch->propose(state_of(lacked, next), proposals_);
  if (!prefetches_to_device()) expect(*policies_.prefetch);
  return proposals_;
}

std::span<const PartRequest> LayerDecider::look_ahead_on_device(const ScoresView* next) {
  SLUICE_CHECK(prefetches_to_device());
  device_proposals_.clear();
  if (!device_->may_prefetch()) return device_proposals_;
  DevicePolicies& device = *policies_.device;
  const Residency& host = policies_.residency(next_layer());
  const WithoutSkipped reachable(device.residency(next_layer()), [&](ExpertId id) {
    if (!device.host_may_lack) return false;
    return policies_.sliced() ? !host.parts(id).has_all(certain_parts()) : !host.computable(id);
  });
  LayerState state = state_of(reachable, next);
  state.tier = Tier::kDevice;
  state.most = device.prefetch_size;
  device.prefetch->propose(state, device_proposals_);
  device_->prefetch(device_proposals_);
  expect(*device.prefetch);
  return device_proposals_;
}

void LayerDecider::expect(Prefetch& prefetch) {
  WorkloadForecast* const forecast = prefetch.forecast();
  if (forecast == nullptr || predictor_of(&prefetch) == PredictorKind::kNone) return;
  prediction_.expect(next_layer(), predicted_top(), forecast->top(predicted_top()));
}

std::uint32_t LayerDecider::predicted_top() const {
  const std::uint32_t experts = scores_.experts;
  return std::min(prefetches_to_device() ? policies_.device->prefetch_size : usual_prefetch_size(experts),
                  experts);
}

void LayerDecider::check_prediction() {
  prediction_scores_.assign(mean_scores_.begin(), mean_scores_.end());
  PredictionCounts& counts = step_ == StepKind::kPrompt ? prompt_predictions_ : decode_predictions_;
  counts += prediction_.observe(scores_.layer, tokens_of_, prediction_scores_);
}

// At the last layer that one: nothing is fetched then.
std::uint32_t LayerDecider::next_layer() const { return std::min(scores_.layer + 1, shape_.layers - 1); }

LayerState LayerDecider::state_of(const ResidencyView& residency, const ScoresView* next) const {
  return {.layer = scores_.layer,
          .layers = shape_.layers,
          .experts = scores_.experts,
          .routing = &decision_.routing,
          .residency = &residency,
          .next = next,
          .top_k = shape_.top_k,
          .certain = certain_parts()};
}

}  // namespace sluice::experts
