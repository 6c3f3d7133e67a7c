// Attention in all its kinds: of heads, latent (MLA), and between an encoder and its decoder.
#include <array>
#include <optional>

#include "engine/forward/common/workspace.h"
#include "engine/forward/dense/dense_weights.h"
#include "engine/forward/layer_run.h"
#include "engine/session/sequence.h"

namespace sluice::engine {
namespace {

using codec::MatrixRef;
using kernels::Floats;
using kernels::RopeForm;
using model::Role;
namespace op = kernels::op;

// Published DeepSeek-V2 code uses this epsilon for the norms of its latents, whatever rms_norm_eps says.
constexpr float kLatentEps = 1e-6f;

}  // namespace

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
    op.sinks = bias_of(Role::kSinks);
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

// kv_b_proj holds, head after head, nope rows that make keys from c_kv, and value rows that make values. The
// nope part of a key meets the query as (W q)·c_kv, so W is applied to the query and the cache stays
// compressed; values are made once, from the attended c_kv. Some files hold W and the value rows apart.
void LayerRun::query_to_latent(std::size_t head) {
  const model::AttentionConfig& attention = config_.attention;
  const std::size_t rank = attention.kv_lora_rank, nope = attention.nope_dim;
  const Floats q = w_.q + head * dims_.query_dim, latent = w_.latent_q + head * dims_.key_dim;
  const std::size_t q_stride = dims_.heads * dims_.query_dim, latent_stride = dims_.heads * dims_.key_dim;
  if (weights_.has(Role::kKeyUp, layer_index())) {
    ops_.run(
        op::Project{.x = q,
                    .tokens = tokens_,
                    .x_stride = q_stride,
                    .weight = codec::rows_of(weights_.matrix(Role::kKeyUp, layer_index()), head * rank, rank),
                    .arranged = w_.latent_arranged,
                    .y = latent,
                    .y_stride = latent_stride});
    return;
  }
  const MatrixRef& up = weights_.words(Role::kKvUp, layer_index());
  ops_.run(op::MatmulTransposed{.x = q,
                                .tokens = tokens_,
                                .x_stride = q_stride,
                                .weight = codec::rows_of(up, head * (nope + attention.value_dim), nope),
                                .y = latent,
                                .y_stride = latent_stride});
}

MatrixRef LayerRun::value_rows(std::size_t head) const {
  const std::size_t nope = config_.attention.nope_dim, value = dims_.value_dim;
  if (weights_.has(Role::kValueUp, layer_index()))
    return codec::rows_of(weights_.matrix(Role::kValueUp, layer_index()), head * value, value);
  return codec::rows_of(weights_.words(Role::kKvUp, layer_index()), head * (nope + value) + nope, value);
}

void LayerRun::attend_mla() {
  const model::AttentionConfig& attention = config_.attention;
  const std::size_t rank = attention.kv_lora_rank, nope = attention.nope_dim, rotary = attention.rope_dim;
  const std::size_t heads = dims_.heads, value = dims_.value_dim;
  write_cache_rows();
  for (std::size_t h = 0; h < heads; ++h) query_to_latent(h);
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
                         .weight = value_rows(h),
                         .arranged = w_.latent_arranged,
                         .y = w_.attended + h * value,
                         .y_stride = heads * value});
  project_out();
}

}  // namespace sluice::engine
