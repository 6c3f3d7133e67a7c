// Synthetic checkpoints: the shapes of a published config.json with random weights of realistic statistics,
// for measuring speed and memory without a download. The text that such a model writes is noise.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/machine/thread_pool.h"
#include "model/architecture.h"
#include "model/synth/synth_values.h"
#include "tokenizer/export/tokenizer_directory.h"

namespace sluice::model {

struct SynthOptions {
  std::uint64_t seed = 0;
  std::optional<std::uint32_t> layers = {}, experts = {};  // override the config's values
  Bytes shard_bytes = 5'000'000'000;  // bytes of tensor data; a larger tensor has a shard of its own
  double embedding_scale = 1;         // factor on the input embeddings
  double embedding_common = 0;        // share of their variance that all tokens have in common: in [0, 1)
};

struct SynthShard {
  std::string file;                  // "model-00001-of-00003.safetensors"
  std::size_t first = 0, count = 0;  // tensors [first, first + count) of the plan
  Bytes bytes = 0;                   // bytes of tensor data
};

// The files that will be written.
struct SynthPlan {
  ModelConfig config;
  std::string config_json;         // the file's own text, unless options or the element type change it
  std::vector<SynthSpec> tensors;  // in the order of the files
  std::vector<SynthShard> shards;
  std::vector<tokenizer::TokenizerFile> tokenizer;  // written beside the others
  std::uint64_t seed = 0;
  double embedding_scale = 1, embedding_common = 0;
  Bytes bytes = 0;  // all tensor data
};

// Reads config.json. Error(kInvalid) or (kUnsupported) for a config that is not a model, also after applying
// the options; (kUsage) for options that contradict the config.
SynthPlan plan_synth(const std::string& config_path, const SynthOptions& options);

// Writes the plan as a Hugging Face directory: config.json, safetensors shards and their index, the
// tokenizer. The directory appears whole or not at all (a temporary directory beside it is removed on
// failure). Error(kInvalid) if `directory` exists, Error(kIo) if the disk has too little room, before
// anything is written. Memory: 64 MiB besides the plan, for any model size. `go_on(tensor bytes so far)` is
// called every few MiB on the caller's thread; false ends with Error(kInterrupted).
//
// The same plan gives the same bytes with any number of threads, and a tensor depends only on its name, its
// shape and the seed. Weights are Gaussian; each row has standard deviation 0.02 * lognormal(0.25), and
// 0.2 % of the weights are six times as large: exponents carry about 2.6 bits, as in trained models. Norms
// are near 1. Experts that the config says are in MXFP4 are written so, with the same deviations. Router rows
// are scaled so that logits of a normalised input have a standard deviation near 2.5: a few experts win
// clearly, and rows differ, so that some experts are used more than others.
//
// How many experts one token shares with the next depends on the composition of the residual stream. At scale
// 1 the text before a token outweighs the token, and a deep model repeats two thirds of its experts and soon
// its words. With larger embeddings the token itself decides (Qwen1.5-MoE, 12 layers: a third at 8, a sixth
// at 64, a ninth at 128). The part that all tokens have in common makes them prefer the same experts, at any
// depth.
void write_synth(const SynthPlan& plan, const std::string& directory, ThreadPool& threads,
                 const std::function<bool(Bytes)>& go_on);

}  // namespace sluice::model
