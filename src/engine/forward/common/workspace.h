// Scratch of one forward step: every activation, charged to `activations`, laid out once.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "device/accountant.h"
#include "device/host_buffer.h"
#include "device/memory.h"
#include "engine/session/candidate.h"
#include "kernels/ops/floats.h"
#include "kernels/ops/mlp.h"
#include "kernels/products/input_form.h"
#include "model/config.h"

namespace sluice::engine {

struct WorkspaceShape {
  std::size_t tokens = 0;             // T: most tokens of a step
  std::size_t positions = 0;          // most positions of a sequence
  std::size_t encoder_positions = 0;  // … of an encoder's input
  std::size_t logit_rows = 1;         // tokens whose logits are made at a time
  unsigned threads = 1;               // threads of the unit that computes the dense part
  bool apart = false;                 // that unit has a memory of its own
  // The forms of inputs, beside codec::InputForm::kWords, that products with dense matrices and with experts
  // read.
  kernels::InputForms dense, experts;
  bool draws = false;  // tokens are drawn, one sequence after the other
  // Passes that may be open at a time. Each has a residual stream of its own; the rest is only used while a
  // pass runs, and all share it.
  std::size_t passes = 1;
  // Most tokens of a step whose next layers are computed ahead (predictor_partial.h); 0: none are.
  std::size_t ahead_tokens = 0;
};

// What the host computes with beside a step's dense part. Where the host computes that, too, numbers that
// both have are the same memory. Non-owning. T, d, H … as below.
struct HostWorkspace {
  float* hidden = nullptr;  // (T, d) rows of the input embedding, on their way to the residual stream
  float* cos = nullptr;     // (T, rope half) …
  float* sin = nullptr;     // … likewise
  float* normed = nullptr;  // (T, d)
  // (T, if(d)) `normed` in each form that products with experts (and with dense matrices) read
  std::array<float*, codec::kInputForms> arranged{};
  // Scratch of MLPs: (T, if(widest inner row)), (T, widest MLP) and (T, its rows of up); for one token,
  // shared and routed MLPs one after the other.
  float* inner = nullptr;
  float* gate = nullptr;
  float* up = nullptr;
  float* gathered = nullptr;  // (T, af(d)), or all of the next
  // (T, if(d)) arranged rows of one expert's tokens, in each form that products with experts read
  std::array<float*, codec::kInputForms> gathered_rows{};
  float* expert_rows = nullptr;     // (T·k, d) outputs of all experts, kept until they are summed
  float* branch = nullptr;          // (T, d), only where the host computes the dense part
  float* router_logits = nullptr;   // (T, N)
  float* scores = nullptr;          // (T, N)
  float* logits = nullptr;          // (logit_rows, vocab)
  Candidate* candidates = nullptr;  // (vocab) if tokens are drawn: scratch of all samplers

  kernels::ArrangedInputs inputs() const {  // `arranged`, as products take it
    kernels::ArrangedInputs inputs{};
    for (std::size_t form = 0; form < arranged.size(); ++form) inputs[form] = arranged[form];
    return inputs;
  }
  kernels::MlpScratch mlp() const { return {gate, up, inner}; }
};

// Activations of the unit that computes the dense part, by their addresses in its memory. Non-owning. d =
// hidden, af(n) = kernels::arranged_floats(n), if(n) = floats of an input form (kernels::input_form), H =
// heads, G = kv_heads.
struct Workspace {
  kernels::Floats hidden;  // (T, d) the residual stream
  kernels::Floats normed;  // (T, d)
  // (T, if(d)) `normed` in each form that products of this model read; the form kWords is always there.
  kernels::InputFloats arranged{};
  // (T, if(widest inner row)) arranged input of an output projection or of an MLP's last product
  kernels::Floats inner;
  kernels::Floats branch;      // (T, d) output of attention or of an MLP, to be added to the residual stream
  kernels::Floats q;           // (T, H, query dim); MLA: (T, H, nope + rope)
  kernels::Floats k;           // (T, G, head_dim); MLA: (T, kv_lora + rope)
  kernels::Floats v;           // (T, G, head_dim); MLA: (T, q_lora)
  kernels::Floats latent_q;    // MLA: (T, H, kv_lora + rope)
  kernels::Floats latent_out;  // MLA: (T, H, kv_lora)
  kernels::Floats latent_arranged;  // MLA: (T, af(kv_lora or nope)) one head of latent_out, or of q
  kernels::Floats attended;         // (T, H, value dim)
  kernels::Floats cos;              // (T, rope half)
  kernels::Floats sin;              // (T, rope half)
  kernels::Floats attention_scratch;
  std::size_t attention_scratch_floats = 0;
  // T5: (H, P) by distance −P+1 … 0, P = positions; filled once (relative_bias.h)
  kernels::Floats decoder_bias;
  kernels::Floats encoder_bias;   // T5: (H, 2·P−1) by distance −P+1 … P−1, P = encoder_positions
  kernels::Floats gate;           // (T, widest MLP)
  kernels::Floats up;             // (T, rows of up of the widest MLP)
  kernels::Floats router_logits;  // (T, N)
  kernels::Floats gathered;       // (T, af(d)) scratch of routers
  kernels::Floats row;            // (d) of the host, only where the unit is apart
  kernels::Floats expert_rows;    // (T·k, d) outputs of all experts, kept until they are summed
  kernels::Floats logits;         // (logit_rows, vocab)
  HostWorkspace host;
};

// The most columns of a matrix that activations are multiplied with.
std::size_t widest_columns(const model::ModelConfig& config);

struct WorkspaceBytes {
  Bytes host = 0;  // the host's buffer
  Bytes unit = 0;  // the unit's, if it is apart
};
WorkspaceBytes workspace_bytes(const model::ModelConfig& config, const WorkspaceShape& shape);

class WorkspaceBuffer {
 public:
  // `unit`: the memory of the unit that computes the dense part, which must outlive this; null: it is not
  // apart.
  WorkspaceBuffer(const model::ModelConfig& config, const WorkspaceShape& shape,
                  device::Accountant& accountant, device::Memory* unit);
  // `pass`: whose residual stream, below shape().passes; or ahead().
  const Workspace& get(std::size_t pass = 0) const { return workspaces_[pass]; }
  // Layers ahead of the running one have a stream, its normed rows and a branch of their own, for at most
  // shape().ahead_tokens tokens. REQUIRES: that is not 0.
  std::size_t ahead() const { return shape_.passes; }
  const WorkspaceShape& shape() const { return shape_; }

 private:
  device::HostBuffer buffer_;
  device::Block unit_;
  std::vector<Workspace> workspaces_;  // by pass; they differ in `hidden`. Then that of layers ahead
  WorkspaceShape shape_;
};

}  // namespace sluice::engine
