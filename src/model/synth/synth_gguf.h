// A synthetic model as one GGUF file: the numbers of write_synth() in the types of a mix; those of experts
// that a directory has as codes are others.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/machine/thread_pool.h"
#include "model/gguf_mix.h"
#include "model/gguf_plan.h"
#include "model/synth/synth.h"

namespace sluice::model {

struct GgufSynthPlan {
  ModelConfig config;
  std::vector<TensorSpec> table;
  std::vector<GgufTensorPlan> tensors;  // into `table`
  store::GgufPlan file;                 // its tensors are parallel to `tensors`
  store::GgufLayout layout;
  std::uint64_t seed = 0;
  double embedding_scale = 1, embedding_common = 0;

  GgufSynthPlan() = default;
  GgufSynthPlan(GgufSynthPlan&&) = default;  // not copied: `tensors` points into `table`
  GgufSynthPlan& operator=(GgufSynthPlan&&) = default;
};

// The keys of a file's tokenizer (tokenizer::gguf_tokenizer_keys()); empty: it has none.
using GgufTokenizerKeys = std::vector<std::pair<std::string, store::GgufWritten>>;

// Error(kUnsupported) for an architecture that has no GGUF form.
GgufSynthPlan plan_gguf_synth(const SynthPlan& plan, const GgufMix& mix,
                              const GgufTokenizerKeys& tokenizer = {});

// Writes the file, which appears whole or not at all. Errors, `go_on` and threads as in write_synth(). Rows
// are quantised by quantise_row(): their scales are not those that a publisher would have searched for.
void write_gguf_synth(const GgufSynthPlan& plan, const std::string& path, ThreadPool& threads,
                      const std::function<bool(Bytes)>& go_on);

}  // namespace sluice::model
