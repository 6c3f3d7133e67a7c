// The options of a running model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/machine/cpu.h"
#include "base/stop_request.h"
#include "codec/slices/sliced_matrix.h"
#include "engine/plan/draft_kind.h"
#include "engine/plan/profile.h"
#include "experts/cache/slice_rules.h"
#include "experts/core/tier.h"
#include "experts/device_caches.h"
#include "experts/named_policy.h"
#include "experts/named_preset.h"
#include "experts/routing/constraint_config.h"
#include "experts/routing/loss_guard.h"
#include "experts/routing/precision.h"
#include "experts/routing/router_config.h"
#include "experts/schedule/expert_costs.h"
#include "fetch/fetch_options.h"
#include "kernels/context.h"
#include "kernels/ops/device_math.h"

namespace sluice::experts {
class RoutingScript;
}

namespace sluice::engine {

struct GateResidual;  // gate_residual.h

enum class Math {
  kAuto,  // the key/value cache is BF16
  kF32,   // everything is fp32, for conformance
};
Math parse_math(std::string_view text);                // Error(kUsage)
std::optional<DType> parse_kv(std::string_view text);  // auto (empty), bf16, f32, int8; Error(kUsage)
// Parses and prints "fp32" or "int8". Error(kUsage).
kernels::ActivationForm parse_activations(std::string_view text);
std::string_view activations_name(kernels::ActivationForm form);

enum class CacheScope : std::uint8_t { kGlobal, kLayer };  // one cache for all layers, or one for each
enum class Keep : std::uint8_t { kFull, kPacked };         // the state in which caches keep experts: F or C
// What a slot of the device holds: an expert in any view, or as it is packed; kAuto: as the host keeps it.
enum class DeviceKeep : std::uint8_t { kAuto, kFull, kPacked };
// The view of dense matrices; kAuto: the better one.
enum class DenseForm : std::uint8_t { kAuto, kWords, kPacked };
// Where dense weights and the key/value cache are, and attention is computed; kAuto: the device where they
// fit.
enum class DenseOn : std::uint8_t { kHost, kDevice, kAuto };
// Parse and print "global" "layer"; "full" "packed"; "auto" "full" "packed";
// "auto" "words" "packed"; "host" "device" "auto".
// Error(kUsage).
CacheScope parse_cache_scope(std::string_view text);
std::string_view cache_scope_name(CacheScope scope);
Keep parse_keep(std::string_view text);
std::string_view keep_name(Keep keep);
DeviceKeep parse_device_keep(std::string_view text);
DenseForm parse_dense(std::string_view text);
DenseOn parse_dense_on(std::string_view text);

using DeviceMath = kernels::DeviceMath;
DeviceMath parse_device_math(std::string_view text);  // "same" "fast"; Error(kUsage)
std::string_view device_math_name(DeviceMath math);

// What a user asks for, by flags or by a request; blank where the user says nothing. Policies are rows of the
// registry as soon as they are named here. engine_plan.h makes a plan of it.
struct EngineOptions {
  // Budget; empty: what the machine or its cgroup leaves free, less a margin.
  std::optional<Bytes> memory;
  unsigned threads = 0;  // compute threads; 0: usable CPUs
  std::string isa = "auto";
  Math math = Math::kAuto;
  // Type of keys and values in the cache: BF16, F32, I8 (rounded); empty: as math says.
  std::optional<DType> kv;
  DType cache_dtype() const { return kv.value_or(math == Math::kF32 ? DType::kF32 : DType::kBF16); }
  std::size_t chunk = 4096;      // most tokens of one prefill step
  std::size_t positions = 4096;  // key/value cache reserved per sequence
  // For encoder-decoders: most tokens of the encoder's input, reserved likewise.
  std::size_t encoder_positions = 0;
  std::size_t sequences = 1;
  // Positions of all sequences together, at least `positions`, in whole blocks; empty: as many as all of them
  // may have.
  std::optional<std::size_t> kv_tokens;
  Bytes serve = 0;  // kept free for a server, which charges them to the account of that name
  // Passes that may be suspended while another pass runs: room for their rows. Commands need none.
  std::size_t suspended_passes = 0;
  DraftKind draft = DraftKind::kNone;  // what proposes the next tokens of answers
  bool draws = false;  // some sampler will not just take the likeliest token: room for its candidates
  experts::NamedPreset preset;  // empty: auto
  // Each overrides the preset's value; empty: the preset's.
  experts::Named<experts::RouterPolicy> router;
  experts::Named<experts::CachePolicy> cache;
  experts::Named<experts::SchedulerPolicy> scheduler;
  experts::Named<experts::PrefetchPolicy> prefetch;
  experts::Named<experts::PlacementPolicy> placement;
  // The placement of steps with tokens of prompts, where a device is given. Empty: the preset's, unless
  // `placement` is named, which then holds for all steps.
  experts::Named<experts::PlacementPolicy> placement_prefill;
  // A device beside the host, as device::parse_device_spec() reads it. Empty or "none": the host computes
  // everything; "auto": settle_device() puts another one in its place. Its cache is workload-ema where none
  // is named, and the placement then ratio-prefix.
  std::string device;
  bool device_is_found = false;  // nobody has named it: the host computes alone where the device does not fit
  std::string device_lack;       // why "auto" became "none"; else empty
  std::optional<DeviceMath> device_math;  // empty: kSame
  bool allow_timed_bits = false;          // kFast beside a placement by measured times
  experts::Named<experts::CachePolicy> device_cache;
  experts::WorkloadSetting device_cache_rules;
  std::optional<double> link_bytes_per_s;  // its link is no faster, each way; empty: no limit
  // How often each expert was chosen in other text, by sparse layer and expert, and where that is from: for
  // caches of the device that keep what is popular. Error(kInvalid) naming the latter if it is of another
  // shape.
  std::vector<std::vector<double>> popularity;
  std::string popularity_name;                // empty: nothing is known
  std::optional<experts::Tiers> tiers;        // empty: as experts::usual_tiers() says
  std::optional<Bytes> device_memory;         // empty: what its slots need, or usual_device_memory()
  std::optional<std::uint32_t> device_slots;  // experts of each layer that stay there; empty: as many as fit
  // Where dense weights are; kAuto: on the device where they fit beside two experts. Empty: on the host if
  // the device is played, else as kAuto.
  std::optional<DenseOn> dense_on;
  // kAuto: packed where the host keeps experts packed and computes with them so; a preset that packs its
  // slots has the host do so.
  DeviceKeep device_keep = DeviceKeep::kAuto;
  // Experts of a layer that are copied there ahead, at most; empty: the preset's, or 1 for layers of at most
  // 8 experts and 4 for others. Prefetching from disk has no such limit.
  std::optional<std::uint32_t> prefetch_size;
  // What the prefetch dali-residual and traces of predictions add to gate inputs. `auto` takes that prefetch
  // where it foretells routing better than `stream`. Null: nobody has measured it. One of another model is
  // Error(kInvalid) naming residual_name.
  std::shared_ptr<const GateResidual> residual;
  std::string residual_name;
  CacheScope cache_scope = CacheScope::kGlobal;
  DenseForm dense = DenseForm::kAuto;
  std::optional<Keep> keep;  // empty: full, or packed where the device's slots are
  // Measured costs; empty: measured briefly at the start, if a policy needs them.
  std::optional<Profile> profile;
  // f of SPEC §1.8 from recorded routing, for planning; empty: the profile's.
  std::vector<double> ranks;
  // Ignores a profile of another machine; otherwise such a profile is an error.
  bool profile_if_it_fits = false;
  // Asked while an engine begins; Error(kInterrupted) if it says so.
  StopRequest stop = {};
  std::uint64_t seed = 0;
  // Memory that observers of the run take (traces, decision logs), charged to `tables`.
  Bytes recording = 0;
  // For models in slices (SliceMoE; SPEC §4), and for limits on misses. Unset options are the preset's.
  experts::PrecisionMode precision = experts::PrecisionMode::kFull;  // kFull: unset
  experts::CriticalRule critical;                                    // for dbsc
  codec::SliceView low_view = codec::SliceView::kLow;                // at low precision; or kCenter
  // The form of activations that are multiplied with weights in codes: experts in slices, and dense
  // matrices of 8 bits. Unset: int8, but fp32 in Math::kF32; for weights in blocks of codes fp32. The
  // option of an engine is empty if its model has no such weights.
  std::optional<kernels::ActivationForm> activations;
  std::optional<experts::ConstraintMode> constraint;
  // For the constraint; the engine sets its mode, top_j and views. This lambda is for kHard (docs/slicemoe.md
  // says why it is small); other modes use cache_aware's.
  experts::ConstraintConfig limits{.lambda = 0.1};
  experts::CacheAwareRules cache_aware;  // for routers that prefer resident experts
  experts::SmoeRules smoe;               // for the router smoe
  // For the router recorded: what it plays, fitted to the model.
  std::shared_ptr<const experts::RoutingScript> script;
  experts::SlicesConfig slices;  // for slice-lru; rho, if unset, follows from …
  std::optional<double> rho;     // … this: 1 at high precision, 0 at low, else a half
  // Limits the loss (in slices: cache-prior under the constraint hard, slices always fetched; of exact
  // weights: smoe). Where memory holds all experts at high precision, only rounding loses anything.
  std::optional<experts::LossContract> contract;
  // What the router's changes cost this model, for reports; empty: nobody has measured it.
  std::optional<experts::LossModel> routing_losses;
  // Bytes of all expert caches together; empty: what the budget leaves, which differs slightly from start to
  // start. Error(kBudget) where the budget leaves less, unless less is enough; Error(kUsage) for bytes in
  // which no expert's least part fits.
  std::optional<Bytes> cache_bytes;
  bool less_cache_will_do = false;
  // Kernels of formats beyond those of this program, which a checkpoint brings; null: none. Must outlive the
  // engine.
  const kernels::FormatTable* formats = nullptr;
  fetch::FetchOptions fetch;

  bool has_device() const;  // not before settle_device() where `device` is "auto"
};

}  // namespace sluice::engine
