#include "engine/forward/layer_run.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/error.h"
#include "engine/forward/dense_weights.h"
#include "engine/forward/embedding.h"
#include "engine/forward/moe_block.h"
#include "engine/forward/workspace.h"
#include "engine/session/rope_table.h"
#include "engine/session/sequence.h"
#include "kernels/attention/attention.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/products/products.h"
#include "kernels/products/vector_products.h"

namespace sluice::engine {
namespace {

using codec::MatrixRef;
using kernels::RopeForm;
using model::Role;

// Published DeepSeek-V2 code uses this epsilon for the norms of its latents, whatever rms_norm_eps says.
constexpr float kLatentEps = 1e-6f;

}  // namespace

LayerRun::LayerRun(const kernels::Context& kernels, const model::ModelConfig& config,
                   const DenseWeights& weights, MoeBlock& moe, const WorkspaceBuffer& workspace,
                   const Step& step, std::size_t rows)
    : kernels_(kernels),
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

void LayerRun::embed(Embedding& embedding) { embedding.rows(step_.tokens, w_.hidden); }

void LayerRun::turn_to_positions(const RopeTable& rope) {
  for (const SequenceSpan& span : step_.spans)
    for (std::size_t t = 0; t < span.tokens && rope.half() != 0; ++t)
      rope.angles(span.sequence->length() + t, w_.cos + (span.first_token + t) * rope.half(),
                  w_.sin + (span.first_token + t) * rope.half());
}

void LayerRun::norm(Role role) {
  last_norm_ = role;
  const std::size_t d = config_.hidden;
  kernels::rms_norm(kernels_, w_.hidden, tokens_, d, d, weights_.vector(role, layer_index()), config_.rms_eps,
                    w_.normed, d);
  arrange_normed();
}

void LayerRun::arrange_normed() {
  const std::size_t d = config_.hidden;
  weights_.input_forms().each([&](codec::InputForm form) {
    kernels::input_form(form).arrange(kernels_, w_.normed, tokens_, d, d,
                                      w_.arranged[static_cast<std::size_t>(form)]);
  });
}

const float* LayerRun::arranged_for(const MatrixRef& matrix) const {
  return w_.arranged[static_cast<std::size_t>(*matrix.format->input)];
}

std::span<const float> LayerRun::bias_of(std::optional<Role> bias) const {
  return bias ? weights_.vector_or_empty(*bias, layer_index()) : std::span<const float>{};
}

void LayerRun::project(Role matrix, std::optional<Role> bias, float* out) {
  const MatrixRef& weight = weights_.matrix(matrix, layer_index());
  kernels::matmul(kernels_, arranged_for(weight), tokens_, weight, bias_of(bias), out, weight.shape.rows);
}

void LayerRun::project_from(const float* x, Role matrix, std::optional<Role> bias, float* out) {
  const MatrixRef& weight = weights_.matrix(matrix, layer_index());
  kernels::arrange_for(kernels_, weight, x, tokens_, weight.shape.columns, w_.inner);
  kernels::matmul(kernels_, w_.inner, tokens_, weight, bias_of(bias), out, weight.shape.rows);
}

void LayerRun::project_qkv() {
  if (tokens_ == 1) {
    const auto product = [&](Role matrix, Role bias, float* out) {
      const MatrixRef& weight = weights_.matrix(matrix, layer_index());
      return kernels::VectorProduct{arranged_for(weight), &weight, out, bias_of(bias)};
    };
    return kernels::multiply_vectors(
        kernels_, std::array{product(Role::kQ, Role::kQBias, w_.q), product(Role::kK, Role::kKBias, w_.k),
                             product(Role::kV, Role::kVBias, w_.v)});
  }
  project(Role::kQ, Role::kQBias, w_.q);
  project(Role::kK, Role::kKBias, w_.k);
  project(Role::kV, Role::kVBias, w_.v);
}

void LayerRun::norm_q_and_k_whole() {
  const std::size_t q = dims_.heads * dims_.query_dim, k = dims_.kv_heads * dims_.key_dim;
  kernels::rms_norm(kernels_, w_.q, tokens_, q, q, weights_.vector(Role::kQNorm, layer_index()),
                    config_.rms_eps, w_.q, q);
  kernels::rms_norm(kernels_, w_.k, tokens_, k, k, weights_.vector(Role::kKNorm, layer_index()),
                    config_.rms_eps, w_.k, k);
}

void LayerRun::norm_q_and_k_per_head() {
  const std::size_t head = dims_.query_dim;
  kernels::rms_norm(kernels_, w_.q, tokens_ * dims_.heads, head, head,
                    weights_.vector(Role::kQNorm, layer_index()), config_.rms_eps, w_.q, head);
  kernels::rms_norm(kernels_, w_.k, tokens_ * dims_.kv_heads, head, head,
                    weights_.vector(Role::kKNorm, layer_index()), config_.rms_eps, w_.k, head);
}

void LayerRun::clamp_qkv() {
  if (!config_.attention.clip_qkv) return;
  const float limit = *config_.attention.clip_qkv;
  kernels::clamp(kernels_, limit, tokens_ * dims_.heads * dims_.query_dim, w_.q);
  kernels::clamp(kernels_, limit, tokens_ * dims_.kv_heads * dims_.key_dim, w_.k);
  kernels::clamp(kernels_, limit, tokens_ * dims_.kv_heads * dims_.cache_value_dim, w_.v);
}

void LayerRun::rotate_q_and_k() {
  const std::size_t half = config_.attention.rope.dims / 2;
  const RopeForm form = config_.attention.rope.interleaved ? RopeForm::kInterleaved : RopeForm::kHalf;
  for (std::size_t t = 0; t < tokens_; ++t) {
    const float* const cos = w_.cos + t * half;
    const float* const sin = w_.sin + t * half;
    kernels::rope(form, w_.q + t * dims_.heads * dims_.query_dim, dims_.heads, dims_.query_dim, half, cos,
                  sin);
    kernels::rope(form, w_.k + t * dims_.kv_heads * dims_.key_dim, dims_.kv_heads, dims_.key_dim, half, cos,
                  sin);
  }
}

void LayerRun::write_cache_rows() {
  for (const SequenceSpan& span : step_.spans) {
    for (std::size_t t = 0; t < span.tokens; ++t) {
      const std::size_t token = span.first_token + t, position = step_.position(span) + t;
      kernels::store_cache(w_.k + token * dims_.key_row, span.sequence->key_row(layer_, position));
      if (dims_.value_row != 0)
        kernels::store_cache(w_.v + token * dims_.value_row, span.sequence->value_row(layer_, position));
    }
  }
}

void LayerRun::attend_cache(const float* q, float* out) {
  const kernels::AttentionShape shape =
      dims_.kernel_shape(config_.window(static_cast<std::uint32_t>(layer_)));
  for (const SequenceSpan& span : step_.spans)
    kernels::attention(kernels_, shape, q + span.first_token * dims_.heads * dims_.key_dim, span.tokens,
                       span.sequence->length(), span.sequence->keys(layer_), span.sequence->values(layer_),
                       out + span.first_token * dims_.heads * dims_.cache_value_dim, w_.attention_scratch,
                       bias());
}

kernels::ScoreBias LayerRun::bias() const {
  if (config_.attention.relative.buckets == 0) return {};
  if (layer_ < config_.encoder_layers)
    return {w_.encoder_bias, 2 * encoder_positions_ - 1, encoder_positions_ - 1};
  return {w_.decoder_bias, positions_, positions_ - 1};
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
  kernels::AttentionShape shape = dims_.kernel_shape(0);
  for (const SequenceSpan& span : step_.spans) {
    shape.visible = span.sequence->encoder_length();
    kernels::attention(kernels_, shape, w_.q + span.first_token * dims_.heads * dims_.key_dim, span.tokens,
                       step_.position(span), span.sequence->keys(layer_), span.sequence->values(layer_),
                       w_.attended + span.first_token * dims_.heads * dims_.value_dim, w_.attention_scratch,
                       bias());
  }
  project_out();
}

void LayerRun::attend_to_encoder() {
  project(Role::kCrossQ, std::nullopt, w_.q);
  kernels::AttentionShape shape = dims_.kernel_shape(0);
  for (const SequenceSpan& span : step_.spans) {
    shape.visible = span.sequence->encoder_length();
    const KvRows cross = span.sequence->cross(layer_);
    kernels::attention(kernels_, shape, w_.q + span.first_token * dims_.heads * dims_.key_dim, span.tokens,
                       step_.position(span), cross.keys(), cross.values(),
                       w_.attended + span.first_token * dims_.heads * dims_.value_dim, w_.attention_scratch);
  }
  project_out(Role::kCrossO, std::nullopt);
}

void LayerRun::load_encoder_hidden() {
  const SequenceSpan& span = step_.spans.front();
  std::copy_n(span.sequence->encoder_hidden(step_.position(span)), tokens_ * config_.hidden, w_.hidden);
}

void LayerRun::save_encoder_hidden() {
  const SequenceSpan& span = step_.spans.front();
  std::copy_n(w_.hidden, tokens_ * config_.hidden, span.sequence->encoder_hidden(step_.position(span)));
}

void LayerRun::keep_encoder_output() {
  const std::size_t d = config_.hidden;
  kernels::rms_norm(kernels_, w_.hidden, tokens_, d, d, weights_.vector(Role::kEncoderFinalNorm),
                    config_.rms_eps, w_.normed, d);
  arrange_normed();
  const SequenceSpan& span = step_.spans.front();
  for (std::size_t layer = config_.encoder_layers; layer < config_.layers; ++layer) {
    begin_layer(layer);
    const KvRows cross = span.sequence->cross(layer);
    project(Role::kCrossK, std::nullopt, w_.k);
    project(Role::kCrossV, std::nullopt, w_.v);
    for (std::size_t t = 0; t < tokens_; ++t) {
      const std::size_t position = step_.position(span) + t;
      kernels::store_cache(w_.k + t * dims_.key_row, cross.key_row(position));
      kernels::store_cache(w_.v + t * dims_.value_row, cross.value_row(position));
    }
  }
}

void LayerRun::project_mla() {
  const model::AttentionConfig& attention = config_.attention;
  const std::size_t rank = attention.kv_lora_rank, half = attention.rope.dims / 2;
  if (attention.q_lora_rank != 0) {
    const std::size_t q_rank = attention.q_lora_rank;
    project(Role::kQDown, Role::kQBias, w_.v);
    kernels::rms_norm(kernels_, w_.v, tokens_, q_rank, q_rank,
                      weights_.vector(Role::kQDownNorm, layer_index()), kLatentEps, w_.v, q_rank);
    project_from(w_.v, Role::kQUp, std::nullopt, w_.q);
  } else {
    project(Role::kQ, std::nullopt, w_.q);
  }
  project(Role::kKvDown, Role::kKBias, w_.k);
  kernels::rms_norm(kernels_, w_.k, tokens_, rank, dims_.key_dim,
                    weights_.vector(Role::kKvDownNorm, layer_index()), kLatentEps, w_.k, dims_.key_dim);
  for (std::size_t t = 0; t < tokens_; ++t) {
    const float* const cos = w_.cos + t * half;
    const float* const sin = w_.sin + t * half;
    kernels::rope(RopeForm::kInterleaved, w_.q + t * dims_.heads * dims_.query_dim + attention.nope_dim,
                  dims_.heads, dims_.query_dim, half, cos, sin);
    kernels::rope(RopeForm::kInterleaved, w_.k + t * dims_.key_dim + rank, 1, dims_.key_dim, half, cos, sin);
  }
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
  for (std::size_t h = 0; h < heads; ++h) {
    const MatrixRef to_keys = codec::rows_of(up, h * (nope + value), nope);
    kernels::matmul_transposed(kernels_, w_.q + h * dims_.query_dim, tokens_, heads * dims_.query_dim,
                               to_keys, w_.latent_q + h * dims_.key_dim, heads * dims_.key_dim);
  }
  for (std::size_t row = 0; row < tokens_ * heads; ++row)
    std::copy_n(w_.q + row * dims_.query_dim + nope, rotary, w_.latent_q + row * dims_.key_dim + rank);
  attend_cache(w_.latent_q, w_.latent_out);
  for (std::size_t h = 0; h < heads; ++h) {
    const MatrixRef to_values = codec::rows_of(up, h * (nope + value) + nope, value);
    kernels::arrange_for(kernels_, to_values, w_.latent_out + h * rank, tokens_, heads * rank,
                         w_.latent_arranged);
    kernels::matmul(kernels_, w_.latent_arranged, tokens_, to_values, {}, w_.attended + h * value,
                    heads * value);
  }
  project_out();
}

void LayerRun::add_branch() { kernels::add(kernels_, w_.branch, tokens_ * config_.hidden, w_.hidden); }

void LayerRun::mlp() {
  const bool gated = config_.activation == model::Activation::kSwiGlu;
  Mlp mlp{.gate = gated ? weights_.matrix(Role::kMlpGate, layer_index()) : MatrixRef{},
          .up = weights_.matrix(Role::kMlpUp, layer_index()),
          .down = weights_.matrix(Role::kMlpDown, layer_index()),
          .out = w_.branch};
  std::ranges::copy(w_.arranged, mlp.inputs.begin());
  compute(kernels_, mlp, tokens_, w_);
  add_branch();
}

void LayerRun::moe_block() {
  moe_.run(layer_, last_norm_, step_, w_);
  add_branch();
}

void LayerRun::output(const LogitSink& sink) {
  const std::size_t d = config_.hidden, vocab = config_.vocab;
  const MatrixRef& head = weights_.matrix(Role::kHead);
  float* const arranged = w_.arranged[static_cast<std::size_t>(*head.format->input)];
  std::size_t rows = 0, first = 0;  // logits to make, and the first token that may be among them
  const auto flush = [&](std::size_t end) {
    if (rows != 0) kernels::matmul(kernels_, arranged, rows, head, {}, w_.logits, vocab);
    const float* row = w_.logits;
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
    float* const normed = w_.normed + rows * d;
    kernels::rms_norm(kernels_, w_.hidden + t * d, 1, d, d, weights_.vector(Role::kFinalNorm, -1),
                      config_.rms_eps, normed, d);
    if (config_.head_scale != 1.0f) kernels::scale(kernels_, config_.head_scale, d, normed);
    kernels::arrange_for(kernels_, head, normed, 1, d, arranged + rows * kernels::activation_floats(head));
    if (++rows == logit_rows_) flush(t + 1);
  }
  flush(tokens_);
}

}  // namespace sluice::engine
