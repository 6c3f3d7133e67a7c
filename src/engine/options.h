// What a caller may choose about a running model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/dtype.h"
#include "codec/sliced_matrix.h"
#include "engine/profile.h"
#include "experts/loss_guard.h"
#include "experts/registry.h"
#include "fetch/weight_files.h"
#include "kernels/context.h"
#include "store/checkpoint.h"

namespace sluice::engine {

enum class Math {
  kAuto,  // the key/value cache is BF16
  kF32,   // everything is fp32: the conformance path
};
Math parse_math(std::string_view text);                // Error(kUsage)
std::optional<DType> parse_kv(std::string_view text);  // auto (none), bf16, f32, int8; Error(kUsage)
// "fp32" or "int8", and back. Error(kUsage)
kernels::ActivationForm parse_activations(std::string_view text);
std::string_view activations_name(kernels::ActivationForm form);

struct EngineOptions {
  std::optional<Bytes> memory;  // budget; none: what the machine or its cgroup leaves free, less a margin
  unsigned threads = 0;         // compute threads; 0: usable CPUs
  std::string isa = "auto";
  Math math = Math::kAuto;
  std::optional<DType> kv;   // of keys and values in the cache: BF16, F32, I8 (rounded); none: as math says
  std::size_t chunk = 4096;  // most tokens of one prefill step
  std::size_t positions = 4096;  // key/value cache reserved per sequence
  std::size_t encoder_positions =
      0;  // encoder-decoders: most tokens of the encoder's input, reserved likewise
  std::size_t sequences = 1;
  bool draws = false;  // some sampler will not just take the likeliest token: room for its candidates
  std::string preset;  // empty: auto
  // Each overrides the preset's; empty: the preset's.
  std::string router, cache, scheduler, prefetch, placement;
  std::string cache_scope = "global";  // or "layer"
  std::string dense = "auto";          // view of dense matrices: words, packed, or what is better
  std::string keep = "full";           // state that caches keep experts in: full (F) or packed (C)
  // Of caches with pools (zip-pools) and of schedulers that plan.
  experts::PoolSharing sharing = experts::PoolSharing::kPlanned;
  std::optional<Profile> profile;  // measured costs; none: measured briefly at the start, if they are needed
  std::vector<double> ranks;  // f of SPEC §1.8 from recorded routing, to plan with; empty: the profile's
  bool profile_if_it_fits = false;  // a profile of another machine is left aside; otherwise it is an error
  // Baselines (experts::Preset).
  bool whole_layers = false, synchronous = false;
  std::uint64_t seed = 0;
  Bytes recording = 0;  // that observers of the run take (traces, decision logs), charged to `tables`
  // Of models in slices (SliceMoE; SPEC §4), and of limits on misses. Where nothing is said: the preset's.
  experts::PrecisionMode precision = experts::PrecisionMode::kFull;  // kFull: nothing is said
  experts::CriticalRule critical;                                    // of dbsc
  codec::SliceView low_view = codec::SliceView::kLow;                // of low precision; or kCenter
  // What weights in codes are multiplied with: experts in slices, and dense matrices of 8 bits. Nothing said:
  // int8, but fp32 in Math::kF32. Of an engine whose model has no such weights: nothing.
  std::optional<kernels::ActivationForm> activations;
  std::optional<experts::ConstraintMode> constraint;
  // Of the constraint; its mode, top_j and views are set. This lambda is that of kHard (docs/slicemoe.md says
  // why it is small), of others it is cache_aware's.
  experts::ConstraintConfig limits{.lambda = 0.1};
  experts::CacheAwareRules cache_aware;  // of routers that prefer what is in memory
  experts::SlicesConfig slices;          // of slice-lru; rho is set where it is not said …
  std::optional<double> rho;             // … here: 1 at high precision, 0 at low, else a half
  // Limits what is lost (cache-prior under the constraint hard, slices always fetched). Where memory holds
  // all experts at high precision, nothing but the rounding is lost.
  std::optional<experts::LossContract> contract;
  // Of all caches of experts together; none: what the budget leaves, which differs a little from start to
  // start. Error(kBudget) where it leaves less, unless that would do; Error(kUsage) for something that no
  // expert's least part fits in.
  std::optional<Bytes> cache_bytes;
  bool less_cache_will_do = false;
  fetch::FetchOptions fetch;
};

// With what the preset says wherever nothing else was said; `preset` is a name, and no blank is left.
// `split`, `sliced`: how the model's experts are stored. `auto` is ZipMoE where they are stored split, so
// that there are states to choose from; otherwise whole experts, of which the least recently used leaves.
// Error(kUsage) for a preset that is none.
EngineOptions with_preset(EngineOptions options, bool split, bool sliced);

// experts::check_combination() of what with_preset() gives, for a model whose experts are stored as `family`
// says.
void check_combination(const EngineOptions& options, store::Family family);

}  // namespace sluice::engine
