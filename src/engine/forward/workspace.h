// Scratch of one forward step: every activation, in one buffer charged to `activations`, laid out once.
#pragma once

#include <cstddef>
#include <vector>

#include "device/accountant.h"
#include "device/host_buffer.h"
#include "engine/session/candidate.h"
#include "model/config.h"

namespace sluice::engine {

struct WorkspaceShape {
  std::size_t tokens = 0;             // T: most tokens of a step
  std::size_t positions = 0;          // most positions of a sequence
  std::size_t encoder_positions = 0;  // … of an encoder's input
  std::size_t logit_rows = 1;         // tokens whose logits are made at a time
  unsigned threads = 1;
  bool sliced = false;  // experts are in slices
  bool draws = false;   // tokens are drawn, one sequence after the other
  // Passes that may be open at a time. Each has a residual stream of its own; the rest is only used while a
  // pass runs, and all share it.
  std::size_t passes = 1;
};

// Non-owning pointers into the buffer. d = hidden, pf(n) = kernels::packed_floats(n), sf(n) =
// kernels::sliced_floats(n), H = heads, G = kv_heads.
struct Workspace {
  float* hidden = nullptr;         // (T, d) the residual stream
  float* normed = nullptr;         // (T, d)
  float* packed = nullptr;         // (T, pf(d)) `normed`, packed for matmul
  float* packed_slices = nullptr;  // (T, sf(d)) `normed`, packed for experts in slices
  // (T, pf(widest inner row)) input of an output projection; for one token, shared and routed MLPs one after
  // the other
  float* packed_inner = nullptr;
  float* branch = nullptr;      // (T, d) output of attention or of an MLP, to be added to the residual stream
  float* q = nullptr;           // (T, H, query dim); MLA: (T, H, nope + rope)
  float* k = nullptr;           // (T, G, head_dim); MLA: (T, kv_lora + rope)
  float* v = nullptr;           // (T, G, head_dim); MLA: (T, q_lora)
  float* latent_q = nullptr;    // MLA: (T, H, kv_lora + rope)
  float* latent_out = nullptr;  // MLA: (T, H, kv_lora)
  float* latent_packed = nullptr;  // MLA: (T, pf(kv_lora)) one head of latent_out
  float* attended = nullptr;       // (T, H, value dim)
  float* cos = nullptr;            // (T, rope half)
  float* sin = nullptr;            // (T, rope half)
  float* attention_scratch = nullptr;
  // T5: (H, P) by distance −P+1 … 0, P = positions; filled once (relative_bias.h)
  float* decoder_bias = nullptr;
  float* encoder_bias = nullptr;    // T5: (H, 2·P−1) by distance −P+1 … P−1, P = encoder_positions
  float* gate = nullptr;            // (T, widest MLP); for one token like packed_inner
  float* up = nullptr;              // like gate
  float* router_logits = nullptr;   // (T, N)
  float* scores = nullptr;          // (T, N)
  float* gathered = nullptr;        // (T, pf(d) or sf(d)) packed rows of one expert's tokens
  float* expert_rows = nullptr;     // (T·k, d) outputs of all experts, kept until they are summed
  float* logits = nullptr;          // (logit_rows, vocab)
  Candidate* candidates = nullptr;  // (vocab) if tokens are drawn: scratch of all samplers
};

// The most columns of a matrix that activations are multiplied with.
std::size_t widest_columns(const model::ModelConfig& config);

// Bytes of the buffer for this shape.
Bytes workspace_bytes(const model::ModelConfig& config, const WorkspaceShape& shape);

class WorkspaceBuffer {
 public:
  WorkspaceBuffer(const model::ModelConfig& config, const WorkspaceShape& shape,
                  device::Accountant& accountant);
  // `pass`: whose residual stream, below shape().passes.
  const Workspace& get(std::size_t pass = 0) const { return workspaces_[pass]; }
  const WorkspaceShape& shape() const { return shape_; }

 private:
  device::HostBuffer buffer_;
  std::vector<Workspace> workspaces_;  // by pass; they differ in `hidden`
  WorkspaceShape shape_;
};

}  // namespace sluice::engine
