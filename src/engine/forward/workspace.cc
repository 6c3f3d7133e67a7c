#include "engine/forward/workspace.h"

#include <algorithm>

#include "engine/session/attention_dims.h"
#include "kernels/attention/attention.h"
#include "kernels/products/codes/sliced_matmul.h"
#include "kernels/products/words/matmul.h"

namespace sluice::engine {
namespace {

using kernels::packed_floats;
using kernels::sliced_floats;

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
  const std::size_t expert_inner =
      std::max(packed_floats(moe.width), shape.sliced ? sliced_floats(moe.width) : 0);
  const std::size_t at_once = moe.shared_width + moe.top_k * moe.width,
                    at_once_packed = packed_floats(moe.shared_width) + moe.top_k * expert_inner;
  const bool mla = config.attention.kind == model::AttentionKind::kMla;

  Workspace w;
  w.hidden = layout.floats(t * d);
  w.normed = layout.floats(t * d);
  w.packed = layout.floats(t * packed_floats(d));
  w.packed_slices = layout.floats(shape.sliced ? t * sliced_floats(d) : 0);
  w.packed_inner =
      layout.floats(std::max<std::size_t>(t * std::max(packed_floats(inner), expert_inner), at_once_packed));
  w.branch = layout.floats(t * d);
  w.q = layout.floats(t * dims.heads * dims.query_dim);
  w.k = layout.floats(t * (mla ? dims.key_dim : dims.kv_heads * dims.key_dim));
  w.v = layout.floats(t * (mla ? config.attention.q_lora_rank : dims.kv_heads * dims.value_dim));
  w.latent_q = layout.floats(mla ? t * dims.heads * dims.key_dim : 0);
  w.latent_out = layout.floats(mla ? t * dims.heads * dims.cache_value_dim : 0);
  w.latent_packed = layout.floats(mla ? t * packed_floats(dims.cache_value_dim) : 0);
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
  w.gathered = layout.floats(t * std::max(packed_floats(d), shape.sliced ? sliced_floats(d) : 0));
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
