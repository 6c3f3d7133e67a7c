// The systems that ZipMoE compares, on models of the paper's shapes, by timed replay
// (lab/machine/pipeline.h): disk and pools as in the paper; decoding and computing as measured on this
// machine, scaled by weights.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/plan/profile.h"
#include "lab/machine/pipeline.h"
#include "reproduce/token_routing.h"

namespace sluice::reproduce {

struct PaperModel {
  std::string name;
  std::uint32_t layers = 0, experts = 0, top_k = 0;  // sparse layers
  std::uint32_t tensors = 0;                         // tensors of an expert
  double weights = 0;                                // P, weights of an expert
  double other_weights = 0;                          // weights that a token needs besides its routed experts
  LayerRange prompt, output;                         // layers that prompts and outputs pass
};
const PaperModel& deepseek_v2_lite();  // SPEC §6, "Model shapes"
const PaperModel& switch_large_128();  // an encoder-decoder, top 1

// The paper's disk, and the defaults of SPEC §6.1.
struct PaperMachine {
  double disk_bytes_per_s = 3.5e9;
  double rho = .36;  // size of coded exponents divided by plain ones
  std::uint32_t chunks = 4, workers = 6;
};

// The costs of a layer of `model`: u and v follow from the machine; c, merge, p and rest follow from
// `measured`, whose experts must be stored split.
engine::Profile paper_profile(const PaperModel& model, const PaperMachine& machine,
                              const engine::Profile& measured);

// One sequence as tokens of a routing.
struct Conversation {
  std::vector<std::size_t> prompt, output;
};
// `count` conversations from tokens [first, last): each begins at another place and wraps round; a third is
// the prompt.
std::vector<Conversation> conversations(std::size_t first, std::size_t last, std::size_t count);

struct ReplayFigures {
  double ttft_s = 0, tpot_s = 0;
  double e2e_s = 0;        // all prompts and the output of one batch
  double tok_s = 0;        // decoded, over all sequences
  double stall_share = 0;  // share of the whole time that waits for the disk
};

struct ReplayRequest {
  std::string preset;
  double memory = 0;                 // bytes for resident experts
  std::vector<Conversation> before;  // one batch that fills the cache, not timed
  std::vector<Conversation> batch;   // prompts one after the other, outputs together
  std::size_t output = SIZE_MAX;     // the most tokens of each output
  PaperMachine machine = {};
};

// Thread-compatible. `routing` must outlive it.
class PaperReplay {
 public:
  // REQUIRES: the routing has the model's shape, and the profile's experts are stored split.
  PaperReplay(const PaperModel& model, const TokenRouting& routing, engine::Profile measured);
  // Plans pools from assumed frequencies. Error(kInterrupted).
  ReplayFigures run(const ReplayRequest& request, const std::function<bool()>& stop = {}) const;

 private:
  void append(const std::vector<Conversation>& batch, std::size_t output, lab::Requests& requests) const;

  const PaperModel& model_;
  const TokenRouting& routing_;
  engine::Profile measured_;
};

}  // namespace sluice::reproduce
