// What a layer says about the next sparse layer: to the store, to the device, to the observer.
#include <span>
#include <string_view>

#include "base/stopwatch.h"
#include "engine/forward/moe_block.h"
#include "kernels/ops/host_ops.h"

namespace sluice::engine {

using model::Role;

bool MoeBlock::may_look_ahead() {
  const fetch::PrefetchCounters& ahead = store_.prefetch_counters();
  const experts::ReadAhead verdict =
      decider_->may_look_ahead({.used = ahead.used_bytes, .delayed = ahead.delay_bytes});
  if (verdict == experts::ReadAhead::kPaused) ++statistics_.prefetch_paused;
  return verdict == experts::ReadAhead::kOn;
}

void MoeBlock::look_ahead(std::size_t layer, Role norm, const Step& step, const Workspace& w, bool computed) {
  predicted_by_ = experts::PredictorKind::kNone;
  ahead_.clear();
  // The next event of an encoder is the same layer's next chunk.
  if (layer < config_.encoder_layers) return;
  if (!computed) look_ahead_on_device(layer, norm, step, w);
  if (computed ? !decider_->looks_twice() : !may_look_ahead()) return;
  Stopwatch deciding;
  const experts::PredictorKind kind = decider_->predictor();
  const std::span<const experts::PartRequest> wanted =
      decider_->look_ahead(predict(kind, layer, norm, step, w, computed));
  if (!decider_->prefetches_to_device()) expect_inputs(kind, layer, step.tokens.size(), w);
  counts().policy_s += deciding.lap();
  store_.prefetch(wanted);
}

void MoeBlock::look_ahead_on_device(std::size_t layer, Role norm, const Step& step, const Workspace& w) {
  if (!decider_->prefetches_to_device()) return;
  Stopwatch deciding;
  const experts::PredictorKind kind = decider_->device_predictor();
  const std::span<const experts::PartRequest> wanted =
      decider_->look_ahead_on_device(predict(kind, layer, norm, step, w, false));
  expect_inputs(kind, layer, step.tokens.size(), w);
  for (const experts::PartRequest& one : wanted) ahead_.push_back(one.id);
  counts().policy_s += deciding.lap();
}

const experts::ScoresView* MoeBlock::predict(experts::PredictorKind kind, std::size_t layer, Role norm,
                                             const Step& step, const Workspace& w, bool computed) {
  if (kind == experts::PredictorKind::kNone) return nullptr;
  if (predicted_by_ != kind) predicted_ = predictors_[kind].predict(layer, norm, step, w, computed);
  predicted_by_ = kind;
  return &predicted_;
}

void MoeBlock::expect_inputs(experts::PredictorKind kind, std::size_t layer, std::size_t tokens,
                             const Workspace& w) {
  if (kind == experts::PredictorKind::kNone || !ops_.on_host()) return;
  const float* const inputs = kernels::host_floats(predictors_[kind].inputs(w));
  input_prediction_.expect(config_.sparse_index(static_cast<std::uint32_t>(layer)) + 1,
                           {inputs, tokens * config_.hidden});
}

void MoeBlock::show_ahead(std::size_t layer, Role norm, const Step& step, const Workspace& w, bool computed) {
  if (observer_ == nullptr || !observer_->wants_ahead()) return;
  if (config_.sparse_index(static_cast<std::uint32_t>(layer)) + 1 == config_.sparse_layers()) return;
  const auto show = [&](std::string_view name, experts::PredictorKind kind) {
    observer_->on_ahead(name, *predict(kind, layer, norm, step, w, computed));
  };
  show(computed ? kStreamAndLayer : kStream, experts::PredictorKind::kStream);
  if (computed) return;
  show(kGateInput, experts::PredictorKind::kGateInput);
  if (predictors_.has_residual()) show(kGateInputAndResidual, experts::PredictorKind::kResidual);
}

}  // namespace sluice::engine
