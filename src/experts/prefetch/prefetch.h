// Prefetch policies: which parts of the next sparse layer to fetch while this layer computes. SPEC §2.3,
// §3.4.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "experts/core/ids.h"
#include "experts/core/residency_view.h"
#include "experts/routing/router.h"

namespace sluice::experts {

// How the scores of the next sparse layer's router are predicted. engine/forward/predictor.h computes them.
enum class PredictorKind : std::uint8_t {
  kNone,    // not at all
  kStream,  // the next layer's norm and router applied to the residual stream as it is now
};

// What is known once a layer has been routed. Non-owning.
struct LayerState {
  std::uint32_t layer = 0;    // sparse layer that was routed
  std::uint32_t layers = 0;   // sparse layers of the model
  std::uint32_t experts = 0;  // routed experts of a layer
  const Routing* routing = nullptr;
  const ResidencyView* residency = nullptr;  // logical
  // The scores that the next sparse layer's router is predicted to give. Null at the last sparse layer, and
  // for policies without a predictor.
  const ScoresView* next = nullptr;
  std::uint32_t top_k = 0;
  // The parts of an expert that an event certainly computes with; more may be decided when it comes.
  Parts certain = Part::kFull;
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
  // Appends what to fetch, most useful first; nothing at the last sparse layer. Called once the layer has
  // been routed. With a predictor it is called again when the layer has been computed, because they are then
  // more certain: the later answer replaces the earlier one.
  virtual void propose(const LayerState& state, std::vector<PartRequest>& out) = 0;
  virtual PredictorKind predictor() const { return PredictorKind::kNone; }
  virtual std::string name() const = 0;
};

std::unique_ptr<Prefetch> make_none_prefetch();
std::unique_ptr<Prefetch> make_all_next_prefetch();
std::unique_ptr<Prefetch> make_eam_prefetch();
std::unique_ptr<Prefetch> make_lookahead_prefetch();

}  // namespace sluice::experts
