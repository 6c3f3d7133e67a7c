#include "engine/forward/layer_run.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "engine/forward/dense_weights.h"
#include "engine/forward/embedding.h"
#include "engine/forward/moe_block.h"
#include "engine/forward/workspace.h"
#include "engine/session/rope_table.h"
#include "engine/session/sequence.h"
#include "kernels/ops/host_ops.h"
#include "kernels/products/products.h"

namespace sluice::engine {
namespace {

using codec::MatrixRef;
using device::Traffic;
using kernels::Floats;
using kernels::RopeForm;
using model::Role;
namespace op = kernels::op;

// Published DeepSeek-V2 code uses this epsilon for the norms of its latents, whatever rms_norm_eps says.
constexpr float kLatentEps = 1e-6f;

}  // namespace

LayerRun::LayerRun(kernels::Ops& ops, const model::ModelConfig& config, const DenseWeights& weights,
                   MoeBlock& moe, const WorkspaceBuffer& workspace, const Step& step, std::size_t rows)
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

void LayerRun::project_qkv() {
  if (tokens_ == 1) {
    const auto product = [&](Role matrix, Role bias, Floats out) {
      const MatrixRef& weight = weights_.matrix(matrix, layer_index());
      return op::VectorMatmul{arranged_for(weight), &weight, out, bias_of(bias)};
    };
    return ops_.run(op::VectorMatmuls{std::array{product(Role::kQ, Role::kQBias, w_.q),
                                                 product(Role::kK, Role::kKBias, w_.k),
                                                 product(Role::kV, Role::kVBias, w_.v)}});
  }
  project(Role::kQ, Role::kQBias, w_.q);
  project(Role::kK, Role::kKBias, w_.k);
  project(Role::kV, Role::kVBias, w_.v);
}

void LayerRun::norm_q_and_k_whole() {
  const std::size_t q = dims_.heads * dims_.query_dim, k = dims_.kv_heads * dims_.key_dim;
  norm_rows(w_.q, tokens_, q, q, weights_.vector(Role::kQNorm, layer_index()), config_.rms_eps, w_.q);
  norm_rows(w_.k, tokens_, k, k, weights_.vector(Role::kKNorm, layer_index()), config_.rms_eps, w_.k);
}

void LayerRun::norm_q_and_k_per_head() {
  const std::size_t head = dims_.query_dim;
  norm_rows(w_.q, tokens_ * dims_.heads, head, head, weights_.vector(Role::kQNorm, layer_index()),
            config_.rms_eps, w_.q);
  norm_rows(w_.k, tokens_ * dims_.kv_heads, head, head, weights_.vector(Role::kKNorm, layer_index()),
            config_.rms_eps, w_.k);
}

void LayerRun::clamp_qkv() {
  if (!config_.attention.clip_qkv) return;
  const float limit = *config_.attention.clip_qkv;
  ops_.run(op::Clamp{limit, tokens_ * dims_.heads * dims_.query_dim, w_.q});
  ops_.run(op::Clamp{limit, tokens_ * dims_.kv_heads * dims_.key_dim, w_.k});
  ops_.run(op::Clamp{limit, tokens_ * dims_.kv_heads * dims_.cache_value_dim, w_.v});
}

void LayerRun::rotate(RopeForm form, Floats x, std::size_t heads, std::size_t head_stride) {
  ops_.run(op::Rope{.form = form,
                    .x = x,
                    .tokens = tokens_,
                    .token_stride = heads * head_stride,
                    .heads = heads,
                    .head_stride = head_stride,
                    .half = config_.attention.rope.dims / 2,
                    .cos = w_.cos,
                    .sin = w_.sin});
}

void LayerRun::rotate_q_and_k() {
  const RopeForm form = config_.attention.rope.interleaved ? RopeForm::kInterleaved : RopeForm::kHalf;
  rotate(form, w_.q, dims_.heads, dims_.query_dim);
  rotate(form, w_.k, dims_.kv_heads, dims_.key_dim);
}

void LayerRun::write_cache_rows() {
  for (const SequenceSpan& span : step_.spans) {
    store_rows(span, span.sequence->keys(layer_), w_.k, dims_.key_row);
    if (dims_.value_row != 0) store_rows(span, span.sequence->values(layer_), w_.v, dims_.value_row);
  }
}

void LayerRun::store_rows(const SequenceSpan& span, const kernels::CacheRows& to, Floats x, std::size_t row) {
  ops_.run(op::StoreCache{.x = x + span.first_token * row,
                          .tokens = span.tokens,
                          .x_stride = row,
                          .first_position = step_.position(span),
                          .to = to});
}

op::Attention LayerRun::attention(const SequenceSpan& span, Floats q, Floats out) const {
  op::Attention op{.shape = dims_.kernel_shape(0),
                   .q = q + span.first_token * dims_.heads * dims_.key_dim,
                   .tokens = span.tokens,
                   .first_position = step_.position(span),
                   .keys = span.sequence->keys(layer_),
                   .values = span.sequence->values(layer_),
                   .out = out + span.first_token * dims_.heads * dims_.cache_value_dim,
                   .scratch = w_.attention_scratch,
                   .scratch_floats = w_.attention_scratch_floats};
  return op;
}

void LayerRun::attend_cache(Floats q, Floats out) {
  for (const SequenceSpan& span : step_.spans) {
    op::Attention op = attention(span, q, out);
    op.shape.window = config_.window(static_cast<std::uint32_t>(layer_));
    op.first_position = span.sequence->length();
    add_bias(op);
    ops_.run(op);
  }
}

void LayerRun::add_bias(op::Attention& op) const {
  if (config_.attention.relative.buckets == 0) return;
  const bool encoder = layer_ < config_.encoder_layers;
  op.bias = encoder ? w_.encoder_bias : w_.decoder_bias;
  op.bias_stride = encoder ? 2 * encoder_positions_ - 1 : positions_;
  op.bias_center = (encoder ? encoder_positions_ : positions_) - 1;
}

void LayerRun::project_out(Role matrix, std::optional<Role> bias) {
  project_from(w_.attended, matrix, bias, w_.branch);
  add_branch();
}

void LayerRun::attend() {
  write_cache_rows();
  attend_cache(w_.q, w_.attended);
  project_out();
}

void LayerRun::project_q() { project(Role::kQ, Role::kQBias, w_.q); }

void LayerRun::project_kv() {
  project(Role::kK, Role::kKBias, w_.k);
  project(Role::kV, Role::kVBias, w_.v);
}

void LayerRun::attend_both_ways() {
  for (const SequenceSpan& span : step_.spans) {
    op::Attention op = attention(span, w_.q, w_.attended);
    op.shape.visible = span.sequence->encoder_length();
    add_bias(op);
    ops_.run(op);
  }
  project_out();
}

void LayerRun::attend_to_encoder() {
  project(Role::kCrossQ, std::nullopt, w_.q);
  for (const SequenceSpan& span : step_.spans) {
    op::Attention op = attention(span, w_.q, w_.attended);
    op.shape.visible = span.sequence->encoder_length();
    const KvRows cross = span.sequence->cross(layer_);
    op.keys = cross.keys();
    op.values = cross.values();
    ops_.run(op);
  }
  project_out(Role::kCrossO, std::nullopt);
}

// An encoder's sequence keeps the stream where the dense part is computed.
void LayerRun::load_encoder_hidden() {
  const SequenceSpan& span = step_.spans.front();
  copy(kernels::floats_at(span.sequence->encoder_hidden(step_.position(span))), w_.hidden);
}

void LayerRun::save_encoder_hidden() {
  const SequenceSpan& span = step_.spans.front();
  copy(w_.hidden, kernels::floats_at(span.sequence->encoder_hidden(step_.position(span))));
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

void LayerRun::project_mla() {
  const model::AttentionConfig& attention = config_.attention;
  const std::size_t rank = attention.kv_lora_rank;
  if (attention.q_lora_rank != 0) {
    const std::size_t q_rank = attention.q_lora_rank;
    project(Role::kQDown, Role::kQBias, w_.v);
    norm_rows(w_.v, tokens_, q_rank, q_rank, weights_.vector(Role::kQDownNorm, layer_index()), kLatentEps,
              w_.v);
    project_from(w_.v, Role::kQUp, std::nullopt, w_.q);
  } else {
    project(Role::kQ, std::nullopt, w_.q);
  }
  project(Role::kKvDown, Role::kKBias, w_.k);
  norm_rows(w_.k, tokens_, rank, dims_.key_dim, weights_.vector(Role::kKvDownNorm, layer_index()), kLatentEps,
            w_.k);
  rotate(RopeForm::kInterleaved, w_.q + attention.nope_dim, dims_.heads, dims_.query_dim);
  rotate(RopeForm::kInterleaved, w_.k + rank, 1, dims_.key_dim);
}

void LayerRun::attend_mla() {
  // kv_b_proj holds, head after head, nope rows that make keys from c_kv, and value rows that make values.
  // The nope part of a key meets the query as (W q)·c_kv, so W is applied to the query and the cache stays
  // compressed; values are made once, from the attended c_kv.
  const model::AttentionConfig& attention = config_.attention;
  const std::size_t rank = attention.kv_lora_rank, nope = attention.nope_dim, rotary = attention.rope_dim;
  const std::size_t heads = dims_.heads, value = dims_.value_dim;
  const MatrixRef& up = weights_.words(Role::kKvUp, layer_index());
  write_cache_rows();
  for (std::size_t h = 0; h < heads; ++h)
    ops_.run(op::MatmulTransposed{.x = w_.q + h * dims_.query_dim,
                                  .tokens = tokens_,
                                  .x_stride = heads * dims_.query_dim,
                                  .weight = codec::rows_of(up, h * (nope + value), nope),
                                  .y = w_.latent_q + h * dims_.key_dim,
                                  .y_stride = heads * dims_.key_dim});
  ops_.run(op::CopyRows{.from = w_.q + nope,
                        .rows = tokens_ * heads,
                        .columns = rotary,
                        .from_stride = dims_.query_dim,
                        .to = w_.latent_q + rank,
                        .to_stride = dims_.key_dim});
  attend_cache(w_.latent_q, w_.latent_out);
  for (std::size_t h = 0; h < heads; ++h)
    ops_.run(op::Project{.x = w_.latent_out + h * rank,
                         .tokens = tokens_,
                         .x_stride = heads * rank,
                         .weight = codec::rows_of(up, h * (nope + value) + nope, value),
                         .arranged = w_.latent_arranged,
                         .y = w_.attended + h * value,
                         .y_stride = heads * value});
  project_out();
}

void LayerRun::add_branch() { ops_.run(op::Add{w_.branch, tokens_ * config_.hidden, w_.hidden}); }

void LayerRun::mlp() {
  const bool gated = config_.activation == model::Activation::kSwiGlu;
  ops_.run(op::Mlp{.gate = gated ? weights_.matrix(Role::kMlpGate, layer_index()) : MatrixRef{},
                   .up = weights_.matrix(Role::kMlpUp, layer_index()),
                   .down = weights_.matrix(Role::kMlpDown, layer_index()),
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
