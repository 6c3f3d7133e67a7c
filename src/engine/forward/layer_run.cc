#include "engine/forward/layer_run.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "engine/forward/common/gating.h"
#include "engine/forward/common/workspace.h"
#include "engine/forward/dense/dense_weights.h"
#include "engine/forward/embedding.h"
#include "engine/forward/sparse_block.h"
#include "engine/session/rope_table.h"
#include "engine/session/sequence.h"
#include "kernels/ops/host_ops.h"
#include "kernels/products/products.h"

namespace sluice::engine {
namespace {

using codec::MatrixRef;
using device::Traffic;
using kernels::Floats;
using model::Role;
namespace op = kernels::op;

}  // namespace

LayerRun::LayerRun(kernels::Ops& ops, const model::ModelConfig& config, const DenseWeights& weights,
                   SparseBlock& moe, const WorkspaceBuffer& workspace, const Step& step, std::size_t rows)
    : ops_(ops),
      config_(config),
      weights_(weights),
      moe_(moe),
      w_(workspace.get(rows)),
      step_(step),
      dims_(config.attention),
      tokens_(step.tokens.size()),
      logit_rows_(workspace.shape().logit_rows),
      positions_(workspace.shape().positions),
      encoder_positions_(workspace.shape().encoder_positions) {}

void LayerRun::embed(Embedding& embedding) {
  embedding.rows(step_.tokens, w_.host.hidden);
  ops_.send({w_.host.hidden, tokens_ * config_.hidden}, w_.hidden, Traffic::kDemand);
}

void LayerRun::turn_to_positions(const RopeTable& rope) {
  if (rope.half() == 0) return;
  for (const SequenceSpan& span : step_.spans)
    for (std::size_t t = 0; t < span.tokens; ++t)
      rope.angles(span.sequence->length() + t, w_.host.cos + (span.first_token + t) * rope.half(),
                  w_.host.sin + (span.first_token + t) * rope.half());
  ops_.send({w_.host.cos, tokens_ * rope.half()}, w_.cos, Traffic::kDemand);
  ops_.send({w_.host.sin, tokens_ * rope.half()}, w_.sin, Traffic::kDemand);
}

void LayerRun::norm(Role role) {
  last_norm_ = role;
  norm_rows(w_.hidden, tokens_, config_.hidden, config_.hidden, weights_.vector(role, layer_index()),
            config_.rms_eps, w_.normed);
  arrange_normed();
}

void LayerRun::norm_rows(Floats x, std::size_t rows, std::size_t columns, std::size_t stride,
                         const kernels::Vector& weight, float eps, Floats y) {
  ops_.run(op::RmsNorm{.x = x,
                       .rows = rows,
                       .columns = columns,
                       .x_stride = stride,
                       .weight = weight,
                       .eps = eps,
                       .y = y,
                       .y_stride = stride});
}

void LayerRun::arrange_normed() {
  const std::size_t d = config_.hidden;
  weights_.input_forms().each([&](codec::InputForm form) {
    ops_.run(op::Arrange{.form = form,
                         .x = w_.normed,
                         .tokens = tokens_,
                         .columns = d,
                         .x_stride = d,
                         .arranged = w_.arranged[static_cast<std::size_t>(form)]});
  });
}

Floats LayerRun::arranged_for(const MatrixRef& matrix) const {
  return w_.arranged[static_cast<std::size_t>(*matrix.format->input)];
}

kernels::Vector LayerRun::bias_of(std::optional<Role> bias) const {
  return bias ? weights_.vector_or_empty(*bias, layer_index()) : kernels::Vector{};
}

void LayerRun::project(Role matrix, std::optional<Role> bias, Floats out) {
  const MatrixRef& weight = weights_.matrix(matrix, layer_index());
  ops_.run(op::Matmul{.x = arranged_for(weight),
                      .tokens = tokens_,
                      .weight = &weight,
                      .bias = bias_of(bias),
                      .y = out,
                      .y_stride = weight.shape.rows});
}

void LayerRun::project_from(Floats x, Role matrix, std::optional<Role> bias, Floats out) {
  const MatrixRef& weight = weights_.matrix(matrix, layer_index());
  ops_.run(op::Project{.x = x,
                       .tokens = tokens_,
                       .x_stride = weight.shape.columns,
                       .weight = weight,
                       .bias = bias_of(bias),
                       .arranged = w_.inner,
                       .y = out,
                       .y_stride = weight.shape.rows});
}

// An encoder's sequence keeps the stream where the dense part is computed.
void LayerRun::load_encoder_hidden() {
  const SequenceSpan& span = step_.spans.front();
  copy(span.sequence->encoder_hidden(step_.position(span)), w_.hidden);
}

void LayerRun::save_encoder_hidden() {
  const SequenceSpan& span = step_.spans.front();
  copy(w_.hidden, span.sequence->encoder_hidden(step_.position(span)));
}

void LayerRun::copy(Floats from, Floats to) {
  const std::size_t d = config_.hidden;
  ops_.run(
      op::CopyRows{.from = from, .rows = tokens_, .columns = d, .from_stride = d, .to = to, .to_stride = d});
}

void LayerRun::keep_encoder_output() {
  const std::size_t d = config_.hidden;
  norm_rows(w_.hidden, tokens_, d, d, weights_.vector(Role::kEncoderFinalNorm), config_.rms_eps, w_.normed);
  arrange_normed();
  const SequenceSpan& span = step_.spans.front();
  for (std::size_t layer = config_.encoder_layers; layer < config_.layers; ++layer) {
    begin_layer(layer);
    const KvRows cross = span.sequence->cross(layer);
    project(Role::kCrossK, std::nullopt, w_.k);
    project(Role::kCrossV, std::nullopt, w_.v);
    store_rows(span, cross.keys(), w_.k, dims_.key_row);
    store_rows(span, cross.values(), w_.v, dims_.value_row);
  }
}

void LayerRun::add_branch() { ops_.run(op::Add{w_.branch, tokens_ * config_.hidden, w_.hidden}); }

void LayerRun::mlp() {
  const bool gate = config_.activation.gate();
  ops_.run(op::Mlp{.gate = gate ? weights_.matrix(Role::kMlpGate, layer_index()) : MatrixRef{},
                   .up = weights_.matrix(Role::kMlpUp, layer_index()),
                   .down = weights_.matrix(Role::kMlpDown, layer_index()),
                   .gating = gating_of(config_.activation),
                   .inputs = w_.arranged,
                   .tokens = tokens_,
                   .gate_room = w_.gate,
                   .up_room = w_.up,
                   .inner = w_.inner,
                   .out = w_.branch});
  add_branch();
}

void LayerRun::moe_block() {
  moe_.run(layer_, last_norm_, step_, w_);
  add_branch();
}

void LayerRun::output(const LogitSink& sink) {
  const std::size_t d = config_.hidden, vocab = config_.vocab;
  const MatrixRef& head = weights_.matrix(Role::kHead);
  const Floats arranged = arranged_for(head);
  std::size_t rows = 0, first = 0;  // logits to make, and the first token that may be among them
  const auto flush = [&](std::size_t end) {
    if (rows != 0) {
      ops_.run(op::Matmul{.x = arranged, .tokens = rows, .weight = &head, .y = w_.logits, .y_stride = vocab});
      ops_.receive(w_.logits, {w_.host.logits, rows * vocab});
    }
    const float* row = w_.host.logits;
    for (std::size_t t = first; t < end; ++t) {
      if (!sink.wants(t)) continue;
      sink.take(t, {row, vocab});
      row += vocab;
    }
    rows = 0;
    first = end;
  };
  for (std::size_t t = 0; t < tokens_; ++t) {
    if (!sink.wants(t)) continue;
    const Floats normed = w_.normed + rows * d;
    norm_rows(w_.hidden + t * d, 1, d, d, weights_.vector(Role::kFinalNorm), config_.rms_eps, normed);
    if (config_.head_scale != 1.0f) ops_.run(op::Scale{config_.head_scale, d, normed});
    ops_.run(op::Arrange{.form = *head.format->input,
                         .x = normed,
                         .columns = d,
                         .x_stride = d,
                         .arranged = arranged + rows * kernels::activation_floats(head)});
    if (++rows == logit_rows_) flush(t + 1);
  }
  flush(tokens_);
}

}  // namespace sluice::engine
