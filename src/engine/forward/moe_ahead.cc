// What a layer says about the next sparse layer: to the store, to the device, to the observer.
#include <algorithm>
#include <span>
#include <string_view>

#include "base/stopwatch.h"
#include "engine/forward/moe_block.h"
#include "kernels/ops/host_ops.h"

namespace sluice::engine {

using experts::PredictorKind;
using model::Role;

bool MoeBlock::may_look_ahead() {
  const fetch::PrefetchCounters& ahead = store_.prefetch_counters();
  const experts::ReadAhead verdict =
      decider_->may_look_ahead({.used = ahead.used_bytes, .delayed = ahead.delay_bytes});
  if (verdict == experts::ReadAhead::kPaused) ++statistics_.prefetch_paused;
  return verdict == experts::ReadAhead::kOn;
}

void MoeBlock::look_ahead(std::size_t layer, Role norm, const Step& step, const Workspace& w, Moment moment) {
  predicted_by_ = PredictorKind::kNone;
  if (moment == Moment::kRouted) ahead_.clear();
  if (decider_->in_encoder()) return;
  if (moment != Moment::kComputed) look_ahead_on_device(layer, norm, step, w, moment);
  const PredictorKind kind = decider_->predictor();
  if (moment != Moment::kComputed && moment_of(kind) != moment) return;
  if (moment == Moment::kComputed ? !decider_->looks_twice() : !may_look_ahead()) return;
  Stopwatch watch;
  const experts::ScoresView* const next = predict(kind, layer, norm, step, w, moment);
  count_prediction(watch.lap());
  const std::span<const experts::PartRequest> wanted = decider_->look_ahead(next);
  if (!decider_->prefetches_to_device()) expect_inputs(kind, layer, step.tokens.size(), w);
  counts().policy_s += watch.lap();
  store_.prefetch(wanted);
}

void MoeBlock::look_ahead_on_device(std::size_t layer, Role norm, const Step& step, const Workspace& w,
                                    Moment moment) {
  if (!decider_->prefetches_to_device()) return;
  const PredictorKind kind = decider_->device_predictor();
  if (moment_of(kind) != moment) return;
  Stopwatch watch;
  const experts::ScoresView* const next = predict(kind, layer, norm, step, w, moment);
  count_prediction(watch.lap());
  const std::span<const experts::PartRequest> wanted = decider_->look_ahead_on_device(next);
  expect_inputs(kind, layer, step.tokens.size(), w);
  ahead_.insert(ahead_.end(), wanted.begin(), wanted.end());
  counts().policy_s += watch.lap();
}

void MoeBlock::count_prediction(double seconds) {
  counts().predict_s += seconds;
  counts().policy_s += seconds;
}

MoeBlock::Moment MoeBlock::moment_of(PredictorKind kind) {
  return kind == PredictorKind::kPartial ? Moment::kPartial : Moment::kRouted;
}

bool MoeBlock::waits_for_partial_state() const {
  if (decider_->in_encoder()) return false;
  return decider_->predictor() == PredictorKind::kPartial ||
         (decider_->prefetches_to_device() && decider_->device_predictor() == PredictorKind::kPartial);
}

void MoeBlock::look_ahead_partially(std::size_t layer, Role norm, const Step& step, const Workspace& w) {
  list_known(decision_->routing);
  predictors_.partial()->know(known_, decision_->routing.choices.size());
  look_ahead(layer, norm, step, w, Moment::kPartial);
  show_ahead(layer, norm, step, w, Moment::kPartial);
  if (decider_->prefetches_to_device()) device_->prefetch(ahead_);
}

void MoeBlock::list_known(const experts::Routing& routing) {
  known_.clear();
  const std::size_t tokens = routing.begin.size() - 1;
  const std::uint32_t layer = config_.sparse_index(static_cast<std::uint32_t>(layer_));
  for (std::uint32_t t = 0; t < tokens; ++t)
    for (std::uint32_t c = routing.begin[t]; c < routing.begin[t + 1]; ++c)
      if (is_known({static_cast<std::uint16_t>(layer), routing.choices[c].expert}))
        known_.push_back({t, static_cast<std::uint32_t>(rows_.of_choice(c)), routing.choices[c].weight});
}

// What the residencies say counts, not what has happened to arrive: a prediction is the same in every run. An
// expert whose copy has failed is given to the device later than the others, and nobody waits for it here.
bool MoeBlock::is_known(experts::ExpertId id) const {
  if (device_ == nullptr)
    return computed_[rows_.slot(id)] != 0 &&
           std::ranges::binary_search(decision_->outcome->hits, id, {}, &experts::Admission::id);
  const auto use = std::ranges::find(plan_->uses, id, &experts::DeviceUse::id);
  return use != plan_->uses.end() && use->from != experts::DeviceBytes::kLink && use->remaining == 0 &&
         std::ranges::count(std::span(given_).first(resident_given_), id) != 0;
}

const experts::ScoresView* MoeBlock::predict(PredictorKind kind, std::size_t layer, Role norm,
                                             const Step& step, const Workspace& w, Moment moment) {
  if (kind == PredictorKind::kNone) return nullptr;
  if (predicted_by_ == kind) return &predicted_;
  predicted_ = predictors_[kind].predict(layer, norm, step, w, moment == Moment::kComputed);
  predicted_by_ = kind;
  return &predicted_;
}

void MoeBlock::expect_inputs(PredictorKind kind, std::size_t layer, std::size_t tokens, const Workspace& w) {
  if (kind == PredictorKind::kNone || !ops_.on_host()) return;
  const float* const inputs = kernels::host_floats(predictors_[kind].inputs(w));
  input_prediction_.expect(config_.sparse_index(static_cast<std::uint32_t>(layer)) + 1,
                           {inputs, tokens * config_.hidden});
}

void MoeBlock::show_ahead(std::size_t layer, Role norm, const Step& step, const Workspace& w, Moment moment) {
  if (observer_ == nullptr || !observer_->wants_ahead()) return;
  if (config_.sparse_index(static_cast<std::uint32_t>(layer)) + 1 == config_.sparse_layers()) return;
  const auto show = [&](std::string_view name, PredictorKind kind) {
    observer_->on_ahead(name, *predict(kind, layer, norm, step, w, moment));
  };
  if (moment == Moment::kPartial) return show(kPartialState, PredictorKind::kPartial);
  show(moment == Moment::kComputed ? kStreamAndLayer : kStream, PredictorKind::kStream);
  if (moment == Moment::kComputed) return;
  show(kGateInput, PredictorKind::kGateInput);
  if (predictors_.has_residual()) show(kGateInputAndResidual, PredictorKind::kResidual);
}

}  // namespace sluice::engine
