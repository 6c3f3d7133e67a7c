// The models of DALI's evaluation, and the machines that its paper leaves open: each row of SPEC §6.3 is
// shown on several (SPEC §10, G7).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/machine/hybrid_machine.h"

namespace sluice::reproduce {

struct DaliModel {
  std::string name;
  std::uint32_t layers = 0, experts = 0, top_k = 0;
  double weights = 0;                 // weights of an expert
  std::uint32_t swaps = 8;            // u_size of the workload window, which has 4 steps (SPEC §3.5)
  std::uint32_t prefetch = 4;         // experts of a layer (SPEC §3.4) …
  std::uint32_t ladder_prefetch = 4;  // … and in D-F19
  // Where routing has no predictions: the share of predicted experts that are right, by the residual and by
  // the raw input. From the paper's own tables.
  double right_residual = 1, right_raw = 1;
  std::string right_source;
  // What the device holds beside experts: bytes of one sequence's keys and values a position, of dense
  // weights at 16 bits; from the published configuration.
  double kv_bytes = 0, dense_weights = 0;
};

const DaliModel& dali_deepseek();  // DeepSeek-V2-Lite
const DaliModel& dali_mixtral();   // Mixtral-8x7B
const DaliModel& dali_qwen();      // Qwen3-30B-A3B

struct DaliMachine {
  std::string label;  // "16 bit" "4.5 bit" "fit" …
  lab::HybridMachine machine;
  std::string consumed = {};  // rows that it was fitted to, so that they are no evidence for it; may be empty
};

// By datasheets at 16 and at 4.5 bits a weight; and what was fitted to the paper's Table 4, if it has the
// model.
std::vector<DaliMachine> machines_of(const DaliModel& model);

}  // namespace sluice::reproduce
