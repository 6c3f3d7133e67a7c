#include "engine/forward/common/workspace.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/session/attention_dims.h"
#include "kernels/attention/attention.h"
#include "kernels/ops/host_ops.h"
#include "kernels/products/words/matmul.h"

namespace sluice::engine {
namespace {

using kernels::arranged_floats;
using kernels::Floats;

// Hands out pieces of the host's memory and of the unit's; without their begin it only counts.
class Layout {
 public:
  Layout(bool apart, std::byte* host, device::Address unit) : apart_(apart), host_(host), unit_(unit) {}

  float* host(std::size_t count) { return place<float>(count); }
  template <class T>
  T* place(std::size_t count) {
    const Bytes at = take(host_bytes_, count * sizeof(T));
    return host_ == nullptr ? nullptr : reinterpret_cast<T*>(host_ + at);
  }
  Floats unit(std::size_t count) {
    if (!apart_) return kernels::floats_at(host(count));
    return {unit_ + take(unit_bytes_, count * sizeof(float))};
  }
  // Numbers that both have: the same memory, unless the unit is apart.
  void both(std::size_t unit_count, std::size_t host_count, Floats& unit_part, float*& host_part) {
    host_part = host(apart_ ? host_count : std::max(unit_count, host_count));
    unit_part = apart_ ? unit(unit_count) : kernels::floats_at(host_part);
  }
  void both(std::size_t count, Floats& unit_part, float*& host_part) {
    both(count, count, unit_part, host_part);
  }
  WorkspaceBytes bytes() const {
    return {round_up(host_bytes_, kBlockBytes), round_up(unit_bytes_, kBlockBytes)};
  }

 private:
  static Bytes take(Bytes& bytes, Bytes more) { return std::exchange(bytes, bytes + round_up(more, 64)); }

  const bool apart_;
  std::byte* const host_;
  const device::Address unit_;
  Bytes host_bytes_ = 0, unit_bytes_ = 0;
};

// The widest row that an output projection of the dense part is multiplied with.
std::size_t widest_dense_inner(const model::ModelConfig& config) {
  const AttentionDims dims(config.attention);
  return std::max({std::size_t{config.dense_width}, std::size_t{config.moe.shared_width},
                   dims.heads * dims.value_dim, std::size_t{config.attention.q_lora_rank}});
}

// Floats of a row of `columns` in the largest of the forms, of kWords at least.
std::size_t largest_row(const kernels::InputForms& forms, std::size_t columns) {
  std::size_t most = arranged_floats(columns);
  forms.each(
      [&](codec::InputForm form) { most = std::max(most, kernels::input_form(form).floats(columns)); });
  return most;
}

void lay_out_attention(const model::ModelConfig& config, const WorkspaceShape& shape, Layout& layout,
                       Workspace& w) {
  const AttentionDims dims(config.attention);
  const std::size_t t = shape.tokens, rank = config.attention.q_lora_rank;
  const bool mla = config.attention.kind == model::AttentionKind::kMla;
  w.q = layout.unit(t * dims.heads * dims.query_dim);
  w.k = layout.unit(t * (mla ? dims.key_dim : dims.kv_heads * dims.key_dim));
  w.v = layout.unit(t * (mla ? rank : dims.kv_heads * dims.value_dim));
  w.latent_q = layout.unit(mla ? t * dims.heads * dims.key_dim : 0);
  w.latent_out = layout.unit(mla ? t * dims.heads * dims.cache_value_dim : 0);
  w.latent_arranged =
      layout.unit(mla ? t * largest_row(shape.dense, std::max<std::size_t>(dims.cache_value_dim,
                                                                           config.attention.nope_dim))
                      : 0);
  w.attended = layout.unit(t * dims.heads * dims.value_dim);
  layout.both(t * config.attention.rope.dims / 2, w.cos, w.host.cos);
  layout.both(t * config.attention.rope.dims / 2, w.sin, w.host.sin);
  w.attention_scratch_floats =
      shape.threads * kernels::attention_scratch_floats(dims.kernel_shape(0),
                                                        std::max(shape.positions, shape.encoder_positions));
  w.attention_scratch = layout.unit(w.attention_scratch_floats);
  const std::size_t biased = config.attention.relative.buckets != 0 ? dims.heads : 0;
  w.decoder_bias = layout.unit(biased * shape.positions);
  w.encoder_bias = layout.unit(shape.encoder_positions == 0 ? 0 : biased * (2 * shape.encoder_positions - 1));
}

// Scratch of MLPs. On the host, for one token, several are computed at a time.
void lay_out_mlps(const model::ModelConfig& config, const WorkspaceShape& shape, Layout& layout,
                  Workspace& w) {
  const model::MoeConfig& moe = config.moe;
  const std::size_t t = shape.tokens;
  const std::size_t shared = shape.apart ? 0 : moe.shared_width;
  const std::size_t expert_inner = largest_row(shape.experts, moe.width);
  const std::size_t at_once = shared + moe.top_k * moe.width,
                    at_once_inner = largest_row(shape.dense, shared) + moe.top_k * expert_inner;
  const std::size_t dense = t * std::max(config.dense_width, moe.shared_width),
                    experts = std::max<std::size_t>(t * moe.width, at_once);
  layout.both(t * largest_row(shape.dense, widest_dense_inner(config)),
              std::max<std::size_t>(t * expert_inner, at_once_inner), w.inner, w.host.inner);
  layout.both(dense, experts, w.gate, w.host.gate);
  const std::size_t up_rows = config.activation.up_rows();
  layout.both(dense * up_rows, experts * up_rows, w.up, w.host.up);
}

// What experts and routers read, and what they write.
void lay_out_experts(const model::ModelConfig& config, const WorkspaceShape& shape, Layout& layout,
                     Workspace& w) {
  const std::size_t t = shape.tokens, d = config.hidden;
  kernels::InputForms all = shape.dense;
  all.add(codec::InputForm::kWords);
  shape.experts.each([&](codec::InputForm form) { all.add(form); });
  all.each([&](codec::InputForm form) {
    const auto at = static_cast<std::size_t>(form);
    const std::size_t floats = t * kernels::input_form(form).floats(d);
    if (shape.apart && !shape.experts.has(form))
      w.arranged[at] = layout.unit(floats);
    else
      layout.both(floats, w.arranged[at], w.host.arranged[at]);
  });
  layout.both(t * config.moe.experts, w.router_logits, w.host.router_logits);
  w.host.scores = layout.host(t * config.moe.experts);
  std::size_t rows = 0;
  shape.experts.each([&](codec::InputForm form) { rows += kernels::input_form(form).floats(d); });
  layout.both(t * arranged_floats(d), t * rows, w.gathered, w.host.gathered);
  if (shape.apart) w.row = layout.unit(d);
  float* row = w.host.gathered;
  shape.experts.each([&](codec::InputForm form) {
    w.host.gathered_rows[static_cast<std::size_t>(form)] = row;
    if (row != nullptr) row += t * kernels::input_form(form).floats(d);
  });
  layout.both(t * config.moe.top_k * d, w.expert_rows, w.host.expert_rows);
}

// What layers ahead must not overwrite, once more for them.
Workspace lay_out_ahead(const model::ModelConfig& config, const WorkspaceShape& shape, Workspace w,
                        Layout& layout) {
  const std::size_t t = shape.ahead_tokens, d = config.hidden;
  w.hidden = layout.unit(t * d);
  w.normed = layout.unit(t * d);
  w.branch = layout.unit(t * d);
  kernels::InputForms forms = shape.dense;
  forms.add(codec::InputForm::kWords);
  forms.each([&](codec::InputForm form) {
    w.arranged[static_cast<std::size_t>(form)] = layout.unit(t * kernels::input_form(form).floats(d));
  });
  return w;
}

// One workspace for each pass, and perhaps that of layers ahead.
std::vector<Workspace> lay_out(const model::ModelConfig& config, const WorkspaceShape& shape,
                               Layout& layout) {
  const std::size_t t = shape.tokens, d = config.hidden;
  Workspace w;
  layout.both(t * d, w.hidden, w.host.hidden);
  layout.both(t * d, w.normed, w.host.normed);
  w.branch = layout.unit(t * d);
  if (!shape.apart) w.host.branch = kernels::host_floats(w.branch);
  lay_out_attention(config, shape, layout, w);
  lay_out_mlps(config, shape, layout, w);
  lay_out_experts(config, shape, layout, w);
  layout.both(shape.logit_rows * config.vocab, w.logits, w.host.logits);
  w.host.candidates = layout.place<Candidate>(shape.draws ? config.vocab : 0);
  std::vector<Workspace> of_passes(shape.passes, w);
  for (std::size_t pass = 1; pass < shape.passes; ++pass) {
    of_passes[pass].hidden = layout.unit(t * d);
    if (!shape.apart) of_passes[pass].host.hidden = kernels::host_floats(of_passes[pass].hidden);
  }
  if (shape.ahead_tokens != 0) of_passes.push_back(lay_out_ahead(config, shape, w, layout));
  return of_passes;
}

}  // namespace

std::size_t widest_columns(const model::ModelConfig& config) {
  return std::max({std::size_t{config.hidden}, widest_dense_inner(config), std::size_t{config.moe.width},
                   std::size_t{config.attention.kv_lora_rank}});
}

WorkspaceBytes workspace_bytes(const model::ModelConfig& config, const WorkspaceShape& shape) {
  Layout layout(shape.apart, nullptr, {});
  lay_out(config, shape, layout);
  return layout.bytes();
}

WorkspaceBuffer::WorkspaceBuffer(const model::ModelConfig& config, const WorkspaceShape& shape,
                                 device::Accountant& accountant, device::Memory* unit)
    : buffer_(accountant, device::Account::kActivations, workspace_bytes(config, shape).host), shape_(shape) {
  SLUICE_CHECK(shape.apart == (unit != nullptr));
  if (unit != nullptr)
    unit_ = unit->allocate(device::Account::kActivations, workspace_bytes(config, shape).unit);
  Layout layout(shape.apart, buffer_.data(), unit_.address());
  workspaces_ = lay_out(config, shape, layout);
}

}  // namespace sluice::engine
