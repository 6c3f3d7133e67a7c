// What an engine does: EngineOptions, of which most are blank, resolved once for one model. Only when the
// engine opens its device is it known what that computes otherwise than the host; settled_plan() makes the
// plan to run by from what it finds (engine/device_check.h). A plan never changes.
//
//   EngineOptions     what flags or a request say            options.h
//   ModelFacts        what the model's files say
//   resolve()         presets filled in, everything checked that needs no budget
//   EnginePlan        rows of the registry, enumerators, numbers
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/choice/device_spec.h"
#include "engine/plan/lacking_experts.h"
#include "engine/plan/options.h"
#include "engine/plan/policy_plan.h"
#include "experts/core/part_rules.h"
#include "kernels/check/unit_check.h"

namespace sluice::model {
struct Model;
}
namespace sluice::store {
class Checkpoint;
}

namespace sluice::engine {

// The facts about a model that options depend on.
struct ModelFacts {
  std::string path;
  std::optional<codec::SliceBits> slices{};  // slices of a store of family sliced
  bool blocks = false;                       // some matrix is in blocks of codes
  experts::Family family = experts::Family::kRaw;
  bool split = false;        // every expert is stored as sm and exp; true where there are no experts
  bool packable = false;     // … and can be computed with so
  bool has_experts = false;  // routed ones
  bool has_encoder = false;
  std::uint32_t experts = 0, top_k = 0;  // experts of a layer, experts of a token
  LackingExperts gpus_lack = {};         // for which a GPU has no kernels

  bool sliced() const { return slices.has_value() && has_experts; }
  bool packed_states() const { return split && has_experts; }  // there are states to choose from
};
ModelFacts facts_of(const store::Checkpoint& checkpoint, const model::Model& model);

// What a slot of a device holds: an expert in any view, or packed, which takes two thirds of that; or, of an
// expert in slices, both slices or the MSB alone.
struct SlotChoice {
  bool packed = false;
  std::string why;
  experts::Parts slices = {};  // empty: experts are not in slices

  std::string_view form() const;  // "full" "packed" "msb+lsb" "msb"
};

// A device beside the host, as asked for.
struct DeviceChoice {
  device::DeviceSpec spec;  // with the link as it is limited
  // What the user's limit of the link takes away; empty: nothing.
  struct LinkLimit {
    // Bytes a second without it, as device::DeviceSpec::link_limit(); `inf` where it is not paced; empty:
    // nobody knows before it is measured.
    std::optional<double> without = {};
  };
  std::optional<LinkLimit> link_limit = {};
  std::optional<Bytes> memory;
  std::optional<std::uint32_t> slots;
  DenseOn dense_on = DenseOn::kHost;
  DeviceMath math = DeviceMath::kSame;
  std::uint32_t prefetch_size = 0;                   // experts of a layer that are copied ahead; 0: none
  std::vector<std::vector<double>> popularity = {};  // as in EngineOptions
  std::string popularity_name = {};
  SlotChoice slot_form = {};
  bool copies_packed = false;  // experts cross the link packed; always so if slots are
  // Experts that the host computes, whatever the placement: the device has no good kernels for them.
  LackingExperts experts_lack = {};
};

struct EnginePlan {
  std::optional<Bytes> memory;  // empty: default_budget()
  unsigned threads = 0;         // 0: usable CPUs
  Isa isa = Isa::kScalar;
  Math math = Math::kAuto;
  std::optional<DType> kv;           // as asked for
  DType cache_dtype = DType::kBF16;  // the type of keys and values
  std::size_t chunk = 0, positions = 0, encoder_positions = 0, sequences = 1;
  std::optional<std::size_t> kv_tokens;  // as in EngineOptions
  Bytes serve = 0;
  std::size_t suspended_passes = 0;
  DraftKind draft = DraftKind::kNone;
  bool draws = false;
  CacheScope cache_scope = CacheScope::kGlobal;
  Keep keep = Keep::kFull;
  DenseForm dense = DenseForm::kAuto;
  std::optional<Profile> profile;
  bool profile_if_it_fits = false;
  StopRequest stop = {};  // as in EngineOptions
  std::vector<double> ranks;
  std::string residual_name;  // as in EngineOptions
  std::uint64_t seed = 0;
  Bytes recording = 0;
  codec::SliceView low_view = codec::SliceView::kLow;
  std::optional<kernels::ActivationForm> activations;  // empty: the model has no weights in codes or blocks
  std::optional<Bytes> cache_bytes;
  bool less_cache_will_do = false;
  const kernels::FormatTable* formats = nullptr;  // as in EngineOptions
  fetch::FetchOptions fetch;
  std::optional<DeviceChoice> device;  // empty: the host computes everything …
  std::string no_device;               // … and why, where a device was found that nobody asked for
  // What a device has computed otherwise than the host when it was opened (device_check.h).
  std::vector<kernels::UnitFault> device_faults = {};
  // Where nobody asked for the device: the plan to follow if it turns out that it cannot be used. Else null.
  std::shared_ptr<const EnginePlan> without_device;
  PolicyPlan policies;
  // For a budget in which all experts fit. Under a contract: the policies that lose nothing but what rounding
  // loses; else, where the usual cache would learn what to keep: with one that does not. Empty without both.
  std::optional<PolicyPlan> where_all_fits;
};

// Error(kUsage) that names the setting at fault. Where settle_device() has found the device, it is only taken
// if it goes with everything else.
EnginePlan resolve(const EngineOptions& options, const ModelFacts& facts);
EnginePlan resolve(const EngineOptions& options, const store::Checkpoint& checkpoint,
                   const model::Model& model);

}  // namespace sluice::engine
