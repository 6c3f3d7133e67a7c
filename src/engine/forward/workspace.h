// Scratch of one forward step: every activation, in one buffer charged to `activations`, laid out once.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "device/accountant.h"
#include "device/host_buffer.h"
#include "engine/session/candidate.h"
#include "kernels/products/input_form.h"
#include "model/config.h"

namespace sluice::engine {

struct WorkspaceShape {
  std::size_t tokens = 0;             // T: most tokens of a step
  std::size_t positions = 0;          // most positions of a sequence
  std::size_t encoder_positions = 0;  // … of an encoder's input
  std::size_t logit_rows = 1;         // tokens whose logits are made at a time
  unsigned threads = 1;
  // That products with dense matrices read beside codec::InputForm::kWords, and those with experts.
  kernels::InputForms dense, experts;
  bool draws = false;  // tokens are drawn, one sequence after the other
  // Passes that may be open at a time. Each has a residual stream of its own; the rest is only used while a
  // pass runs, and all share it.
  std::size_t passes = 1;
};

// Non-owning pointers into the buffer. d = hidden, af(n) = kernels::arranged_floats(n), if(n) = floats of an
// input form (kernels::input_form), H = heads, G = kv_heads.
struct Workspace {
  float* hidden = nullptr;  // (T, d) the residual stream
  float* normed = nullptr;  // (T, d)
  // (T, if(d)) `normed` in each form that products of this model read; the form kWords is always there.
  std::array<float*, codec::kInputForms> arranged{};
  // (T, if(widest inner row)) arranged input of an output projection; for one token, shared and routed MLPs
  // one after the other
  float* inner = nullptr;
  float* branch = nullptr;      // (T, d) output of attention or of an MLP, to be added to the residual stream
  float* q = nullptr;           // (T, H, query dim); MLA: (T, H, nope + rope)
  float* k = nullptr;           // (T, G, head_dim); MLA: (T, kv_lora + rope)
  float* v = nullptr;           // (T, G, head_dim); MLA: (T, q_lora)
  float* latent_q = nullptr;    // MLA: (T, H, kv_lora + rope)
  float* latent_out = nullptr;  // MLA: (T, H, kv_lora)
  float* latent_arranged = nullptr;  // MLA: (T, af(kv_lora)) one head of latent_out
  float* attended = nullptr;         // (T, H, value dim)
  float* cos = nullptr;              // (T, rope half)
  float* sin = nullptr;              // (T, rope half)
  float* attention_scratch = nullptr;
  // T5: (H, P) by distance −P+1 … 0, P = positions; filled once (relative_bias.h)
  float* decoder_bias = nullptr;
  float* encoder_bias = nullptr;   // T5: (H, 2·P−1) by distance −P+1 … P−1, P = encoder_positions
  float* gate = nullptr;           // (T, widest MLP); for one token like inner
  float* up = nullptr;             // like gate
  float* router_logits = nullptr;  // (T, N)
  float* scores = nullptr;         // (T, N)
  float* gathered = nullptr;       // (T, af(d)), or all of the next
  // (T, if(d)) arranged rows of one expert's tokens, in each form that products with experts read
  std::array<float*, codec::kInputForms> gathered_rows{};
  float* expert_rows = nullptr;     // (T·k, d) outputs of all experts, kept until they are summed
  float* logits = nullptr;          // (logit_rows, vocab)
  Candidate* candidates = nullptr;  // (vocab) if tokens are drawn: scratch of all samplers

  kernels::ArrangedInputs inputs() const {  // `arranged`, as products take it
    kernels::ArrangedInputs inputs{};
    for (std::size_t form = 0; form < arranged.size(); ++form) inputs[form] = arranged[form];
    return inputs;
  }
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
