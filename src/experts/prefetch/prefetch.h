// Prefetch policies: which parts of the next sparse layer to fetch while this layer computes. SPEC §2.3,
// §3.4. A policy knows neither files nor links: the same object names what to read from the disk into the
// host's memory, or what to copy from there to a device (LayerState::tier).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "experts/core/ids.h"
#include "experts/core/residency_view.h"
#include "experts/routing/router.h"

namespace sluice::experts {

class ExpertTransitions;  // expert_transitions.h
class WorkloadForecast;   // workload_forecast.h

// How the scores of the next sparse layer's router are predicted. engine/forward/predictor.h computes them;
// replays take them from traces, or from recorded gate inputs.
enum class PredictorKind : std::uint8_t {
  kNone,       // not at all
  kStream,     // the next layer's norm and router applied to the residual stream as it is now
  kGateInput,  // the next layer's router applied to what this layer's router saw
  kResidual,   // the same, with the mean difference of the two inputs added (residual.h)
  // The next layer's attention, norm and router applied to the residual stream with what shared experts add,
  // and those of the chosen experts that are in the nearest memory. Prompts use nearly all experts and are
  // not predicted.
  kPartial,
};
// The predictor's name in traces (docs/trace-format.md): "stream" "raw" "residual" "partial"; kNone has none.
std::string_view predictor_name(PredictorKind kind);
constexpr bool predicts_prompts(PredictorKind kind) { return kind != PredictorKind::kPartial; }

constexpr std::uint32_t kAnyRequests = std::numeric_limits<std::uint32_t>::max();

// What is known once a layer has been routed. Non-owning.
struct LayerState {
  std::uint32_t layer = 0;    // sparse layer that was routed
  std::uint32_t layers = 0;   // sparse layers of the model
  std::uint32_t experts = 0;  // routed experts of a layer
  const Routing* routing = nullptr;
  // The next layer on that tier, logical. What is of no use there is shown as resident.
  const ResidencyView* residency = nullptr;
  // The scores that the next sparse layer's router is predicted to give. Null at the last sparse layer, and
  // for policies without a predictor.
  const ScoresView* next = nullptr;
  std::uint32_t top_k = 0;
  // The parts of an expert that an event certainly computes with; more may be decided when it comes.
  Parts certain = Part::kFull;
  Tier tier = Tier::kHost;            // where the parts are to go
  std::uint32_t most = kAnyRequests;  // requests that are wanted
};

// Parts of an expert that are to be brought to a tier.
struct PartRequest {
  ExpertId id;
  Parts parts;
  Tier tier = Tier::kHost;
};

// Proposals run at the lowest priority, on idle links only, and change no state that affects results.
// Thread-compatible.
class Prefetch {
 public:
  virtual ~Prefetch() = default;
  // Appends what to fetch, most useful first, at most state.most; nothing at the last sparse layer. Called
  // once the layer has been routed. With the predictor kStream it may be called again when the layer has been
  // computed, because the stream then has all of it: the later answer replaces the earlier one.
  virtual void propose(const LayerState& state, std::vector<PartRequest>& out) = 0;
  virtual PredictorKind predictor() const { return PredictorKind::kNone; }
  virtual bool prefetches() const { return true; }  // false: it proposes nothing, ever
  // What the last proposal was made of; null for a policy that foretells no numbers of tokens.
  virtual WorkloadForecast* forecast() { return nullptr; }
  virtual std::string name() const = 0;
};

struct PrefetchConfig {
  std::uint64_t seed = 0;  // for `random`
  // How often which expert followed which, in other text: for `stat`, which it must outlive.
  const ExpertTransitions* transitions = nullptr;
  double alpha = 0.25;  // SmoeRules::alpha, for `smoe-partial`
};

std::unique_ptr<Prefetch> make_none_prefetch(const PrefetchConfig&);
std::unique_ptr<Prefetch> make_all_next_prefetch(const PrefetchConfig&);
std::unique_ptr<Prefetch> make_eam_prefetch(const PrefetchConfig&);
std::unique_ptr<Prefetch> make_stream_prefetch(const PrefetchConfig&);
std::unique_ptr<Prefetch> make_raw_prefetch(const PrefetchConfig&);
std::unique_ptr<Prefetch> make_dali_residual_prefetch(const PrefetchConfig&);
std::unique_ptr<Prefetch> make_stat_prefetch(const PrefetchConfig&);  // Error(kUsage) without transitions
std::unique_ptr<Prefetch> make_smoe_partial_prefetch(const PrefetchConfig&);
std::unique_ptr<Prefetch> make_smoe_partial_all_prefetch(const PrefetchConfig&);
std::unique_ptr<Prefetch> make_random_prefetch(const PrefetchConfig&);

}  // namespace sluice::experts
