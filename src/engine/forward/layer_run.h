// The vocabulary in which architectures are written (engine/forward/models/): the operations of one layer
// on the residual stream of a step, one call per line of the paper. Each call reads and writes the step's
// workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "codec/matrix_format.h"
#include "engine/session/attention_dims.h"
#include "engine/session/step.h"
#include "kernels/ops/ops.h"
#include "model/architecture.h"

namespace sluice::engine {

class DenseWeights;     // dense_weights.h
class Embedding;        // embedding.h
class RopeTable;        // engine/session/rope_table.h
class SparseBlock;      // sparse_block.h
struct Workspace;       // engine/forward/common/workspace.h
class WorkspaceBuffer;  // engine/forward/common/workspace.h

// Lives for some layers of one step. Thread-compatible. All references must outlive it.
class LayerRun {
 public:
  // `rows`: whose residual stream of the workspace is the step's.
  LayerRun(kernels::Ops& ops, const model::ModelConfig& config, const DenseWeights& weights, SparseBlock& moe,
           const WorkspaceBuffer& workspace, const Step& step, std::size_t rows = 0);

  std::size_t layer() const { return layer_; }
  bool sparse() const { return config_.sparse[layer_]; }
  const model::ModelConfig& config() const { return config_; }

  void embed(Embedding& embedding);
  void begin_layer(std::size_t layer) { layer_ = layer; }
  void turn_to_positions(const RopeTable& rope);  // makes the angles of the step's positions, for RoPE

  void norm(model::Role role);  // normed = RMSNorm(hidden)
  // q, k, v = projections of `normed` (biases where the checkpoint has them).
  void project_qkv();
  void norm_q_and_k_whole();     // RMSNorm over the whole projections (olmoe)
  void norm_q_and_k_per_head();  // RMSNorm over each head (qwen3)
  void clamp_qkv();              // to ±clip_qkv, if set
  void rotate_q_and_k();         // RoPE
  void attend();                 // keys and values to the cache; attention; output projection; hidden +=

  void project_mla();  // q, the latent c_kv and k_pe of `normed`, RoPE on their rotary parts
  void attend_mla();   // absorbed attention over the latent cache; output projection; hidden +=

  // Encoders and their decoders (T5). An encoder layer needs the keys and values of all its tokens, so chunks
  // pass it twice: first project_kv() and keep_kv() for all chunks, then project_q() and attend_both_ways()
  // for each.
  void project_q();
  void project_kv();
  void keep_kv() { write_cache_rows(); }  // k and v to the cache
  void attend_both_ways();     // attention to the encoder's whole input; output projection; hidden +=
  void attend_to_encoder();    // cross attention of `normed`; output projection; hidden +=
  void load_encoder_hidden();  // hidden = the sequence's stream of this chunk …
  void save_encoder_hidden();  // … and back
  void keep_encoder_output();  // the final norm, and the keys and values of every decoder layer

  void mlp();        // hidden += dense MLP(normed)
  void moe_block();  // hidden += shared experts and routed experts of `normed`

  // RMSNorm of the stream and the output head for the tokens that `sink` wants.
  void output(const LogitSink& sink);

 private:
  void arrange_normed();  // in the forms that products with dense matrices read
  kernels::Floats arranged_for(const codec::MatrixRef& matrix) const;
  kernels::Vector bias_of(std::optional<model::Role> bias) const;
  // out = matrix · normed + bias, and the same of another input, (T, columns of the matrix).
  void project(model::Role matrix, std::optional<model::Role> bias, kernels::Floats out);
  void project_from(kernels::Floats x, model::Role matrix, std::optional<model::Role> bias,
                    kernels::Floats out);
  // y = RMSNorm(x) of `rows` rows, which lie `stride` apart in both.
  void norm_rows(kernels::Floats x, std::size_t rows, std::size_t columns, std::size_t stride,
                 const kernels::Vector& weight, float eps, kernels::Floats y);
  void query_to_latent(std::size_t head);               // MLA: the nope part of one head's queries
  codec::MatrixRef value_rows(std::size_t head) const;  // MLA: what makes one head's values
  void rotate(kernels::RopeForm form, kernels::Floats x, std::size_t heads, std::size_t head_stride);
  void copy(kernels::Floats from, kernels::Floats to);  // streams of the step
  // The span's rows of x to the cache.
  void store_rows(const SequenceSpan& span, const kernels::CacheRows& to, kernels::Floats x, std::size_t row);
  void add_branch();                                          // hidden += branch
  void write_cache_rows();                                    // k and v of the step
  void attend_cache(kernels::Floats q, kernels::Floats out);  // every query over its sequence's cache
  // hidden += output projection of `attended`
  void project_out(model::Role matrix = model::Role::kO,
                   std::optional<model::Role> bias = model::Role::kOBias);
  // Attention of a span's queries over keys and values; the caller adds what is special.
  kernels::op::Attention attention(const SequenceSpan& span, kernels::Floats q, kernels::Floats out) const;
  void add_bias(kernels::op::Attention& op) const;  // for self-attention in this stack
  std::int32_t layer_index() const { return static_cast<std::int32_t>(layer_); }

  kernels::Ops& ops_;
  const model::ModelConfig& config_;
  const DenseWeights& weights_;
  SparseBlock& moe_;
  const Workspace& w_;
  const Step& step_;
  AttentionDims dims_;
  model::Role last_norm_ = model::Role::kInputNorm;
  std::size_t tokens_, layer_ = 0;
  std::size_t logit_rows_, positions_, encoder_positions_;
};

}  // namespace sluice::engine
