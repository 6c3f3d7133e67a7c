#include "engine/forward/workspace.h"

#include <algorithm>

#include "engine/session/attention_dims.h"
#include "kernels/attention/attention.h"
#include "kernels/products/words/matmul.h"

namespace sluice::engine {
namespace {

using kernels::arranged_floats;

// Hands out pieces of a buffer; without a base it only counts.
class Layout {
 public:
  explicit Layout(std::byte* base) : base_(base) {}
  float* floats(std::size_t count) { return place<float>(count); }
  template <class T>
  T* place(std::size_t count) {
    T* const at = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + bytes_);
    bytes_ += round_up(count * sizeof(T), 64);
    return at;
  }
  Bytes bytes() const { return bytes_; }

 private:
  std::byte* base_;
  Bytes bytes_ = 0;
};

// The widest row that an output projection is multiplied with.
std::size_t widest_inner(const model::ModelConfig& config) {
  const AttentionDims dims(config.attention);
  return std::max({std::size_t{config.dense_width}, std::size_t{config.moe.shared_width},
                   std::size_t{config.moe.width}, dims.heads * dims.value_dim,
                   std::size_t{config.attention.q_lora_rank}});
}

// Floats of a row of `columns` in the largest of the forms, of kWords at least.
std::size_t largest_row(const kernels::InputForms& forms, std::size_t columns) {
  std::size_t most = arranged_floats(columns);
  forms.each(
      [&](codec::InputForm form) { most = std::max(most, kernels::input_form(form).floats(columns)); });
  return most;
}

// One workspace for each pass.
std::vector<Workspace> lay_out(const model::ModelConfig& config, const WorkspaceShape& shape,
                               Layout& layout) {
  const AttentionDims dims(config.attention);
  const model::MoeConfig& moe = config.moe;
  const std::size_t t = shape.tokens, d = config.hidden;
  const std::size_t widest =
      std::max({std::size_t{config.dense_width}, std::size_t{moe.shared_width}, std::size_t{moe.width}});
  // For one token, several MLPs are computed at a time.
  const std::size_t inner = widest_inner(config);
  const std::size_t dense_inner = largest_row(shape.dense, inner),
                    expert_inner = largest_row(shape.experts, moe.width);
  const std::size_t at_once = moe.shared_width + moe.top_k * moe.width,
                    at_once_inner = largest_row(shape.dense, moe.shared_width) + moe.top_k * expert_inner;
  const bool mla = config.attention.kind == model::AttentionKind::kMla;

  Workspace w;
  w.hidden = layout.floats(t * d);
  w.normed = layout.floats(t * d);
  kernels::InputForms all = shape.dense;
  all.add(codec::InputForm::kWords);
  shape.experts.each([&](codec::InputForm form) { all.add(form); });
  all.each([&](codec::InputForm form) {
    w.arranged[static_cast<std::size_t>(form)] = layout.floats(t * kernels::input_form(form).floats(d));
  });
  w.inner = layout.floats(std::max<std::size_t>(t * std::max(dense_inner, expert_inner), at_once_inner));
  w.branch = layout.floats(t * d);
  w.q = layout.floats(t * dims.heads * dims.query_dim);
  w.k = layout.floats(t * (mla ? dims.key_dim : dims.kv_heads * dims.key_dim));
  w.v = layout.floats(t * (mla ? config.attention.q_lora_rank : dims.kv_heads * dims.value_dim));
  w.latent_q = layout.floats(mla ? t * dims.heads * dims.key_dim : 0);
  w.latent_out = layout.floats(mla ? t * dims.heads * dims.cache_value_dim : 0);
  w.latent_arranged = layout.floats(mla ? t * arranged_floats(dims.cache_value_dim) : 0);
  w.attended = layout.floats(t * dims.heads * dims.value_dim);
  w.cos = layout.floats(t * config.attention.rope.dims / 2);
  w.sin = layout.floats(t * config.attention.rope.dims / 2);
  w.attention_scratch = layout.floats(
      shape.threads * kernels::attention_scratch_floats(dims.kernel_shape(0),
                                                        std::max(shape.positions, shape.encoder_positions)));
  const std::size_t biased = config.attention.relative.buckets != 0 ? dims.heads : 0;
  w.decoder_bias = layout.floats(biased * shape.positions);
  w.encoder_bias =
      layout.floats(shape.encoder_positions == 0 ? 0 : biased * (2 * shape.encoder_positions - 1));
  w.gate = layout.floats(std::max<std::size_t>(t * widest, at_once));
  w.up = layout.floats(std::max<std::size_t>(t * widest, at_once));
  w.router_logits = layout.floats(t * moe.experts);
  w.scores = layout.floats(t * moe.experts);
  std::size_t rows = 0;
  shape.experts.each([&](codec::InputForm form) { rows += kernels::input_form(form).floats(d); });
  w.gathered = layout.floats(t * std::max(arranged_floats(d), rows));
  float* row = w.gathered;
  shape.experts.each([&](codec::InputForm form) {
    w.gathered_rows[static_cast<std::size_t>(form)] = row;
    if (row != nullptr) row += t * kernels::input_form(form).floats(d);
  });
  w.expert_rows = layout.floats(t * moe.top_k * d);
  w.logits = layout.floats(shape.logit_rows * config.vocab);
  w.candidates = layout.place<Candidate>(shape.draws ? config.vocab : 0);
  std::vector<Workspace> of_passes(shape.passes, w);
  for (std::size_t pass = 1; pass < shape.passes; ++pass) of_passes[pass].hidden = layout.floats(t * d);
  return of_passes;
}

}  // namespace

std::size_t widest_columns(const model::ModelConfig& config) {
  return std::max(
      {std::size_t{config.hidden}, widest_inner(config), std::size_t{config.attention.kv_lora_rank}});
}

Bytes workspace_bytes(const model::ModelConfig& config, const WorkspaceShape& shape) {
  Layout layout(nullptr);
  lay_out(config, shape, layout);
  return round_up(layout.bytes(), kBlockBytes);
}

WorkspaceBuffer::WorkspaceBuffer(const model::ModelConfig& config, const WorkspaceShape& shape,
                                 device::Accountant& accountant)
    : buffer_(accountant, device::Account::kActivations, workspace_bytes(config, shape)), shape_(shape) {
  Layout layout(buffer_.data());
  workspaces_ = lay_out(config, shape, layout);
}

}  // namespace sluice::engine
